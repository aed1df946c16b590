"""Parallel transport along paths and around loops: what a connection does, step by step.

Transport solves U' = -A(γ') U for D = d + A, by the fourth-order Magnus method, so that errors of
the solver stay far below those of finite loops. A loop of side ε gives H = I - ε²R + O(ε³); a
clover, four loops around one point, H = I - ε²R + O(ε⁴).
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import reduce
from itertools import pairwise

import torch
from jaxtyping import Float64
from torch import Tensor

from tokenspace.curvature.connection import Matrices, Vectors
from tokenspace.errors import ParameterError

Form = Callable[[Tensor, Tensor], Tensor]  # (z, μ) -> A_z(μ), of shapes (*N n), (*N n), (*N n n)
GAUSS = (0.5 - math.sqrt(3) / 6, 0.5 + math.sqrt(3) / 6)  # nodes of the two-point Gauss rule


@dataclass(frozen=True)
class Path:
    """A smooth path over t in [0, 1]: where it is, and its velocity there."""

    position: Callable[[float], Vectors]
    velocity: Callable[[float], Vectors]


def arc(start: Vectors, end: Vectors) -> Path:
    """The great circle that a straight line becomes when its points are scaled to length 1.

    >>> arc(*torch.eye(2).double()).position(0.5).tolist()
    [0.7071..., 0.7071...]
    """

    def position(t: float) -> Tensor:
        x = start + t * (end - start)
        return x / x.norm(dim=-1, keepdim=True)

    def velocity(t: float) -> Tensor:
        length = (start + t * (end - start)).norm(dim=-1, keepdim=True)
        u, v = position(t), (end - start) / length
        return v - u * (u * v).sum(-1, keepdim=True)

    return Path(position, velocity)


def circle(
    pole: Float64[Tensor, " n"], x: Float64[Tensor, " n"], y: Float64[Tensor, " n"], angle: float
) -> Path:
    """The rim of the spherical cap of half-angle `angle` radians around `pole`, from x to y on.

    >>> e = torch.eye(3).double()
    >>> circle(e[2], e[0], e[1], math.pi / 2).position(0.25).round().int().tolist()
    [0, 1, 0]
    """
    turn, sin, cos = 2 * math.pi, math.sin(angle), math.cos(angle)
    return Path(
        lambda t: cos * pole + sin * (math.cos(turn * t) * x + math.sin(turn * t) * y),
        lambda t: turn * sin * (math.cos(turn * t) * y - math.sin(turn * t) * x),
    )


def transport(form: Form, *paths: Path, steps: int = 16) -> Matrices:
    """U_γ = P exp(-∫ A) along paths that follow one another; of a loop, its holonomy.

    Orthogonal, and right up to O(steps⁻⁴). Raises ParameterError below one step a path.

    >>> from tokenspace.curvature import wedge
    >>> e = torch.eye(3).double()  # an eighth of the sphere: a quarter turn about where it began
    >>> octant = [arc(e[0], e[1]), arc(e[1], e[2]), arc(e[2], e[0])]
    >>> round((e[2] @ transport(wedge, *octant) @ e[1]).item(), 5)
    1.0
    """
    if steps < 1:
        raise ParameterError(f"steps = {steps}: a path takes one step at least.")
    if not paths:
        raise ParameterError("No path to be carried along: give one at least.")
    return reduce(lambda U, further: further @ U, (_along(form, path, steps) for path in paths))


def _along(form: Form, path: Path, steps: int) -> Matrices:
    """Transport along one path, by the fourth-order Magnus method (Blanes et al. 2009)."""
    dt = 1 / steps

    def step(i: int) -> Tensor:
        places = ((i + g) * dt for g in GAUSS)
        early, late = (-form(path.position(t), path.velocity(t)) for t in places)
        bracket = early @ late - late @ early  # (*N, n, n)
        return torch.linalg.matrix_exp(
            dt / 2 * (early + late) - math.sqrt(3) / 12 * dt**2 * bracket
        )

    return reduce(lambda U, i: step(i) @ U, range(1, steps), step(0))


def plaquette(
    form: Form, z: Vectors, mu: Vectors, nu: Vectors, epsilon: float, steps: int = 2
) -> Matrices:
    """Holonomy of the loop z, z+εμ, z+εμ+εν, z+εν on the sphere: I - ε²R(μ, ν) + O(ε³)."""
    corners = (z, z + epsilon * mu, z + epsilon * (mu + nu), z + epsilon * nu, z)
    return transport(form, *(arc(start, end) for start, end in pairwise(corners)), steps=steps)


def curvature_from_plaquette(
    form: Form, z: Vectors, mu: Vectors, nu: Vectors, epsilon: float
) -> Matrices:
    """R(μ, ν) + O(ε) from one loop, its skew part.

    >>> from tokenspace.curvature import wedge
    >>> e = torch.eye(3).double()
    >>> curvature_from_plaquette(wedge, *e, 1e-2)[1, 2].round(decimals=2).item()
    1.0
    """
    H = plaquette(form, z, mu, nu, epsilon)
    return -(H - H.mT) / (2 * epsilon**2)


def curvature_from_clover(
    form: Form, z: Vectors, mu: Vectors, nu: Vectors, epsilon: float
) -> Matrices:
    """R(μ, ν) + O(ε²) from the four loops that meet at z: their odd errors cancel.

    >>> from tokenspace.curvature import wedge
    >>> e = torch.eye(3).double()
    >>> curvature_from_clover(wedge, *e, 1e-2)[1, 2].round(decimals=3).item()
    1.0
    """
    leaves = ((mu, nu), (nu, -mu), (-mu, -nu), (-nu, mu))
    loops = [curvature_from_plaquette(form, z, x, y, epsilon) for x, y in leaves]
    return sum(loops[1:], loops[0]) / 4
