"""Tables of known dimension, with or without a hub of short rows planted in them.

`manifold` is the random-Fourier-feature image of a d-dimensional cube (Rahimi and Recht 2007):
rows are nearly unit vectors in D dimensions whose cosines are a Gaussian kernel of the distance
between latent points, so the cosine between neighbours can be set.

Distances don't know where the origin is: a short row is a neighbour of everybody because it lies
near the middle of the table, which is not the origin where all rows share a large part.
"""

import math

import torch
from jaxtyping import Float, Float64, Int64
from torch import Tensor

from tokenspace.errors import ParameterError
from tokenspace.hub.detection import lengths
from tokenspace.hub.neighbours import nearest


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
    return torch.cat([angle.cos(), angle.sin()], dim=1)  # (n, 2d)


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
