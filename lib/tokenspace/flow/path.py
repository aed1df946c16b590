"""The noising path x = α e + σ z, its one coordinate, and the deterministic step along it.

Two paths with the same α/σ are the same path up to the scale of x, so everything is indexed by
γ = log(σ²/α²): noise at +∞, data at -∞ (arXiv:2608.23551; its released code calls γ "log SNR",
but it is the log of noise over signal). The linear-equivalent time is t = sigmoid(-γ/2).
A γ of shape (B,) belongs to the B examples of an x of shape (B, L, d).
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise

import torch
from jaxtyping import Float, Float64
from torch import Tensor
from torch.nn.functional import softplus

from tokenspace.errors import ParameterError

Point = tuple[Float[Tensor, "*B"], Float[Tensor, "*B"]]  # (α, σ)


def preserving(gamma: Float[Tensor, "*B"]) -> Point:
    """Variance-preserving (α, σ): α² = sigmoid(-γ), σ² = sigmoid(γ).

    >>> alpha, sigma = preserving(torch.tensor(0.0))
    >>> round(float(alpha**2), 6), round(float(sigma**2), 6)
    (0.5, 0.5)
    """
    return torch.sigmoid(-gamma).sqrt(), torch.sigmoid(gamma).sqrt()


def linear(t: Float[Tensor, "*B"]) -> Point:
    """The linear path's (α, σ) = (t, 1 - t); raises ParameterError for a t outside [0, 1]."""
    if not bool(((t >= 0) & (t <= 1)).all()):
        raise ParameterError(f"t from {float(t.min()):g} to {float(t.max()):g} isn't in [0, 1].")
    return t, 1 - t


def time_of(gamma: Float[Tensor, "*B"]) -> Float[Tensor, "*B"]:
    """t = α/(α + σ) = sigmoid(-γ/2), the time at which the linear path has this α/σ."""
    return torch.sigmoid(-gamma / 2)


def snr(gamma: Float[Tensor, "*B"]) -> Float[Tensor, "*B"]:
    """α²/σ² = exp(-γ)."""
    return torch.exp(-gamma)


def kernel_scale(gamma: Float[Tensor, "*B"]) -> Float[Tensor, "*B"]:
    """α/σ² = exp((softplus(-γ) - γ)/2): the exact Gaussian kernel's factor of <x, e_j>."""
    return torch.exp((softplus(-gamma) - gamma) / 2)


def loss_weight(alpha: Float[Tensor, "*B"], sigma: Float[Tensor, "*B"]) -> Float[Tensor, "*B"]:
    """(1 + α/σ)², objective (17): (1 - t)^-2 on the linear path."""
    return (1 + alpha / sigma) ** 2


@dataclass(frozen=True)
class Gumbel:
    """Times u in (0, 1) to γ = loc - scale ln(-ln u), u clamped to [eps, 1 - eps].

    The released schedule has loc 4.9563 and scale 0.9637, and leaves both trainable under the
    weighted loss, which then moves them to lower itself; here they are plain numbers.

    >>> Gumbel(4.9563, 0.9637).gamma(torch.tensor([0.5], dtype=torch.float64))
    tensor([5.3095], dtype=torch.float64)
    """

    loc: float
    scale: float
    eps: float = 1e-5  # as released: γ is infinite at u = 0 and 1

    def __post_init__(self) -> None:
        if not (math.isfinite(self.loc) and 0 < self.scale < math.inf and 0 < self.eps < 0.5):
            raise ParameterError(
                f"Gumbel(loc={self.loc}, scale={self.scale}, eps={self.eps}): loc is finite, "
                "scale above 0, eps between 0 and .5."
            )

    def gamma(self, u: Float[Tensor, "*B"]) -> Float[Tensor, "*B"]:
        """γ at u; increasing, so noise is at u = 1."""
        return self.loc - self.scale * torch.log(-torch.log(u.clamp(self.eps, 1 - self.eps)))

    def grid(self, n: int) -> Float64[Tensor, " n"]:
        """The paper's n midpoints t_i = (i + .5)/n, u = 1 - t_i, as γ from noise to data.

        Raises ParameterError for n < 1.
        """
        if n < 1:
            raise ParameterError(f"A grid of {n} points: at least 1 is needed.")
        return self.gamma(1 - (torch.arange(n, dtype=torch.float64) + 0.5) / n)


