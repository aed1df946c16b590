"""The paper's statements against listing, sampling and integrating; and what is ours."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from tokenspace.errors import ParameterError
from tokenspace.flow.exact import MarkovMixture
from tokenspace.flow.path import (
    Gumbel,
    corrupt,
    follow,
    linear,
    preserving,
    snr,
    time_of,
)
from tokenspace.flow.predictor import context_free, embeddings, log_kernel
from tokenspace.flow.theory import (
    audit,
    brier,
    brute_force,
    certify,
    excess_of,
    extreme_share,
    geometry,
    hull_average,
    margin,
    nearest_accuracy,
    proposition_2,
    proposition_2_bound,
    proposition_3,
    quantile_map,
    theorem_grid,
    threshold,
)


def noise(*shape, seed=100):  # not the seed of the rows
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(*shape, generator=generator, dtype=torch.float64)


def gamma_of(t):
    """γ of the linear path's t: the inverse of `time_of`."""
    return -2 * torch.logit(t)


# --- Proposition 1 (the oracle itself is in test_exact)


def test_a_position_s_posterior_is_its_kernel_times_what_the_others_say():
    source, E = MarkovMixture.random(V=3, components=2, branching=1), noise(3, 2)
    gamma = torch.tensor(0.0).double()
    x = corrupt(E[source.sample(5, 4, torch.Generator().manual_seed(0))], gamma, noise(5, 4, 2))
    full, without = brute_force(source, x, gamma, E)
    alpha, sigma = preserving(gamma)
    kernel = -torch.stack([(x - alpha * e).square().sum(-1) for e in E], -1) / (2 * sigma**2)
    torch.testing.assert_close((without + kernel).log_softmax(-1), full)
    moved = x.clone()
    moved[:, 1] += 1  # tells nothing to the posterior that leaves position 1 out
    torch.testing.assert_close(brute_force(source, moved, gamma, E)[1][:, 1], without[:, 1])


def test_too_many_sequences_to_list_are_refused():
    source, E = MarkovMixture.random(), embeddings(12, 12, 0)
    with pytest.raises(ParameterError, match=r"12\^5 sequences are too many"):
        brute_force(source, torch.zeros(1, 5, 12), torch.tensor(0.0), E)


# --- hull identity A


@settings(max_examples=15, deadline=None)
@given(st.lists(st.floats(0.01, 1.0), min_size=2, max_size=9), st.integers(0, 5))
def test_every_grid_ends_at_a_mixture_of_its_start_and_a_point_of_the_hull(steps, seed):
    t = torch.tensor([0.0, *steps], dtype=torch.float64).cumsum(0)
    t = 0.99 * t / t[-1]
    E, x = noise(5, 2, seed=seed), noise(7, 2, seed=seed + 1)
    prior = torch.full((5,), 0.2).double()
    for points in (linear(t), preserving(gamma_of(t.clamp_min(1e-4)))):
        xs, means = follow(
            lambda x, at: context_free(x, gamma_of(at[0] / (at[0] + at[1])), E, prior).mean,
            x, points,
        )  # fmt: skip
        average = hull_average(means, points)
        (a0, a), (s0, s) = ((p[0], p[-1]) for p in points)
        torch.testing.assert_close(xs[-1], s / s0 * x + (a - s * a0 / s0) * average)
        for direction in noise(20, 2, seed=9):  # in the hull: no support function is passed
            assert bool((average @ direction <= (E @ direction).max() + 1e-9).all())


# --- Theorem 1's grid


@pytest.mark.parametrize(("delta", "end"), [(0.5, 0.1), (0.1, 0.1), (0.05, 0.05)])
def test_the_coarsest_grid_that_theorem_1_allows_has_too_many_steps(delta, end):
    t = theorem_grid(delta, end)
    steps = len(t) - 1
    torch.testing.assert_close(
        t.diff() / (1 - t[1:]) ** 3, torch.full((steps,), delta).double(), rtol=1e-6, atol=0
    )
    assert 1 - float(t[-1]) <= end < 1 - float(t[-2])
    assert steps == pytest.approx((end**-2 - 1) / (2 * delta), rel=0.06)
    # the proof needs N δ² bounded, and (c) alone lets it grow like δ/2ε²
    assert steps * delta**2 == pytest.approx(delta / (2 * end**2), rel=0.06)


@pytest.mark.parametrize(("delta", "end"), [(0.0, 0.1), (-1.0, 0.1), (0.1, 0.0), (0.1, 1.0)])
def test_a_grid_that_is_none_is_refused(delta, end):
    with pytest.raises(ParameterError, match="delta = "):
        theorem_grid(delta, end)


# --- Proposition 2


