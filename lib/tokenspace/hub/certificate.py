"""Rows prepared for an fp32 search, and what makes its answer exact: fp64 distances and a bound."""

from collections.abc import Iterable
from typing import TypeVar

import torch
from jaxtyping import Bool, Float, Float64, Int64
from torch import Tensor
from tqdm import tqdm

from tokenspace.errors import TableError
from tokenspace.sources import check_rows

UNIT_ROUNDOFF = 2.0**-24  # of fp32

T = TypeVar("T")


class Prepared:
    """Rows prepared for the first pass: `right` holds [x, 1, h], scaled to a longest row of 1."""

    def __init__(
        self, rows: Tensor, device: str | torch.device, block: int | None, progress: bool
    ) -> None:
        self.rows = check_rows(rows)
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
        if self.scale == float("inf"):
            raise TableError("rows too long for fp32 distances: divide the table by its norm")
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

    def bar(self, blocks: Iterable[T]) -> Iterable[T]:
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
    far = torch.cat(
        [
            torch.cdist(wanted, part.double(), compute_mode="donot_use_mm_for_euclid_dist")
            for part in table.rows[:n].split(16384)
        ],
        dim=1,
    )
    far[torch.arange(len(queries)), queries] = float("inf")
    far, order = far.sort(dim=1, stable=True)
    return far[:, :k], order[:, :k]
