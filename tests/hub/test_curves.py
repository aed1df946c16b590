"""Curves: one pass over prefixes is the same as searching each subset again."""

import pytest
import torch

from tokenspace.errors import TableError
from tokenspace.hub import gaussian, mle, nearest, nearest_at_cuts, reading_curve

ROWS = gaussian(400, 6, seed=0)
ORDER = torch.randperm(400, generator=torch.Generator().manual_seed(1))
CUTS = [5, 150, 399, 400]


@pytest.mark.parametrize("queries", [None, torch.arange(0, 400, 3)], ids=["all", "some"])
def test_each_cut_is_a_search_of_what_is_left(queries):
    for found, cut in zip(nearest_at_cuts(ROWS, ORDER, CUTS, queries=queries), CUTS, strict=True):
        kept = ORDER[:cut].sort().values
        alone = nearest(ROWS[kept])
        chosen = torch.ones(cut, dtype=torch.bool) if queries is None else torch.isin(kept, queries)
        assert torch.equal(found.queries, kept[chosen])
        assert torch.equal(found.indices, kept[alone.indices][chosen])
        assert torch.allclose(found.distances, alone.distances[chosen], rtol=1e-12)


def test_the_curve_reads_every_cut():
    found = nearest_at_cuts(ROWS, ORDER, CUTS)
    curve = reading_curve(found, CUTS)
    assert curve.rows.tolist() == CUTS
    assert curve.mle.tolist() == [mle(each.r1, each.r2).value for each in found]
    assert list(curve) == ["rows", "queries", "mle", "se", "facco", "median"]


def test_cuts_that_do_not_ascend_are_refused():
    with pytest.raises(TableError, match=r"cuts must ascend .* got \[9, 5\]"):
        nearest_at_cuts(ROWS, ORDER, [9, 5])