@pytest.mark.parametrize("gammas", [[6.0, 0.0, -4.0], [20.0, 3.0, 2.9, 2.0, -1.0, -12.0]])
def test_proposition_2_s_flow_only_rescales_its_start(gammas):
    gammas, x = torch.tensor(gammas).double(), noise(9, 4)
    points = preserving(gammas)
    xs, means = follow(lambda x, at: proposition_2(x, gamma_of(at[0] / (at[0] + at[1]))), x, points)
    scale = points[0] + points[1]
    torch.testing.assert_close(xs, (scale / scale[0])[:, None, None] * x)
    torch.testing.assert_close(means, means[:1].expand_as(means))  # constant along each path


@pytest.mark.parametrize(("d", "value"), [(2, 0.0543), (16, 0.0698), (768, 0.0774)])
def test_proposition_2_misses_every_token_at_least_this_often(d, value):
    bound = proposition_2_bound(d)
    assert bound == pytest.approx(value, abs=1e-4)
    E, x = embeddings(20, d, 0, "gaussian").double(), noise(4000, d)
    missed = (torch.cdist(x, E).min(1).values >= 1).double().mean()  # its flow ends at N(0, I)
    assert float(missed) >= bound - 4 * math.sqrt(bound / 4000)


# --- Proposition 3


@given(st.integers(0, 10_000), st.floats(0.1, 20))
def test_a_mean_as_long_as_a_row_needs_weights_near_one_hot(seed, temperature):
    E = embeddings(7, 4, seed, "gaussian").double()
    weights = (temperature * noise(11, 7, seed=seed)).softmax(-1)
    share, bound = proposition_3(weights, E)
    assert bool((share <= bound + 1e-6).all())  # rows are of one norm in fp32


def test_the_bound_of_proposition_3_is_met_by_orthogonal_rows():
    weights = noise(5, 7).softmax(-1)
    share, bound = proposition_3(weights, embeddings(7, 7, 0).double())
    torch.testing.assert_close(share, bound)


# --- exact flows


@pytest.mark.parametrize(("n", "share"), [(32, 0.65), (64, 0.76), (512, 0.95)])
def test_at_the_end_of_the_released_grid_the_nearest_row_is_often_wrong(n, share):
    gamma = Gumbel(4.9563, 0.9637).grid(n)[-1]
    found = nearest_accuracy(float(snr(gamma)), 50257, 768)
    assert found == pytest.approx(share, abs=0.006)


def test_nearest_accuracy_agrees_with_drawing():
    V, d, gamma = 30, 40, torch.tensor(2.5).double()
    tokens = torch.arange(V).repeat(200)
    E = embeddings(V, d, 0).double()
    x = corrupt(E[tokens], gamma, noise(len(tokens), d))
    p = nearest_accuracy(float(snr(gamma)), V, d)
    right = ((x @ E.T).argmax(1) == tokens).double().mean()
    assert 0.2 < p < 0.8
    assert abs(float(right) - p) < 4 * math.sqrt(p * (1 - p) / len(tokens))


def test_on_a_line_the_exact_flow_is_the_quantile_map():
    tokens, prior = torch.tensor([0.5, -1.5, 2.0]).double(), torch.tensor([0.5, 0.3, 0.2]).double()
    x = noise(4000)
    t = time_of(torch.linspace(14, -8, 1200).double())
    t = torch.cat([torch.zeros(1).double(), t])

    def mean(x, at):
        logits = prior.log() + (at[0] * x * tokens - (at[0] * tokens) ** 2 / 2) / at[1] ** 2
        return (logits.softmax(-1) @ tokens)[:, None]

    xs, _ = follow(mean, x[:, None], linear(t))
    ends = (xs[-1] - tokens).abs().argmin(1)
    edges = torch.special.ndtri(torch.tensor([0.3, 0.8]).double())  # steps blur the edges a little
    clear = ((x[:, None] - edges).abs() > 3e-3).all(1)
    assert int((ends != quantile_map(x, tokens, prior))[clear].sum()) == 0
    assert int(clear.sum()) > 3900


# --- the loss, and what it can identify


def test_with_orthogonal_rows_the_squared_error_is_d_times_the_brier_score():
    E, weights = embeddings(6, 9, 0).double(), noise(40, 6).softmax(-1)
    tokens = torch.arange(40) % 6
    errors = (weights @ E - E[tokens]).square().sum(-1)
    torch.testing.assert_close(errors, 9 * brier(weights, tokens), rtol=1e-5, atol=1e-5)


def test_rows_of_one_norm_are_all_extreme_points_and_raw_gaussian_rows_are_not():
    assert extreme_share(embeddings(200, 4, 0, "gaussian")) == 1
    shares = torch.tensor([extreme_share(noise(200, 4, seed=seed)) for seed in range(8)])
    assert float(shares.mean()) == pytest.approx(0.29, abs=0.04)


