"""Plans against the paper's oracles; the sampler against closed forms and the exact denoiser."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import nnls

from tokenspace.errors import ParameterError
from tokenspace.flow.exact import MarkovMixture
from tokenspace.flow.judges import judge
from tokenspace.flow.path import Gumbel, ddim_step, preserving, time_of
from tokenspace.flow.predictor import Hull, Prediction, embeddings
from tokenspace.flow.sampling import Mechanism, plan, sample

RELEASED = Gumbel(4.9563, 0.9637)
TIMES = Gumbel(1.5, 1.0)
E = embeddings(5, 8, seed=0).double()


def conditioned(x, gamma, c):
    """A denoiser in the hull that reads its condition."""
    logits = 0.2 * x @ E.T + c @ E.T * 0.1 + torch.linspace(0, 1, 5)
    return Prediction(logits, logits.softmax(-1) @ E)


def run(mechanism, nfe=12, denoiser=conditioned, seed=0, **more):
    how = plan(nfe, mechanism, TIMES)
    return sample(denoiser, how, (4, 6, 8), torch.Generator().manual_seed(seed), **more)


def hull_distance(points, E):
    """By least squares over weights >= 0, their sum held at 1 by a large weight."""
    rows, at = E.double().numpy(), points.double().numpy()
    A = np.vstack([rows.T, np.full(len(rows), 1e4)])
    weights = np.stack([nnls(A, np.append(point, 1e4))[0] for point in at])
    return torch.from_numpy(np.linalg.norm(weights @ rows - at, axis=1))


@pytest.mark.parametrize(
    ("nfe", "schedule", "K", "N"),
    [
        (64, "A", 1, 32), (64, "A", 2, 22), (64, "A", 3, 16), (64, "A", 8, 8),
        (64, "C", 10, 29), (64, "C", 25, 20), (64, "C", 50, 13), (64, "C", 100, 7),
        (64, "B", 10, 18), (64, "B", 25, 9), (128, "B", 40, 13),
        (128, "C", 50, 26), (128, "C", 100, 15), (128, "C", 200, 8),
    ],
)  # fmt: skip
def test_the_papers_grids(nfe, schedule, K, N):
    found = plan(nfe, Mechanism(K=K, schedule=schedule), RELEASED)
    assert len(found.gammas) == N
    assert found.nfe == nfe


@settings(deadline=None)  # the first plan of a busy machine is slow
@given(st.integers(1, 200), st.integers(0, 40), st.sampled_from("ABC"), st.sampled_from([0.0, 2.0]))
def test_a_plan_spends_what_it_is_given(nfe, K, schedule, w):
    mechanism = Mechanism(K=K, schedule=schedule, w_scg=w)
    if nfe < 1 + math.ceil(mechanism.refinements * float(mechanism.g(TIMES.grid(1)))):
        with pytest.raises(ParameterError, match="is below"):
            plan(nfe, mechanism, TIMES)
        return
    found = plan(nfe, mechanism, TIMES)
    assert found.nfe == nfe
    assert min(found.refinements) >= 0
    assert bool((found.gammas.diff() < 0).all())


def test_a_schedule_gives_up_or_adds_one_evaluation_at_a_time():
    counts = plan(10, Mechanism(K=3), TIMES).refinements  # 3 points of 4 are 2 too many
    assert counts == [2, 2, 3]
    how = plan(64, Mechanism(K=10, schedule="C"), RELEASED)
    wanted = 10 * time_of(how.gammas)
    extra = torch.tensor(how.refinements) - wanted.ceil()
    assert set(extra.tolist()) <= {0.0, 1.0}
    added = wanted.frac()[extra == 1]
    assert added.numel() == 0 or float(added.min()) >= float(wanted.frac()[extra == 0].max())


def test_factors_of_the_schedules():
    gamma = torch.tensor([-2.0, 0.0, 3.0], dtype=torch.float64)
    alpha, sigma = preserving(gamma)
    assert Mechanism(schedule="A").g(gamma).tolist() == [1, 1, 1]
    assert torch.allclose(Mechanism(schedule="B").g(gamma), 1 / (1 + (sigma / alpha).sqrt()))
    assert torch.allclose(Mechanism(schedule="C").g(gamma), time_of(gamma))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Mechanism(w_scg=-1.0), "w_scg = -1.0"),
        (lambda: Mechanism(w_ug=float("nan")), "w_ug = nan"),
        (lambda: Mechanism(K=-1), "K = -1"),
        (lambda: Mechanism(schedule="D"), "one of A, B, C"),
        (lambda: Mechanism(K=2, rolling=True), "rolling"),
        (lambda: plan(8, Mechanism(K=100, schedule="C"), TIMES), "nfe = 8 is below"),
        (lambda: plan(3, Mechanism(K=3), TIMES), "nfe = 3 is below 4"),
        (lambda: run(Mechanism(), batch=0), "0 at a time"),
        (lambda: run(Mechanism()).decode(E, "nearest"), "rule 'nearest'"),
    ],
)
def test_bad_settings_are_refused(make, message):
    with pytest.raises(ParameterError, match=message):
        make()


def test_guidance_acts_inside_every_refinement_and_not_in_the_last_one_of_all():
    """u^k = u⁰ + w (μ(u^{k-1}) - u⁰); at the last point K - 1 of these, then a plain one."""
    seen, w = [], 2.5
    run(Mechanism(K=2, w_scg=w), nfe=6, watch=seen.append)
    for point in seen:
        first = conditioned(point.x, point.gamma, torch.zeros_like(point.x)).mean
        mean = first + w * (conditioned(point.x, point.gamma, first).mean - first)
        strength = 1.0 if point is seen[-1] else w
        mean = first + strength * (conditioned(point.x, point.gamma, mean).mean - first)
        torch.testing.assert_close(point.mean, mean)


@pytest.mark.parametrize("schedule", ["A", "B", "C"])
def test_a_schedule_scales_both_guidances_at_each_point(schedule):
    mechanism = Mechanism(K=2, w_scg=3.0, w_ug=0.4, schedule=schedule)
    how = plan(24, mechanism, TIMES)
    g = mechanism.g(how.gammas)
    torch.testing.assert_close(how.w_scg, 3 * g)
    torch.testing.assert_close(how.w_ug, 0.4 * g)
    seen = []
    sample(conditioned, how, (2, 6, 8), torch.Generator().manual_seed(0), watch=seen.append)
    for now, then, w in zip(seen, seen[1:], how.w_ug, strict=False):
        at, to = (preserving(torch.tensor(p.gamma, dtype=torch.float64)) for p in (now, then))
        torch.testing.assert_close(then.x, ddim_step(now.x, now.mean, at, to, float(w)))


def test_the_number_of_evaluations_is_the_plans():
    for mechanism in (
        Mechanism(K=0), Mechanism(K=2, w_scg=2.0), Mechanism(K=9, schedule="C"),
        Mechanism(rolling=True), Mechanism(K=4, w_scg=0.0),
    ):  # fmt: skip
        calls = []

        def counting(x, gamma, c, calls=calls):
            calls.append(float(c.abs().sum()))
            return conditioned(x, gamma, c)

        run(mechanism, nfe=13, denoiser=counting)
        assert plan(13, mechanism, TIMES).nfe == 13 == len(calls)
        if mechanism.rolling:
            assert calls[0] == 0
            assert all(calls[1:])


def test_it_depends_on_neither_batch_nor_watching():
    whole, seen = run(Mechanism(w_ug=0.1)), []
    parts = run(Mechanism(w_ug=0.1), batch=3, watch=seen.append)
    assert torch.allclose(whole.x, parts.x)
    assert torch.equal(whole.decode(E), parts.decode(E))


def test_it_converges_in_the_hull_to_where_all_rules_decode_alike():
    source, seen = MarkovMixture.random(V=5, components=2, branching=2), []
    close = plan(48, Mechanism(K=0), Gumbel(-1.0, 2.5))
    g = torch.Generator().manual_seed(0)
    found = sample(source.oracle(E), close, (8, 6, 8), g, watch=seen.append)
    tokens = [found.decode(E, rule) for rule in ("weights", "mean", "x")]
    assert torch.equal(tokens[0], tokens[1])
    assert torch.equal(tokens[0], tokens[2])
    assert len(seen) == 48
    for point in seen:
        assert float(hull_distance(point.mean.flatten(0, 1), E).max()) < 1e-6
    alpha, sigma = preserving(torch.tensor([p.gamma for p in seen], dtype=torch.float64))
    near, second = torch.cdist(seen[-1].x, alpha[-1] * E).topk(2, largest=False).values.unbind(-1)
    assert float((near / sigma[-1]).median()) < 3 * 8**0.5  # noise that is left, of 8 numbers
    assert float((second / sigma[-1]).median()) > 10 * 8**0.5


def test_the_oracle_sampler_reaches_the_sources_entropy():
    """NLL within .03 of the entropy at N = 64, variety .02; N = 4 is worse by > .05; w_ug."""
    source = MarkovMixture.random(seed=0)
    rows = embeddings(12, 12, seed=0)
    times = Gumbel(1.508, 1.006)
    exact = source.entropy(16, 2000, torch.Generator().manual_seed(0))[0]

    def judged(nfe, **settings):
        how = plan(nfe, Mechanism(K=0, **settings), times)
        g = torch.Generator().manual_seed(1)
        found = sample(source.oracle(rows), how, (400, 16, 12), g, batch=400)
        return judge(found.decode(rows), source)

    data = judge(source.sample(2000, 16, torch.Generator().manual_seed(2)), source)
    fine = judged(64)
    assert fine.nll == pytest.approx(exact, abs=0.03)
    assert fine.entropy == pytest.approx(data.entropy, abs=0.02)
    assert judged(4).nll > fine.nll + 0.05
    mild, strong = judged(24, w_ug=0.2), judged(24, w_ug=0.8)
    assert strong.nll < mild.nll < exact - 0.05
    assert strong.entropy < data.entropy - 0.1
    assert strong.degenerate(data)
    assert strong.bigram_kl > 10 * fine.bigram_kl


def test_a_hull_in_bf16_is_sampled_in_fp64():
    hull = Hull(lambda x, gamma, c: torch.zeros(len(x), 6, 5, dtype=torch.bfloat16), E.float())
    found = run(Mechanism(), denoiser=hull.eval())
    assert found.x.dtype == torch.float64
    assert bool(found.x.isfinite().all())
