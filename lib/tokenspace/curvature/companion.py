"""The companion form: the rotation that carries the direction of the mean row. A teaching case.

u = m/|m| with m = Σ pᵢ vᵢ, ω = du∧u = du uᵀ - u duᵀ, and du(v) = (I - uuᵀ) C v / (T |m|).
With D = d - ω its curvature is F(v, w) = -dω + ω∧ω = +du(v)∧du(w); the naive dω + ω∧ω is -3
times that. Two live tokens move u along a curve, so F = 0: why the paper's form is needed. Ours.
"""

import torch
from jaxtyping import Float, Float64
from torch import Tensor

from tokenspace.curvature.connection import tangent
from tokenspace.curvature.frames import wedge
from tokenspace.curvature.softmax import covariance_times, mean


def direction(
    h: Float64[Tensor, " n"], V: Float[Tensor, "V n"], temperature: float = 1.0
) -> Float64[Tensor, " n"]:
    """u, the unit vector of the mean row at state h.

    >>> direction(torch.zeros(2).double(), torch.tensor([[1.0, 1.0], [1.0, -1.0]])).abs().tolist()
    [1.0, 0.0]
    """
    m = mean((h @ V.double().T / temperature).softmax(-1), V)
    return m / m.norm()


def push(
    h: Float64[Tensor, " n"],
    V: Float[Tensor, "V n"],
    v: Float64[Tensor, "*N n"],
    temperature: float = 1.0,
) -> Float64[Tensor, "*N n"]:
    """du(v): how u turns when the state moves along v.

    >>> V = torch.tensor([[1.0, 1.0], [1.0, -1.0]])
    >>> push(torch.zeros(2).double(), V, torch.eye(2).double()).abs().tolist()
    [[0.0, 0.0], [0.0, 1.0]]
    """
    p = (h @ V.double().T / temperature).softmax(-1)
    m = mean(p, V)
    moved = covariance_times(p, V, v) / (temperature * m.norm())
    return tangent((m / m.norm()).expand_as(moved), moved)


def companion_form(
    h: Float64[Tensor, " n"],
    V: Float[Tensor, "V n"],
    v: Float64[Tensor, " n"],
    temperature: float = 1.0,
) -> Float64[Tensor, "n n"]:
    """ω(v) = du(v)∧u, dense.

    >>> V = torch.tensor([[1.0, 1.0], [1.0, -1.0]])
    >>> companion_form(torch.zeros(2).double(), V, torch.tensor([0.0, 1.0]).double()).int()
    tensor([[ 0, -1],
            [ 1,  0]], dtype=torch.int32)
    """
    return wedge(push(h, V, v, temperature), direction(h, V, temperature))


def companion_curvature(
    h: Float64[Tensor, " n"],
    V: Float[Tensor, "V n"],
    v: Float64[Tensor, " n"],
    w: Float64[Tensor, " n"],
    temperature: float = 1.0,
) -> Float64[Tensor, "n n"]:
    """F(v, w) = du(v)∧du(w), dense.

    >>> V = torch.tensor([[1.0, 1.0], [1.0, -1.0]])  # two tokens: u moves along a curve
    >>> F = companion_curvature(torch.zeros(2).double(), V, *torch.eye(2).double())
    >>> F.norm().item() < 1e-12
    True
    """
    x, y = push(h, V, torch.stack([v, w]), temperature)
    return wedge(x, y)
