"""The plane and the line: who ends on tokens, at which ones, and who does not."""

import math

import pytest
import torch
from scipy import stats
from tests.flow.test_sampling import hull_distance

from tokenspace.errors import ParameterError
from tokenspace.flow.path import follow, linear
from tokenspace.flow.theory import (
    audit,
    certify,
    geometry,
    margin,
    squared_distances,
    theorem_grid,
)
from tokenspace.flow.toy import (
    PRIOR,
    TOKENS,
    clipped,
    exact,
    falling,
    lipschitz,
    lipschitz_constant,
    mistaken,
    outside,
    scales,
    trap,
    two_tokens,
    unconstrained,
)

POINTS = scales(200, last=1e-6)


def plane(mean, n=1000, seed=0):
    z = torch.randn(n, 2, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    ys, _ = follow(mean, POINTS[1][0] * z, POINTS)
    return ys, margin(ys[-1], TOKENS)[0]


def distances(ys):
    return torch.stack([squared_distances(y, TOKENS).amin(-1).sqrt() for y in ys])


def test_the_exact_mean_ends_on_tokens_with_the_prior_s_frequencies():
    ys, ends = plane(exact, n=4000)
    counts = torch.bincount(ends, minlength=5)
    assert stats.chisquare(counts.numpy(), 4000 * PRIOR.numpy()).pvalue > 1e-3
    far, s = distances(ys)[-50:], POINTS[1][-50:]
    slope = (far[-1] / far[0]).log() / (s[-1] / s[0]).log()
    assert float((slope - 1).abs().max()) < 0.02


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_large_logit_errors_still_end_on_tokens_but_not_with_the_right_frequencies(seed):
    bound = 6.0
    ys, ends = plane(mistaken(bound, seed), seed=seed)
    # the prior is in f too: its own odds are part of the excess
    excess = 2 * bound + math.log(float(PRIOR.max() / PRIOR.min()))
    named = torch.stack([certify(y, s, TOKENS, excess) for y, s in zip(ys, POINTS[1], strict=True)])
    assert audit(named, ends) == (0, 0)
    assert float(distances(ys)[-1].max()) < 10 * float(POINTS[1][-1])
    counts = torch.bincount(ends, minlength=5)
    assert stats.chisquare(counts.numpy(), 1000 * PRIOR.numpy()).pvalue < 1e-6


def test_an_unconstrained_predictor_stalls_at_the_length_of_its_error():
    last = distances(plane(unconstrained(0.2))[0])[-1]
    torch.testing.assert_close(last, torch.full_like(last, 0.2), atol=1e-2, rtol=0)


def test_a_hull_with_bounded_logits_stalls_too():
    span = 8.0
    ys, _ = plane(clipped(span))
    at_the_end, before = distances(ys)[-1], distances(ys)[-30]
    # each other token keeps at least e^-span/V of the weight, and the best position spends them
    widest = geometry(TOKENS)[1]
    assert float(at_the_end.max()) < len(TOKENS) * math.exp(-span) * widest
    assert float(at_the_end.min()) > 100 * float(POINTS[1][-1])
    torch.testing.assert_close(at_the_end, before, rtol=0.05, atol=0)


# --- two tokens on a line: Theorem 1 as it is stated, and as it can be tested


def line(log_odds, delta, end):
    t = theorem_grid(delta, end)
    x = torch.linspace(-3, 3, 400, dtype=torch.float64)
    return t, follow(two_tokens(log_odds), x, linear(t))[0]


@pytest.mark.parametrize(("delta", "end"), [(0.2, 0.1), (0.2, 0.05), (0.1, 0.05)])
def test_the_literal_theorem_has_a_counterexample(delta, end):
    t, xs = line(trap, delta, end)
    torch.testing.assert_close(two_tokens(trap)(xs[3], (t[3], 1 - t[3])), -torch.tanh(3 * xs[3]))
    assert float(xs[-1].abs().max()) < 1e-2  # all at the midpoint, none near ±1
    constant = lipschitz_constant(trap, xs, t)
    assert 30 < constant < 35  # so assumption (b) holds, on every grid and up to every end


def test_with_f_lipschitz_in_x_every_path_ends_on_a_token():
    worst = []
    for delta, end in [(0.2, 0.1), (0.2, 0.05), (0.1, 0.05)]:
        t, xs = line(lipschitz, delta, end)
        gap = (xs[-1].abs() - 1).abs() / (1 - t[-1])
        worst.append(float(gap[xs[0] != 0].max()))
    assert max(worst) < 10  # the distance over 1 - t stays bounded as the end nears 1
    assert worst[2] == pytest.approx(worst[1], rel=0.2)


# --- what is watched while the plane's trajectories fall

GENERATOR = torch.Generator().manual_seed(0)
COARSE = scales(60)
LEVELS = [20.0, 1.0, 0.01]


def followed(mean):
    z = torch.randn(50, 2, generator=GENERATOR, dtype=torch.float64)
    ys, means = follow(mean, COARSE[1][0] * z, COARSE)
    return ys, means, falling(mean, ys, COARSE, LEVELS)


def test_outside_agrees_with_least_squares():
    points = 2.5 * torch.randn(300, 2, generator=GENERATOR, dtype=torch.float64)
    away = hull_distance(points, TOKENS)
    assert torch.equal(outside(points), away > 1e-6)
    assert 50 < int(outside(points).sum()) < 250


def test_corners_and_edges_are_inside():
    middles = (TOKENS + TOKENS.roll(1, 0)) / 2
    assert not outside(torch.cat([TOKENS, middles])).any()
    assert outside(1.01 * middles).all()


@pytest.mark.parametrize("mean", [mistaken(6.0), unconstrained(0.2)])
def test_states_means_and_counts_are_those_of_the_trajectories(mean):
    ys, means, seen = followed(mean)
    for k, level in enumerate(LEVELS):
        i = min(range(60), key=lambda i: abs(float((COARSE[1][i] / level).log())))
        assert seen.s[k] == COARSE[1][i]
        assert torch.equal(seen.y[k], ys[i])
        assert torch.equal(seen.mean[k], means[i])
        near = [min(float((y - e).norm()) for e in TOKENS) < 0.1 for y in ys[i]]
        assert int(seen.arrived[k]) == sum(near)


def test_a_hull_arrives_and_never_leaves_and_the_other_does_neither():
    _, _, held = followed(mistaken(6.0))
    _, _, free = followed(unconstrained(0.2))
    assert held.outside.tolist() == [0, 0, 0]
    assert held.arrived.tolist()[-1] == 50
    assert free.arrived.tolist()[-1] == 0
    assert int(free.outside[-1]) > 20


def test_levels_that_the_grid_cannot_tell_apart_are_refused():
    ys = TOKENS[None, :1].expand(60, 1, 2)
    with pytest.raises(ParameterError, match="3 levels fall on 2 points"):
        falling(exact, ys, COARSE, [1.0, 1.001, 0.1])
