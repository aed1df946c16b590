"""Models against plain torch, one run at a time; drawn as said; what is refused."""

import math

import pytest
import torch

from tokenspace import staircase as st
from tokenspace.errors import ParameterError
from tokenspace.staircase.models import activation, derivatives

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
        expected = activation(sigma)(E[SEQUENCES].sum(1) @ W.T) @ U.T
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


def test_an_ffn_is_blind_to_order():
    model = st.FFN(6, 4, 7)
    params = f64(model)
    assert torch.allclose(model(params, SEQUENCES), model(params, SEQUENCES.flip(1)))


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
    sigma, h = activation(name), 1e-3
    z = torch.tensor([-2 * h, -h, 0.0, h, 2 * h], dtype=torch.float64)
    a, b, c, d, e = sigma(z).tolist()
    found = [c, (d - b) / (2 * h), (d - 2 * c + b) / h**2, (e - 2 * d + 2 * b - a) / (2 * h**3)]
    assert found == pytest.approx(list(derivatives(name)), abs=1e-4)


def test_task_sizes_fit():
    task = st.arithmetic("add", 4)
    model = st.FFN(task.vocabulary, task.labels.shape[1], 8)
    assert model(model.init([0.5], [0]), task.sequences).shape == (1, 16, 200)
