"""The closed form against finite differences, brute force and symmetry; mutants that fail."""

import pytest
import torch
from tests.curvature.draws import mutant, normal, random_points

from tokenspace.curvature import companion, connection, frames
from tokenspace.curvature.companion import companion_curvature, companion_form, direction, push
from tokenspace.curvature.connection import (
    curvature,
    curvature_norm,
    curvature_on,
    live_curvature,
    one_form,
    tangent,
)
from tokenspace.curvature.frames import dot, frame, wedge
from tokenspace.curvature.points import assemble, points_of
from tokenspace.curvature.softmax import charge

POINTS = random_points(40, 8)
UNIT = torch.nn.functional.normalize


def rows(points):
    return UNIT(points.v1, dim=-1), UNIT(points.v2, dim=-1)


def differenced(points, module=connection, step=1e-4):
    """∂_μ A_ν - ∂_ν A_μ + [A_μ, A_ν] on (e₁, e₂), derivatives by central differences."""
    a, b = rows(points)
    at = frame(points)

    def A(z, mu):
        return module.one_form(z, a, b, points.q, mu)

    def d(mu, nu):
        return (A(points.z + step * mu, nu) - A(points.z - step * mu, nu)) / (2 * step)

    x, y = A(points.z, at.e1), A(points.z, at.e2)
    return d(at.e1, at.e2) - d(at.e2, at.e1) + x @ y - y @ x


def error(got, expected):
    return float(((got - expected).norm(dim=(1, 2)) / expected.norm(dim=(1, 2))).max())


def median_error(got, expected):
    return float(((got - expected).norm(dim=(1, 2)) / expected.norm(dim=(1, 2))).median())


# --- the curvature


def test_the_one_form_is_the_papers_contraction():
    a, b = rows(POINTS)
    mu, z, q = normal(*POINTS.z.shape, seed=5), POINTS.z, POINTS.q
    paper = -dot(mu, a)[:, None, None] * wedge(z, b) + dot(mu, b)[:, None, None] * wedge(z, a)
    torch.testing.assert_close(one_form(z, a, b, q, mu), q[:, None, None] * paper)


def test_the_closed_form_is_the_curvature_by_finite_differences():
    assert error(curvature(POINTS).dense(), differenced(POINTS)) < 1e-5


def test_the_dense_formula_is_the_curvature_by_finite_differences():
    a, b = rows(POINTS)
    at = frame(POINTS)
    assert error(curvature_on(POINTS.z, a, b, POINTS.q, at.e1, at.e2), differenced(POINTS)) < 1e-5


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("q * linear - q**2 * wedge", "q * linear + q**2 * wedge"),
        ("beta = linear.norm(dim=1), (q", "beta = linear.norm(dim=1), -(q"),
    ],
)
def test_a_wrong_sign_of_the_commutator_would_be_seen(old, new):
    wrong = mutant(connection, old, new)
    a, b = rows(POINTS)
    at = frame(POINTS)
    if "q * linear" in old:
        got = wrong.curvature_on(POINTS.z, a, b, POINTS.q, at.e1, at.e2)
    else:
        got = wrong.curvature(POINTS).dense()
    assert error(got, differenced(POINTS)) > 0.1
    assert median_error(got, differenced(POINTS)) > 0.1


def test_the_norm_from_three_cosines_is_that_of_the_matrix():
    dense = curvature(POINTS).dense().norm(dim=(1, 2)) / 2**0.5
    torch.testing.assert_close(curvature_norm(POINTS), dense, rtol=1e-10, atol=1e-14)
    torch.testing.assert_close(curvature(POINTS).norm(), dense, rtol=1e-10, atol=1e-14)


def test_the_norm_keeps_its_digits_where_the_rows_nearly_agree():
    z, v, w = normal(3, 5, 8, seed=4)
    p, ids = torch.full((5,), 0.5).double(), torch.arange(5)
    close = assemble(z, v, v + 1e-4 * w, (p, p), (ids, ids))
    torch.testing.assert_close(curvature_norm(close), curvature(close).norm(), rtol=1e-6, atol=0)


def test_rank_is_exactly_two():
    singular = torch.linalg.svdvals(curvature(POINTS).dense())
    assert float((singular[:, 2] / singular[:, 0]).max()) < 1e-12
    torch.testing.assert_close(singular[:, 0], singular[:, 1])


