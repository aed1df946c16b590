"""Parallel transport: loops against curvature, the sphere against solid angles."""

import math
from functools import partial

import pytest
import torch
from scipy.spatial.transform import Rotation
from tests.curvature.draws import normal, random_points

from tokenspace import curvature as cv
from tokenspace.curvature.transport import Path
from tokenspace.errors import ParameterError

POINTS = random_points(12, 6)
AT = cv.frame(POINTS)
A, B = (torch.nn.functional.normalize(v, dim=-1) for v in (POINTS.v1, POINTS.v2))


def form_of(a, b, z, mu):
    return cv.one_form(z, a, b, POINTS.q, mu)


FORM = partial(form_of, A, B)
SIDES = (0.02, 0.04, 0.08, 0.16)


def slope(estimate):
    """Log-log slope of the error of an estimate of R against the side of its loops."""
    R = cv.curvature(POINTS).dense()
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


@pytest.mark.parametrize(
    ("estimate", "power"), [(cv.curvature_from_plaquette, 1), (cv.curvature_from_clover, 2)]
)
def test_a_plaquette_errs_as_its_side_and_a_clover_as_the_square(estimate, power):
    assert slope(estimate) == pytest.approx(power, abs=0.15)


def test_a_loop_is_the_identity_less_its_area_times_the_curvature():
    side = 1e-3
    H, R = cv.plaquette(FORM, POINTS.z, AT.e1, AT.e2, side), cv.curvature(POINTS).dense()
    left = (H - torch.eye(6).double() + side**2 * R).norm(dim=(1, 2))
    assert float(left.max()) < 20 * side**3


def test_transport_is_orthogonal_and_of_fourth_order():
    along = AT.e1 + 0.5 * AT.e2
    path = Path(lambda t: POINTS.z + t * along, lambda t: along)
    exact = cv.transport(FORM, path, steps=256)
    torch.testing.assert_close(exact @ exact.mT, torch.eye(6).double().expand_as(exact))
    coarse, fine = (float((cv.transport(FORM, path, steps=k) - exact).norm()) for k in (4, 8))
    assert math.log2(coarse / fine) == pytest.approx(4, abs=0.5)


def test_transport_in_the_frame_is_that_of_the_whole_space():
    axes = torch.eye(3).double()[:, None].expand(3, 12, 3)
    small = cv.plaquette(partial(form_of, AT.a, AT.b), *axes, 0.2)
    whole = cv.plaquette(FORM, POINTS.z, AT.e1, AT.e2, 0.2)
    torch.testing.assert_close(AT.basis @ whole @ AT.basis.mT, small)


def test_a_path_takes_a_step_and_transport_takes_a_path():
    with pytest.raises(ParameterError, match="steps = 0"):
        cv.transport(FORM, cv.arc(POINTS.z, AT.e1), steps=0)
    with pytest.raises(ParameterError, match="No path"):
        cv.transport(FORM)


# --- the sphere


@pytest.mark.parametrize("angle", [0.1, 0.5, 1.0, 1.5])
def test_around_a_cap_transport_turns_by_the_solid_angle(angle):
    x, y, pole = torch.linalg.qr(normal(3, 3, seed=2)).Q.T
    rim = cv.circle(pole, x, y, angle)
    H = cv.transport(cv.wedge, rim, steps=64)
    start = rim.position(0.0)
    torch.testing.assert_close(H @ start, start, rtol=0, atol=1e-5)
    area = 2 * math.pi * (1 - math.cos(angle))
    assert abs(Rotation.from_matrix(H).magnitude() - min(area, 2 * math.pi - area)) < 1e-5
    along = (rim.velocity(0.0) / rim.velocity(0.0).norm())[:, None]
    across = torch.linalg.cross(start, along[:, 0])
    signed = math.atan2(float(across @ H @ along), float(along[:, 0] @ H @ along))
    orientation = float(torch.linalg.det(torch.stack([x, y, pole])))
    assert math.cos(signed - orientation * area) == pytest.approx(1, abs=1e-10)
