"""The sampling connection and its curvature, in closed form through three vectors a point.

Conventions: a∧b = abᵀ - baᵀ, ⟨M, N⟩ = ½ tr MᵀN, D = d + A. z is a unit state, a and b are the
unit rows of the two likeliest tokens, B = a∧b, P = I - zzᵀ, and q = 4 p₁ p₂ is held fixed when
differentiating: our reading of "depends only on the geometry of the token embeddings".
The 1-form A_z(μ) = q z∧Bμ is stated by Modenbach (arXiv:2605.04899); the closed form is ours.
"""

from dataclasses import dataclass

import torch
from jaxtyping import Float64, Int64
from torch import Tensor
from torch.nn.functional import normalize

from tokenspace.curvature.frames import (
    Frame,
    Matrices,
    Scalars,
    Vectors,
    apply_bivector,
    dot,
    frame_blocks,
    tangent,
    wedge,
)
from tokenspace.curvature.points import Points

BLOCK = 2048  # points a side of a block of Gram products: 32 MiB


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
        members = torch.nn.functional.one_hot(labels, groups).double()  # (N, K)
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


def curvature(points: Points, q: Float64[Tensor, " N"] | None = None) -> Curvature:
    """R(e₁, e₂) = q D₀ z∧n̂ - q² D² e₁∧e₂ at every point, on its canonical plane.

    `q` replaces the points' own charge: 1 leaves geometry alone.

    >>> from tokenspace.curvature import points_of
    >>> h, V = torch.eye(3)[:1], torch.tensor([[0.0, 1.0, 0.0], [0.0, 0.0, 1.0]])
    >>> R = curvature(points_of(h, torch.zeros(1, 2), V))
    >>> round(R.norm().item(), 6)  # z orthogonal to both: q²
    1.0
    """
    return _closed(points, points.q if q is None else q, None)


def _closed(points: Points, q: Tensor, slope: Tensor | None) -> Curvature:
    """α z∧u - β e₁∧e₂ = (α z + β u⊥)∧u, with u and u⊥ orthonormal in the plane of e₁ and e₂."""
    sigma, factors = torch.empty_like(q), points.z.new_empty(len(q), 2, points.z.shape[1])
    for rows, at in frame_blocks(points):
        linear = q[rows, None] * at.cross[:, 1:]
        if slope is not None:
            linear = linear + _of_live_charge(at, slope[rows])
        alpha, beta = linear.norm(dim=1), (q[rows] * at.D) ** 2
        angle, turn = torch.atan2(linear[:, 1], linear[:, 0]), torch.atan2(beta, alpha)
        cos, sin = angle.cos(), angle.sin()
        f = torch.stack([turn.cos(), -turn.sin() * sin, turn.sin() * cos], dim=1)
        g = torch.stack([torch.zeros_like(cos), cos, sin], dim=1)
        sigma[rows] = torch.hypot(alpha, beta)
        factors[rows] = torch.stack([f, g], dim=1) @ at.basis  # (N, 2, 3) @ (N, 3, n)
    return Curvature(sigma, factors[:, 0], factors[:, 1])


def curvature_norm(points: Points) -> Float64[Tensor, " N"]:
    """‖R‖ from three cosines: ‖R‖² = q² D₀² |Π_ab z|² + q⁴ D⁴, no frame needed.

    >>> from tokenspace.curvature import points_of
    >>> h, V = torch.eye(3)[:1], torch.tensor([[0.0, 1.0, 0.0], [0.0, 0.0, 1.0]])
    >>> round(curvature_norm(points_of(h, torch.zeros(1, 2), V)).item(), 6)
    1.0
    """
    a, b = normalize(points.v1, dim=-1), normalize(points.v2, dim=-1)
    near, far = a - b, a + b  # 1 - w = |a - b|²/2 keeps the digits that w = a·b loses near 1
    x, y, apart = dot(points.z, a), dot(points.z, b), dot(near, near)
    D0_squared = apart * dot(far, far) / 4
    in_plane = dot(points.z, near) ** 2 + x * y * apart  # D₀² |Π_ab z|² = x² + y² - 2xyw
    q = points.q
    return torch.sqrt(q**2 * in_plane.clamp(min=0) + q**4 * (D0_squared - in_plane) ** 2)


def live_curvature(points: Points, mean_rows: Float64[Tensor, "N n"]) -> Curvature:
    """For comparison: curvature with the charge differentiated as well, R + dq∧(z∧B).

    `mean_rows` are m = Σ pᵢ vᵢ; with logits |h| V z, dq(μ) = q |h| (v₁ + v₂ - 2m)·μ.
    """
    slope = (points.q * points.scale)[:, None] * (points.v1 + points.v2 - 2 * mean_rows)
    return _closed(points, points.q, slope)


def _of_live_charge(at: Frame, slope: Float64[Tensor, "N n"]) -> Float64[Tensor, "N 2"]:
    """x of dq(e₁) z∧Be₂ - dq(e₂) z∧Be₁ = z∧x, along e₁ and e₂."""
    dq = (at.basis @ slope[:, :, None])[:, :, 0]  # (N, 3), in the frame
    B = wedge(at.a, at.b)  # (N, 3, 3), in the frame
    return (dq[:, 1, None] * B[:, :, 2] - dq[:, 2, None] * B[:, :, 1])[:, 1:]