def test_the_factors_are_orthonormal():
    gram = curvature(POINTS).plane() @ curvature(POINTS).plane().mT
    torch.testing.assert_close(gram, torch.eye(2).double().expand_as(gram), rtol=0, atol=1e-12)


def test_a_vector_never_turns_towards_itself():
    w = UNIT(normal(*POINTS.z.shape, seed=6), dim=-1)
    turned = curvature(POINTS).apply(w)
    assert float(dot(w, turned).abs().max()) < 1e-12
    dense = (curvature(POINTS).dense() @ w[:, :, None])[..., 0]
    torch.testing.assert_close(turned, dense)


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


def test_no_charge_no_curvature():
    read = curvature(POINTS, q=torch.zeros(len(POINTS)).double())
    assert float(read.dense().abs().max()) == 0
    assert bool(read.plane().isfinite().all())


def test_in_the_plane_there_is_no_form():
    """n = 2: μ is tangent to the circle, and so is every Bμ along z: A = 0."""
    z, a, b = (UNIT(x, dim=-1) for x in normal(3, 20, 2, seed=7))
    mu = torch.stack([-z[:, 1], z[:, 0]], dim=-1)
    assert float(one_form(z, a, b, torch.ones(20).double(), mu).abs().max()) < 1e-12


def test_in_two_dimensions_every_state_lies_in_the_plane():
    read = points_of(normal(5, 2), normal(5, 4), normal(4, 2, seed=1))
    assert read.excluded == {"z inside the plane": 5}
    assert len(curvature(read)) == len(frame(read).a) == 0


def test_in_three_dimensions_it_is_the_cross_product():
    """A_μ = -qτ[μ]×, R = q²τ²[μ×ν]× + q[c×(μ×ν)]× with c = a×b, τ = z·c."""
    at = random_points(20, 3)
    a, b = rows(at)
    mu, nu = (tangent(at.z, x) for x in normal(2, 20, 3, seed=8))
    c, q = torch.linalg.cross(a, b), at.q[:, None]
    tau = dot(at.z, c)[:, None]

    def cross_matrix(x):
        return torch.linalg.cross(
            x[:, :, None].expand(-1, 3, 3), torch.eye(3).double()[None], dim=1
        )

    torch.testing.assert_close(one_form(at.z, a, b, at.q, mu), cross_matrix(-q * tau * mu))
    area = torch.linalg.cross(mu, nu)
    by_hand = cross_matrix(q**2 * tau**2 * area + q * torch.linalg.cross(c, area))
    torch.testing.assert_close(curvature_on(at.z, a, b, at.q, mu, nu), by_hand)


def test_swapping_the_two_tokens_leaves_the_linear_part_and_turns_the_quadratic_one():
    swapped = assemble(POINTS.z, POINTS.v2, POINTS.v1, (POINTS.p1, POINTS.p2), (POINTS.top2,) * 2)

    def parts(points):
        small = curvature(points, q=torch.full((len(points),), 1.0).double()).dense()
        double = curvature(points, q=torch.full((len(points),), 2.0).double()).dense()
        return (4 * small - double) / 2, (double - 2 * small) / 2  # of q L + q² Q

    (linear, quadratic), (linear_, quadratic_) = parts(POINTS), parts(swapped)
    torch.testing.assert_close(linear, linear_, rtol=0, atol=1e-12)
    torch.testing.assert_close(quadratic, -quadratic_, rtol=0, atol=1e-12)
    torch.testing.assert_close(curvature_norm(POINTS), curvature_norm(swapped), rtol=1e-12, atol=0)


def test_a_rotation_of_all_vectors_rotates_the_curvature():
    Q = torch.linalg.qr(normal(8, 8, seed=9)).Q
    turned = assemble(
        POINTS.z @ Q.T, POINTS.v1 @ Q.T, POINTS.v2 @ Q.T, (POINTS.p1, POINTS.p2), (POINTS.top1,) * 2
    )
    expected = Q @ curvature(POINTS).dense() @ Q.T
    torch.testing.assert_close(curvature(turned).dense(), expected, rtol=0, atol=1e-12)


def test_lengths_of_state_and_rows_do_not_matter():
    longer = assemble(
        5 * POINTS.z, 3 * POINTS.v1, 7 * POINTS.v2, (POINTS.p1, POINTS.p2), (POINTS.top1,) * 2
    )
    torch.testing.assert_close(curvature(longer).dense(), curvature(POINTS).dense())


