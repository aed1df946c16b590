"""Exact nearest neighbours of a whole embedding table, in memory that does not grow with n².

Two passes. The first works in fp32 on blocks of the distance matrix: with centred rows x and
h = |x|²/2, one product of [-x, h, 1] with [x, 1, h] gives half the squared distances, and a row is
touched only where a block's minimum beats the worst candidate it holds. A self-join visits each
pair of blocks once and updates both sides. The second pass measures the few candidates in fp64 and
certifies each row with a bound on the first pass's rounding; a row that can't be certified is
looked up again with more candidates, and in the end by every distance in fp64.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import torch
from jaxtyping import Float, Float64, Int64
from torch import Tensor

from tokenspace.errors import TableError
from tokenspace.hub.certificate import Prepared, certified, measure, search_in_fp64

SPARE = 2  # candidates kept beyond k in the first pass
WIDE = 64  # candidates kept beyond k for the rows that the first pass left in doubt


@dataclass(frozen=True)
class Neighbours:
    """The first k neighbours of some rows: distances ascending, ties by row id, itself left out."""

    distances: Float64[Tensor, "q k"]
    indices: Int64[Tensor, "q k"]
    queries: Int64[Tensor, " q"]
    redone: int
    """Rows that the first pass left in doubt and that were looked up again."""

    @property
    def r1(self) -> Float64[Tensor, " q"]:
        return self.distances[:, 0]

    @property
    def r2(self) -> Float64[Tensor, " q"]:
        return self.distances[:, 1]


def nearest(
    rows: Float[Tensor, "n d"],
    k: int = 2,
    *,
    queries: Int64[Tensor, " q"] | None = None,
    block: int | None = None,
    device: str | torch.device = "cpu",
    progress: bool = False,
) -> Neighbours:
    """Exact k nearest neighbours of every row, or of the rows named by `queries`.

    Distances are Euclidean, in fp64 from the rows as stored; the answer does not depend on `block`.
    Raises TableError for rows that aren't a finite (n, d) table, for queries outside it, and
    where n <= k.

    >>> nearest(torch.tensor([[0.0], [1.0], [3.0]])).indices.tolist()
    [[1, 2], [0, 2], [1, 0]]
    """
    table = Prepared(rows, device, block, progress)
    n = len(table.rows)
    _check_k(k, n)
    if queries is None:
        (found,) = _self_join(table, [n], k)
        return found
    wrong = queries[(queries < 0) | (queries >= n)]
    if len(wrong):
        raise TableError(f"queries name rows outside 0..{n - 1}: {wrong[:5].tolist()}")
    return _settle(table, queries, _look_up(table, queries, k + SPARE, n), k, n)


def nearest_prefixes(
    rows: Float[Tensor, "n d"],
    order: Int64[Tensor, " m"],
    cuts: Sequence[int],
    k: int = 2,
    *,
    block: int | None = None,
    device: str | torch.device = "cpu",
    progress: bool = False,
) -> list[Neighbours]:
    """Neighbours inside the first `cut` rows of `order`, for every cut, from one pass.

    A removal curve sorts rows longest first, so that the first `cut` rows are what is left when the
    shortest go. Indices and queries are ids in `rows`. Equal to `nearest` on each subset, but for
    ties, which go to the row that comes first in `order`.
    Raises TableError as `nearest` does, and where cuts don't ascend within k+1..m.

    >>> rows = torch.tensor([[3.0], [2.0], [0.5], [0.0]])  # longest first
    >>> [found.r1.tolist() for found in nearest_prefixes(rows, torch.arange(4), [3, 4])]
    [[1.0, 1.0, 1.5], [1.0, 1.0, 0.5, 0.5]]
    """
    cuts = list(cuts)
    if not cuts or sorted(set(cuts)) != cuts or cuts[-1] > len(order):
        raise TableError(f"cuts must ascend within the {len(order)} rows of `order`, got {cuts}")
    _check_k(k, cuts[0])
    table = Prepared(rows[order], device, block, progress)
    return [
        replace(found, indices=order[found.indices], queries=order[found.queries])
        for found in _self_join(table, cuts, k)
    ]


def _check_k(k: int, n: int) -> None:
    if not 1 <= k < n:
        raise TableError(f"k = {k} neighbours need at least {max(k, 1) + 1} rows, got {n}")


class _Candidates:
    """The `keep` smallest keys seen by each row, and the rows that they came from."""

    def __init__(self, rows: int, keep: int, device: torch.device) -> None:
        self.keep = keep
        self.keys = torch.full((rows, keep), float("inf"), device=device)
        self.ids = torch.full((rows, keep), -1, dtype=torch.long, device=device)

    def merge(self, row: slice, keys: Tensor, first: int) -> None:
        """Take in a block of keys against the rows `first`, `first` + 1, …"""
        best, ids = self.keys[row], self.ids[row]
        hit = (keys.amin(1) < best[:, -1]).nonzero()[:, 0]
        if len(hit):
            new, column = keys[hit].topk(min(self.keep, keys.shape[1]), largest=False)
            merged, order = torch.cat([best[hit], new], 1).topk(self.keep, largest=False)
            best[hit] = merged
            ids[hit] = torch.cat([ids[hit], column + first], 1).gather(1, order)

    def __getitem__(self, rows: slice) -> tuple[Tensor, Tensor]:
        """Keys and ids; an empty place, or the row itself, has an infinite key and the id -1."""
        keys = self.keys[rows].double().cpu()
        return keys, self.ids[rows].cpu().masked_fill(keys.isinf(), -1)


def _self_join(table: Prepared, cuts: list[int], k: int) -> Iterator[Neighbours]:
    """Every row against every row before it, both sides updated; an answer at each cut."""
    n = cuts[-1]
    held = _Candidates(n, k + SPARE, table.device)
    edges = sorted({*range(0, n, table.block), *cuts})
    blocks = [slice(a, b) for a, b in pairwise(edges)]
    for number, row in enumerate(table.bar(blocks)):
        left = table.left(row)
        for before in blocks[: number + 1]:
            keys = left @ table.right[before].T
            if before == row:
                keys.fill_diagonal_(float("inf"))
            else:
                held.merge(before, keys.T, row.start)
            held.merge(row, keys, before.start)
        if row.stop in cuts:
            yield _settle(table, torch.arange(row.stop), held[: row.stop], k, row.stop)


def _look_up(table: Prepared, queries: Tensor, keep: int, n: int) -> tuple[Tensor, Tensor]:
    """Candidates of some rows among the first n."""
    held = _Candidates(len(queries), keep, table.device)
    wanted = queries.to(table.device)
    for a in table.bar(range(0, len(queries), table.block)):
        row = slice(a, min(a + table.block, len(queries)))
        left = table.left(wanted[row])
        for b in range(0, n, table.block):
            keys = left @ table.right[b : min(b + table.block, n)].T
            own = wanted[row] - b
            inside = ((own >= 0) & (own < keys.shape[1])).nonzero()[:, 0]
            keys[inside, own[inside]] = float("inf")
            held.merge(row, keys, b)
    return held[:]


def _settle(
    table: Prepared, queries: Tensor, held: tuple[Tensor, Tensor], k: int, n: int
) -> Neighbours:
    """Measure the candidates in fp64; look up again the rows that this can't certify."""
    keys, ids = held
    distances, indices = measure(table.rows, queries, ids, k)
    sure = certified(table, queries, distances[:, -1], keys[:, -1])
    doubt = (~sure).nonzero()[:, 0]
    if len(doubt) and keys.shape[1] < k + WIDE:
        again = _settle(table, queries[doubt], _look_up(table, queries[doubt], k + WIDE, n), k, n)
        distances[doubt], indices[doubt] = again.distances, again.indices
    else:
        for some in doubt.split(16):
            distances[some], indices[some] = search_in_fp64(table, queries[some], k, n)
    return Neighbours(distances, indices, queries, len(doubt))
