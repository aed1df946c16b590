"""The plane: who ends on tokens, at which ones, and who does not."""

import math

import pytest
import torch
from scipy import stats
from tests.flow.test_sampling import hull_distance

from tokenspace.flow.path import follow
from tokenspace.flow.theory import audit, certify, geometry, margin, squared_distances
from tokenspace.flow.toy import (
    PRIOR,
    TOKENS,
    clipped,
    exact,
    mistaken,
    outside,
    scales,
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


def test_outside_agrees_with_least_squares():
    points = 2.5 * torch.randn(
        300, 2, generator=torch.Generator().manual_seed(0), dtype=torch.float64
    )
    away = hull_distance(points, TOKENS)
    assert torch.equal(outside(points), away > 1e-6)
    assert 50 < int(outside(points).sum()) < 250


def test_corners_and_edges_are_inside():
    middles = (TOKENS + TOKENS.roll(1, 0)) / 2
    assert not outside(torch.cat([TOKENS, middles])).any()
    assert outside(1.01 * middles).all()
