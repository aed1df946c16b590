"""Toys in which everything is known: five tokens in the plane, and two tokens on a line.

A mean is a function of x and its point (α, σ). The plane's trajectories run in y = x/α, where a
point is (1, s); from s = 100 a start y = s z differs from the true one by a hundredth.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Float64, Int64
from torch import Tensor

from tokenspace.errors import ParameterError
from tokenspace.flow.path import Point
from tokenspace.flow.predictor import log_kernel
from tokenspace.flow.theory import margin, squared_distances

Mean = Callable[[Tensor, Point], Tensor]
LogOdds = Callable[[Tensor, Tensor], Tensor]  # of x and t

TOKENS = torch.tensor(
    [[2.0, 0.3], [0.4, 1.9], [-1.7, 0.9], [-0.9, -1.6], [1.3, -1.5]], dtype=torch.float64
)
PRIOR = torch.tensor([0.35, 0.1, 0.2, 0.3, 0.05], dtype=torch.float64)


def posterior_logits(x: Float[Tensor, "*N d"], at: Point) -> Float[Tensor, "*N V"]:
    """log P(token | x) of the plane's tokens, up to a constant."""
    return PRIOR.log().to(x) + log_kernel(x, *at, TOKENS)


def exact(x: Float[Tensor, "*N d"], at: Point) -> Float[Tensor, "*N d"]:
    """E[token | x]."""
    return posterior_logits(x, at).softmax(-1) @ TOKENS.to(x)


def mistaken(bound: float, seed: int = 0) -> Mean:
    """A hull predictor whose logits are wrong by up to `bound`, smoothly in x, at every noise.

    >>> mean = mistaken(6.0)(TOKENS[:1], (torch.tensor(1.0), torch.tensor(0.01)))
    >>> (mean - TOKENS[0]).norm().item() < 1e-6
    True
    """
    error = wave(len(TOKENS), seed)

    def mean(x: Tensor, at: Point) -> Tensor:
        return (posterior_logits(x, at) + bound * error(x, at)).softmax(-1) @ TOKENS.to(x)

    return mean


def clipped(span: float) -> Mean:
    """A hull predictor whose logits never fall more than `span` below the largest one."""

    def mean(x: Tensor, at: Point) -> Tensor:
        logits = posterior_logits(x, at)
        return (logits - logits.amax(-1, True)).clamp(-span).softmax(-1) @ TOKENS.to(x)

    return mean


def unconstrained(size: float, seed: int = 0) -> Mean:
    """The exact mean plus an error of length `size`, its direction smooth in x: out of the hull."""
    turn = wave(1, seed)

    def mean(x: Tensor, at: Point) -> Tensor:
        angle = math.pi * turn(x, at)
        return exact(x, at) + size * torch.cat([angle.cos(), angle.sin()], -1)

    return mean


def wave(channels: int, seed: int) -> Mean:
    """Random sines of x/√(α² + σ²), one a channel, in [-1, 1]."""
    generator = torch.Generator().manual_seed(seed)
    frequency = torch.randn(2, channels, generator=generator, dtype=torch.float64)
    phase = 2 * math.pi * torch.rand(channels, generator=generator, dtype=torch.float64)

    def value(x: Tensor, at: Point) -> Tensor:
        scale = (at[0] ** 2 + at[1] ** 2).sqrt().to(x)
        return torch.sin(x / scale @ frequency.to(x) + phase.to(x))

    return value


def scales(n: int, first: float = 100.0, last: float = 1e-4) -> tuple[Tensor, Tensor]:
    """n points (1, s) with s even in its logarithm, from `first` down to `last`."""
    s = torch.logspace(math.log10(first), math.log10(last), n, dtype=torch.float64)
    return torch.ones_like(s), s


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
    near: float = 0.1,  # well below the distances between tokens
) -> Falling:
    """Look at trajectories `ys` of `mean` over `points` (1, s) where s is nearest to each level.

    Raises ParameterError for levels so close that two fall on one point of the grid.

    >>> points, still = scales(3, 100.0, 1.0), TOKENS[None, :1].expand(3, 1, 2)
    >>> falling(exact, still, points, [100.0, 1.0]).arrived.tolist()
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
    """Which points lie outside the hull of the plane's tokens, which are its corners in order."""
    edges = TOKENS.roll(-1, 0) - TOKENS
    away = points.double()[..., None, :] - TOKENS
    turn = edges[:, 0] * away[..., 1] - edges[:, 1] * away[..., 0]
    return (turn < -slack).any(-1)


def trap(x: Tensor, t: Tensor) -> Tensor:
    """log f_1/f_2 of the counterexample to Theorem 1 as it is stated, tokens ±1, linear path.

    f is positive and smooth for t < 1, and its log is Lipschitz in t along every trajectory. It
    undoes the kernel: the mean is -tanh(3x), and all trajectories end at the midpoint.

    >>> mean = two_tokens(trap)(torch.tensor([0.5]), (torch.tensor(0.5), torch.tensor(0.5)))
    >>> torch.allclose(mean, -torch.tanh(torch.tensor([1.5])))
    True
    """
    return -2 * t * x / (1 - t) ** 2 - 6 * x


def lipschitz(x: Tensor, t: Tensor) -> Tensor:
    """log f_1/f_2 with the same pull to the midpoint, but Lipschitz in x at all t: no trap."""
    return -4 * torch.tanh(2 * x)


def two_tokens(log_odds: LogOdds) -> Mean:
    """The hull predictor of the tokens ±1 on the linear path, with this log f_1/f_2."""

    def mean(x: Tensor, at: Point) -> Tensor:
        alpha, sigma = at
        return torch.tanh((log_odds(x, alpha) + 2 * alpha * x / sigma**2) / 2)

    return mean


def lipschitz_constant(
    log_odds: LogOdds, xs: Float64[Tensor, "K n"], times: Float64[Tensor, " K"]
) -> float:
    """The largest |change of log f_1/f_2| / |change of t| along trajectories: Theorem 1's L̃."""
    values = log_odds(xs, times[:, None])
    return float((values.diff(dim=0).abs() / times.diff()[:, None]).max())
