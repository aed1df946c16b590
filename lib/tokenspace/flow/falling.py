"""What is watched while the plane's trajectories fall: where they are, how many have arrived."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Int64
from torch import Tensor

from tokenspace.errors import ParameterError
from tokenspace.flow.certificates import margin, squared_distances
from tokenspace.flow.path import Point
from tokenspace.flow.toy import TOKENS, Mean


@dataclass(frozen=True, eq=False)
class Falling:
    """N trajectories at K noise levels: y = x/α, the means that drive them, and two counts.

    `arrived` counts the trajectories that are `near` a token, `outside` the means that have left
    the hull; `ended` is the token nearest to each trajectory's end.
    """

    s: Float[Tensor, " K"]
    y: Float[Tensor, "K N 2"]
    mean: Float[Tensor, "K N 2"]
    ended: Int64[Tensor, " N"]
    arrived: Int64[Tensor, " K"]
    outside: Int64[Tensor, " K"]


def falling(
    mean: Mean,
    ys: Float[Tensor, "M N 2"],
    points: Point,
    levels: Sequence[float],
    near: float = 0.1,
) -> Falling:
    """Look at trajectories `ys` of `mean` over `points` (1, s) where s is nearest to each level.

    Raises ParameterError for levels so close that two fall on one point of the grid.

    >>> from tokenspace.flow import toy
    >>> points, still = toy.scales(3, 100.0, 1.0), toy.TOKENS[None, :1].expand(3, 1, 2)
    >>> falling(toy.exact, still, points, [100.0, 1.0]).arrived.tolist()
    [1, 1]
    """
    s = points[1]
    rows = [int((s.log() - torch.tensor(level).log()).abs().argmin()) for level in levels]
    if len(set(rows)) < len(rows):
        raise ParameterError(
            f"{len(rows)} levels fall on {len(set(rows))} points of the grid: take fewer levels, "
            "or more steps"
        )
    y = ys[rows]
    means = torch.stack(
        [mean(at, (torch.ones_like(s[i]), s[i])) for at, i in zip(y, rows, strict=True)]
    )
    arrived = (squared_distances(y, TOKENS).amin(-1) < near**2).sum(1)
    return Falling(s[rows], y, means, margin(ys[-1], TOKENS)[0], arrived, outside(means).sum(1))


def outside(points: Float[Tensor, "*N 2"], slack: float = 1e-9) -> Bool[Tensor, "*N"]:
    """Which points lie outside the hull of the plane's tokens, which are its corners in order.

    >>> outside(torch.tensor([[0.0, 0.0], [3.0, 0.0]]).double()).tolist()
    [False, True]
    """
    edges = TOKENS.roll(-1, 0) - TOKENS
    away = points.double()[..., None, :] - TOKENS
    turn = edges[:, 0] * away[..., 1] - edges[:, 1] * away[..., 0]
    return (turn < -slack).any(-1)
