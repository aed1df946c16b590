"""The closed form against finite differences, brute force and symmetry."""

import pytest
import torch
from tests.curvature.draws import normal, random_points

from tokenspace import curvature as cv
from tokenspace.curvature import connection
from tokenspace.curvature.connection import curvature, curvature_on, dot, frame, one_form, wedge
from tokenspace.curvature.points import assemble, points_of

POINTS = random_points(40, 8)
UNIT = torch.nn.functional.normalize


def rows(points):
    return UNIT(points.v1, dim=-1), UNIT(points.v2, dim=-1)


def differenced(points, step=1e-4):
    """∂_μ A_ν - ∂_ν A_μ + [A_μ, A_ν] on (e₁, e₂), derivatives by central differences."""
    a, b = rows(points)
    at = frame(points)

    def A(z, mu):
        return one_form(z, a, b, points.q, mu)

    def d(mu, nu):
        return (A(points.z + step * mu, nu) - A(points.z - step * mu, nu)) / (2 * step)

    x, y = A(points.z, at.e1), A(points.z, at.e2)
    return d(at.e1, at.e2) - d(at.e2, at.e1) + x @ y - y @ x


def error(got, expected):
    return float(((got - expected).norm(dim=(1, 2)) / expected.norm(dim=(1, 2))).max())


# --- the curvature


def test_the_one_form_is_the_papers_contraction():
    a, b = rows(POINTS)
    mu, z, q = normal(*POINTS.z.shape, seed=5), POINTS.z, POINTS.q
    paper = -dot(mu, a)[:, None, None] * wedge(z, b) + dot(mu, b)[:, None, None] * wedge(z, a)
    torch.testing.assert_close(one_form(z, a, b, q, mu), q[:, None, None] * paper)


def test_both_formulas_are_the_curvature_by_finite_differences():
    a, b = rows(POINTS)
    at, expected = frame(POINTS), differenced(POINTS)
    assert error(curvature(POINTS).dense(), expected) < 1e-5
    assert error(curvature_on(POINTS.z, a, b, POINTS.q, at.e1, at.e2), expected) < 1e-5


def test_the_norm_is_that_of_the_matrix_and_of_three_cosines():
    R = curvature(POINTS)
    dense = R.dense().norm(dim=(1, 2)) / 2**0.5
    torch.testing.assert_close(R.norm(), dense, rtol=1e-10, atol=1e-14)
    a, b = rows(POINTS)
    x, y, w = dot(POINTS.z, a), dot(POINTS.z, b), dot(a, b)
    area, in_plane = 1 - w**2, x**2 + y**2 - 2 * w * x * y  # D₀², D₀² |Πz|²
    closed = (POINTS.q**2 * in_plane + POINTS.q**4 * (area - in_plane) ** 2).sqrt()
    torch.testing.assert_close(R.norm(), closed, rtol=1e-10, atol=1e-14)


def test_rank_is_exactly_two_and_a_vector_never_turns_towards_itself():
    R = curvature(POINTS).dense()
    singular = torch.linalg.svdvals(R)
    assert float((singular[:, 2] / singular[:, 0]).max()) < 1e-12
    torch.testing.assert_close(singular[:, 0], singular[:, 1])
    w = UNIT(normal(*POINTS.z.shape, seed=6), dim=-1)
    assert float(dot(w, (R @ w[:, :, None])[..., 0]).abs().max()) < 1e-12
    gram = curvature(POINTS).plane() @ curvature(POINTS).plane().mT
    torch.testing.assert_close(gram, torch.eye(2).double().expand_as(gram), rtol=0, atol=1e-12)


def test_gram_products_are_those_of_the_matrices():
    first, second = curvature(POINTS[:15]), curvature(POINTS[15:])
    dense = torch.einsum("iab,jab->ij", first.dense(), second.dense()) / 2
    torch.testing.assert_close(first.gram(second), dense)


def test_means_of_groups_need_no_matrix(monkeypatch):
    monkeypatch.setattr(connection, "BLOCK", 7)
    read, labels = curvature(POINTS), torch.arange(40) % 3
    means = torch.stack([read.dense()[labels == k].mean(0) for k in range(3)])
    dense = torch.einsum("iab,jab->ij", means, means) / 2
    torch.testing.assert_close(read.gram_of_means(labels, 3), dense)


def test_in_two_dimensions_every_state_lies_in_the_plane():
    read = points_of(normal(5, 2), normal(5, 4), normal(4, 2, seed=1))
    assert read.excluded == {"z inside the plane": 5}
    assert len(curvature(read)) == len(frame(read).a) == 0


@pytest.mark.parametrize("cache", [8, 24, 10**6])
def test_blocks_do_not_change_the_answer(cache, monkeypatch):
    before = curvature(POINTS).dense()
    monkeypatch.setattr(connection, "CACHE", cache)
    torch.testing.assert_close(curvature(POINTS).dense(), before, rtol=0, atol=1e-14)


def test_nearly_degenerate_points_keep_an_exact_frame():
    """z 1e-5 from the plane, rows 1e-5 apart: Gram–Schmidt done once would lose half the digits."""
    z, v, w = normal(3, 5, 8, seed=14)
    p, ids = torch.full((5,), 0.5).double(), torch.arange(5)
    for at in (
        assemble(v + w + 1e-5 * z, v, w, (p, p), (ids, ids)),
        assemble(z, v, v + 1e-5 * w, (p, p), (ids, ids)),
    ):
        assert len(at) == 5
        gram = frame(at).basis @ frame(at).basis.mT
        torch.testing.assert_close(gram, torch.eye(3).double().expand_as(gram), rtol=0, atol=1e-12)


# --- the live charge


def test_the_live_charge_is_differentiated_too():
    N, n, W = 12, 6, 9
    V, z = normal(W, n, seed=12), UNIT(normal(N, n, seed=13), dim=-1)
    scale, step = 2.5, 1e-5
    top = (scale * z @ V.T).topk(2).indices

    def q_at(x):
        p = (scale * x @ V.T).softmax(-1)
        return cv.charge(*p.gather(1, top).T)

    p = (scale * z @ V.T).softmax(-1)
    at = assemble(scale * z, V[top[:, 0]], V[top[:, 1]], tuple(p.gather(1, top).T), tuple(top.T))
    a, b = rows(at)
    f = frame(at)

    def d(mu, nu):
        ahead, behind = z + step * mu, z - step * mu
        return (
            one_form(ahead, a, b, q_at(ahead), nu) - one_form(behind, a, b, q_at(behind), nu)
        ) / (2 * step)

    x, y = one_form(z, a, b, at.q, f.e1), one_form(z, a, b, at.q, f.e2)
    expected = d(f.e1, f.e2) - d(f.e2, f.e1) + x @ y - y @ x
    assert error(curvature(at, mean_rows=p @ V).dense(), expected) < 1e-5
    assert error(curvature(at).dense(), expected) > 0.1