def stratified(n: int, generator: torch.Generator, eps: float = 1e-5) -> Float64[Tensor, " n"]:
    """One u from each of n equal strata of [eps, 1 - eps], shuffled.

    >>> u = stratified(4, torch.Generator().manual_seed(0))
    >>> (u.sort().values * 4).floor().tolist()
    [0.0, 1.0, 2.0, 3.0]
    """
    inside = torch.rand(n, generator=generator, dtype=torch.float64)
    strata = torch.randperm(n, generator=generator)
    return eps + (1 - 2 * eps) * (strata + inside) / n


def corrupt(
    e: Float[Tensor, "*N d"], gamma: Float[Tensor, "*B"], noise: Float[Tensor, "*N d"]
) -> Float[Tensor, "*N d"]:
    """x = α e + σ z on the variance-preserving path."""
    alpha, sigma = preserving(gamma)
    return per_example(alpha, e) * e + per_example(sigma, e) * noise


def ddim_step(
    x: Float[Tensor, "*N d"],
    mean: Float[Tensor, "*N d"],
    now: Point,
    then: Point,
    guidance: float = 0.0,
) -> Float[Tensor, "*N d"]:
    """From x at (α, σ) to (α', σ') with the mean held: (26), and (32) with guidance w_ug > 0.

    The noise estimate (x - α μ)/σ is kept, so this is DDIM, and Euler's step on the linear path.
    Raises ParameterError for a guidance below 0 or not finite.

    >>> at = lambda t: linear(torch.tensor(t))
    >>> ddim_step(torch.zeros(1, 1), torch.ones(1, 1), at(0.0), at(0.5)).item()
    0.5
    """
    if not 0 <= guidance < math.inf:
        raise ParameterError(f"guidance w_ug = {guidance}: a finite number, at least 0.")
    (alpha, sigma), (alpha_next, sigma_next) = now, then
    ratio = sigma_next / sigma
    out = per_example(ratio, x) * x + per_example(alpha_next - ratio * alpha, x) * mean
    if guidance == 0:
        return out
    noise = (x - per_example(alpha, x) * mean) / per_example(sigma, x)
    return out + guidance * per_example(sigma_next - sigma * alpha_next / alpha, x) * noise


def follow(
    mean: Callable[[Tensor, Point], Tensor], x: Float[Tensor, "*N d"], points: Point
) -> tuple[Float[Tensor, "K *N d"], Float[Tensor, "M *N d"]]:
    """All K points of the trajectory from x, and the M = K - 1 means that drove its steps.

    `points` are the grid's α (K,) and σ (K,), on any path; `mean` is given x and one point.

    >>> grid = linear(torch.tensor([0.0, 0.5, 0.75]))
    >>> follow(lambda x, at: torch.ones(1), torch.zeros(1), grid)[0].flatten().tolist()
    [0.0, 0.5, 0.75]
    """
    xs, means = [x], []
    for now, then in pairwise(zip(*points, strict=True)):
        means.append(mean(xs[-1], now))
        xs.append(ddim_step(xs[-1], means[-1], now, then))
    return torch.stack(xs), torch.stack(means)  # (K, *N, d), (M, *N, d)


def per_example(scale: Float[Tensor, "*B"], x: Float[Tensor, "*N d"]) -> Float[Tensor, "..."]:
    """A number per example, in x's type and with its trailing axes as 1."""
    return scale.to(x).reshape(scale.shape + (1,) * (x.ndim - scale.ndim))  # (*B, 1, ..., 1)
