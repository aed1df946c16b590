"""The companion form: the rotation that carries the direction of the mean row. A teaching case.

u = m/|m| with m = Σ pᵢ vᵢ, ω = du∧u = du uᵀ - u duᵀ, and du(v) = (I - uuᵀ) C v / |m| at
temperature 1. With D = d - ω its curvature is F(v, w) = -dω + ω∧ω = +du(v)∧du(w); the naive
dω + ω∧ω is -3 times that. Two live tokens move u along a curve, so F = 0: why the paper's form is
needed. Ours.
"""

import torch
from jaxtyping import Float, Float64
from torch import Tensor

from tokenspace.curvature.frames import Vectors, tangent, wedge
from tokenspace.curvature.softmax import covariance_times, mean

State = Float64[Tensor, " n"]
Table = Float[Tensor, "V n"]


def mean_direction(h: State, V: Table, v: Vectors) -> tuple[State, Vectors]:
    """u, the unit vector of the mean row at state h, and du(v): how it turns as h moves along v."""
    p = (h @ V.double().T).softmax(-1)
    m = mean(p, V)
    u, moved = m / m.norm(), covariance_times(p, V, v) / m.norm()
    return u, tangent(u.expand_as(moved), moved)


def companion_form(h: State, V: Table, v: State) -> Float64[Tensor, "n n"]:
    """ω(v) = du(v)∧u, dense.

    >>> V = torch.tensor([[1.0, 1.0], [1.0, -1.0]])
    >>> companion_form(torch.zeros(2).double(), V, torch.tensor([0.0, 1.0]).double()).int().tolist()
    [[0, -1], [1, 0]]
    """
    u, du = mean_direction(h, V, v)
    return wedge(du, u)


def companion_curvature(h: State, V: Table, v: State, w: State) -> Float64[Tensor, "n n"]:
    """F(v, w) = du(v)∧du(w), dense.

    >>> V = torch.tensor([[1.0, 1.0], [1.0, -1.0]])  # two tokens: u moves along a curve
    >>> F = companion_curvature(torch.zeros(2).double(), V, *torch.eye(2).double())
    >>> F.norm().item() < 1e-12
    True
    """
    _, (x, y) = mean_direction(h, V, torch.stack([v, w]))
    return wedge(x, y)
