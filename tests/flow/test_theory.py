"""The paper's statements against listing, sampling and integrating; and what is ours."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from tokenspace.errors import ParameterError
from tokenspace.flow.exact import MarkovMixture
from tokenspace.flow.path import Gumbel, corrupt, follow, preserving, snr
from tokenspace.flow.predictor import embeddings, log_kernel
from tokenspace.flow.theory import (
    audit,
    brute_force,
    certify,
    excess_of,
    geometry,
    margin,
    nearest_accuracy,
    theorem_grid,
    threshold,
)


def noise(*shape, seed=100):  # not the seed of the rows
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(*shape, generator=generator, dtype=torch.float64)


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


# --- exact noise


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


# --- certificates: trajectories end where they say, at every step size


def test_the_margin_is_the_distance_to_the_voronoi_face_times_that_of_the_rows():
    E, y = noise(5, 3), noise(40, 3, seed=1)
    token, m = margin(y, E)
    for row, v, found in zip(y, token, m, strict=True):
        faces = [float((row - (E[u] + E[v]) / 2) @ (E[v] - E[u])) for u in range(5) if u != int(v)]
        assert float(found) == pytest.approx(min(faces), abs=1e-9)
    assert bool((m >= 0).all())


def test_geometry_and_threshold_by_hand():
    E = torch.tensor([[0.0, 0.0], [3.0, 4.0], [0.0, 1.0]])
    assert geometry(E) == pytest.approx((0.5, 5.0))
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
