"""The sampling connection and its curvature, in closed form through three vectors a point.

Conventions: x∧y = xyᵀ - yxᵀ, ⟨M, N⟩ = ½ tr MᵀN, D = d + A. z is a unit state, a and b are the
unit rows of the two likeliest tokens, B = a∧b, P = I - zzᵀ, and q = 4 p₁ p₂ is held fixed when
differentiating: our reading of "depends only on the geometry of the token embeddings".
The 1-form A_z(μ) = q z∧Bμ is stated by Modenbach (arXiv:2605.04899); the closed form is ours.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from jaxtyping import Float64, Int64
from torch import Tensor
from torch.nn.functional import normalize, one_hot

from tokenspace.curvature.points import Points

CACHE = 40_000  # numbers a vector of the block of points whose frames are made at once: 1 MB
BLOCK = 2048  # points a side of a block of Gram products: 32 MiB

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


def one_form(z: Vectors, a: Vectors, b: Vectors, q: Scalars, mu: Vectors) -> Matrices:
    """A_z(μ) = q z∧Bμ = q [-(μ·a) z∧b + (μ·b) z∧a], dense.

    >>> z, a, b = torch.eye(3).double()
    >>> one_form(z, a, b, torch.tensor(1.0).double(), a)[2].abs().tolist()
    [1.0, 0.0, 0.0]
    """
    return q[..., None, None] * wedge(z, apply_bivector(a, b, mu))


def curvature_on(
    z: Vectors, a: Vectors, b: Vectors, q: Scalars, mu: Vectors, nu: Vectors
) -> Matrices:
    """R(μ, ν) = q (μ∧Bν - ν∧Bμ) - q² PBμ∧PBν on any two tangent vectors, dense.

    >>> z, a, b = torch.eye(3).double()
    >>> curvature_on(z, a, b, torch.tensor(1.0).double(), a, b)[1].int().tolist()
    [0, 0, -1]
    """
    x, y = apply_bivector(a, b, mu), apply_bivector(a, b, nu)
    linear = wedge(mu, y) - wedge(nu, x)
    q = q[..., None, None]
    return q * linear - q**2 * wedge(tangent(z, x), tangent(z, y))


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
    def cross(self) -> Float64[Tensor, "N 3"]:
        """a×b = D₀ n̂ in the frame, n̂ the unit vector of the part of z outside the rows' plane."""
        return torch.linalg.cross(self.a, self.b)

    @property
    def D(self) -> Float64[Tensor, " N"]:
        """|z∧a∧b|, the volume that the three vectors span."""
        return self.cross[:, 0]

    @property
    def D0(self) -> Float64[Tensor, " N"]:
        """|a∧b|, the sine of the angle between the two rows."""
        return self.cross.norm(dim=-1)


def frame(points: Points) -> Frame:
    """The canonical frame of each point.

    >>> from tokenspace.curvature import points_of
    >>> h, V = torch.eye(3)[:1], torch.tensor([[1.0, 1.0, 0.0], [1.0, 0.0, 1.0]])
    >>> frame(points_of(h, torch.zeros(1, 2), V)).e1[0, :2].round().int().tolist()
    [0, 1]
    """
    parts = [vars(at) for _, at in _frame_blocks(points)]
    if not parts:
        empty = points.z.new_zeros(0, 3)
        return Frame(points.z.new_zeros(0, 3, points.z.shape[1]), empty, empty)
    return Frame(**{name: torch.cat([part[name] for part in parts]) for name in parts[0]})


def _frame_blocks(points: Points) -> Iterator[tuple[slice, Frame]]:
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


