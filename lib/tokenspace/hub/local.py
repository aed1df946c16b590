"""Local intrinsic dimension at k neighbours (Levina and Bickel 2004), and its exact null law.

On a perfect d-manifold (k-1) d / LID_k is Gamma(k - 1), so at k = 2 the tail is Pareto with
exponent 1 and can't disappear: claims about tails are made at k = 20, or against `lid_null`.
"""

import math
from typing import Any

import torch
from jaxtyping import Float
from scipy import stats
from torch import Tensor

from tokenspace.errors import ParameterError, TableError
from tokenspace.hub.dimension import Estimate, estimate, nothing_left, some_ids


def lid(distances: Float[Tensor, "q k_max"], k: int = 20) -> Float[Tensor, " q"]:
    """Levina-Bickel local dimension of each row, 1 / mean_{j<k} log(r_k / r_j).

    Raises `TableError` for rows with r1 = 0 (deduplicate first), and for rows whose k neighbours
    are all at one distance, where it is infinite; both with their positions.

    >>> round(lid(torch.tensor([[1.0, 2.0]]), k=2).item(), 4)
    1.4427
    """
    r = _neighbourhood(distances, k)
    zero = (r[:, 0] == 0).nonzero().flatten()
    if len(zero):
        raise TableError(
            f"{len(zero)} rows have a neighbour at distance 0 ({some_ids(zero)}): "
            "local dimension isn't defined there. Deduplicate the table first."
        )
    mean = (r[:, -1:] / r[:, :-1]).log().mean(dim=1)
    flat = (mean == 0).nonzero().flatten()
    if len(flat):
        raise TableError(
            f"{len(flat)} rows have all {k} neighbours at one distance ({some_ids(flat)}): "
            "local dimension is infinite there. Deduplicate the table, or use a larger k."
        )
    return 1 / mean


def lid_harmonic(distances: Float[Tensor, "q k_max"], k: int = 20) -> Estimate:
    """Harmonic mean of `lid` over the rows with r1 > 0; at k = 2 it is N/(N-1) times `mle`.

    Rows whose k neighbours are all at one distance count as ties, with 1/LID = 0. The standard
    error takes the rows as independent, which overlapping neighbourhoods aren't quite.

    >>> round(lid_harmonic(torch.tensor([[1.0, 2.0], [1.0, 2.0]]), k=2).value, 4)
    1.4427
    """
    r = _neighbourhood(distances, k)
    some = r[:, 0] > 0
    zeros = int((~some).sum())
    r = r[some]
    inverse = (r[:, -1:] / r[:, :-1]).log().mean(dim=1)
    n, ties = len(inverse), int((inverse == 0).sum())
    if n < 2 or ties == n:
        raise TableError(nothing_left(len(some), zeros, ties))
    value = 1 / float(inverse.mean())
    se = value**2 * float(inverse.std()) / math.sqrt(n)
    scale = float(r[:, -1].median())
    return estimate(value, se, n, scale, f"lid, k {k}, harmonic", zeros, ties)


def lid_null(d: float, k: int) -> Any:
    """Exact law of `lid` on a perfect d-manifold, InvGamma(k - 1, scale (k - 1) d), from scipy.

    At k = 2 it is a Pareto tail, P(LID > t) = 1 - exp(-d/t), of infinite mean; at k = 20 not.

    >>> null = lid_null(d=10.0, k=20)
    >>> print(round(null.ppf(0.99) / null.median(), 2))
    1.8
    """
    return stats.invgamma(k - 1, scale=(k - 1) * d)


def _neighbourhood(distances: Tensor, k: int) -> Tensor:
    if not 2 <= k <= distances.shape[1]:
        raise ParameterError(
            f"k = {k} needs 2 <= k <= {distances.shape[1]}, the neighbours that were found."
        )
    return distances[:, :k].to(torch.float64)
