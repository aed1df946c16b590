"""Neighbours beside added rows of every length are those of the joined table."""

import pytest
import torch

from tokenspace import hub
from tokenspace.errors import TableError


def test_they_are_the_neighbours_in_the_joined_table() -> None:
    rows = hub.manifold(300, 4, 64, 0.4, seed=1, length_sd=0.1)
    extra = hub.plant(rows, 20, 1.0, seed=1)[0][300:]
    found = list(hub.beside(rows, hub.nearest(rows), extra, [0.1, 0.6, 1.0], [1, 2, 20]))
    assert [(s, k) for s, k, _ in found] == [(s, k) for s in (0.1, 0.6, 1.0) for k in (1, 2, 20)]
    for scale, count, near in found:
        joined = hub.nearest(torch.cat([rows, scale * extra[:count]]))
        assert torch.equal(near.indices, joined.indices[:300])
        torch.testing.assert_close(near.distances, joined.distances[:300], rtol=1e-6, atol=0)
    hubbed = [hub.captured(near, torch.arange(300, 320)).double().mean() for *_, near in found]
    assert hubbed[0] == 0  # one row can't be both neighbours
    assert hubbed[2] > 0.5 > hubbed[8]


@pytest.mark.parametrize(("counts", "asked"), [([0], None), ([3], None), ([1], [0, 1])])
def test_counts_and_neighbours_that_do_not_fit_are_refused(
    counts: list[int], asked: list[int] | None
) -> None:
    rows = torch.eye(4)
    alone = hub.nearest(rows, queries=None if asked is None else torch.tensor(asked))
    with pytest.raises(TableError, match="counts between 1 and the rows added"):
        list(hub.beside(rows, alone, rows[:2], [1.0], counts))
