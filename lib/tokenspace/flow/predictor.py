"""Predictors of E[x* | x]: the hull of the token embeddings, and what it is compared with.

The hull (arXiv:2608.23551, (21) and (22)) weighs token j by f_j times the exact Gaussian kernel
exp(-|x - α e_j|²/2σ²) and predicts the mean of the rows of E (V, d), so it can't leave their
convex hull. Its logits are the network's plus (α/σ²) <x, e_j>: the kernel's other terms are the
same for all tokens when all rows have one norm, √d here.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn.functional import normalize
from torch.nn.utils import parametrize

from tokenspace.errors import ParameterError, TableError
from tokenspace.flow.path import kernel_scale, per_example, preserving

NORM_TOLERANCE = 1e-4  # relative; fp32 rows keep it, and it errs the logits by 1e-4 d SNR at most
SUM_TOLERANCE = 1e-5  # of probabilities: a softmax of thousands of tokens in fp32 is off by less


@dataclass(frozen=True)
class Prediction:
    """Scores of the V tokens at each position, and the mean that drives the flow."""

    logits: Float[Tensor, "*N V"]
    mean: Float[Tensor, "*N d"]


Denoiser = Callable[[Tensor, Tensor, Tensor], Prediction]
"""(x (B, L, d), γ (B,), c (B, L, d)) to a `Prediction`; c = 0 is no self-conditioning."""


class Predictor(nn.Module):
    """A `Denoiser` made of a network and the rows of E, which train if they are a parameter."""

    E: Tensor

    def __init__(
        self, network: Callable[[Tensor, Tensor, Tensor], Tensor], E: Float[Tensor, "V d"]
    ) -> None:
        super().__init__()
        self.network = network
        if isinstance(E, nn.Parameter):
            self.E = E
        else:
            self.register_buffer("E", E)


class Hull(Predictor):
    """softmax(network(x, γ, c) + (α/σ²) x Eᵀ) E: a denoiser in the hull of the rows of E.

    The softmax is in fp32 at least. Raises TableError for rows of unequal norm, ParameterError in
    `eval` mode for logits that `check_logits` refuses.

    >>> hull = Hull(lambda x, gamma, c: torch.zeros(1, 1, 4), embeddings(4, 4, seed=0))
    >>> hull(torch.zeros(1, 1, 4), torch.zeros(1), torch.zeros(1, 1, 4)).logits.tolist()
    [[[0.0, 0.0, 0.0, 0.0]]]
    """

    def __init__(
        self, network: Callable[[Tensor, Tensor, Tensor], Tensor], E: Float[Tensor, "V d"]
    ) -> None:
        super().__init__(network, check_rows(E))

    def forward(
        self, x: Float[Tensor, "B L d"], gamma: Float[Tensor, " B"], c: Float[Tensor, "B L d"]
    ) -> Prediction:
        logits = at_least_fp32(self.network(x, gamma, c))
        with torch.autocast(x.device.type, enabled=False):
            wide = at_least_fp32(x)
            overlap = wide @ self.E.to(wide).mT  # (B, L, V)
            logits = logits + per_example(kernel_scale(gamma), overlap) * overlap
            if not self.training:
                check_logits(logits)
            return Prediction(logits, logits.softmax(-1) @ self.E.to(logits))


class Normalized(nn.Module):
    """Rows scaled to norm √d."""

    def forward(self, rows: Float[Tensor, "V d"]) -> Float[Tensor, "V d"]:
        return normalize(rows, dim=-1) * rows.shape[-1] ** 0.5


def trainable_embeddings(hull: Hull) -> Hull:
    """Let `hull.E` train, its rows kept at norm √d. Under MSE alone they collapse."""
    rows = nn.Parameter(hull.E.detach().clone())
    del hull.E
    hull.E = rows
    parametrize.register_parametrization(hull, "E", Normalized())
    return hull


class Unconstrained(Predictor):
    """Baseline: the network predicts the mean directly; tokens are decoded to the nearest row.

    Raises ParameterError where the network's output isn't of x's shape.

    >>> free = Unconstrained(lambda x, gamma, c: 2 * x, torch.eye(2))
    >>> free(torch.ones(1, 1, 2), torch.zeros(1), torch.zeros(1, 1, 2)).mean.tolist()
    [[[2.0, 2.0]]]
    """

    def forward(
        self, x: Float[Tensor, "B L d"], gamma: Float[Tensor, " B"], c: Float[Tensor, "B L d"]
    ) -> Prediction:
        mean = at_least_fp32(self.network(x, gamma, c))
        if mean.shape != x.shape:
            raise ParameterError(
                f"The network gives {tuple(mean.shape)} for x of shape {tuple(x.shape)}: an "
                "unconstrained predictor needs a head of d outputs, not of V logits."
            )
        return Prediction(nearest_scores(mean, self.E.to(mean)), mean)


def context_free(
    x: Float[Tensor, "*N d"],
    gamma: Float[Tensor, "*B"],
    E: Float[Tensor, "V d"],
    prior: Float[Tensor, "*L V"],
) -> Prediction:
    """The posterior of each token from its own position alone; rows of E of any norm.

    `prior` is one law for all positions or one each. Raises ParameterError off the simplex.
    """
    logits = log_kernel(x, *preserving(gamma), E) + check_simplex(prior).log().to(x)
    return Prediction(logits, logits.softmax(-1) @ E.to(logits))


def log_kernel(
    x: Float[Tensor, "*N d"],
    alpha: Float[Tensor, "*B"],
    sigma: Float[Tensor, "*B"],
    E: Float[Tensor, "V d"],
) -> Float[Tensor, "*N V"]:
    """log exp(-|x - α e_j|²/2σ²) up to a constant of the position; rows of any norm, any path.

    >>> one = torch.tensor(1.0)
    >>> log_kernel(torch.tensor([[1.0]]), one, one, torch.tensor([[1.0], [-1.0]])).tolist()
    [[0.5, -1.5]]
    """
    E = E.to(x)
    overlap = x @ E.mT
    half = E.square().sum(-1) / 2
    return per_example(alpha / sigma**2, overlap) * (overlap - per_example(alpha, overlap) * half)


def nearest_scores(x: Float[Tensor, "*N d"], E: Float[Tensor, "V d"]) -> Float[Tensor, "*N V"]:
    """<x, e_j> - |e_j|²/2: largest at the row nearest to x."""
    return x @ E.mT - E.square().sum(-1) / 2


def embeddings(
    V: int, d: int, seed: int, kind: Literal["orthonormal", "gaussian"] = "orthonormal"
) -> Float[Tensor, "V d"]:
    """V random rows of norm √d: orthogonal (needs d >= V), or Gaussian directions.

    Raises ParameterError for an unknown kind and for more orthogonal rows than dimensions.

    >>> E = embeddings(3, 8, seed=0)
    >>> [round(v, 3) for v in (E @ E.T)[0].abs().tolist()]
    [8.0, 0.0, 0.0]
    """
    rows = torch.randn(V, d, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    if kind == "orthonormal":
        if d < V:
            raise ParameterError(f"{V} orthogonal rows don't fit in d = {d}; take d >= V.")
        rows = torch.linalg.qr(rows.mT).Q.mT
    elif kind != "gaussian":
        raise ParameterError(f"embeddings of kind {kind!r}: orthonormal or gaussian.")
    return (math.sqrt(d) * rows / rows.norm(dim=-1, keepdim=True)).float()


def check_logits(logits: Float[Tensor, "*N V"]) -> Float[Tensor, "*N V"]:
    """The logits as they are, if a softmax of each row is a law.

    Raises ParameterError for a row with NaN or +inf, a row that is -inf everywhere, and where
    every row is a law already: probabilities passed for logits.

    >>> check_logits(torch.tensor([[0.3, 0.7]]))
    Traceback (most recent call last):
    ...
    tokenspace.errors.ParameterError: These logits, shape (1, 2), are probabilities ...
    """
    top = logits.detach().amax(-1)  # NaN where the row has one
    if not bool(top.isfinite().all()):
        masked, bad = top == -math.inf, ~top.isfinite()
        what = "-inf everywhere" if bool(masked.any()) else "NaN or +inf"
        rows = (masked if bool(masked.any()) else bad).nonzero().tolist()
        raise ParameterError(
            f"{len(rows)} of {top.numel()} rows of logits, shape {tuple(logits.shape)}, are "
            f"{what}: at {rows[:5]}. No token can be drawn from them."
        )
    if bool((logits >= 0).all()) and bool(((logits.sum(-1) - 1).abs() < SUM_TOLERANCE).all()):
        raise ParameterError(
            f"These logits, shape {tuple(logits.shape)}, are probabilities (every row is >= 0 and "
            "sums to 1); pass their logarithm."
        )
    return logits


def check_simplex(p: Float[Tensor, "*N V"]) -> Float[Tensor, "*N V"]:
    """The probabilities as they are, if each row is >= 0 and sums to 1 within 1e-5.

    Raises ParameterError with the first bad row and its sum otherwise.
    """
    total = p.sum(-1)
    good = (p >= 0).all(-1) & ((total - 1).abs() <= SUM_TOLERANCE)
    if not bool(good.all()):
        at = (~good).nonzero()
        first = tuple(at[0].tolist())
        raise ParameterError(
            f"{len(at)} of {good.numel()} rows of probabilities, shape {tuple(p.shape)}, are off "
            f"the simplex: row {list(first)} sums to {float(total[first]):.6g} and its least entry "
            f"is {float(p[first].min()):.6g}. If these are logits, take their softmax first."
        )
    return p


def check_rows(E: Float[Tensor, "V d"]) -> Float[Tensor, "V d"]:
    """E as it is, if all rows are finite and of one norm, as the kernel's shortcut needs.

    Raises TableError with the norms and the rows otherwise.
    """
    norms = E.detach().double().norm(dim=-1)
    if not bool(norms.isfinite().all()):
        bad = (~norms.isfinite()).nonzero().flatten().tolist()
        raise TableError(f"{len(bad)} of {len(E)} rows of E aren't finite: rows {bad[:10]}.")
    low, high = int(norms.argmin()), int(norms.argmax())
    if norms[high] - norms[low] > NORM_TOLERANCE * norms[high] or norms[high] == 0:
        raise TableError(
            f"Rows of E have norms from {norms[low]:.4g} (row {low}) to {norms[high]:.4g} "
            f"(row {high}), shape {tuple(E.shape)}: the kernel's shortcut needs one norm above 0. "
            "Normalise the rows in fp32, then multiply by √d."
        )
    return E


def at_least_fp32(x: Tensor) -> Tensor:
    """fp16 and bf16 raised to fp32; anything else as it is."""
    return x.float() if x.dtype in (torch.float16, torch.bfloat16) else x
