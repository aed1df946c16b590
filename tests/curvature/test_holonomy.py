"""Loops against curvature and solid angle; logarithms of rotations at their traps."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy.linalg import expm
from scipy.spatial.transform import Rotation
from tests.curvature.draws import normal, random_points

from tokenspace.curvature.connection import curvature
from tokenspace.curvature.frames import frame
from tokenspace.curvature.holonomy import (
    arc,
    cap_area,
    circle,
    from_clover,
    from_plaquette,
    holonomy,
    line,
    plaquette,
    sampling_form,
    sphere_form,
    transport,
    wilson_loop,
)
from tokenspace.curvature.rotations import (
    orthogonality,
    plane_rotations,
    rotation_log,
    turned_angle,
)
from tokenspace.errors import ParameterError

POINTS = random_points(12, 6)
AT = frame(POINTS)
A, B = (torch.nn.functional.normalize(v, dim=-1) for v in (POINTS.v1, POINTS.v2))
FORM = sampling_form(A, B, POINTS.q)
SIDES = (0.02, 0.04, 0.08, 0.16)


def slope(estimate):
    """Log-log slope of the error of an estimate of R against the side of its loops."""
    R = curvature(POINTS).dense()
    errors = [
        ((estimate(FORM, POINTS.z, AT.e1, AT.e2, side) - R).norm(dim=(1, 2)) / R.norm(dim=(1, 2)))
        .median()
        .log()
        for side in SIDES
    ]
    x = torch.tensor(SIDES).double().log()
    y = torch.stack(errors)
    return float(((x - x.mean()) * (y - y.mean())).sum() / (x - x.mean()).square().sum())


# --- loops


def test_a_plaquette_errs_in_proportion_to_its_side():
    assert slope(from_plaquette) == pytest.approx(1, abs=0.15)


def test_a_clover_errs_as_the_square_of_its_side():
    assert slope(from_clover) == pytest.approx(2, abs=0.15)


def test_a_loop_is_the_identity_less_its_area_times_the_curvature():
    side = 1e-3
    H, R = plaquette(FORM, POINTS.z, AT.e1, AT.e2, side), curvature(POINTS).dense()
    left = (H - torch.eye(6).double() + side**2 * R).norm(dim=(1, 2))
    assert float(left.max()) < 20 * side**3


def test_a_loop_the_other_way_round_undoes_it():
    there = plaquette(FORM, POINTS.z, AT.e1, AT.e2, 0.3, steps=8)
    back = plaquette(FORM, POINTS.z, AT.e2, AT.e1, 0.3, steps=8)
    assert float((back @ there - torch.eye(6).double()).abs().max()) < 1e-12


def test_transport_is_orthogonal_and_of_fourth_order():
    path = line(POINTS.z, POINTS.z + AT.e1 + 0.5 * AT.e2)
    exact = transport(FORM, path, 256)
    torch.testing.assert_close(exact @ exact.mT, torch.eye(6).double().expand_as(exact))
    coarse, fine = (float((transport(FORM, path, k) - exact).norm()) for k in (4, 8))
    assert math.log2(coarse / fine) == pytest.approx(4, abs=0.5)


def test_transport_in_the_frame_is_that_of_the_whole_space():
    small = plaquette(
        sampling_form(AT.a, AT.b, POINTS.q), *torch.eye(3).double()[:, None].expand(3, 12, 3), 0.2
    )
    whole = plaquette(FORM, POINTS.z, AT.e1, AT.e2, 0.2)
    torch.testing.assert_close(AT.basis @ whole @ AT.basis.mT, small)
    torch.testing.assert_close(wilson_loop(small, n=6), wilson_loop(whole))


def test_the_wilson_loop_measures_the_norm():
    side = 0.01
    H = plaquette(FORM, POINTS.z, AT.e1, AT.e2, side)
    found = (6 * (1 - wilson_loop(H)) / side**4).sqrt()
    torch.testing.assert_close(found, curvature(POINTS).norm(), rtol=0.1, atol=1e-3)


def test_where_nothing_is_sampled_nothing_turns():
    still = sampling_form(A, B, torch.zeros(12).double())
    H = plaquette(still, POINTS.z, AT.e1, AT.e2, 0.5)
    torch.testing.assert_close(H, torch.eye(6).double().expand_as(H), rtol=0, atol=0)


def test_a_path_takes_a_step():
    with pytest.raises(ParameterError, match="steps = 0"):
        transport(FORM, line(POINTS.z, AT.e1), 0)


# --- the sphere


@pytest.mark.parametrize("angle", [0.1, 0.5, 1.0, 1.5])
def test_around_a_cap_transport_turns_by_the_solid_angle(angle):
    x, y, pole = torch.linalg.qr(normal(3, 3, seed=2)).Q.T
    rim = circle(pole, x, y, angle)
    H = transport(sphere_form, rim, 64)
    start = rim.position(0.0)
    torch.testing.assert_close(H @ start, start, rtol=0, atol=1e-5)
    expected = cap_area(angle) if cap_area(angle) <= math.pi else 2 * math.pi - cap_area(angle)
    assert abs(turned_angle(H) - expected) < 1e-5
    along = (rim.velocity(0.0) / rim.velocity(0.0).norm())[:, None]
    across = torch.linalg.cross(start, along[:, 0])
    signed = math.atan2(float(across @ H @ along), float(along[:, 0] @ H @ along))
    orientation = float(torch.linalg.det(torch.stack([x, y, pole])))
    assert math.cos(signed - orientation * cap_area(angle)) == pytest.approx(1, abs=1e-10)


@pytest.mark.parametrize("seed", range(8))
def test_around_a_triangle_it_turns_by_the_excess_of_its_angles(seed):
    a, b, c = (v / v.norm() for v in normal(3, 3, seed=seed))

    def corner(at, left, right):
        s, t = (v - at * (at @ v) for v in (left, right))
        return math.atan2(float(torch.linalg.cross(s, t).norm()), float(s @ t))

    excess = corner(a, b, c) + corner(b, c, a) + corner(c, a, b) - math.pi
    H = holonomy(sphere_form, [arc(a, b), arc(b, c), arc(c, a)], 64)
    assert math.cos(turned_angle(H)) == pytest.approx(math.cos(excess), abs=1e-4)


def test_arcs_stay_on_the_sphere_and_their_velocity_is_their_derivative():
    a, b = (v / v.norm() for v in normal(2, 4, seed=5))
    path = arc(a, b)
    assert float(path.position(0.3).norm()) == pytest.approx(1)
    slope_ = (path.position(0.3 + 1e-6) - path.position(0.3 - 1e-6)) / 2e-6
    torch.testing.assert_close(path.velocity(0.3), slope_, rtol=1e-6, atol=1e-8)


# --- logarithms of rotations


def exp(L):
    return torch.from_numpy(expm(L.numpy()))


HALF_TURNS = [
    torch.diag(torch.tensor([-1.0, -1.0, 1.0])).double(),
    torch.diag(torch.tensor([-1.0, 1.0, -1.0])).double(),
    torch.tensor([[0.0, 1.0, 0.0], [1.0, 0.0, 0.0], [0.0, 0.0, -1.0]]).double(),
]


@pytest.mark.parametrize("R", HALF_TURNS)
def test_a_half_turn_has_a_logarithm_and_says_that_it_is_not_the_only_one(R):
    read = rotation_log(R)
    assert float(read.L.norm()) / math.sqrt(2) == pytest.approx(math.pi, abs=1e-12)
    assert float((exp(read.L) - R).abs().max()) < 1e-12
    torch.testing.assert_close(read.L, -read.L.T, rtol=0, atol=0)
    assert not read.unique
    assert turned_angle(R) == pytest.approx(math.pi)


def test_just_below_a_half_turn_it_is_unique():
    angle = math.pi - 1e-9
    axis = normal(3, seed=3)
    R = torch.from_numpy(Rotation.from_rotvec((axis / axis.norm() * angle).numpy()).as_matrix())
    read = rotation_log(R)
    assert read.unique
    assert float(read.angles[0]) == pytest.approx(angle, abs=1e-12)
    assert float((exp(read.L) - R).abs().max()) < 1e-12


def test_of_the_half_turn_about_a_diagonal_the_axis_is_the_diagonal():
    L = rotation_log(HALF_TURNS[2]).L
    axis = torch.stack([L[2, 1], L[0, 2], L[1, 0]]) / math.pi
    torch.testing.assert_close(axis.abs(), torch.tensor([0.5, 0.5, 0.0]).double().sqrt())


def test_rounding_does_not_leave_the_domain():
    R = torch.eye(3).double()
    R[0, 0] += 1e-12
    assert float(rotation_log(R).L.norm()) < 1e-11
    assert turned_angle(R) == pytest.approx(0, abs=1e-11)


def test_the_branch_is_the_principal_one():
    R = exp(torch.tensor([[0.0, 4.0], [-4.0, 0.0]]).double())
    assert float(rotation_log(R).L[0, 1]) == pytest.approx(4 - 2 * math.pi)


@given(st.integers(2, 9), st.integers(0, 100), st.floats(0.01, 3.1))
def test_below_a_half_turn_log_undoes_exp(n, seed, size):
    x = normal(n, n, seed=seed)
    L = x - x.T
    L = L * size / torch.linalg.matrix_norm(L, 2)
    torch.testing.assert_close(rotation_log(exp(L)).L, L, rtol=0, atol=1e-10)


def test_a_reflection_has_no_real_logarithm():
    with pytest.raises(ParameterError, match=r"not in SO\(n\): 1 eigenvalue.*odd number"):
        rotation_log(torch.diag(torch.tensor([1.0, 1.0, -1.0])))


def test_two_half_turns_in_four_dimensions():
    read = rotation_log(-torch.eye(4).double())
    assert read.angles.tolist() == [math.pi, math.pi]
    torch.testing.assert_close(exp(read.L), -torch.eye(4).double())


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_a_large_rotation_is_one_within_its_own_rounding(dtype):
    x = normal(512, 512).to(dtype)
    R = torch.linalg.matrix_exp(x - x.T)
    residual, allowed = orthogonality(R)
    assert torch.finfo(dtype).eps < residual < allowed
    read = rotation_log(R)
    assert read.residual == residual
    assert read.skew_residual < allowed
    torch.testing.assert_close(read.L, -read.L.T, rtol=0, atol=0)


def test_what_is_no_rotation_is_refused_with_its_residual():
    with pytest.raises(ParameterError, match=r"max \|RᵀR - I\| = 2\.1e-01"):
        rotation_log(1.1 * torch.eye(3))
    with pytest.raises(ParameterError, match="1 entries of R aren't finite"):
        rotation_log(torch.tensor([[float("nan"), 0.0], [0.0, 1.0]]))


def test_planes_by_hand():
    angles = torch.tensor([0.3, 2.0])
    read = rotation_log(plane_rotations(angles, 5))
    torch.testing.assert_close(read.angles, torch.tensor([2.0, 0.3]).double(), rtol=1e-6, atol=0)
