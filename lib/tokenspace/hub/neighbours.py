"""Exact nearest neighbours of a whole embedding table, in memory that does not grow with n².

Two passes. The first works in fp32 on blocks of the distance matrix: with centred rows x and
h = |x|²/2, one product of [-x, h, 1] with [x, 1, h] gives half the squared distances, and a row is
touched only where a block's minimum beats the worst candidate it holds. A self-join visits each
pair of blocks once and updates both sides. The second pass measures the few candidates in fp64 and
certifies each row with a bound on the first pass's rounding; a row that can't be certified is
looked up again with more candidates, and in the end by every distance in fp64.
"""

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import torch
from jaxtyping import Bool, Float, Float64, Int64
from torch import Tensor
from tqdm import tqdm

from tokenspace.errors import TableError
from tokenspace.sources import check_rows

Device = str | torch.device
UNIT_ROUNDOFF = 2.0**-24  # of fp32
FAR_EXPONENT = 50  # beyond 2^±50 squares leave the range of fp32, and at 1e-200 that of fp64
SPARE = 2  # candidates kept beyond k in the first pass
WIDE = 64  # candidates kept beyond k for the rows that the first pass left in doubt


@dataclass(frozen=True)
class Neighbours:
    """The first k neighbours of some rows: distances ascending, ties by row id, itself left out."""

    distances: Float64[Tensor, "q k"]
    indices: Int64[Tensor, "q k"]
    queries: Int64[Tensor, " q"]

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
    device: Device = "cpu",
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
    else:
        wrong = queries[(queries < 0) | (queries >= n)]
        if len(wrong):
            raise TableError(f"queries name rows outside 0..{n - 1}: {wrong[:5].tolist()}")
        found = _refine(table, queries, _look_up(table, queries, k + SPARE, n), k, n)
    return replace(found, distances=found.distances * table.unit)


def nearest_prefixes(
    rows: Float[Tensor, "n d"],
    order: Int64[Tensor, " m"],
    cuts: Sequence[int],
    k: int = 2,
    *,
    queries: Int64[Tensor, " q"] | None = None,
    device: Device = "cpu",
) -> list[Neighbours]:
    """Neighbours inside the first `cut` rows of `order`, for every cut.

    A removal curve sorts rows longest first, so that the first `cut` rows are what is left when the
    shortest go. Every kept row is read at, in one pass; or those of `queries` that are kept, in a
    search for each cut. Ids are those of `rows`, queries ascending. Equal to `nearest` on each
    subset, but for ties, which in one pass go to the row that comes first in `order`.
    Raises TableError as `nearest` does, and where cuts don't ascend within k+1..m.

    >>> rows = torch.tensor([[3.0], [2.0], [0.5], [0.0]])  # longest first
    >>> [found.r1.tolist() for found in nearest_prefixes(rows, torch.arange(4), [3, 4])]
    [[1.0, 1.0, 1.5], [1.0, 1.0, 0.5, 0.5]]
    """
    cuts = list(cuts)
    if not cuts or sorted(set(cuts)) != cuts or cuts[-1] > len(order):
        raise TableError(f"cuts must ascend within the {len(order)} rows of `order`, got {cuts}")
    _check_k(k, cuts[0])
    if queries is None:
        table = Prepared(rows[order], device)
        return [_as_in(order, found, table.unit) for found in _self_join(table, cuts, k)]
    answers = []
    for kept in (order[:cut].sort().values for cut in cuts):
        at = torch.isin(kept, queries).nonzero()[:, 0]
        answers.append(_as_in(kept, nearest(rows[kept], k, queries=at, device=device)))
    return answers


def _as_in(ids: Tensor, found: Neighbours, unit: float = 1.0) -> Neighbours:
    """Neighbours among the rows `ids` of a table, in that table's ids, queries ascending."""
    queries, place = ids[found.queries].sort()
    return Neighbours(found.distances[place] * unit, ids[found.indices[place]], queries)


def _check_k(k: int, n: int) -> None:
    if not 1 <= k < n:
        raise TableError(f"k = {k} neighbours need at least {max(k, 1) + 1} rows, got {n}")


def exponent(rows: Float[Tensor, "n d"]) -> int:
    """The power of two to divide rows by before squaring: 0 unless squares would leave the range.

    >>> exponent(torch.ones(2, 2)), exponent(torch.full((2, 2), 1e-30))
    (0, -99)
    """
    low, high = torch.aminmax(rows)
    power = math.frexp(max(-float(low), float(high)))[1]
    return power if abs(power) > FAR_EXPONENT else 0


class Prepared:
    """Rows prepared for the first pass: `right` holds [x, 1, h], scaled to a longest row of 1."""

    def __init__(
        self, rows: Tensor, device: Device = "cpu", block: int | None = None, progress: bool = False
    ) -> None:
        rows = check_rows(rows)
        self.unit = 2.0 ** exponent(rows)  # a power of two: dividing by it rounds nothing
        self.rows = rows if self.unit == 1 else rows / self.unit
        self.device, self.progress = torch.device(device), progress
        self.block = block or (8192 if self.device.type == "cuda" else 640)
        n, d = self.rows.shape
        chunks = range(0, n, 65536)
        mean = sum(self.rows[a : a + 65536].double().sum(0) for a in chunks) / n
        # Rounding the centre moves every row alike. The subtraction is done in the rows' own type.
        centre = torch.as_tensor(mean).to(self.rows.dtype)
        self.right = torch.empty(n, d + 2, device=self.device)
        x = self.right[:, :d]
        for a in chunks:
            x[a : a + 65536] = self.rows[a : a + 65536] - centre
        length = torch.linalg.vector_norm(x, dim=1)
        self.scale = float(length.max()) or 1.0
        x /= self.scale
        length = length / self.scale
        self.right[:, d] = 1.0
        self.right[:, d + 1] = length**2 / 2
        self.length = length.double().cpu()

    def left(self, chosen: slice | Int64[Tensor, " q"]) -> Float[Tensor, "q e"]:
        """[-x, h, 1] of the chosen rows."""
        right = self.right[chosen]
        d = right.shape[1] - 2
        return torch.cat([-right[:, :d], right[:, d + 1 :], right[:, d : d + 1]], dim=1)

    def bar(self, blocks: Iterable[Any]) -> Iterable[Any]:
        return tqdm(blocks, desc="neighbours", unit="block", disable=not self.progress)


