"""Predictors against the exact kernel, and every input that is none."""

import math

import pytest
import torch

from tokenspace.errors import ParameterError, TableError
from tokenspace.flow.path import kernel_scale, preserving
from tokenspace.flow.predictor import (
    Hull,
    Unconstrained,
    check_logits,
    check_rows,
    check_simplex,
    context_free,
    embeddings,
    log_kernel,
)

V, D = 6, 8
GAMMA = torch.tensor([3.0, 0.0, -2.0])


def noise(*shape, seed=0):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def zero_head(x, gamma, c):
    return torch.zeros(*x.shape[:2], V)


@pytest.mark.parametrize("kind", ["orthonormal", "gaussian"])
@pytest.mark.parametrize("prior", [[1 / V] * V, [0.4, 0.3, 0.1, 0.1, 0.05, 0.05]])
def test_a_hull_of_a_constant_network_is_the_context_free_mean(kind, prior):
    E, x, prior = embeddings(V, D, 0, kind), noise(3, 5, D), torch.tensor(prior)
    hull = Hull(lambda x, gamma, c: prior.log().expand(3, 5, V), E)(x, GAMMA, torch.zeros_like(x))
    expected = context_free(x, GAMMA, E, prior)
    torch.testing.assert_close(hull.mean, expected.mean, atol=1e-5, rtol=0)


def test_the_shortcut_is_the_exact_kernel_for_rows_of_one_norm_only():
    x = noise(3, 5, D)
    for E, same in ((embeddings(V, D, 0), True), (noise(V, D, seed=1), False)):
        short = kernel_scale(GAMMA)[:, None, None] * (x @ E.mT)
        exact = log_kernel(x, *preserving(GAMMA), E)
        by_distance = torch.stack(
            [
                -(torch.cdist(row, a * E) ** 2) / (2 * s**2)
                for row, a, s in zip(x, *preserving(GAMMA), strict=True)
            ]
        )
        torch.testing.assert_close(
            exact.log_softmax(-1), by_distance.log_softmax(-1), atol=2e-3, rtol=1e-3
        )
        close = torch.allclose(short.softmax(-1), exact.softmax(-1), atol=1e-4)
        assert close == same


def test_the_hull_keeps_double_inputs_double_and_raises_half_networks():
    E = embeddings(V, D, 0)
    x, half = noise(3, 5, D).double(), lambda x, gamma, c: zero_head(x, gamma, c).bfloat16()
    assert Hull(zero_head, E)(x, GAMMA, x).mean.dtype == torch.float64
    assert Hull(half, E)(x.float(), GAMMA, x).mean.dtype == torch.float32


def test_the_hull_is_not_rounded_by_autocast():
    E, x = embeddings(V, D, 0), noise(3, 5, D)
    with torch.autocast("cpu", torch.bfloat16):
        inside = Hull(zero_head, E)(x, GAMMA, x)
    torch.testing.assert_close(inside.mean, Hull(zero_head, E)(x, GAMMA, x).mean)


def test_unconstrained_means_are_rounded_to_the_nearest_row():
    E = noise(V, D)
    free = Unconstrained(lambda x, gamma, c: x, E)
    x = noise(3, 5, D, seed=1)
    nearest = torch.cdist(x, E.expand(3, V, D)).argmin(-1)
    assert torch.equal(free(x, GAMMA, x).logits.argmax(-1), nearest)


@pytest.mark.parametrize(("kind", "d"), [("orthonormal", 6), ("orthonormal", 9), ("gaussian", 3)])
def test_rows_have_norm_root_d(kind, d):
    E = embeddings(6, d, 1, kind)
    torch.testing.assert_close(E.norm(dim=1), torch.full((6,), math.sqrt(d)))
    if kind == "orthonormal":
        torch.testing.assert_close(E @ E.mT, d * torch.eye(6), atol=1e-4, rtol=0)


# --- refused


def changed(tensor, at, value):
    tensor = tensor.clone()
    tensor[at] = value
    return tensor


ROWS, LOGITS = embeddings(V, D, 0), torch.zeros(2, 3, 4)
LEFT_ONE = changed(LOGITS, (0, 0, slice(3)), -math.inf)  # one token is left: fine


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: embeddings(6, 5, 0), "6 orthogonal rows don't fit in d = 5"),
        (
            lambda: Hull(zero_head, changed(ROWS, 4, 1.1 * ROWS[4])),
            r"from 2\.828 .* to 3\.111 \(row 4\)",
        ),
        (
            lambda: check_rows(changed(ROWS, (2, 3), math.nan)),
            r"1 of 6 .*aren't finite: rows \[2\]",
        ),
        (lambda: check_rows(torch.zeros(3, 4)), "one norm above 0"),
        (lambda: check_rows(embeddings(50, 64, 0, "gaussian").bfloat16().float()), "in fp32"),
        (
            lambda: check_logits(changed(LEFT_ONE, (1, 2), -math.inf)),
            r"1 of 6 rows .*-inf everywhere: at \[\[1, 2\]\]",
        ),
        (
            lambda: check_logits(changed(LOGITS, (1, 2, 3), math.nan)),
            r"NaN or \+inf: at \[\[1, 2\]\]",
        ),
        (lambda: check_logits(torch.softmax(noise(4, 7), -1)), "are probabilities"),
    ],
)
def test_what_no_softmax_or_kernel_can_take_is_refused_and_named(make, message):
    check_logits(LEFT_ONE)
    with pytest.raises((ParameterError, TableError), match=message):
        make()


def test_a_hull_in_eval_mode_names_the_position_with_no_token_left():
    logits = changed(torch.zeros(3, 5, V), (2, 4), -math.inf)
    hull = Hull(lambda x, gamma, c: logits, ROWS).eval()
    with pytest.raises(ParameterError, match=r"at \[\[2, 4\]\]"):
        hull(noise(3, 5, D), GAMMA, noise(3, 5, D))


@pytest.mark.parametrize(
    "p", [[1.0, 2.0, 3.0], [0.5, 0.5, 0.5], [1.2, -0.2, 0.0], [math.nan, 1, 0]]
)
def test_logits_passed_for_probabilities_are_refused(p):
    with pytest.raises(ParameterError, match="off the simplex"):
        check_simplex(torch.tensor(p))
    with pytest.raises(ParameterError, match="softmax first"):
        context_free(noise(1, 1, 4), GAMMA[:1], embeddings(3, 4, 0), torch.tensor(p))


def test_a_head_of_another_width_is_refused():
    with pytest.raises(ParameterError, match=r"gives \(3, 5, 6\) for x of shape \(3, 5, 8\)"):
        Unconstrained(zero_head, ROWS)(noise(3, 5, D), GAMMA, noise(3, 5, D))
