"""Theorems 1 to 3 against autograd, the paper's own sums, Taylor limits, scaling over d."""

import math
from itertools import product

import pytest
import torch

from tokenspace import staircase as st
from tokenspace.errors import ParameterError
from tokenspace.staircase import theory
from tokenspace.staircase.signatures import context_ids

TASKS = [
    st.arithmetic("add", 5, 12),
    st.minmax(3),
    st.modular(4, 3, 6),
    st.length_three(3, 4),
    st.factorial(2),
]


def made(model, gammas=(0.3,), seeds=(0,)):
    return model.init(gammas, seeds, torch.float64)


@pytest.mark.parametrize("task", TASKS, ids=lambda t: t.name)
@pytest.mark.parametrize("sigma", ["z^2", "z^3", "silu", "gelu", "relu", "tanh"])
@pytest.mark.parametrize("width", [None, 7])
def test_ffn_terms_sum_to_autograd(task, sigma, width):
    model = st.FFN(task.vocabulary, task.labels.shape[1], d=6, activation=sigma, width=width)
    params = made(model)
    label, model_part = (
        sum(theory.order_terms(model, params, t))
        for t in (task, theory.predicted(model, params, task))
    )
    exact = theory.velocity(model, params, task)
    assert float(theory.relative_error(label - model_part, exact).max()) < 1e-6


@pytest.mark.parametrize("power", [2, 3, 4])
def test_a_term_is_theorem_1s_multinomial_sum(power):
    """W^{m,k}(ν, β), k = `power`, C_k = 1, by literal enumeration of l and n_r."""
    task = st.modular(3, 3, 5)
    model = st.FFN(5, 5, d=4, activation=f"z^{power}")
    params = made(model)
    E, U = params["E"][0], params["U"][0][st.label_ids(task)]
    contexts = context_ids(task).tolist()
    rate = task.weights @ task.counts[:, task.targets]
    for m, term in enumerate(theory.order_terms(model, params, task)):
        phi = st.signature_tensor(task, m)
        for t, alpha in enumerate(task.targets.tolist()):
            total = torch.zeros(4, dtype=torch.float64)
            for beta in product(range(len(contexts)), repeat=m):
                for n in product(range(1, power), repeat=m):
                    l = power - 1 - sum(n)  # noqa: E741
                    if l < 0:
                        continue
                    ways = math.factorial(power - 1) / math.factorial(l)
                    value = E[alpha] ** l
                    for b, n_r in zip(beta, n, strict=True):
                        ways /= math.factorial(n_r)
                        value = value * E[contexts[b]] ** n_r
                    total += ways * value * (phi[(t, slice(None), *beta)] @ U)
            expected = rate[t] * math.comb(task.length - 1, m) * power * total
            assert torch.allclose(term[0, t], expected, rtol=1e-9, atol=1e-12)


def stirling(n, k):
    """S₂(n, k), ways to part n things into k sets."""
    if n == k:
        return 1
    return 0 if k == 0 or k > n else k * stirling(n - 1, k) + stirling(n - 1, k - 1)


@pytest.mark.parametrize("K", range(1, 7))
def test_erratum_d_how_often_order_m_occurs(K):
    """B_m(K), the sum of the multinomials: with every E = U = 1 it is all that a term holds.

    Printed: (m+1)! S₂(K-1, m+1), which leaves out the ways with no factor E_α (l = 0).
    """
    task = st.modular(3, 4, 4)
    model = st.FFN(4, 4, d=1, activation=f"z^{K}")
    ones = {name: torch.ones(1, 4, 1, dtype=torch.float64) for name in "EU"}
    for m, term in enumerate(theory.order_terms(model, ones, task)):
        ways = product(range(m + 1), repeat=K - 1)  # each other factor: E_α, or one of m contexts
        exact = [where for where in ways if set(range(1, m + 1)) <= set(where)]
        used = sum(0 in where for where in exact)
        B = math.factorial(m) * stirling(K, m + 1)
        assert len(exact) == B
        assert used == math.factorial(m + 1) * stirling(K - 1, m + 1)
        rate = task.weights @ task.counts[:, task.targets]
        assert torch.allclose(term[0, :, 0], rate * math.comb(3, m) * K * B)


