"""What a hub would do to a table that has none: predicted by a ghost, and done by planting.

Distances don't know where the origin is. What makes a short row a neighbour of everybody is that
it lies near the middle of the table, and where all rows share a large common part the origin isn't
in the middle. So a hub can be put at the origin, or at the mean of the rows.
"""

from dataclasses import dataclass

import torch
from jaxtyping import Float, Float64, Int64
from torch import Tensor

from tokenspace.errors import ParameterError
from tokenspace.hub.capture import captured, ghost
from tokenspace.hub.detection import lengths
from tokenspace.hub.dimension import mle
from tokenspace.hub.neighbours import Neighbours, nearest
from tokenspace.hub.planted import plant


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

    >>> from tokenspace.hub.planted import gaussian
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