@dataclass(frozen=True)
class Curvature:
    """R = σ f∧g with f, g orthonormal: two n-vectors and a number a point, never n × n."""

    sigma: Float64[Tensor, " N"]
    f: Float64[Tensor, "N n"]
    g: Float64[Tensor, "N n"]

    def __len__(self) -> int:
        return len(self.sigma)

    def norm(self) -> Float64[Tensor, " N"]:
        """‖R‖ in ⟨M, N⟩ = ½ tr MᵀN: the speed at which R turns its plane."""
        return self.sigma

    def plane(self) -> Float64[Tensor, "N 2 n"]:
        """The orthonormal pair (f, g) that R turns; every other direction it sends to 0."""
        return torch.stack([self.f, self.g], dim=1)

    def dense(self) -> Float64[Tensor, "N n n"]:
        """The n × n matrices, for checks at small n."""
        return self.sigma[:, None, None] * wedge(self.f, self.g)

    def gram(self, other: "Curvature") -> Float64[Tensor, "N M"]:
        """⟨R_i, S_j⟩ of every pair, by products of n-vectors."""
        f, g = self.sigma[:, None] * self.f, self.g
        k, m = other.sigma[:, None] * other.f, other.g
        return (f @ k.T) * (g @ m.T) - (f @ m.T) * (g @ k.T)

    def gram_of_means(self, labels: Int64[Tensor, " N"], groups: int) -> Float64[Tensor, "K K"]:
        """⟨R̄_k, R̄_l⟩ of the mean curvatures of groups 0 .. K-1 (nan for an empty group)."""
        members = one_hot(labels, groups).double()  # (N, K)
        total = members.new_zeros(groups, groups)
        for i in range(0, len(self), BLOCK):
            rows = slice(i, i + BLOCK)
            for j in range(0, len(self), BLOCK):
                columns = slice(j, j + BLOCK)
                block = self[rows].gram(self[columns])
                total += members[rows].T @ block @ members[columns]
        count = members.sum(0)
        return total / (count[:, None] * count)

    def __getitem__(self, rows: Tensor | slice) -> "Curvature":
        return Curvature(self.sigma[rows], self.f[rows], self.g[rows])


def curvature(
    points: Points,
    q: Float64[Tensor, " N"] | None = None,
    mean_rows: Float64[Tensor, "N n"] | None = None,
) -> Curvature:
    """R(e₁, e₂) = q D₀ z∧n̂ - q² D² e₁∧e₂ at every point, on its canonical plane.

    `q` replaces the points' own charge: 1 leaves geometry alone. With `mean_rows` m = Σ pᵢ vᵢ the
    charge is live, for comparison: the curvature gains dq∧(z∧B), dq(μ) = q |h| (v₁ + v₂ - 2m)·μ.

    >>> from tokenspace.curvature import points_of
    >>> h, V = torch.eye(3)[:1], torch.tensor([[0.0, 1.0, 0.0], [0.0, 0.0, 1.0]])
    >>> R = curvature(points_of(h, torch.zeros(1, 2), V))
    >>> round(R.norm().item(), 6)  # z orthogonal to both: q²
    1.0
    """
    q = points.q if q is None else q
    sigma, factors = torch.empty_like(q), points.z.new_empty(len(q), 2, points.z.shape[1])
    for rows, at in _frame_blocks(points):
        linear = q[rows, None] * at.cross[:, 1:]
        if mean_rows is not None:
            slope = (q[rows] * points.scale[rows])[:, None] * (
                points.v1[rows] + points.v2[rows] - 2 * mean_rows[rows]
            )
            linear = linear + _of_live_charge(at, slope)
        # α z∧u - β e₁∧e₂ = (α z + β u⊥)∧u, with u and u⊥ orthonormal in the plane of e₁ and e₂
        alpha, beta = linear.norm(dim=1), (q[rows] * at.D) ** 2
        angle, turn = torch.atan2(linear[:, 1], linear[:, 0]), torch.atan2(beta, alpha)
        cos, sin = angle.cos(), angle.sin()
        f = torch.stack([turn.cos(), -turn.sin() * sin, turn.sin() * cos], dim=1)
        g = torch.stack([torch.zeros_like(cos), cos, sin], dim=1)
        sigma[rows] = torch.hypot(alpha, beta)
        factors[rows] = torch.stack([f, g], dim=1) @ at.basis  # (N, 2, 3) @ (N, 3, n)
    return Curvature(sigma, factors[:, 0], factors[:, 1])


def _of_live_charge(at: Frame, slope: Float64[Tensor, "N n"]) -> Float64[Tensor, "N 2"]:
    """x of dq(e₁) z∧Be₂ - dq(e₂) z∧Be₁ = z∧x, along e₁ and e₂."""
    dq = (at.basis @ slope[:, :, None])[:, :, 0]  # (N, 3), in the frame
    B = wedge(at.a, at.b)  # (N, 3, 3), in the frame
    return (dq[:, 1, None] * B[:, :, 2] - dq[:, 2, None] * B[:, :, 1])[:, 1:]
