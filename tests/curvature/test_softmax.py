"""Softmax geometry against autograd, sampling and closed forms; which points are left out."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from tests.curvature.draws import normal

from tokenspace.curvature.connection import curvature, frame
from tokenspace.curvature.points import assemble, points_of
from tokenspace.curvature.softmax import charge, mean, sampling_error
from tokenspace.errors import ParameterError, TableError

V = normal(7, 4)
H = normal(4, seed=1)


def probabilities(h):
    return (h @ V.T).softmax(-1)


def test_the_mean_row_is_the_gradient_of_the_log_partition_function():
    gradient = torch.func.grad(lambda h: torch.logsumexp(h @ V.T, -1))(H)
    torch.testing.assert_close(mean(probabilities(H), V), gradient)


def test_the_error_is_the_trace_of_the_derivative_of_the_mean_row():
    p = probabilities(H)
    C = torch.func.jacrev(lambda h: mean(probabilities(h), V))(H)
    torch.testing.assert_close(sampling_error(p, V), C.trace())
    drawn = V[torch.multinomial(p, 40_000, True, generator=torch.Generator().manual_seed(0))]
    found = float((drawn - mean(p, V)).square().sum(-1).mean())
    assert found == pytest.approx(float(C.trace()), rel=0.03)


@given(st.floats(0, 1), st.integers(0, 100))
def test_the_charge_is_the_normalised_sampling_error_of_two_tokens(p1, seed):
    pair = normal(2, 3, seed=seed)
    p = torch.tensor([p1, 1 - p1], dtype=torch.float64)
    expected = charge(p[0], p[1]) * (pair[0] - pair[1]).square().sum() / 4
    torch.testing.assert_close(sampling_error(p, pair), expected, atol=1e-12, rtol=1e-9)


def test_the_two_likeliest_tokens_and_the_entropy_of_a_known_law():
    p = torch.tensor([[0.2, 0.5, 0.3]]).double()
    at = points_of(H[None], p.log() + 17, V[:3])
    assert (int(at.top1), int(at.top2)) == (1, 2)
    assert float(at.p1) == pytest.approx(0.5)
    assert float(at.p2) == pytest.approx(0.3)
    assert float(at.entropy) == pytest.approx(-sum(x * math.log(x) for x in p[0].tolist()))


# --- points that have no curvature are named and counted, and nothing is nan


def bad_points():
    """Fine, then: NaN logit, -inf logit, inf state, z = 0, v1 = 0, equal, opposite, inside."""
    rows = torch.cat([normal(2, 4), torch.zeros(1, 4), V[:1], V[:1], -2 * V[:1], normal(2, 4)])
    rows[6:8] = normal(2, 4, seed=8)
    h = normal(9, 4, seed=9)
    h[3, 0] = float("inf")
    h[4] = 0
    h[8] = 0.3 * rows[6] - 0.2 * rows[7]
    likely = [(0, 1), (0, 1), (0, 1), (0, 1), (0, 1), (2, 0), (3, 4), (4, 5), (6, 7)]
    logits = torch.zeros(9, 8).double()
    for i, (first, second) in enumerate(likely):
        logits[i, first], logits[i, second] = 3, 2
    logits[1, 5], logits[2, 5] = float("nan"), -float("inf")
    return h, logits, rows


def test_points_without_a_curvature_are_named_and_counted():
    found = points_of(*bad_points())
    assert found.excluded == {
        "non-finite logits": 2,
        "non-finite state": 1,
        "z = 0": 1,
        "v1 = 0 or v2 = 0": 1,
        "v1 = v2": 2,
        "z inside the plane": 1,
    }
    assert found.kept.tolist() == [0]
    assert sum(found.excluded.values()) + len(found) == 9


def test_nothing_is_nan_beside_bad_points():
    found = points_of(*bad_points())
    read = curvature(found)
    for value in (*vars(frame(found)).values(), read.norm(), read.plane()):
        assert bool(value.isfinite().all())
    h, logits, rows = bad_points()
    alone = curvature(points_of(h[:1], logits[:1], rows))
    torch.testing.assert_close(read.plane(), alone.plane(), rtol=0, atol=0)


def test_a_vocabulary_of_one_is_left_out_by_name():
    found = points_of(normal(3, 4), normal(3, 1), normal(1, 4))
    assert found.excluded == {"vocabulary of one": 3}
    assert curvature(found).norm().shape == (0,)


def test_a_table_that_is_not_finite_is_refused():
    rows = normal(8, 4)
    rows[5, 1] = float("nan")
    with pytest.raises(TableError, match=r"1 rows of the unembedding.*\[5\]"):
        points_of(normal(3, 4), normal(3, 8), rows)


def test_probabilities_must_be_probabilities():
    x, ids = normal(3, 1, 4), torch.tensor([0])
    wrong = torch.tensor([0.8]).double()
    with pytest.raises(ParameterError, match="p1 \\+ p2 <= 1"):
        assemble(x[0], x[1], x[2], (wrong, wrong), (ids, ids))


def test_a_common_shift_of_all_rows_changes_points_but_not_probabilities():
    h, logits = normal(5, 4, seed=2), normal(5, 7, seed=3)
    raw, moved = points_of(h, logits, V), points_of(h, logits, V + 3)
    torch.testing.assert_close(raw.q, moved.q)
    assert not torch.allclose(curvature(raw).norm(), curvature(moved).norm())
    centred = [points_of(h, logits, table, centre=True) for table in (V, V + 3)]
    torch.testing.assert_close(*(curvature(each).norm() for each in centred))
