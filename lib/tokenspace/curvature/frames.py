"""The three vectors of a point, made orthonormal: all that its curvature needs."""

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from jaxtyping import Float64
from torch import Tensor
from torch.nn.functional import normalize

from tokenspace.curvature.points import Points

CACHE = 40_000  # numbers a vector of the block of points whose frames are made at once: 1 MB


def dot(x: Float64[Tensor, "*N n"], y: Float64[Tensor, "*N n"]) -> Float64[Tensor, "*N"]:
    """x·y of the last axis, kept apart so that formulas read as on paper."""
    return (x * y).sum(-1)


def wedge(x: Float64[Tensor, "*N n"], y: Float64[Tensor, "*N n"]) -> Float64[Tensor, "*N n n"]:
    """x∧y = xyᵀ - yxᵀ, dense.

    >>> wedge(*torch.eye(2).double()).int().tolist()
    [[0, 1], [-1, 0]]
    """
    outer = x[..., :, None] * y[..., None, :]
    return outer - outer.mT


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
        return self.basis[:, 1]

    @property
    def e2(self) -> Float64[Tensor, "N n"]:
        return self.basis[:, 2]

    @property
    def D(self) -> Float64[Tensor, " N"]:
        """|z∧a∧b|, the volume that the three vectors span; c₀ of c = a×b = D₀ n̂."""
        return self.cross[:, 0]

    @property
    def D0(self) -> Float64[Tensor, " N"]:
        """|a∧b|, the sine of the angle between the two rows."""
        return self.cross.norm(dim=-1)

    @property
    def cross(self) -> Float64[Tensor, "N 3"]:
        """D₀ n̂ in the frame, n̂ the unit vector of the part of z outside the plane of a and b."""
        return torch.linalg.cross(self.a, self.b)


def frame(points: Points) -> Frame:
    """The canonical frame of each point.

    >>> from tokenspace.curvature import points_of
    >>> h, V = torch.eye(3)[:1], torch.tensor([[1.0, 1.0, 0.0], [1.0, 0.0, 1.0]])
    >>> frame(points_of(h, torch.zeros(1, 2), V)).e1[0, :2].round().int().tolist()
    [0, 1]
    """
    parts = list(frames(points))
    if not parts:
        empty = points.z.new_zeros(0, 3)
        return Frame(points.z.new_zeros(0, 3, points.z.shape[1]), empty, empty)
    basis, a, b = (
        torch.cat([getattr(at, name) for _, at in parts]) for name in ("basis", "a", "b")
    )
    return Frame(basis, a, b)


def frames(points: Points) -> Iterator[tuple[slice, Frame]]:
    """Frames of a few points at a time, by QR, which needs no care where vectors nearly agree.

    >>> from tokenspace.curvature import points_of
    >>> h, V = torch.eye(3)[:1], torch.tensor([[1.0, 1.0, 0.0], [1.0, 0.0, 1.0]])
    >>> [rows for rows, _ in frames(points_of(h, torch.zeros(1, 2), V))][0].start
    0
    """
    step = max(1, CACHE // points.z.shape[1])
    for start in range(0, len(points), step):
        rows = slice(start, start + step)
        three = torch.stack([points.z[rows], points.v1[rows], points.v2[rows]], dim=1)
        Q, R = torch.linalg.qr(three.mT)
        sign = R.diagonal(dim1=1, dim2=2).sign()
        coordinates = sign[:, :, None] * R
        a, b = (normalize(coordinates[:, :, k], dim=1) for k in (1, 2))
        yield rows, Frame((Q * sign[:, None]).mT, a, b)
