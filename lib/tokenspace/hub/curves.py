"""How a reading moves as rows are taken from a table, or put back, in some order."""

from collections.abc import Sequence

import pandas as pd
import torch
from jaxtyping import Int64
from torch import Tensor

from tokenspace.hub.dimension import facco, median, mle
from tokenspace.hub.neighbours import Neighbours, nearest, nearest_prefixes


def nearest_at_cuts(
    rows: Tensor,
    order: Int64[Tensor, " m"],
    cuts: Sequence[int],
    *,
    queries: Int64[Tensor, " q"] | None = None,
    device: str | torch.device = "cpu",
) -> list[Neighbours]:
    """First two neighbours inside the first `cut` rows of `order`, for every cut.

    Every kept row is read at, in one pass; or those of `queries` that are kept, one search a cut.
    Ids are those of `rows`, queries ascending. Raises `TableError` as `nearest_prefixes` does.

    >>> rows = torch.tensor([[0.0], [1.0], [3.0], [9.0]])
    >>> [found.r1.tolist() for found in nearest_at_cuts(rows, torch.tensor([3, 0, 2, 1]), [3, 4])]
    [[3.0, 3.0, 6.0], [1.0, 1.0, 2.0, 6.0]]
    """
    cuts = list(cuts)
    if queries is None:
        return [_by_id(found) for found in nearest_prefixes(rows, order, cuts, device=device)]
    return [_among(rows, order[:cut], queries, device) for cut in cuts]


def reading_curve(found: Sequence[Neighbours], cuts: Sequence[int]) -> pd.DataFrame:
    """Readings at every cut. Columns: rows, queries, mle, se, facco, median.

    >>> rows = torch.tensor([[0.0], [1.0], [3.0], [9.0]])
    >>> reading_curve(nearest_at_cuts(rows, torch.arange(4), [3, 4]), [3, 4]).queries.tolist()
    [3, 4]
    """
    table = []
    for each, cut in zip(found, cuts, strict=True):
        value = mle(each.r1, each.r2)
        line = {"rows": cut, "queries": len(each.queries), "mle": value.value, "se": value.se}
        line |= {f.__name__: f(each.r1, each.r2).value for f in (facco, median)}
        table.append(line)
    return pd.DataFrame(table, columns=["rows", "queries", "mle", "se", "facco", "median"])


def _by_id(found: Neighbours) -> Neighbours:
    place = found.queries.argsort()
    return Neighbours(
        found.distances[place], found.indices[place], found.queries[place], found.redone
    )


def _among(rows: Tensor, kept: Tensor, queries: Tensor, device: str | torch.device) -> Neighbours:
    kept = kept.sort().values
    at = torch.isin(kept, queries).nonzero().flatten()
    found = nearest(rows[kept], 2, queries=at, device=device)
    return Neighbours(found.distances, kept[found.indices], kept[at], found.redone)
