"""Geometry of an output distribution: its mean row and its spread.

Rows `V` (V n) are the unembedding; p is a distribution over them, m = Σ pᵢ vᵢ their mean.
Everything is computed in fp64.
"""

import torch
from jaxtyping import Float, Float64
from torch import Tensor


def charge(p1: Float64[Tensor, "*N"], p2: Float64[Tensor, "*N"]) -> Float64[Tensor, "*N"]:
    """Probability charge q = 4 p₁ p₂ (Modenbach, arXiv:2605.04899): 0 when certain, at most 1.

    >>> charge(torch.tensor(0.5).double(), torch.tensor(0.5).double()).item()
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


def covariance_times(
    p: Float64[Tensor, " V"], V: Float[Tensor, "V n"], x: Float64[Tensor, "*N n"]
) -> Float64[Tensor, "*N n"]:
    """C x with C = Σ pᵢ (vᵢ - m)(vᵢ - m)ᵀ, so that dm = C dh / T, without the n × n matrix.

    >>> covariance_times(torch.tensor([0.5, 0.5]).double(), torch.eye(2), torch.ones(2).double())
    tensor([0., 0.], dtype=torch.float64)
    """
    centred = V.double() - mean(p, V)
    return (x @ centred.T * p) @ centred


def sampling_error(p: Float64[Tensor, "*N V"], V: Float[Tensor, "V n"]) -> Float64[Tensor, "*N"]:
    """E|v - m|², how far a sampled row lies from the mean one: the trace of C.

    Of two tokens it is p₁p₂ |v₁ - v₂|² = q |v₁ - v₂|² / 4: the charge is this error over its
    largest value.

    >>> sampling_error(torch.tensor([0.5, 0.5]).double(), torch.eye(2)).item()
    0.5
    """
    V = V.double()
    m = mean(p, V)
    # |vᵢ - m|² = |vᵢ|² + |m|² - 2 m·vᵢ  # (*N, V)
    from_mean = (V.square().sum(-1) + m.square().sum(-1, keepdim=True) - 2 * m @ V.T).clamp(min=0)
    return (p * from_mean).sum(-1)
