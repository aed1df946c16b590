"""Logarithms of rotations, with the branch, the half-turn and rounding said out loud.

The principal logarithm: every angle lies in (-π, π], so log(exp(A)) = A only when ‖A‖₂ < π.
From the real Schur form, in which a rotation is made of plane rotations; angles are read with
atan2, never acos, so that rounding can't leave the domain.
"""

import math
from dataclasses import dataclass

import torch
from jaxtyping import Float, Float64
from scipy.linalg import block_diag, schur
from torch import Tensor

from tokenspace.errors import ParameterError


@dataclass(frozen=True)
class RotationLog:
    """L skew with exp(L) = R, and how far that can be trusted.

    `angles` in radians, descending, one a plane. At an angle of π exactly L and -L are both
    right: `unique` is False. `residual` is max |RᵀR - I|, `skew_residual` max |L + Lᵀ| / 2
    before L was made skew.
    """

    L: Float64[Tensor, "n n"]
    angles: Float64[Tensor, " k"]
    unique: bool
    residual: float
    skew_residual: float


def orthogonality(R: Float[Tensor, "n n"]) -> tuple[float, float]:
    """max |RᵀR - I| in fp64, and how much of it rounding explains at this type and size.

    >>> orthogonality(torch.eye(3))[0] < 1e-12
    True
    """
    Q = R.double()
    residual = float((Q.T @ Q - torch.eye(len(Q), dtype=Q.dtype, device=Q.device)).abs().max())
    return residual, 1e4 * torch.finfo(R.dtype).eps * math.sqrt(len(R))


def rotation_log(R: Float[Tensor, "n n"]) -> RotationLog:
    """The principal logarithm of a rotation.

    Raises ParameterError when R isn't finite, isn't orthogonal within rounding, or has det -1.

    >>> round(rotation_log(torch.tensor([[0.0, -1.0], [1.0, 0.0]])).angles.item(), 6)
    1.570796
    """
    if not bool(R.isfinite().all()):
        raise ParameterError(f"{int((~R.isfinite()).sum())} entries of R aren't finite.")
    residual, allowed = orthogonality(R)
    if residual > allowed:
        raise ParameterError(
            f"not in SO(n): max |RᵀR - I| = {residual:.1e}, and rounding in {R.dtype} at n = "
            f"{len(R)} explains {allowed:.0e}. Orthogonalize R first (polar factor)."
        )
    T, Q = (torch.from_numpy(x) for x in schur(R.double().cpu().numpy(), output="real"))
    blocks, angles, unique = _logs(T)
    L = Q @ blocks @ Q.T
    skew_residual = float((L + L.T).abs().max()) / 2
    if skew_residual > allowed:
        raise ParameterError(f"the logarithm isn't skew: max |L + Lᵀ| / 2 = {skew_residual:.1e}.")
    found = torch.tensor(sorted(angles, reverse=True), dtype=torch.float64)
    return RotationLog((L - L.T) / 2, found, unique, residual, skew_residual)


def _logs(T: Float64[Tensor, "n n"]) -> tuple[Float64[Tensor, "n n"], list[float], bool]:
    """The logarithm of a real Schur form: 2 × 2 blocks, ones, and minus ones taken in pairs."""
    n, i, angles = len(T), 0, []
    L, flipped = torch.zeros_like(T), []
    while i < n:
        if i + 1 < n and T[i + 1, i] != 0:
            sin, cos = (T[i + 1, i] - T[i, i + 1]) / 2, (T[i, i] + T[i + 1, i + 1]) / 2
            angle = float(torch.atan2(sin, cos))
            L[i + 1, i], L[i, i + 1] = angle, -angle
            angles.append(abs(angle))
            i += 2
        else:
            if T[i, i] < 0:
                flipped.append(i)
            i += 1
    if len(flipped) % 2:
        raise ParameterError(
            f"not in SO(n): {len(flipped)} eigenvalue(s) are -1, an odd number, so det R = -1 and "
            "R is a reflection, which has no real logarithm."
        )
    for j, k in zip(flipped[::2], flipped[1::2], strict=True):
        L[k, j], L[j, k] = math.pi, -math.pi
        angles.append(math.pi)
    return L, angles, all(angle < math.pi for angle in angles)


def plane_rotations(angles: Float[Tensor, " k"], n: int) -> Float64[Tensor, "n n"]:
    """The rotation by `angles` in the first k coordinate planes of n dimensions.

    >>> plane_rotations(torch.zeros(1), 3).trace().item()
    3.0
    """
    blocks = [[[math.cos(t), -math.sin(t)], [math.sin(t), math.cos(t)]] for t in angles.tolist()]
    return torch.from_numpy(block_diag(*blocks, *[[1.0]] * (n - 2 * len(blocks))))


def turned_angle(R: Float[Tensor, "3 3"]) -> float:
    """Angle of a rotation of R³ in [0, π] radians, by atan2(|axial part|, (tr - 1)/2).

    >>> turned_angle(torch.eye(3) + torch.diag(torch.tensor([1e-7, 0.0, 0.0])))
    0.0
    """
    Q = R.double()
    axial = torch.stack([Q[2, 1] - Q[1, 2], Q[0, 2] - Q[2, 0], Q[1, 0] - Q[0, 1]]) / 2
    return float(torch.atan2(axial.norm(), (Q.trace() - 1) / 2))
