"""Certificates of capture: from here on, this trajectory can end at one token only (ours).

In y = x/α and s = σ/α a step is y' = (s'/s) y + (1 - s'/s) D, a point between y and D. Half the
difference of squared distances to e_u and e_v is affine in y, so it moves between its values at y
and at D; where D is close enough to e_v, it can't fall below its threshold again. The argument
holds for every step size, and for rows of any norm.
"""

import math

import torch
from jaxtyping import Float, Int64
from torch import Tensor

from tokenspace.errors import ParameterError


def margin(
    y: Float[Tensor, "*N d"], E: Float[Tensor, "V d"]
) -> tuple[Int64[Tensor, "*N"], Float[Tensor, "*N"]]:
    """Nearest row v, and min_u (|y - e_u|² - |y - e_v|²)/2: 0 on a Voronoi face.

    >>> token, m = margin(torch.tensor([0.5]), torch.tensor([[1.0], [-1.0]]))
    >>> token.item(), m.item()
    (0, 1.0)
    """
    two = squared_distances(y, E).topk(2, dim=-1, largest=False)
    return two.indices[..., 0], (two.values[..., 1] - two.values[..., 0]) / 2


def squared_distances(y: Float[Tensor, "*N d"], E: Float[Tensor, "V d"]) -> Float[Tensor, "*N V"]:
    """|y - e_j|² by differences: the expanded square loses the last digits near a token.

    >>> squared_distances(torch.tensor([3.0]), torch.tensor([[1.0], [-1.0]])).tolist()
    [4.0, 16.0]
    """
    return torch.stack([(y - e).square().sum(-1) for e in E.to(y)], -1)


def threshold(
    s: Float[Tensor, "..."], excess: Float[Tensor, "..."] | float, E: Float[Tensor, "V d"]
) -> Float[Tensor, "..."]:
    """s² [excess + log(2(V-1)(g + Δ²/2)/g)]: a margin above it, and below g/2, is a certificate.

    g is half the least squared distance between rows, Δ their largest distance. A logit error of
    at most B around equal priors has an excess of at most 2B.
    Raises ParameterError where two rows of E are equal.

    >>> round(threshold(torch.tensor(1.0), 0.0, torch.tensor([[1.0], [-1.0]])).exp().item(), 4)
    4.0
    """
    half, widest = geometry(E)
    constant = math.log(2 * (len(E) - 1) * (half + widest**2 / 2) / half)
    return s**2 * (excess + constant)


def certify(
    y: Float[Tensor, "*N d"],
    s: Float[Tensor, "..."],
    E: Float[Tensor, "V d"],
    excess: Float[Tensor, "..."] | float,
) -> Int64[Tensor, "*N"]:
    """The token that each position must end at, -1 where nothing is certain yet.

    `excess` bounds log f_u - log f_v, over all u, for the rest of the way: v the nearest row.

    >>> E = torch.tensor([[1.0], [-1.0]])
    >>> certify(torch.tensor([[0.8], [0.01]]), torch.tensor(0.3), E, excess=1.0).tolist()
    [0, -1]
    """
    token, m = margin(y, E)
    mu = threshold(s, excess, E)
    sure = (m > mu) & (mu < geometry(E)[0] / 2)
    return token.masked_fill(~sure, -1)


def excess_of(
    logits: Float[Tensor, "*N V"],
    y: Float[Tensor, "*N d"],
    s: Float[Tensor, "..."],
    E: Float[Tensor, "V d"],
) -> Float[Tensor, "*N"]:
    """max_u log f_u - log f_v at y, v the nearest row: what a predictor adds to the kernel.

    It is measured here, and a certificate needs it for the rest of the way.

    >>> E, y = torch.tensor([[1.0], [-1.0]]), torch.tensor([[0.0], [0.5]])
    >>> logits = torch.tensor([[0.0, 3.0], [0.0, 0.0]])
    >>> excess_of(logits, y, torch.tensor(1.0), E).round(decimals=5).tolist()
    [3.0, 1.0]
    """
    far = squared_distances(y, E)
    f = logits + far / (2 * s[..., None] ** 2)
    nearest = far.argmin(-1, keepdim=True)
    return f.amax(-1) - f.gather(-1, nearest).squeeze(-1)


def audit(certified: Int64[Tensor, "K *N"], final: Int64[Tensor, "*N"]) -> tuple[int, int]:
    """Certificates that named another token than the final one; trajectories with no certificate.

    >>> audit(torch.tensor([[-1, 0, -1], [1, 0, -1]]), torch.tensor([1, 1, 1]))
    (2, 1)
    """
    given = certified >= 0
    return int((given & (certified != final)).sum()), int((~given.any(0)).sum())


def geometry(E: Float[Tensor, "V d"]) -> tuple[float, float]:
    """g, half the least squared distance between two rows, and Δ, their largest distance.

    >>> geometry(torch.tensor([[1.0], [-1.0]]))
    (2.0, 2.0)
    """
    far = torch.pdist(E.double())
    if len(E) < 2 or float(far.min()) == 0:
        raise ParameterError(
            f"E of shape {tuple(E.shape)} has two equal rows, or only one: no trajectory can be "
            "told to end at either."
        )
    return float(far.min()) ** 2 / 2, float(far.max())
