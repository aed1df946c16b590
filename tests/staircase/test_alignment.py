"""Alignment measures against numpy, invariances, known shares, and a probe that can't cheat."""

import numpy as np
import pytest
import torch

from tokenspace import staircase as st
from tokenspace.errors import ParameterError
from tokenspace.staircase.alignment import _folds


def normal(*shape, seed=0):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def test_alignment_is_numpys_correlation_over_pairs():
    A, B = (st.cosine_gram(normal(9, 4, seed=s)) for s in (0, 1))
    at = np.triu_indices(9, 1)
    assert float(st.alignment(A, B)) == pytest.approx(
        np.corrcoef(A.numpy()[at], B.numpy()[at])[0, 1]
    )


def test_leading_dimensions_are_separate_runs():
    E, S = normal(3, 2, 8, 5), normal(8, 6, seed=1)
    whole = st.alignment(st.cosine_gram(E, True), st.cosine_gram(S, True))
    for i in range(3):
        for j in range(2):
            one = st.alignment(st.cosine_gram(E[i, j], True), st.cosine_gram(S, True))
            assert float(whole[i, j]) == pytest.approx(float(one))
    assert st.variance_share(E, S[:, :2]).shape == (3, 2)


def test_rotation_and_length_change_no_cosine():
    E = normal(7, 5)
    turn = torch.linalg.qr(normal(5, 5, seed=1)).Q
    assert torch.allclose(st.cosine_gram(3 * E @ turn, True), st.cosine_gram(E, True))
    assert torch.allclose(st.cosine_gram(E + 4, True), st.cosine_gram(E, True))


def test_a_constant_signature_has_no_correlation_but_an_error():
    flat = st.cosine_gram(st.label_signature(st.arithmetic("mod", 8), 0))
    assert torch.allclose(flat, torch.ones(8, 8).double())
    assert st.alignment(flat, st.cosine_gram(normal(8, 4))).isnan()
    assert st.cosine_gram(st.label_signature(st.arithmetic("mod", 8), 0), True).abs().max() == 0


def test_share_is_rank_over_26_by_chance_and_1_inside():
    zero = st.pure(st.factorial(), 0)
    shares = st.variance_share(normal(400, 27, 64), zero)
    assert float(shares.mean()) == pytest.approx(2 / 26, abs=3 * 0.0189 / 400**0.5 + 1e-3)
    assert float(st.variance_share(zero @ normal(15, 8) + 5, zero)) == pytest.approx(1)


def test_projection_keeps_the_orders_and_the_mean():
    task, E = st.factorial(), normal(2, 27, 64)
    low = st.project(E, [st.pure(task, 0), st.pure(task, 1)])
    assert torch.allclose(low.mean(-2), E.mean(-2))
    assert st.variance_share(low, st.pure(task, 2)).max() < 1e-20
    size, full = ((x - x.mean(-2, True)).square().sum((-1, -2)) for x in (low, E))
    for part in (st.pure(task, 0), st.pure(task, 1)):
        kept = st.variance_share(low, part) * size
        assert torch.allclose(kept, st.variance_share(E, part) * full)
    assert torch.allclose(st.project(low, [st.pure(task, 0), st.pure(task, 1)]), low)


def test_best_order_finds_each_and_says_none():
    task = st.factorial()
    raw = [st.label_signature(task, m) for m in range(3)]
    assert [int(st.best_order(s, raw)) for s in raw] == [0, 1, 2]
    random = [int(st.best_order(normal(27, 64, seed=s), raw)) for s in range(5)]
    assert random == [-1] * 5


def test_probe_finds_a_planted_v_on_pairs_it_did_not_see():
    phi = st.signature_tensor(st.arithmetic("mod", 12), 1)
    v = torch.cos(2 * torch.pi * 2 * torch.arange(12) / 12).double()
    found = st.probe(phi, phi @ v)
    assert float(found.held_out) > 0.98
    assert found.v.shape == (5, 12)


@pytest.mark.parametrize("by", ["pairs", "tokens"])
def test_what_a_fold_holds_out_does_not_reach_its_v(by):
    """A row of E that moves changes each v that was fitted on a pair with its token, no other."""
    phi, E, T = normal(12, 3, 4), normal(12, 5, seed=1), 12
    fitted = _folds(T, 3, by, 0)[0].bool()
    moved = E.clone()
    moved[7] = normal(5, seed=2)
    a, b = torch.triu_indices(T, T, 1)
    before, after = (st.probe(phi, rows, folds=3, by=by, steps=3).v for rows in (E, moved))
    touched = fitted[:, (a == 7) | (b == 7)].any(1)
    assert (before != after).any(1).tolist() == touched.tolist()
    assert touched.tolist().count(False) == (by == "tokens")


def test_probe_on_held_out_tokens():
    phi = normal(20, 6, 5).abs()
    good = st.probe(phi, phi @ normal(5, seed=1), by="tokens", folds=4, steps=800)
    bad = st.probe(phi, normal(20, 64, seed=2), by="tokens", folds=4)
    assert float(good.held_out) > 0.9 > 0.5 > float(bad.held_out)


@pytest.mark.parametrize(
    ("options", "says"),
    [({"folds": 1}, "allow 2 to"), ({"folds": 99}, "allow 2 to"), ({"by": "rows"}, "'pairs'")],
)
def test_folds_that_cannot_be_are_refused(options, says):
    phi = st.signature_tensor(st.arithmetic("add", 5), 1)
    with pytest.raises(ParameterError, match=says):
        st.probe(phi, normal(5, 3), **options)


def test_partial_alignment_is_the_textbook_formula_for_one_known_gram():
    A, B, C = (st.cosine_gram(normal(9, 4, seed=s)) for s in range(3))
    a, b, c = (float(st.alignment(x, y)) for x, y in ((A, B), (A, C), (B, C)))
    formula = (a - b * c) / np.sqrt((1 - b**2) * (1 - c**2))
    assert float(st.partial_alignment(A, B, [C])) == pytest.approx(formula)
    assert float(st.partial_alignment(A, B, [])) == pytest.approx(a)
    assert st.partial_alignment(A, B, [A]).isnan()  # nothing of A is left


def test_the_probes_held_out_error_is_that_of_its_vectors():
    phi, E = normal(9, 3, 2), normal(9, 5, seed=1)
    found = st.probe(phi, E, folds=2, by="tokens", steps=5)
    score = _folds(9, 2, "tokens", 0)[1].bool()
    gaps = [st.pairs(st.cosine_gram(phi @ v) - st.cosine_gram(E)) for v in found.v]
    errors = [float((gap[at] ** 2).mean()) for gap, at in zip(gaps, score, strict=True)]
    assert float(found.mse) == pytest.approx(sum(errors) / 2)
