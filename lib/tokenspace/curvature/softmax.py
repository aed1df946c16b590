"""Geometry of an output distribution p over the rows `V` (V n) of the unembedding, in fp64."""

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


def sampling_error(p: Float64[Tensor, "*N V"], V: Float[Tensor, "V n"]) -> Float64[Tensor, "*N"]:
    """E|v - m|² = tr C, how far a sampled row lies from the mean one; C is the rows' covariance.

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
