"""Entropy from squared errors alone: H = ½ ∫ mmse dSNR (Guo, Shamai and Verdú 2005).

The error of any predictor is at least the exact one's, and ½ ∫ mse dSNR bounds a model's negative
log-likelihood from above without a cross entropy anywhere: as a diffusion that draws fresh noise;
its deterministic flow has a law of its own. All integrals run over γ, with dSNR = -SNR dγ; errors
are |e - D|² summed over the d coordinates of one token.
"""

import math
from collections.abc import Callable

import torch
from jaxtyping import Float, Float64, Int64
from torch import Tensor

from tokenspace.errors import ParameterError
from tokenspace.flow.path import Gumbel, corrupt, snr
from tokenspace.flow.predictor import Prediction

EULER_GAMMA = 0.5772156649015329  # the mean of a standard Gumbel


@torch.no_grad()
def squared_errors(
    denoiser: Callable[[Tensor, Tensor, Tensor], Prediction],
    E: Float[Tensor, "V d"],
    tokens: Int64[Tensor, "n L"],
    gammas: Float[Tensor, " G"],
    generator: torch.Generator,
    passes: int = 1,
) -> Float64[Tensor, "G n"]:
    """|e - D|² of each sequence at each γ, a mean over its L tokens, with fresh noise each time.

    From the second of `passes` on, the mean before it is the self-conditioning.

    >>> still = lambda x, gamma, c: Prediction(x, torch.zeros_like(x))
    >>> ids, at = torch.zeros(1, 3, dtype=torch.long), torch.zeros(2)
    >>> squared_errors(still, 2 * torch.eye(3), ids, at, torch.Generator()).tolist()
    [[4.0], [4.0]]
    """
    e, rows = E[tokens], []
    for gamma in gammas.to(e):
        noise = torch.randn(e.shape, generator=generator, dtype=e.dtype).to(e.device)
        x = corrupt(e, gamma, noise)
        mean = torch.zeros_like(x)
        for _ in range(passes):
            mean = denoiser(x, gamma.expand(len(x)), mean).mean.to(x)
        rows.append((e - mean).double().square().sum(-1).mean(-1))
    return torch.stack(rows)


def information_density(
    gammas: Float64[Tensor, " G"], errors: Float64[Tensor, "G *n"]
) -> Float64[Tensor, "G *n"]:
    """½ SNR mse: nats a token that are learned per unit of γ.

    >>> at = torch.zeros(1, dtype=torch.float64)
    >>> information_density(at, 3 + at).item()
    1.5
    """
    return snr(gammas).reshape(-1, *[1] * (errors.ndim - 1)) * errors / 2


def nll_bound(
    gammas: Float64[Tensor, " G"], errors: Float64[Tensor, "G *n"]
) -> Float64[Tensor, "*n"]:
    """½ ∫ mse dSNR in nats a token, by trapezes over ascending γ and a constant beyond the last.

    Below the first γ nothing is added: an exact or hull predictor has no error left there, and of
    one that has, the bound grows for ever. Raises ParameterError unless γ ascends.

    >>> gammas = torch.linspace(-4, 12, 200, dtype=torch.float64)
    >>> bit = 1 - torch.tanh(torch.exp(-gammas))  # not an mmse; any curve can be integrated
    >>> bool(nll_bound(gammas, bit) > 0)
    True
    """
    if len(gammas) < 2 or not bool((gammas.diff() > 0).all()):
        raise ParameterError(f"γ must ascend and have 2 values at least; it is {gammas.tolist()}.")
    density = information_density(gammas, errors)
    return torch.trapezoid(density, gammas, dim=0) + density[-1]


def fit_gumbel(gammas: Float64[Tensor, " G"], density: Float64[Tensor, " G"]) -> Gumbel:
    """The schedule whose γ has this density's mean and variance, so that times fall on it.

    >>> gammas = torch.linspace(-8, 20, 2000, dtype=torch.float64)
    >>> z = (gammas - 1.5) / 0.8
    >>> schedule = fit_gumbel(gammas, torch.exp(-z - torch.exp(-z)))
    >>> round(schedule.loc, 3), round(schedule.scale, 3)
    (1.5, 0.8)
    """
    total = torch.trapezoid(density, gammas)
    mean = torch.trapezoid(density * gammas, gammas) / total
    variance = torch.trapezoid(density * (gammas - mean) ** 2, gammas) / total
    scale = math.sqrt(6 * float(variance)) / math.pi
    return Gumbel(float(mean) - EULER_GAMMA * scale, scale)
