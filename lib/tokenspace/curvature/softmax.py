"""Geometry of an output distribution: its mean row, its spread, and the two likeliest tokens.

Rows `V` (V n) are the unembedding; p is a distribution over them, m = Σ pᵢ vᵢ their mean.
Everything is computed in fp64.
"""

from typing import NamedTuple

import torch
from jaxtyping import Bool, Float, Float64, Int64
from torch import Tensor

from tokenspace.errors import ParameterError


class TopTwo(NamedTuple):
    """The two likeliest tokens of each distribution and their probabilities."""

    first: Int64[Tensor, "*N"]
    second: Int64[Tensor, "*N"]
    p1: Float64[Tensor, "*N"]
    p2: Float64[Tensor, "*N"]


def finite_logits(logits: Float[Tensor, "*N V"]) -> Bool[Tensor, "*N"]:
    """Which rows of logits are finite throughout.

    >>> finite_logits(torch.tensor([[0.0, 1.0], [0.0, float("nan")]])).tolist()
    [True, False]
    """
    return logits.isfinite().all(-1)


def top_two(logits: Float[Tensor, "*N V"]) -> TopTwo:
    """Ids and probabilities of the two likeliest tokens, first the likelier one.

    Raises ParameterError for a vocabulary of one or for logits that aren't finite.

    >>> top_two(torch.tensor([0.0, 2.0, 1.0])).second.item()
    2
    """
    if logits.shape[-1] < 2:
        raise ParameterError(
            f"Logits of shape {tuple(logits.shape)}: a vocabulary of one has no runner-up."
        )
    bad = (~finite_logits(logits)).reshape(-1).nonzero().flatten().tolist()
    if bad:
        raise ParameterError(
            f"{len(bad)} rows of logits aren't finite (first: {bad[:5]}). Leave them out, as "
            "`points_of` does, or look for the overflow in the model that made them."
        )
    logits = logits.double()
    values, ids = logits.topk(2, dim=-1)
    p1, p2 = (values - logits.logsumexp(-1, keepdim=True)).exp().unbind(-1)
    return TopTwo(ids[..., 0], ids[..., 1], p1, p2)


def charge(p1: Float64[Tensor, "*N"], p2: Float64[Tensor, "*N"]) -> Float64[Tensor, "*N"]:
    """Probability charge q = 4 p₁ p₂ (Modenbach, arXiv:2605.04899): 0 when certain, at most 1.

    >>> round(charge(torch.tensor(0.5).double(), torch.tensor(0.5).double()).item(), 6)
    1.0
    """
    return 4 * p1 * p2


def entropy(logits: Float[Tensor, "*N V"]) -> Float64[Tensor, "*N"]:
    """Shannon entropy of softmax(logits), in nats.

    >>> round(entropy(torch.zeros(4)).exp().item(), 6)
    4.0
    """
    return torch.special.entr(logits.double().softmax(-1)).sum(-1)


def mean(p: Float64[Tensor, "*N V"], V: Float[Tensor, "V n"]) -> Float64[Tensor, "*N n"]:
    """The mean row m = Σ pᵢ vᵢ, the gradient of log Σ exp(vᵢ·h) in h.

    >>> mean(torch.tensor([0.25, 0.75]).double(), torch.eye(2)).tolist()
    [0.25, 0.75]
    """
    return p @ V.double()


def covariance(p: Float64[Tensor, " V"], V: Float[Tensor, "V n"]) -> Float64[Tensor, "n n"]:
    """C = Σ pᵢ (vᵢ - m)(vᵢ - m)ᵀ, so that dm = C dh / T. Dense: for small n only.

    >>> covariance(torch.tensor([0.5, 0.5]).double(), torch.eye(2)).tolist()
    [[0.25, -0.25], [-0.25, 0.25]]
    """
    centred = V.double() - mean(p, V)
    return (p[:, None] * centred).T @ centred


def covariance_times(
    p: Float64[Tensor, " V"], V: Float[Tensor, "V n"], x: Float64[Tensor, "*N n"]
) -> Float64[Tensor, "*N n"]:
    """C x without the n × n matrix.

    >>> half = torch.tensor([0.5, 0.5]).double()
    >>> covariance_times(half, torch.eye(2), torch.ones(2).double()).abs().tolist()
    [0.0, 0.0]
    """
    centred = V.double() - mean(p, V)
    return (x @ centred.T * p) @ centred


def sampling_error(p: Float64[Tensor, "*N V"], V: Float[Tensor, "V n"]) -> Float64[Tensor, "*N"]:
    """E|v - m|², how far a sampled row lies from the mean one: the trace of C.

    Of two tokens it is p₁p₂ |v₁ - v₂|² = q |v₁ - v₂|² / 4: the charge is this error over its
    largest value.

    >>> round(sampling_error(torch.tensor([0.5, 0.5]).double(), torch.eye(2)).item(), 6)
    0.5
    """
    V = V.double()
    m = mean(p, V)
    from_mean = (V.square().sum(-1) + m.square().sum(-1, keepdim=True) - 2 * m @ V.T).clamp(min=0)
    return (p * from_mean).sum(-1)
