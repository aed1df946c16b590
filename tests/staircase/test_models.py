"""Models against plain torch, one run at a time; drawn as said; what is refused."""

import math

import pytest
import torch

from tokenspace import staircase as st
from tokenspace.errors import ParameterError
from tokenspace.staircase.models import activation, linear, read_out, rows_of, sum_rows

SEQUENCES = st.modular(4, 3, 6).sequences


def f64(model, gammas=(0.3, 0.8), seeds=(0, 1)):
    return model.init(gammas, seeds, torch.float64)


@pytest.mark.parametrize("width", [None, 5])
@pytest.mark.parametrize("sigma", ["relu", "gelu", "silu", "tanh", "linear", "z^3"])
def test_ffn_is_its_formula(sigma, width):
    model = st.FFN(6, 4, 7, sigma, width)
    params = f64(model)
    found = model(params, SEQUENCES)
    for r in range(4):
        E, U = params["E"][r], params["U"][r]
        W = params["W"][r] if width else torch.eye(7).double()
        expected = activation(sigma)[0](E[SEQUENCES].sum(1) @ W.T) @ U.T
        assert torch.allclose(found[r], expected)


def test_scaled_rows_are_longer_rows():
    model = st.FFN(6, 4, 7, "silu")
    params = f64(model)
    longer = params | {"E": 3 * params["E"]}
    found = model(params | {"scale": torch.full((4, 1, 1), 3.0).double()}, SEQUENCES)
    assert torch.allclose(found, model(longer, SEQUENCES))


@pytest.mark.parametrize("residual", [False, True])
def test_attention_is_its_formula(residual):
    model = st.Attention(6, 4, length=3, d=7, d_k=5, residual=residual)
    params = f64(model)
    found = model(params, SEQUENCES)
    for r in range(4):
        p = {name: value[r] for name, value in params.items()}
        for n, row in enumerate(SEQUENCES):
            h = p["E"][row] + p["P"]
            z = torch.stack([h[s] @ p["K"].T @ p["Q"] @ h[-1] / math.sqrt(7) for s in range(3)])
            out = p["O"] @ p["V"] @ (z.softmax(0) @ h) + (h[-1] if residual else 0)
            assert torch.allclose(found[r, n], p["U"] @ out)


@pytest.mark.parametrize("model", [st.FFN(6, 4, 7, "silu", 5), st.Attention(6, 4, 3, 7, 5)])
def test_each_run_may_have_its_own_rows(model):
    params = f64(model)
    own = torch.stack([SEQUENCES.roll(r, 0) for r in range(4)])
    whole = model(params, SEQUENCES)
    for r, rows in enumerate(model(params, own)):
        assert torch.allclose(rows, whole[r].roll(r, 0))


def test_the_draw_has_the_stated_deviation_and_depends_on_its_seed_alone():
    model = st.FFN(300, 200, 128, "silu", 256)
    params = model.init([0.5, 0.8], [3, 4])
    for r, gamma in enumerate([0.5, 0.5, 0.8, 0.8]):
        for name, d_in in {"E": 128, "W": 128, "U": 256}.items():
            assert float(params[name][r].std()) == pytest.approx(d_in**-gamma, rel=0.02)
    alone = model.init([0.8], [4])
    assert all(torch.equal(params[name][3], alone[name][0]) for name in params)


@pytest.mark.parametrize("gammas", [[0.0], [-0.3], [0.5, float("nan")], [float("inf")], []])
def test_gamma_is_positive(gammas):
    with pytest.raises(ParameterError, match="γ > 0"):
        st.FFN(6, 4).init(gammas, [0])


@pytest.mark.parametrize("name", ["swish", "z^0", "z^x", ""])
def test_an_unknown_activation_is_refused_by_name(name):
    with pytest.raises(ParameterError, match="is unknown; take one of relu, gelu, silu"):
        st.FFN(6, 4, activation=name)


@pytest.mark.parametrize("name", ["gelu", "silu", "tanh", "linear", "z^2", "z^3", "z^5"])
def test_derivatives_are_finite_differences(name):
    (sigma, stated), h = activation(name), 1e-3
    z = torch.tensor([-2 * h, -h, 0.0, h, 2 * h], dtype=torch.float64)
    a, b, c, d, e = sigma(z).tolist()
    found = [c, (d - b) / (2 * h), (d - 2 * c + b) / h**2, (e - 2 * d + 2 * b - a) / (2 * h**3)]
    assert found == pytest.approx(list(stated), abs=1e-4)


G = torch.Generator().manual_seed(0)


def drawn(*shape):
    return torch.randn(*shape, generator=G, dtype=torch.float64, requires_grad=True)


@pytest.mark.parametrize("shape", [(7, 3), (1, 1), (2, 7, 3)])
def test_rows_and_sums_are_indexing(shape):
    table = drawn(2, 5, 4)
    index = torch.randint(4, shape, generator=G)  # token 4 never occurs, tokens occur twice
    each = index.expand(2, *shape[-2:])

    def plain():
        return torch.stack([table[r, each[r]] for r in range(2)])

    assert torch.equal(rows_of(table, index), plain())
    for out, expected in (
        (rows_of(table, index), plain()),
        (sum_rows(table, index), plain().sum(2)),
    ):
        weight = torch.randn(out.shape, generator=G, dtype=torch.float64)
        assert torch.allclose(out, expected)
        mine, torchs = (torch.autograd.grad(o, table, weight)[0] for o in (out, expected))
        assert torch.allclose(mine, torchs)
    assert torch.autograd.gradcheck(lambda t: sum_rows(t, index), table)


def test_read_out_and_linear_are_products():
    h, U, W = drawn(2, 7, 4), drawn(2, 3, 4), drawn(2, 5, 4)
    assert torch.allclose(read_out(h, U), torch.einsum("rnd,rkd->rnk", h, U))
    assert torch.autograd.gradcheck(read_out, (h, U))
    deep = drawn(2, 3, 6, 4)
    assert torch.allclose(linear(deep, W), torch.einsum("rbld,rmd->rblm", deep, W))
    assert torch.autograd.gradcheck(linear, (deep, W))
