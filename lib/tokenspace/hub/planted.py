"""Tables of known dimension, and experiments: hubs planted in them, rows removed and put back.

`manifold` is the random-Fourier-feature image of a d-dimensional cube (Rahimi and Recht 2007):
rows are nearly unit vectors in D dimensions whose cosines are a Gaussian kernel of the distance
between latent points, so the cosine between neighbours can be set.

A hub is predicted by a ghost, and made by planting. Distances don't know where the origin is: a
short row is a neighbour of everybody because it lies near the middle of the table, which is not the
origin where all rows share a large part. So a hub can be put at the origin, or at the mean.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from typing import TYPE_CHECKING

import torch
from jaxtyping import Float, Float64, Int64
from torch import Tensor

from tokenspace.errors import ParameterError, TableError
from tokenspace.hub.capture import captured, ghost
from tokenspace.hub.detection import lengths
from tokenspace.hub.dimension import facco, median, mle
from tokenspace.hub.neighbours import Neighbours, nearest, nearest_prefixes

if TYPE_CHECKING:
    import pandas as pd


def manifold(
    n: int, d: int, D: int, cosine: float, seed: int, length_sd: float = 0.0
) -> Float[Tensor, "n D"]:
    """n rows on a d-manifold in R^D, median nearest-neighbour cosine `cosine`, lengths near 1.

    `length_sd` spreads the log lengths. A reading without a hub is about d / phi, where
    phi = u c / (1 - c), u = -ln c, c the cosine: the chord bends where neighbours are far apart.
    Raises `ParameterError` for a cosine outside (0, 1).

    >>> manifold(100, 2, 64, cosine=0.9, seed=0).shape
    torch.Size([100, 64])
    """
    if not 0 < cosine < 1:
        raise ParameterError(f"cosine = {cosine} must lie strictly between 0 and 1.")
    g = _generator(seed)
    latent = torch.rand(n, d, generator=g)
    gap = float(nearest(latent, 2).distances[:, 0].median())
    scale = gap / math.sqrt(-2 * math.log(cosine))  # exp(-gap^2 / 2 scale^2) = cosine
    frequency = torch.randn(d, D, generator=g) / scale
    phase = 2 * math.pi * torch.rand(D, generator=g)
    rows = math.sqrt(2 / D) * torch.cos(latent @ frequency + phase)
    return rows * torch.exp(length_sd * torch.randn(n, 1, generator=g))


def bend(cosine: float) -> float:
    """phi = u c / (1 - c), u = -ln c: a reading of `manifold` is about d / phi.

    >>> round(bend(0.5), 4)
    0.6931
    """
    return -math.log(cosine) * cosine / (1 - cosine)


def plant(
    rows: Float[Tensor, "n D"], h: int, s: float, seed: int
) -> tuple[Float[Tensor, "m D"], Int64[Tensor, " h"]]:
    """Append h Gaussian rows of length about s times the median length; returns their ids too.

    >>> table, hub = plant(torch.eye(5), h=2, s=0.2, seed=0)
    >>> table.shape, hub.tolist()
    (torch.Size([7, 5]), [5, 6])
    """
    n, D = rows.shape
    size = s * float(lengths(rows).median()) / math.sqrt(D)
    g = _generator(seed + 1_000_003)  # or rows drawn by the same seed would be parallel to the hub
    hub = size * torch.randn(h, D, generator=g, dtype=rows.dtype)
    return torch.cat([rows, hub]), torch.arange(n, n + h)


@dataclass(frozen=True)
class WhatIf:
    """Readings (MLE) without a hub, with a ghost hub, and with a planted one; shares of queries."""

    place: str
    without: float
    ghost: float
    planted: float
    se: float  # of `planted`
    nearer: float  # nearer to the place than to any row
    captured: float  # both first neighbours are planted rows


def what_if(
    rows: Float[Tensor, "n d"],
    found: Neighbours,
    *,
    place: str = "origin",
    h: int = 300,
    s: float = 0.2,
    seed: int = 0,
    device: str | torch.device = "cpu",
) -> WhatIf:
    """Plant h rows of length about s times the median, at the `origin` or the `mean` of the rows.

    `found` are the first neighbours in `rows`; readings are taken at its queries.
    Raises `ParameterError` for another place.

    >>> rows = gaussian(300, 40, seed=0)
    >>> result = what_if(rows, nearest(rows), h=30)
    >>> result.planted > 2 * result.without
    True
    """
    if place not in ("origin", "mean"):
        raise ParameterError(f"place = {place!r}: use 'origin' or 'mean'.")
    moved = rows
    if place == "mean":
        moved = rows - rows.mean(0, dtype=torch.float64).to(rows.dtype)
    at, rho = found.queries, lengths(moved)[found.queries]
    with_hub, hub = plant(moved, h, s, seed)
    planted = nearest(with_hub, 2, queries=at, device=device)
    reading = mle(planted.r1, planted.r2)
    return WhatIf(
        place=place,
        without=mle(found.r1, found.r2).value,
        ghost=mle(*ghost(found.r1, found.r2, rho)).value,
        planted=reading.value,
        se=reading.se,
        nearer=float((found.r1 > rho).double().mean()),
        captured=float(captured(planted, hub).double().mean()),
    )


def neighbour_cosines(
    rows: Float[Tensor, "n d"],
    queries: Int64[Tensor, " q"] | None = None,
    *,
    device: str | torch.device = "cpu",
) -> Float64[Tensor, " m"]:
    """Largest cosine of each query with another row; zero rows have none and are left out.

    >>> rows = torch.tensor([[1.0, 0.0], [3.0, 4.0], [-3.0, 4.0], [0.0, 0.0]])
    >>> [round(cosine, 6) for cosine in neighbour_cosines(rows).tolist()]
    [0.6, 0.6, 0.28]
    """
    rho = lengths(rows)
    some = (rho > 0).nonzero().flatten()
    unit = rows[some] / rho[some, None].to(rows.dtype)
    at = None if queries is None else torch.isin(some, queries).nonzero().flatten()
    return 1 - nearest(unit, 1, queries=at, device=device).r1.square() / 2


def beside(
    rows: Float[Tensor, "n D"],
    alone: Neighbours,
    extra: Float[Tensor, "h D"],
    scales: Sequence[float],
    counts: Sequence[int],
) -> Iterator[tuple[float, int, Neighbours]]:
    """Two neighbours of every row when the first `count` of `scale` x `extra` are appended.

    |x - s y|² = |x|² + s² |y|² - 2 s <x, y>, so one product of the two tables serves every scale s.

    `alone` is `nearest(rows)`; an appended row has the id it would have in the joined table.
    Gives (scale, count, neighbours) for every pair. Raises `TableError` where `alone` is not of
    all rows, or a count not within 1..h.

    >>> rows, far = torch.eye(3), torch.tensor([[9.0, 0.0, 0.0], [0.0, 9.0, 0.0]])
    >>> found = beside(rows, nearest(rows), far, [1.0, 0.1], [2])
    >>> [neighbours.indices[0].tolist() for _, _, neighbours in found]
    [[1, 2], [3, 4]]
    """
    n, h = len(rows), len(extra)
    if len(alone.queries) != n or not all(1 <= count <= h for count in counts):
        raise TableError(
            f"neighbours of {len(alone.queries)} of {n} rows, and counts {list(counts)} of {h} "
            "added rows: give nearest(rows), and counts between 1 and the rows added."
        )
    x, y = rows.double(), extra.double()
    squares, added, products = x.square().sum(1)[:, None], y.square().sum(1), x @ y.T
    for scale, count in product(scales, counts):
        near = squares + scale**2 * added[:count] - 2 * scale * products[:, :count]
        best = near.topk(min(2, count), largest=False)
        distances = torch.cat([alone.distances[:, :2], best.values.clamp_min(0).sqrt()], dim=1)
        indices = torch.cat([alone.indices[:, :2], best.indices + n], dim=1)
        first = distances.sort(dim=1, stable=True)
        two = first.indices[:, :2]
        yield (
            scale,
            count,
            Neighbours(first.values[:, :2], indices.gather(1, two), alone.queries, alone.redone),
        )


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


def reading_curve(found: Sequence[Neighbours], cuts: Sequence[int]) -> "pd.DataFrame":
    """Readings at every cut. Columns: rows, queries, mle, se, facco, median.

    >>> rows = torch.tensor([[0.0], [1.0], [3.0], [9.0]])
    >>> reading_curve(nearest_at_cuts(rows, torch.arange(4), [3, 4]), [3, 4]).queries.tolist()
    [3, 4]
    """
    import pandas as pd

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


def cube(n: int, d: int, seed: int) -> Float[Tensor, "n d"]:
    """n points uniform in the unit cube of R^d.

    >>> cube(3, 2, seed=0).shape
    torch.Size([3, 2])
    """
    return torch.rand(n, d, generator=_generator(seed), dtype=torch.float64)


def gaussian(n: int, d: int, seed: int) -> Float[Tensor, "n d"]:
    """n points of the standard normal in R^d.

    >>> gaussian(3, 2, seed=0).shape
    torch.Size([3, 2])
    """
    return torch.randn(n, d, generator=_generator(seed), dtype=torch.float64)


def sphere(n: int, d: int, seed: int) -> Float[Tensor, "n D"]:
    """n points uniform on the unit sphere S^d in R^(d+1).

    >>> sphere(3, 2, seed=0).norm(dim=1).round(decimals=6).tolist()
    [1.0, 1.0, 1.0]
    """
    return torch.nn.functional.normalize(gaussian(n, d + 1, seed))


def torus(n: int, d: int, seed: int) -> Float[Tensor, "n D"]:
    """n points uniform on the flat torus T^d in R^(2d).

    >>> torus(3, 2, seed=0).shape
    torch.Size([3, 4])
    """
    angle = 2 * math.pi * cube(n, d, seed)
    return torch.cat([angle.cos(), angle.sin()], dim=1)


def swiss_roll(n: int, seed: int) -> Float[Tensor, "n 3"]:
    """n points of the Swiss roll (t cos t, height, t sin t): a plane rolled up in R^3.

    >>> swiss_roll(3, seed=0).shape
    torch.Size([3, 3])
    """
    u = cube(n, 2, seed)
    t = 1.5 * math.pi * (1 + 2 * u[:, 0])
    return torch.stack([t * t.cos(), 21 * u[:, 1], t * t.sin()], dim=1)


def _generator(seed: int) -> torch.Generator:
    return torch.Generator().manual_seed(seed)
