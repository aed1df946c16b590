"""Products of vectors, and the three vectors of a point made orthonormal: all its curvature needs.

Conventions: x∧y = xyᵀ - yxᵀ, and z, a, b are unit vectors.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from jaxtyping import Float64
from torch import Tensor
from torch.nn.functional import normalize

from tokenspace.curvature.points import Points

CACHE = 40_000  # numbers a vector of the block of points whose frames are made at once: 1 MB

Scalars = Float64[Tensor, "*N"]
Vectors = Float64[Tensor, "*N n"]
Matrices = Float64[Tensor, "*N n n"]


def dot(x: Vectors, y: Vectors) -> Scalars:
    """x·y along the last axis."""
    return (x * y).sum(-1)


def wedge(x: Vectors, y: Vectors) -> Matrices:
    """x∧y = xyᵀ - yxᵀ, dense: the bivector that turns the plane of x and y.

    >>> wedge(*torch.eye(2).double()).int().tolist()
    [[0, 1], [-1, 0]]
    """
    outer = x[..., :, None] * y[..., None, :]  # (*N, n, n)
    return outer - outer.mT


def apply_bivector(a: Vectors, b: Vectors, x: Vectors) -> Vectors:
    """(a∧b) x = a (b·x) - b (a·x), without the n × n matrix.

    >>> a, b = torch.eye(2).double()
    >>> apply_bivector(a, b, torch.tensor([0.0, 3.0]).double()).int().tolist()
    [3, 0]
    """
    return a * dot(b, x)[..., None] - b * dot(a, x)[..., None]


def tangent(z: Vectors, x: Vectors) -> Vectors:
    """Px = x - z (z·x), the part of x along the unit sphere at z.

    >>> tangent(torch.tensor([1.0, 0.0]).double(), torch.tensor([2.0, 3.0]).double()).int().tolist()
    [0, 3]
    """
    return x - z * dot(z, x)[..., None]


@dataclass(frozen=True)
class Frame:
    """Orthonormal z, e₁, e₂ of each point, made of z, a, b in this order, and a, b in them.

    e₁ and e₂ span the canonical plane, in which μ and ν are taken: Gram–Schmidt of Pa and Pb.
    """

    basis: Float64[Tensor, "N 3 n"]
    a: Float64[Tensor, "N 3"]
    b: Float64[Tensor, "N 3"]

    @property
    def e1(self) -> Float64[Tensor, "N n"]:
        """The direction of Pa."""
        return self.basis[:, 1]

    @property
    def e2(self) -> Float64[Tensor, "N n"]:
        """The direction of the part of Pb at right angles to e₁."""
        return self.basis[:, 2]

    @property
    def D(self) -> Float64[Tensor, " N"]:
        """|z∧a∧b|, the volume that the three vectors span."""
        return self.cross[:, 0]

    @property
    def D0(self) -> Float64[Tensor, " N"]:
        """|a∧b|, the sine of the angle between the two rows."""
        return self.cross.norm(dim=-1)

    @property
    def cross(self) -> Float64[Tensor, "N 3"]:
        """a×b = D₀ n̂ in the frame, n̂ the unit vector of the part of z outside the rows' plane."""
        return torch.linalg.cross(self.a, self.b)


def frame(points: Points) -> Frame:
    """The canonical frame of each point.

    >>> from tokenspace.curvature import points_of
    >>> h, V = torch.eye(3)[:1], torch.tensor([[1.0, 1.0, 0.0], [1.0, 0.0, 1.0]])
    >>> frame(points_of(h, torch.zeros(1, 2), V)).e1[0, :2].round().int().tolist()
    [0, 1]
    """
    parts = [vars(at) for _, at in frame_blocks(points)]
    if not parts:
        empty = points.z.new_zeros(0, 3)
        return Frame(points.z.new_zeros(0, 3, points.z.shape[1]), empty, empty)
    return Frame(**{name: torch.cat([part[name] for part in parts]) for name in parts[0]})


def frame_blocks(points: Points) -> Iterator[tuple[slice, Frame]]:
    """Frames of a few points at a time, by QR, which needs no care where vectors nearly agree."""
    step = max(1, CACHE // points.z.shape[1])
    for start in range(0, len(points), step):
        rows = slice(start, start + step)
        three = torch.stack([points.z[rows], points.v1[rows], points.v2[rows]], dim=1)  # (N, 3, n)
        Q, R = torch.linalg.qr(three.mT)  # (N, n, 3), (N, 3, 3)
        sign = R.diagonal(dim1=1, dim2=2).sign()  # (N, 3): each vector points along its own axis
        coordinates = sign[:, :, None] * R  # (N, 3, 3): columns are z, v1, v2 in the frame
        a, b = (normalize(coordinates[:, :, k], dim=1) for k in (1, 2))
        yield rows, Frame((Q * sign[:, None]).mT, a, b)
