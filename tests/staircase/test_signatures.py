"""Signatures: Lemma 1, closed forms, a literal count as oracle, FactorialTask's table."""

from dataclasses import replace
from itertools import permutations

import pytest
import torch

from tokenspace import staircase as st
from tokenspace.errors import ParameterError
from tokenspace.staircase.signatures import context_ids


def literal(task, order):
    """φ by its definition: every sequence, position and ordered tuple, one at a time."""
    labels, contexts = st.label_ids(task).tolist(), context_ids(task).tolist()
    phi = torch.zeros(len(task.targets), len(labels), *[len(contexts)] * order).double()
    for row, label, weight in zip(task.sequences.tolist(), task.labels, task.weights, strict=True):
        for i, *J in permutations(range(task.length), order + 1):
            if row[i] in task.targets.tolist():
                at = task.targets.tolist().index(row[i])
                where = tuple(contexts.index(row[j]) for j in J)
                phi[(at, slice(None), *where)] += weight * label[st.label_ids(task)]
    return phi / phi.flatten(1).sum(1).reshape(-1, *[1] * (order + 1))


@pytest.mark.parametrize("order", [0, 1, 2])
@pytest.mark.parametrize(
    "task", [st.factorial(2), st.minmax(3), st.length_three(2, 3), st.modular(3, 3)]
)
def test_signatures_are_the_literal_counts(task, order):
    assert torch.allclose(st.signature_tensor(task, order), literal(task, order))


@pytest.mark.parametrize(
    "task", [st.factorial(), st.length_three(3, 4), st.modular(5, 3), st.minmax(5)]
)
def test_lemma_1(task):
    phi = [st.signature_tensor(task, m) for m in range(3)]
    for m in range(3):
        assert torch.allclose(phi[m].flatten(1).sum(1), torch.ones(len(task.targets)).double())
    for m in (1, 2):
        for mode in range(m):
            assert torch.allclose(phi[m].sum(2 + mode), phi[m - 1])
        assert float(phi[m].norm()) <= float(phi[m - 1].norm())


def test_order_and_merging_do_not_matter_to_averaged_signatures():
    task = st.arithmetic("sub", 6)
    for m in (0, 1):
        assert torch.allclose(st.label_signature(task, m), st.label_signature(task.merged(), m))


def test_factorial_table_and_ranks():
    task = st.factorial()
    raw, clean = ([f(task, m) for m in range(3)] for f in (st.label_signature, st.pure))
    for (i, j), value in {(0, 1): 0.887, (0, 2): 0.527, (1, 2): 0.732}.items():
        grams = [st.cosine_gram(raw[m], centred=True) for m in (i, j)]
        assert float(st.alignment(*grams)) == pytest.approx(value, abs=5e-4)
        grams = [st.cosine_gram(clean[m], centred=True) for m in (i, j)]
        assert float(st.alignment(*grams)) == pytest.approx(-1 / 12)
    assert [st.span(s).shape[1] for s in raw] == [2, 4, 6]
    assert [st.span(s).shape[1] for s in clean] == [2, 2, 2]


@pytest.mark.parametrize(("order", "digit"), [(0, 9), (1, 3), (2, 1)])
def test_factorial_pure_grams_are_indicators(order, digit):
    value = torch.arange(27) // digit % 3
    same = (value[:, None] == value).double()
    gram = st.cosine_gram(st.pure(st.factorial(), order), centred=True)
    assert torch.allclose(gram, 1.5 * same - 0.5)  # three vectors at 120 degrees


def test_pure_parts_sum_to_nothing_over_a_context():
    part = st.pure(st.factorial(), 2).reshape(27, 15, 6, 6)
    assert part.sum(2).abs().max() < 1e-15 > part.sum(3).abs().max()


def test_the_pure_part_of_order_1_is_the_joint_law_less_the_product():
    """Of |x1 - x2| there is one context place, and its law is uniform."""
    task = st.arithmetic("sub", 5)
    phi = st.signature_tensor(task, 1)
    expected = phi - st.signature_tensor(task, 0)[..., None] / 5
    assert torch.allclose(st.pure(task, 1), expected.flatten(1))


@pytest.mark.parametrize("N", [20, 9])
def test_fourier_components_of_f_mod(N):
    task = st.arithmetic("mod", N)
    a = torch.arange(N).double()
    for k in range(N // 2 + 1):
        expected = torch.cos(2 * torch.pi * k * (a[:, None] - a) / N)
        assert torch.allclose(st.cosine_gram(st.fourier(task, k)), expected)
        wave = torch.cos(2 * torch.pi * k * a / N).expand(N, N)  # of the j-th other number
        label = (a.long()[:, None] + a.long() + 2) % N  # of 1 + a and 1 + j, less 1
        rows = torch.zeros(N, N).double().scatter_(1, label, wave)
        assert torch.allclose(N * st.fourier(task, k), rows)


@pytest.mark.parametrize("operation", ["add", "mod"])
def test_erratum_f_raw_order_1_is_the_identity(operation):
    gram = st.cosine_gram(st.label_signature(st.arithmetic(operation, 12), 1))
    assert torch.allclose(gram, torch.eye(12).double())


def test_erratum_f_length_three():
    other = torch.arange(3, 7)
    task = replace(st.length_three(2, 4), targets=other)
    assert torch.allclose(st.cosine_gram(st.label_signature(task, 2)), torch.eye(4).double())
    blank = replace(st.length_three(8, 4), targets=torch.arange(9, 13))
    assert torch.allclose(st.cosine_gram(st.label_signature(blank, 1)), torch.ones(4, 4).double())


@pytest.mark.parametrize("N", [5, 20])
def test_min_max_closed_forms(N):
    task = st.minmax(N)
    phi = st.label_signature(task, 0)
    y = torch.arange(1, N + 1).double()
    assert torch.allclose(phi[:N], torch.eye(N).double() / 2 + 1 / (2 * N))
    assert torch.allclose(phi[N], (2 * y - 1) / N**2)
    assert torch.allclose(phi[N + 1], (2 * (N - y) + 1) / N**2)
    right = phi[task.sequences - 1].sum(1).argmax(1) == task.labels.argmax(1) - 1
    assert int(right.sum()) == len(right) == 2 * N * N  # 800 of 800 at N = 20


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: st.label_signature(st.arithmetic("add", 3), 2), "orders 0 to 1"),
        (lambda: st.pure(st.factorial(), 3), "orders 0 to 2"),
        (
            lambda: st.label_signature(
                replace(st.arithmetic("add", 3), targets=torch.tensor([2, 9])), 0
            ),
            r"\[9\] never occur",
        ),
        (lambda: st.fourier(st.arithmetic("mod", 6), 4), "components 0 to 3"),
        (lambda: st.label_signature(st.length_three(40, 160), 2), "more than"),
    ],
)
def test_what_cannot_be_is_refused(make, says):
    with pytest.raises(ParameterError, match=says):
        make()