def measure(
    rows: Float[Tensor, "n d"], queries: Int64[Tensor, " q"], ids: Int64[Tensor, "q c"], k: int
) -> tuple[Float64[Tensor, "q k"], Int64[Tensor, "q k"]]:
    """The k nearest candidates by their distance in fp64, ties by row id.

    A place with the id -1 is empty: infinitely far.
    """
    distances = torch.empty(len(queries), k, dtype=torch.float64)
    indices = torch.empty(len(queries), k, dtype=torch.long)
    for a in range(0, len(queries), 128):  # few at a time: they stay in the cache
        part = slice(a, a + 128)
        some = ids[part].sort(dim=1).values
        gap = rows[some.clamp(min=0)].double() - rows[queries[part]].double()[:, None]
        far = gap.square_().sum(2).sqrt_().masked_fill_(some < 0, float("inf"))
        far, order = far.sort(dim=1, stable=True)
        distances[part], indices[part] = far[:, :k], some.gather(1, order)[:, :k]
    return distances, indices


def certified(
    table: Prepared,
    queries: Int64[Tensor, " q"],
    r: Float64[Tensor, " q"],
    worst_key: Float64[Tensor, " q"],
) -> Bool[Tensor, " q"]:
    """Whether no row outside the candidates can lie within the k-th distance r.

    Such a row has a key of at least the worst key kept (infinite where all rows were kept). A row
    within r of x is at most |x| + r long, and a sum of d + 2 products is off by at most
    γ Σ|products|, γ = tu/(1 − tu), in any order of summation (Higham 2002, §3.1); t counts six more
    roundings for the centring and h.
    """
    t = table.rows.shape[1] + 8
    gamma = t * UNIT_ROUNDOFF / (1 - t * UNIT_ROUNDOFF)
    r = r / table.scale
    x = table.length[queries]
    error = gamma * (2 * x + r).square() / 2 + 1e-37
    return r.square() / 2 + error < worst_key


def search_in_fp64(
    table: Prepared, queries: Int64[Tensor, " q"], k: int, n: int
) -> tuple[Float64[Tensor, "q k"], Int64[Tensor, "q k"]]:
    """Every distance in fp64 by differences, ties by row id."""
    wanted = table.rows[queries].double()
    parts, exact = table.rows[:n].split(16384), "donot_use_mm_for_euclid_dist"
    far = torch.cat([torch.cdist(wanted, p.double(), compute_mode=exact) for p in parts], dim=1)
    far[torch.arange(len(queries)), queries] = float("inf")
    far, order = far.sort(dim=1, stable=True)
    return far[:, :k], order[:, :k]


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
    candidates = _Candidates(n, k + SPARE, table.device)
    edges = sorted({*range(0, n, table.block), *cuts})
    blocks = [slice(a, b) for a, b in pairwise(edges)]
    for number, row in enumerate(table.bar(blocks)):
        left = table.left(row)
        for before in blocks[: number + 1]:
            keys = left @ table.right[before].T
            if before == row:
                keys.fill_diagonal_(float("inf"))
            else:
                candidates.merge(before, keys.T, row.start)
            candidates.merge(row, keys, before.start)
        if row.stop in cuts:
            yield _refine(table, torch.arange(row.stop), candidates[: row.stop], k, row.stop)


def _look_up(table: Prepared, queries: Tensor, keep: int, n: int) -> tuple[Tensor, Tensor]:
    """Candidates of some rows among the first n."""
    candidates = _Candidates(len(queries), keep, table.device)
    wanted = queries.to(table.device)
    for a in table.bar(range(0, len(queries), table.block)):
        row = slice(a, min(a + table.block, len(queries)))
        left = table.left(wanted[row])
        for b in range(0, n, table.block):
            keys = left @ table.right[b : min(b + table.block, n)].T
            own = wanted[row] - b
            inside = ((own >= 0) & (own < keys.shape[1])).nonzero()[:, 0]
            keys[inside, own[inside]] = float("inf")
            candidates.merge(row, keys, b)
    return candidates[:]


def _refine(
    table: Prepared, queries: Tensor, candidates: tuple[Tensor, Tensor], k: int, n: int
) -> Neighbours:
    """Measure the candidates in fp64; look up again the rows that this can't certify."""
    keys, ids = candidates
    distances, indices = measure(table.rows, queries, ids, k)
    uncertain = (~certified(table, queries, distances[:, -1], keys[:, -1])).nonzero()[:, 0]
    if len(uncertain) and keys.shape[1] < k + WIDE:
        wider = _look_up(table, queries[uncertain], k + WIDE, n)
        retried = _refine(table, queries[uncertain], wider, k, n)
        distances[uncertain], indices[uncertain] = retried.distances, retried.indices
    else:
        for some in uncertain.split(16):  # every distance of 16 rows at once bounds the memory
            distances[some], indices[some] = search_in_fp64(table, queries[some], k, n)
    return Neighbours(distances, indices, queries)
