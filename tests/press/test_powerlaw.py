"""A power law is found again, with an interval that holds as often as it says."""

import numpy as np
import pytest
from scipy import stats

from tokenspace.errors import ParameterError
from tokenspace.press.benches.powerlaw import LEAST, bend, fit, fit_tail

SIZES = [2.0**k for k in range(5, 11)]


def noisy(exponent: float, sigma: float, seed: int) -> list[float]:
    noise = np.random.default_rng(seed).normal(0, sigma, len(SIZES))
    return [3 * x**exponent * np.exp(e) for x, e in zip(SIZES, noise, strict=True)]


def test_the_exponent_and_its_error_are_those_of_the_normal_equations() -> None:
    y = noisy(1.7, 0.1, seed=0)
    design = np.stack([np.ones(len(SIZES)), np.log(SIZES)], axis=1)
    inverse = np.linalg.inv(design.T @ design)
    beta = inverse @ design.T @ np.log(y)
    left = np.log(y) - design @ beta
    variance = left @ left / (len(SIZES) - 2)
    law = fit(SIZES, y)
    assert law.exponent == pytest.approx(beta[1], rel=1e-9)
    assert law.se == pytest.approx(np.sqrt(variance * inverse[1, 1]), rel=1e-9)
    at = np.array([1, np.log(1e6)])
    value, low, high = law.at(1e6, level=0.9)
    reach = stats.t.ppf(0.95, 4) * np.sqrt(variance * (1 + at @ inverse @ at))
    assert np.log([value, low, high]) == pytest.approx(at @ beta + reach * np.array([0, -1, 1]))


def test_intervals_hold_as_often_as_they_say() -> None:
    """Over seeds: a new measurement far out, and the exponent by Student's t, at 95 %."""
    far, inside, caught = 2.0**15, 0, 0
    for seed in range(400):
        law = fit(SIZES, noisy(2.0, 0.1, seed))
        new = 3 * far**2 * np.exp(np.random.default_rng(1000 + seed).normal(0, 0.1))
        _, low, high = law.at(far)
        inside += low <= new <= high
        caught += abs(law.exponent - 2) <= stats.t.ppf(0.975, len(SIZES) - 2) * law.se
    for share in (inside / 400, caught / 400):
        assert share == pytest.approx(0.95, abs=0.035)  # three standard errors of 400 draws


def test_small_sizes_that_bend_are_left_out() -> None:
    sizes = [4.0**k for k in range(9)]
    y = [200 + x for x in sizes]
    assert fit(sizes, y).exponent < 0.6
    law = fit_tail(sizes, y)
    assert law.first > 4.0**3
    assert law.exponent == pytest.approx(1, abs=0.1)
    assert fit_tail(sizes, sizes).first == 1.0, "a straight line keeps all"


def test_least_sizes_stay_even_where_they_bend() -> None:
    y = [x**2 + 1e6 for x in SIZES]
    law = fit_tail(SIZES, y)
    assert law.sizes == LEAST
    assert bend(SIZES[-LEAST:], y[-LEAST:]) > 0.1


def test_the_bend_is_the_change_of_the_local_exponent() -> None:
    x = np.exp(np.linspace(0, 4, 7))
    y = np.exp(0.5 * np.log(x) + 0.2 * np.log(x) ** 2)  # slope .5 + .4 log x
    assert bend(x.tolist(), y.tolist()) == pytest.approx(0.4 * 4)


@pytest.mark.parametrize(
    ("x", "y"),
    [([1.0, 2.0], [1.0, 2.0]), ([1.0, 1.0, 2.0], [1.0] * 3), ([1.0, 2.0, 4.0], [0.0] * 3)],
)
def test_too_little_to_fit_is_refused(x: list[int], y: list[int]) -> None:
    with pytest.raises(ParameterError, match="three sizes or more and numbers above 0, got x = "):
        fit(x, y)
