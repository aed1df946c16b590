"""Planting a hub: where there is room for it, where there isn't, and where the middle is."""

import pytest
import torch

from tokenspace.errors import ParameterError
from tokenspace.hub import gaussian, manifold, mle, nearest, neighbour_cosines, sphere, what_if


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_a_ghost_predicts_what_planting_does(seed):
    rows = manifold(1500, 8, 512, 0.4, seed)
    found = nearest(rows)
    result = what_if(rows, found, h=100, s=0.05, seed=seed)
    assert result.without == mle(found.r1, found.r2).value
    assert result.planted > 1.5 * result.without
    assert result.captured == pytest.approx(result.nearer, abs=0.06)
    # a ghost's two distances are equal, a planted hub's nearly so: the ghost reads higher
    assert result.ghost == pytest.approx(result.planted, rel=0.15)


def test_neighbours_within_sixty_degrees_leave_a_hub_inert():
    rows = sphere(2000, 2, seed=0)
    result = what_if(rows, nearest(rows), h=50)
    assert (result.nearer, result.captured) == (0, 0)
    assert result.planted == result.ghost == result.without


def test_distances_do_not_know_where_the_origin_is():
    rows = gaussian(1000, 40, seed=0)
    moved = rows + 50
    near = what_if(rows, nearest(rows), place="origin")
    far = what_if(moved, nearest(moved), place="origin")
    middle = what_if(moved, nearest(moved), place="mean")
    assert near.planted > 2 * near.without
    assert far.captured == 0
    assert middle.planted == pytest.approx(near.planted, rel=0.05)


def test_another_place_is_refused():
    rows = gaussian(50, 3, seed=0)
    with pytest.raises(ParameterError, match="place = 'edge': use 'origin' or 'mean'"):
        what_if(rows, nearest(rows), place="edge")


def test_cosines_are_those_of_the_matrix():
    rows = gaussian(300, 5, seed=0)
    rows[7] = 0
    unit = torch.nn.functional.normalize(rows)
    cosines = (unit @ unit.T).fill_diagonal_(-1)
    some = torch.tensor([0, 7, 8, 299])
    assert torch.allclose(neighbour_cosines(rows, some), cosines.amax(1)[[0, 8, 299]], atol=1e-12)
