"""Tasks: exact loss levels, weights, labels, and what is refused."""

import math
from dataclasses import replace

import pytest
import torch

from tokenspace import staircase as st
from tokenspace.errors import ParameterError


def known(task, *names):
    v, c1, c2 = task.sequences.T
    parts = {"a": v // 9, "b": v // 3 % 3, "c": v % 3, "c1": c1, "c2": c2}
    return torch.stack([parts[name] for name in names], dim=1)


def test_factorial_loss_falls_by_log_3_of_a_block():
    task = st.factorial()
    nothing = torch.zeros(243, 1, dtype=torch.int64)
    levels = [
        st.best_loss(task, nothing),
        st.best_loss(task, known(task, "a", "c1", "c2")),
        st.best_loss(task, known(task, "a", "b", "c1", "c2")),
        st.best_loss(task, task.sequences),
    ]
    assert levels == pytest.approx([2.7081, 2.0489, 1.8292, 1.6094], abs=5e-5)


def test_reweighted_blocks_carry_their_weights():
    task = st.factorial(weights=(4, 2, 1, 1, 0))
    mass = {
        name: float(task.weights @ task.labels[:, at].sum(1)) for name, at in task.blocks.items()
    }
    assert mass == pytest.approx({"a": 0.5, "b+c1": 0.25, "c+c1+c2": 0.125, "c1": 0.125})


@pytest.mark.parametrize(
    "task",
    [
        st.arithmetic("add", 5),
        st.arithmetic("mul", 20),
        st.modular(5, 4),
        st.minmax(4),
        st.length_three(3, 4),
        st.factorial(2),
        st.pointer(2, 3),
        st.parity(50),
        st.prescribed("poisson"),
    ],
    ids=lambda task: task.name,
)
def test_rows_and_labels_are_distributions(task):
    assert float(task.weights.sum()) == pytest.approx(1)
    assert torch.allclose(task.labels.sum(1), torch.ones(len(task.labels)).double())
    assert torch.equal(
        task.counts.sum(1), torch.full((len(task.weights),), float(task.length)).double()
    )


def test_multisets_are_all_sequences_merged():
    N, L = 4, 3
    x = torch.cartesian_prod(*[torch.arange(1, N + 1)] * L)
    short = st.modular(N, L)
    labels = torch.nn.functional.one_hot(1 + x.sum(1) % N, short.vocabulary).double()
    weights = torch.full((len(x),), 1 / len(x)).double()
    whole = replace(short, sequences=x, labels=labels, weights=weights).merged()
    assert torch.equal(whole.sequences, short.sequences)
    assert torch.allclose(whole.weights, short.weights)
    assert torch.allclose(whole.labels, short.labels)


def test_merging_mixes_the_labels_of_one_multiset():
    task = st.prescribed("uniform")
    merged = task.merged()
    assert len(merged.weights) == 51 * 52 // 2
    left, none = (st.best_loss(each, each.sequences) for each in (merged, task))
    assert left > none == 0
    assert torch.allclose(merged.weights @ merged.labels, task.weights @ task.labels)


def test_label_laws_have_their_moments():
    y = torch.arange(51).double()
    assert float(st.LAWS["normal"] @ y) == pytest.approx(25)
    assert float(st.LAWS["poisson"] @ y) == pytest.approx(10, abs=1e-6)
    assert float(st.LAWS["exponential"][0]) == pytest.approx(1 - math.exp(-5))


def test_pointer_levels():
    task = st.pointer()
    a = task.sequences[:, -1:] // 4
    assert st.best_loss(task, a) == pytest.approx(math.log(2) + math.log(4) / 2)


def test_parity_is_that_of_its_one_anchor_and_draws_follow_the_seed():
    task = st.parity(2000)
    anchor = (task.sequences >= 11) & (task.sequences <= 20)
    assert bool((anchor.sum(1) == 1).all())
    assert torch.equal(task.labels.argmax(1), task.sequences[anchor] % 2)
    assert anchor.double().mean(0).sub(1 / 8).abs().max() < 0.03  # at a uniform place
    for make in (lambda seed: st.parity(50, seed), lambda seed: st.prescribed("uniform", seed)):
        one, again, other = (
            torch.cat([t.sequences, t.labels.long()], 1) for t in map(make, (1, 1, 2))
        )
        assert torch.equal(one, again)
        assert not torch.equal(one, other)


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: st.arithmetic("div", 3), "add, sub, mul, mod"),
        (lambda: st.arithmetic("mul", 20, vocabulary=200), "needs at least 401"),
        (lambda: st.arithmetic("add", 3, modulus=2), "to mod only"),
        (lambda: st.arithmetic("mod", 4, vocabulary=3), "needs at least 5"),
        (lambda: st.factorial(drop=("d",)), "c\\+c1\\+c2"),
        (lambda: st.factorial(weights=(0,) * 5), "leave one"),
        (lambda: st.prescribed("cauchy"), "uniform, normal"),
        (lambda: st.parity(20).merged(), "depends on positions"),
        (lambda: replace(st.minmax(3), vocabulary=4), "1 to 5 don't fit a vocabulary of 4.*6"),
        (lambda: replace(st.minmax(3), sequences=-st.minmax(3).sequences), "no token below 0"),
    ],
)
def test_what_cannot_be_is_refused(make, says):
    with pytest.raises(ParameterError, match=says):
        make()
