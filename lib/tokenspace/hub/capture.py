"""What a hub of short rows does to a token's first neighbours, and to the reading.

A token of length rho has its nearest hub row, of length s, at about rho: in D dimensions
independent directions are orthogonal up to 1/sqrt(D). It is *captured* when its first two
neighbours are both hub rows; their distances nearly agree, m is nearly 0, and its local
dimension is huge (Quemy, arXiv:2608.29702).
"""

import math
from typing import TYPE_CHECKING

import torch
from jaxtyping import Bool, Float, Int
from scipy.stats import norm
from torch import Tensor

from tokenspace.errors import ParameterError, TableError
from tokenspace.hub.dimension import log_ratios
from tokenspace.hub.neighbours import Neighbours

if TYPE_CHECKING:
    import pandas as pd

GROUPS = ("free", "captured", "hub row")


def captured(neighbours: Neighbours, hub_rows: Int[Tensor, " h"]) -> Bool[Tensor, " q"]:
    """True for each query whose first two neighbours are both hub rows.

    >>> from tokenspace.hub import nearest
    >>> rows = torch.tensor([[9.0, 0.0], [0.0, 1.0], [0.0, -1.0], [0.0, 9.0]])
    >>> captured(nearest(rows), torch.tensor([1, 2])).tolist()
    [True, False, False, True]
    """
    return torch.isin(neighbours.indices[:, :2], hub_rows.to(neighbours.indices.device)).all(dim=1)


def token_groups(neighbours: Neighbours, hub_rows: Int[Tensor, " h"]) -> Int[Tensor, " q"]:
    """Index into `GROUPS` of each query: free 0, captured 1, itself a hub row 2.

    >>> from tokenspace.hub import nearest
    >>> rows = torch.tensor([[9.0, 0.0], [0.0, 1.0], [0.0, -1.0], [0.0, 9.0]])
    >>> token_groups(nearest(rows), torch.tensor([1, 2])).tolist()
    [1, 2, 2, 1]
    """
    itself = torch.isin(neighbours.queries, hub_rows.to(neighbours.queries.device))
    return torch.where(itself, 2, captured(neighbours, hub_rows).to(torch.int64))


def prefers_hub(
    r_core: Float[Tensor, " q"],
    rho: Float[Tensor, " q"],
    s: float,
    h: int,
    D: int,
    order: int | None = None,
) -> Bool[Tensor, " q"]:
    """Predicted capture: r_core^2 > rho^2 + s^2 - 2 rho s z / sqrt(D), z = sqrt(2 ln h).

    r_core is the distance to the nearest row outside the hub, rho the token's length, s the hub
    rows' length, h their number. For equal lengths and s -> 0: nearest-neighbour cosine < 1/2.
    That z bounds the largest of h normals (our reconstruction); order = 1 or 2 takes the expected
    largest or second largest instead (Blom 1958), so that 2 predicts `captured` itself.

    >>> prefers_hub(torch.tensor([0.9, 1.1]), torch.ones(2), s=0.01, h=300, D=512).tolist()
    [False, True]
    """
    if order is None:
        z = math.sqrt(2 * math.log(h))
    elif 1 <= order <= h:
        z = float(norm.ppf((h - order + 0.625) / (h + 0.25)))
    else:
        raise ParameterError(f"order = {order}: a hub of {h} rows has orders 1 to {h}.")
    return r_core**2 > rho**2 + s**2 - 2 * rho * s * z / math.sqrt(D)


def captured_reading(rho: float, s: float, h: int, D: int) -> float:
    """Dimension read from captured tokens alone, about (rho / s) sqrt(2 D ln h).

    The gap between the two largest of h projections N(0, 1/D) is about 1 / sqrt(2 D ln h).

    >>> round(captured_reading(1.0, 0.2, 300, 2048))
    764
    """
    return rho / s * math.sqrt(2 * D * math.log(h))


def decompose(
    r1: Float[Tensor, " q"], r2: Float[Tensor, " q"], groups: Int[Tensor, " q"]
) -> "pd.DataFrame":
    """1/d as a sum over groups of tokens: weight x mean m, exactly 1 / `mle`.

    Columns: group, n, weight = n/(N-1) (so that the sum is the unbiased 1/d), mean_m,
    contribution = weight x mean_m, share of 1/d. Pairs with r1 = 0 are left out, as in `mle`.
    Raises `TableError` when r1, r2 and groups differ in length, or a label is none of `GROUPS`.

    >>> table = decompose(torch.ones(3), torch.tensor([2.0, 2.0, 4.0]), torch.tensor([0, 0, 1]))
    >>> print(round(1 / table.contribution.sum(), 4))
    0.7213
    """
    import pandas as pd  # takes half a second, and only a page's table wants it

    if groups.shape != r1.shape:
        raise TableError(f"{len(groups)} group labels for {len(r1)} pairs; give one a pair.")
    unknown = groups[(groups < 0) | (groups >= len(GROUPS))].unique().tolist()
    if unknown:
        raise TableError(f"group labels {unknown[:5]}: use 0 to {len(GROUPS) - 1}, as `GROUPS`.")
    m = log_ratios(r1, r2)
    kept = groups[r1 > 0]
    table = pd.DataFrame({"code": kept.numpy(), "m": m.numpy()})
    table = table.groupby("code").m.agg(n="size", mean_m="mean").reset_index()
    table.insert(0, "group", [GROUPS[code] for code in table.code])
    table.insert(2, "weight", table.n / (len(m) - 1))
    table["contribution"] = table.weight * table.mean_m
    table["share"] = table.contribution / table.contribution.sum()
    return table.drop(columns="code")


def ghost(
    r1: Float[Tensor, " q"], r2: Float[Tensor, " q"], rho: Float[Tensor, " q"]
) -> tuple[Float[Tensor, " q"], Float[Tensor, " q"]]:
    """The two smallest of (r1, r2, rho, rho): first neighbours as if a hub sat at the origin.

    rho is each row's own length. Reading the result predicts what a hub would do to the table.

    >>> [r.tolist() for r in ghost(*torch.tensor([[1.0, 3.0], [3.0, 4.0], [2.0, 2.0]]))]
    [[1.0, 2.0], [2.0, 2.0]]
    """
    rho = rho.to(r1.dtype)
    two = torch.stack([r1, r2, rho, rho]).sort(dim=0).values[:2]
    return two[0], two[1]