def test_theorem_2_is_the_small_logit_limit():
    task = st.arithmetic("add", 5, 12)
    model = st.FFN(12, 12, d=16, activation="silu")
    errors = []
    for gamma in (0.8, 1.2, 1.6):
        params = made(model, [gamma])
        guess = sum(theory.order_terms(model, params, theory.uniform(task)))
        exact = sum(theory.order_terms(model, params, theory.predicted(model, params, task)))
        errors.append(float(theory.relative_error(guess, exact)))
    assert errors[2] < errors[1] < errors[0] < 0.1


@pytest.mark.parametrize("order", [0, 1])
@pytest.mark.parametrize("sigma", ["silu", "gelu"])
def test_the_lowest_degree_form_is_the_taylor_term_in_e(order, sigma):
    task = st.factorial(2)
    model = st.FFN(task.vocabulary, task.labels.shape[1], d=6, activation=sigma, width=9)
    params = made(model)

    def at(scale):
        return theory.velocity(model, params | {"E": scale * params["E"]}, task)

    h = 1e-4
    exact = at(0.0) if order == 0 else (8 * (at(h) - at(-h)) - (at(2 * h) - at(-2 * h))) / (12 * h)
    assert (
        float(theory.relative_error(theory.lowest_degree(model, params, task, order), exact)) < 1e-6
    )


@pytest.mark.parametrize("sigma", ["relu", "tanh", "linear", "z^3"])
def test_a_flat_activation_is_named(sigma):
    task = st.arithmetic("add", 4, 9)
    model = st.FFN(9, 9, d=4, activation=sigma)
    with pytest.warns(UserWarning, match=rf"'{sigma[0]}.*σ''\(0\) = 0"):
        theory.lowest_degree(model, made(model), task, 1)
    with pytest.raises(ParameterError, match="order = 2: the lowest-degree form is written for"):
        theory.lowest_degree(model, made(model), task, 2)


@pytest.mark.parametrize("residual", [False, True])
@pytest.mark.parametrize("positions", [False, True])
@pytest.mark.parametrize("task", [*TASKS, st.pointer(2, 2)], ids=lambda t: t.name)
def test_attention_terms_sum_to_autograd(task, positions, residual):
    model = st.Attention(
        task.vocabulary, task.labels.shape[1], task.length, 6, 4, positions, residual
    )
    params = made(model, (0.3, 0.8), (0, 1))
    found = sum(theory.attention_terms(model, params, task).values())
    assert float(theory.relative_error(found, theory.velocity(model, params, task)).max()) < 1e-6


@pytest.mark.parametrize(
    ("sigma", "low", "high"),
    [
        ("relu", [0.55, 0.6, 0.6, 0.6], [0.75, 0.75, 0.75, 0.75]),
        ("gelu", [0.75, 0.96, 0.995, 0.999], [0.9, 1, 1.0001, 1.0001]),
        ("silu", [0.85, 0.97, 0.999, 0.999], [0.95, 1, 1.0001, 1.0001]),
    ],
)
def test_proposition_1_and_its_exception(sigma, low, high):
    task = st.arithmetic("add", 20)
    model = st.FFN(200, 200, 128, sigma)
    params = made(model, (0.3, 0.5, 0.8, 1.0), (0,))
    found = theory.cosine(
        theory.velocity(model, params, task), theory.lowest_degree(model, params, task, 0)
    )
    assert bool((found > torch.tensor(low)).all() & (found < torch.tensor(high)).all())


def test_order_m_falls_with_d_as_proposition_1_says():
    task, gamma, sizes = st.arithmetic("add", 8, 17), 0.8, [64, 256, 1024]
    ratios = []
    for d in sizes:
        model = st.FFN(17, 17, d, "silu")
        first, second = theory.order_terms(model, made(model, [gamma], range(4)), task)
        ratios.append(float(second.norm() / first.norm()))
    found = math.log(ratios[-1] / ratios[0]) / math.log(sizes[-1] / sizes[0])
    assert found == pytest.approx(-gamma, abs=0.1)


@pytest.mark.parametrize("gamma", [0.5, 0.8])
def test_the_error_of_order_0_falls_as_d_to_the_half_less_2_gamma(gamma):
    task, sizes = st.factorial(), [64, 256]
    errors = []
    for d in sizes:
        model = st.FFN(task.vocabulary, 15, d, "silu", 2 * d)
        params = made(model, [gamma], range(3))
        guess = theory.lowest_degree(model, params, task, 0)
        errors.append(
            float(theory.relative_error(guess, theory.velocity(model, params, task), True).mean())
        )
    found = math.log(errors[1] / errors[0]) / math.log(sizes[1] / sizes[0])
    assert found == pytest.approx(0.5 - 2 * gamma, abs=0.15)
