"""The path against closed forms, the paper's released numbers, and the linear path."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from tokenspace.errors import ParameterError
from tokenspace.flow.path import (
    Gumbel,
    corrupt,
    ddim_step,
    follow,
    kernel_scale,
    linear,
    loss_weight,
    preserving,
    snr,
    stratified,
    time_of,
)

GAMMAS = torch.linspace(-12, 12, 97, dtype=torch.float64)
RELEASED = Gumbel(4.9563, 0.9637)


def noise(*shape, seed=0):
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(*shape, generator=generator, dtype=torch.float64)


def euler(x, mean, gamma, gamma_next, guidance=0.0):
    return ddim_step(x, mean, preserving(gamma), preserving(gamma_next), guidance)


# --- closed forms


def test_the_path_preserves_variance_and_gamma_is_noise_over_signal():
    alpha, sigma = preserving(GAMMAS)
    torch.testing.assert_close(alpha**2 + sigma**2, torch.ones_like(GAMMAS))
    torch.testing.assert_close((sigma**2 / alpha**2).log(), GAMMAS)
    torch.testing.assert_close(snr(GAMMAS), alpha**2 / sigma**2)
    torch.testing.assert_close(kernel_scale(GAMMAS), alpha / sigma**2)


def test_time_of_gamma_is_the_linear_time_of_the_same_snr():
    alpha, sigma = linear(time_of(GAMMAS))
    torch.testing.assert_close((alpha / sigma) ** 2, snr(GAMMAS))
    torch.testing.assert_close(time_of(GAMMAS), 1 / (1 + (GAMMAS / 2).exp()))
    for point in (preserving(GAMMAS), (alpha, sigma)):  # the weight is one over the time left
        torch.testing.assert_close(loss_weight(*point), (1 - time_of(GAMMAS)) ** -2)


@pytest.mark.parametrize(("n", "end"), [(32, 0.143), (64, 0.152), (512, 0.176)])
def test_the_released_grid_never_reaches_the_data(n, end):
    grid = RELEASED.grid(n)
    assert len(grid) == n
    assert bool((grid.diff() < 0).all())
    assert float(time_of(grid[-1])) == pytest.approx(end, abs=5e-4)
    last = RELEASED.gamma(torch.tensor(0.0))  # where u is clamped
    assert float(time_of(last)) == pytest.approx(0.214, abs=5e-4)


def test_the_schedule_is_the_gumbel_quantile():
    u = torch.linspace(0.001, 0.999, 50, dtype=torch.float64)
    law = stats.gumbel_r(4.9563, 0.9637)
    torch.testing.assert_close(RELEASED.gamma(u), torch.tensor(law.ppf(u.numpy())))


@pytest.mark.parametrize("n", [1, 7, 64])
def test_stratified_times_have_one_in_each_stratum(n):
    eps = 1e-5
    u = stratified(n, torch.Generator().manual_seed(n), eps)
    strata = ((u - eps) / (1 - 2 * eps) * n).floor().sort().values
    assert strata.tolist() == list(range(n))
    assert n < 64 or not bool((u.diff() > 0).all())  # shuffled


# --- one step, told in several ways


@given(st.floats(-8, 8), st.floats(0.01, 6))
def test_euler_on_the_preserving_path_is_euler_on_the_linear_one(gamma, down):
    now, then = (torch.tensor(g, dtype=torch.float64) for g in (gamma, gamma - down))
    x, mean = noise(5, 3, 4), noise(5, 3, 4, seed=1)
    moved = euler(x, mean, now, then)
    s, t = time_of(now), time_of(then)
    scale = [sum(preserving(g)) for g in (now, then)]  # x_linear = x / (α + σ)
    by_linear = x / scale[0] + (t - s) / (1 - s) * (mean - x / scale[0])
    torch.testing.assert_close(moved / scale[1], by_linear)
    torch.testing.assert_close(
        moved / scale[1], ddim_step(x / scale[0], mean, linear(s), linear(t))
    )


@pytest.mark.parametrize("guidance", [0.0, 0.1, 1.5])
def test_guidance_is_equation_32(guidance):
    x, mean = noise(2, 3, 4), noise(2, 3, 4, seed=1)
    now, then = torch.tensor(2.0).double(), torch.tensor(-1.0).double()
    (alpha, sigma), (a, s) = preserving(now), preserving(then)
    estimate = (x - alpha * mean) / sigma
    expected = a * (x / alpha + (1 + guidance) * (s / a - sigma / alpha) * estimate)
    torch.testing.assert_close(euler(x, mean, now, then, guidance), expected)


def test_a_trajectory_of_true_means_is_the_corruption_path():
    e, z = noise(2, 3, 4), noise(2, 3, 4, seed=1)
    gammas = torch.tensor([5.0, 2.0, 0.0, -3.0]).double()
    xs, means = follow(lambda x, at: e, corrupt(e, gammas[0], z), preserving(gammas))
    assert means.shape == (3, 2, 3, 4)
    for x, gamma in zip(xs, gammas, strict=True):
        torch.testing.assert_close(x, corrupt(e, gamma, z))


# --- refused

ONE = torch.ones(1, 1)


@pytest.mark.parametrize(
    ("make", "value", "message"),
    [
        *[
            (lambda t: linear(torch.tensor(t)), t, r"isn't in \[0, 1\]")
            for t in (-0.1, 1.1, math.nan)
        ],
        *[
            (lambda w: euler(ONE, ONE, torch.tensor(0.0), torch.tensor(-1.0), w), w, f"w_ug = {w}")
            for w in (-0.1, math.nan, math.inf)
        ],
        *[(lambda scale: Gumbel(0.0, scale), scale, r"Gumbel\(loc=") for scale in (0.0, -1.0)],
        *[(lambda eps: Gumbel(0.0, 1.0, eps), eps, r"Gumbel\(loc=") for eps in (0.5, 0.0)],
        (lambda loc: Gumbel(loc, 1.0), math.nan, r"Gumbel\(loc="),
        (RELEASED.grid, 0, "0 points"),
    ],
)
def test_numbers_out_of_range_are_refused(make, value, message):
    with pytest.raises(ParameterError, match=message):
        make(value)