@pytest.mark.parametrize("cache", [8, 24, 10**6])
def test_blocks_do_not_change_the_answer(cache, monkeypatch):
    before = curvature(POINTS).dense()
    monkeypatch.setattr(frames, "CACHE", cache)
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
        torch.testing.assert_close(curvature_norm(at), curvature(at).norm(), rtol=1e-6, atol=1e-12)


def test_a_batch_is_its_points_one_by_one():
    together = curvature(POINTS).dense()
    alone = torch.cat([curvature(POINTS[i : i + 1]).dense() for i in range(len(POINTS))])
    torch.testing.assert_close(together, alone, rtol=0, atol=1e-15)


def test_the_triple_wedge_vanishes_inside_the_plane():
    """|z∧a∧b| is not large inside span(a, b), as notes on the paper say: it is 0 there."""
    inside, out = POINTS.v1 + POINTS.v2, normal(*POINTS.z.shape, seed=11)
    ids = (POINTS.top1, POINTS.top2)

    def D(away):
        return frame(
            assemble(inside + away * out, POINTS.v1, POINTS.v2, (POINTS.p1, POINTS.p2), ids)
        ).D

    assert float((D(1e-3) / D(1e-1)).max()) < 0.1
    assert float(D(1e-3).max()) < 0.01


# --- the live charge


def test_the_live_charge_is_differentiated_too():
    N, n, W = 12, 6, 9
    V, z = normal(W, n, seed=12), UNIT(normal(N, n, seed=13), dim=-1)
    scale, step = 2.5, 1e-5
    top = (scale * z @ V.T).topk(2).indices

    def q_at(x):
        p = (scale * x @ V.T).softmax(-1)
        return charge(*p.gather(1, top).T)

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
    assert error(live_curvature(at, p @ V).dense(), expected) < 1e-5
    assert error(curvature(at).dense(), expected) > 0.1


# --- the companion form


V9 = normal(9, 5, seed=20)
H9, X9, Y9 = normal(3, 5, seed=21)


def companion_factor(module, combine, step=1e-4):
    """The multiple of du(v)∧du(w) that a formula gives, with dω by central differences."""

    def d(v, w):
        ahead, behind = (module.companion_form(H9 + s * step * v, V9, w) for s in (1, -1))
        return (ahead - behind) / (2 * step)

    exterior = d(X9, Y9) - d(Y9, X9)
    x, y = module.companion_form(H9, V9, X9), module.companion_form(H9, V9, Y9)
    got, expected = combine(exterior, x @ y - y @ x), companion_curvature(H9, V9, X9, Y9)
    return float((got * expected).sum() / expected.square().sum())


def test_the_companion_curvature_has_factor_one_and_the_naive_one_minus_three():
    assert companion_factor(companion, lambda d, c: -d + c) == pytest.approx(1, abs=1e-4)
    assert companion_factor(companion, lambda d, c: d + c) == pytest.approx(-3, abs=1e-3)


@pytest.mark.parametrize(
    ("old", "new", "factor"),
    [
        (
            "wedge(push(h, V, v, temperature), direction",
            "-wedge(push(h, V, v, temperature), direction",
            -3,
        ),
    ],
)
def test_the_naive_sign_of_the_companion_form_would_be_seen(old, new, factor):
    wrong = mutant(companion, old, new)
    assert companion_factor(wrong, lambda d, c: -d + c) == pytest.approx(factor, abs=1e-3)


def test_push_is_the_derivative_of_the_direction():
    for T in (0.7, 1.0):
        jacobian = torch.func.jacrev(lambda h, T=T: direction(h, V9, T))(H9)
        torch.testing.assert_close(push(H9, V9, X9, T), jacobian @ X9)


def test_two_live_tokens_have_no_companion_curvature():
    assert float(companion_curvature(H9, V9[:2], X9, Y9).abs().max()) < 1e-12
    assert float(companion_curvature(H9, V9[:3], X9, Y9).abs().max()) > 1e-3


def test_the_companion_form_carries_the_direction_along():
    torch.testing.assert_close(companion_form(H9, V9, X9) @ direction(H9, V9), push(H9, V9, X9))
