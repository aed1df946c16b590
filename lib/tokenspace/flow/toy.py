"""A toy in which everything is known: five tokens in the plane.

A mean is a function of x and its point (α, σ). Trajectories run in y = x/α, where a
point is (1, s); from s = 100 a start y = s z differs from the true one by a hundredth.
"""

import math
from collections.abc import Callable

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from tokenspace.flow.path import Point
from tokenspace.flow.predictor import log_kernel

Mean = Callable[[Tensor, Point], Tensor]

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


def outside(points: Float[Tensor, "*N 2"], slack: float = 1e-9) -> Bool[Tensor, "*N"]:
    """Which points lie outside the hull of the plane's tokens, which are its corners in order."""
    edges = TOKENS.roll(-1, 0) - TOKENS
    away = points.double()[..., None, :] - TOKENS
    turn = edges[:, 0] * away[..., 1] - edges[:, 1] * away[..., 0]
    return (turn < -slack).any(-1)
