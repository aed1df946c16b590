"""What is watched in the plane: counts against plain loops, the hull against least squares."""

import pytest
import torch

from tokenspace import flow
from tokenspace.errors import ParameterError
from tokenspace.flow import toy

GENERATOR = torch.Generator().manual_seed(0)
POINTS = toy.scales(60)
LEVELS = [20.0, 1.0, 0.01]


def followed(mean):
    z = torch.randn(50, 2, generator=GENERATOR, dtype=torch.float64)
    ys, means = flow.follow(mean, POINTS[1][0] * z, POINTS)
    return ys, means, flow.falling(mean, ys, POINTS, LEVELS)


def test_outside_agrees_with_least_squares():
    points = 2.5 * torch.randn(300, 2, generator=GENERATOR, dtype=torch.float64)
    away = flow.hull_distance(points, toy.TOKENS)
    assert torch.equal(flow.outside(points), away > 1e-6)
    assert 50 < int(flow.outside(points).sum()) < 250


def test_corners_and_edges_are_inside():
    middles = (toy.TOKENS + toy.TOKENS.roll(1, 0)) / 2
    assert not flow.outside(torch.cat([toy.TOKENS, middles])).any()
    assert flow.outside(1.01 * middles).all()


@pytest.mark.parametrize("mean", [toy.mistaken(6.0), toy.unconstrained(0.2)])
def test_states_means_and_counts_are_those_of_the_trajectories(mean):
    ys, means, seen = followed(mean)
    for k, level in enumerate(LEVELS):
        i = min(range(60), key=lambda i: abs(float((POINTS[1][i] / level).log())))
        assert seen.s[k] == POINTS[1][i]
        assert torch.equal(seen.y[k], ys[i])
        assert torch.equal(seen.mean[k], means[i])
        near = [min(float((y - e).norm()) for e in toy.TOKENS) < 0.1 for y in ys[i]]
        assert int(seen.arrived[k]) == sum(near)


def test_a_hull_arrives_and_never_leaves_and_the_other_does_neither():
    _, _, held = followed(toy.mistaken(6.0))
    _, _, free = followed(toy.unconstrained(0.2))
    assert held.outside.tolist() == [0, 0, 0]
    assert held.arrived.tolist()[-1] == 50
    assert free.arrived.tolist()[-1] == 0
    assert int(free.outside[-1]) > 20


def test_levels_that_the_grid_cannot_tell_apart_are_refused():
    ys = toy.TOKENS[None, :1].expand(60, 1, 2)
    with pytest.raises(ParameterError, match="3 levels fall on 2 points"):
        flow.falling(toy.exact, ys, POINTS, [1.0, 1.001, 0.1])