@pytest.mark.parametrize("d", [1, 9])
def test_a_hull_in_too_many_dimensions_is_refused(d):
    with pytest.raises(ParameterError, match="from 2 to 8"):
        extreme_share(noise(20, d))


# --- certificates: trajectories end where they say, at every step size


def test_the_margin_is_the_distance_to_the_voronoi_face_times_that_of_the_rows():
    E, y = noise(5, 3), noise(40, 3, seed=1)
    token, m = margin(y, E)
    for row, v, found in zip(y, token, m, strict=True):
        faces = [float((row - (E[u] + E[v]) / 2) @ (E[v] - E[u])) for u in range(5) if u != int(v)]
        assert float(found) == pytest.approx(min(faces), abs=1e-9)
    assert bool((m >= 0).all())


def test_geometry_by_hand():
    E = torch.tensor([[0.0, 0.0], [3.0, 4.0], [0.0, 1.0]])
    assert geometry(E) == pytest.approx((0.5, 5.0))


def test_the_threshold_by_hand():
    E = torch.tensor([[0.0, 0.0], [3.0, 4.0], [0.0, 1.0]])
    by_hand = 0.01 * (2 * 1.5 + math.log(2 * 2 * (0.5 + 12.5) / 0.5))
    assert float(threshold(torch.tensor(0.1), 3.0, E)) == pytest.approx(by_hand, rel=1e-6)


def test_excess_is_what_was_added_to_the_kernel():
    E, y, s = noise(5, 3), noise(40, 3, seed=1), torch.tensor(0.7).double()
    added = 2 * torch.rand(40, 5, generator=torch.Generator().manual_seed(0)).double() - 1
    logits = added + log_kernel(y, torch.ones_like(s), s, E)
    token, _ = margin(y, E)
    expected = added.amax(1) - added.gather(1, token[:, None])[:, 0]
    torch.testing.assert_close(excess_of(logits, y, s, E), expected)
    assert bool((expected <= 2).all())  # a logit error of at most B: an excess of at most 2B


def test_no_certificate_is_given_where_the_threshold_is_not_below_half_of_g():
    """Two tokens ±1: g/2 = 1 and θ = s² log 4, so the largest s is 0.849, wherever y is."""
    E, y = torch.tensor([[1.0], [-1.0]]), torch.tensor([[5.0]])
    for s, token in ((0.84, 0), (0.86, -1), (1.0, -1)):
        assert certify(y, torch.tensor(s), E, 0.0).tolist() == [token]


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 1000), st.floats(0, 8), st.integers(2, 12))
def test_a_certified_trajectory_ends_at_its_token_whatever_the_error_and_the_steps(
    seed, bound, steps
):
    """The error is redrawn at every step and point: only its bound is kept."""
    E, generator = noise(5, 2, seed=seed), torch.Generator().manual_seed(seed)
    s = torch.logspace(0, -4, steps + 1).double() * geometry(E)[0] ** 0.5

    def mean(y, at):
        error = bound * (2 * torch.randint(2, (len(y), 5), generator=generator) - 1)
        return (log_kernel(y, *at, E) + error).softmax(-1) @ E

    ys, _ = follow(mean, noise(60, 2, seed=seed + 1), (torch.ones_like(s), s))
    named = torch.stack([certify(y, at, E, 2 * bound) for y, at in zip(ys, s, strict=True)])
    final, _ = margin(ys[-1], E)
    wrong, _ = audit(named, final)
    assert wrong == 0
    once = (named >= 0).int().cummax(0).values
    assert torch.equal((named >= 0).int(), once)  # a certificate is never lost again


def test_the_oracle_of_a_known_source_is_certified_by_the_bound_of_its_context():
    source, E = MarkovMixture.random(V=6, branching=2), embeddings(6, 6, 0).double()
    oracle, bound = source.oracle(E), source.log_odds_bound()
    s = torch.logspace(2, -2, 24).double()

    def mean(y, at):
        gamma = 2 * at[1].log()
        return oracle(y / (1 + at[1] ** 2).sqrt(), gamma).mean

    ys, _ = follow(mean, s[0] * noise(40, 8, 6), (torch.ones_like(s), s))
    named = torch.stack([certify(y, at, E, bound) for y, at in zip(ys, s, strict=True)])
    final, _ = margin(ys[-1], E)
    assert audit(named, final) == (0, 0)
    assert bool((named[0] < 0).all())


def test_an_audit_counts_what_was_wrong_and_what_was_never_certain():
    named = torch.tensor([[-1, -1, 2], [0, -1, 2], [1, -1, 1]])
    assert audit(named, torch.tensor([1, 0, 2])) == (2, 1)


def test_equal_rows_are_refused():
    with pytest.raises(ParameterError, match="two equal rows"):
        certify(torch.zeros(1, 2), torch.tensor(0.1), torch.ones(3, 2), 0.0)
