"""Estimators and local dimension: closed forms, hand computations, scikit-dimension, manifolds."""

import inspect
import math
from functools import partial

import pytest
import skdim
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from tokenspace.errors import ParameterError, TableError
from tokenspace.hub import (
    censored,
    cube,
    earliest,
    exponential_check,
    facco,
    gaussian,
    lid,
    lid_harmonic,
    lid_null,
    limit,
    log_ratios,
    median,
    mle,
    nearest,
    sphere,
    survival,
    swiss_roll,
    torus,
)

ESTIMATORS = [mle, facco, censored, median]
MU = [1.1, 1.2, 1.5, 2.0, 3.0]


def pairs(mu):
    r2 = torch.tensor(mu, dtype=torch.float64)
    return torch.ones_like(r2), r2


def by_brute_force(rows, k=2):
    far = torch.cdist(rows.double(), rows.double(), compute_mode="donot_use_mm_for_euclid_dist")
    return far.fill_diagonal_(math.inf).sort(dim=1).values[:, :k]


# --- closed forms and hand computations


def test_mle_and_median_by_hand():
    assert mle(*pairs(MU)).value == pytest.approx(4 / math.log(1.1 * 1.2 * 1.5 * 2 * 3), rel=1e-12)
    assert median(*pairs(MU)).value == pytest.approx(math.log(2) / math.log(1.5), rel=1e-12)
    even = (math.log(1.2) + math.log(1.5)) / 2
    assert median(*pairs(MU[:4])).value == pytest.approx(math.log(2) / even, rel=1e-12)


def test_facco_counts_from_one_and_drops_the_last_point():
    x = [math.log(mu) for mu in MU[:4]]
    y = [-math.log(1 - i / 5) for i in (1, 2, 3, 4)]
    by_hand = sum(a * b for a, b in zip(x, y, strict=True)) / sum(a * a for a in x)
    assert facco(*pairs(MU), keep=1.0).value == pytest.approx(by_hand, rel=1e-12)
    assert facco(*pairs(MU), keep=0.8).value == pytest.approx(by_hand, rel=1e-12)
    shorter = sum(a * b for a, b in zip(x[:3], y, strict=False)) / sum(a * a for a in x[:3])
    assert facco(*pairs(MU), keep=0.6).value == pytest.approx(shorter, rel=1e-12)


def test_censored_by_hand_and_without_censoring_is_the_mle():
    total = math.log(1.1) + math.log(1.2) + math.log(1.5) + 2 * math.log(1.5)
    assert censored(*pairs(MU), keep=0.6).value == pytest.approx(2 / total, rel=1e-12)
    assert censored(*pairs(MU), keep=1.0).value == pytest.approx(mle(*pairs(MU)).value, rel=1e-12)


def test_survival_is_a_line_of_slope_d_for_exact_quantiles():
    n, d = 200, 7.0
    m = torch.tensor([-math.log1p(-i / n) / d for i in range(1, n)] + [1.0], dtype=torch.float64)
    x, y = survival(m)
    assert torch.allclose(y, d * x, rtol=1e-12)
    assert facco(torch.ones(n), m.exp()).value == pytest.approx(d, rel=1e-9)


# --- standard errors, by simulation of the model


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_unbiased_and_with_the_right_error_under_the_model(estimator, poisson):
    r = poisson(600 * 400, 6.0, 2, seed=3).reshape(600, 400, 2)
    found = [estimator(one[:, 0], one[:, 1]) for one in r]
    values = torch.tensor([e.value for e in found])
    spread, claimed = float(values.std()), float(torch.tensor([e.se for e in found]).mean())
    assert claimed == pytest.approx(spread, rel=0.12)
    assert float(values.mean()) == pytest.approx(6.0, rel=0.012)


def test_exponential_check_accepts_the_model_and_refuses_a_mixture(poisson):
    r = poisson(4000, 9.0, 2, seed=1)
    m = log_ratios(r[:, 0], r[:, 1])
    distance, p = exponential_check(m, 9.0)
    assert distance < 0.03
    assert p > 0.01
    mixed = torch.cat([m, m[:2000] / 30])
    assert exponential_check(mixed, mle(torch.ones(6000), mixed.exp()).value)[1] < 1e-6


# --- agreement with scikit-dimension


@pytest.mark.parametrize(("n", "d"), [(700, 5), (500, 40)])
@pytest.mark.filterwarnings("ignore:divide by zero:RuntimeWarning")  # theirs, at F = 1
def test_agrees_with_scikit_dimension(n, d):
    rows = gaussian(n, d, seed=0)
    found = nearest(rows, 20)
    theirs = skdim.id.TwoNN().fit(rows.numpy()).dimension_
    assert facco(found.r1, found.r2).value == pytest.approx(theirs, rel=1e-6)
    for keep, discard in ((1.0, 0.0), (0.9, 0.1)):
        theirs = skdim.id.TwoNN(discard_fraction=discard, method="mle").fit(rows.numpy()).dimension_
        assert censored(found.r1, found.r2, keep=keep).value == pytest.approx(theirs, rel=1e-6)
    theirs = skdim.id.TwoNN(discard_fraction=0, method="mle").fit(rows.numpy()).dimension_
    assert mle(found.r1, found.r2).value == pytest.approx(theirs, rel=1e-6)


# --- invariants


ratios = st.lists(st.floats(1.001, 50), min_size=3, max_size=30)


@given(mu=ratios, scale=st.floats(1e-6, 1e6))
def test_a_change_of_units_changes_only_the_scale_and_order_nothing(mu, scale):
    r1, r2 = pairs(mu)
    for estimator in ESTIMATORS:
        one, other = estimator(r1, r2), estimator(r1 * scale, r2 * scale)
        assert other.value == pytest.approx(one.value, rel=1e-6)
        assert other.scale == pytest.approx(one.scale * scale, rel=1e-6)
        assert estimator(*pairs(mu[::-1])).value == pytest.approx(one.value, rel=1e-9)


@given(mu=ratios)
def test_the_mle_is_the_harmonic_mean_of_lid_at_two_neighbours(mu):
    r1, r2 = pairs(mu)
    n = len(mu)
    harmonic = lid_harmonic(torch.stack([r1, r2], dim=1), k=2).value
    assert mle(r1, r2).value == pytest.approx(harmonic * (n - 1) / n, rel=1e-9)


# --- known manifolds, n = 5,000: the mean of three seeds within three standard errors of one run

KNOWN = {
    "swiss roll": (swiss_roll, 1.97),
    "cube 2": (partial(cube, d=2), 2.00),
    "cube 5": (partial(cube, d=5), 4.68),
    "cube 10": (partial(cube, d=10), 8.91),
    "cube 20": (partial(cube, d=20), 16.0),
    "gaussian 5": (partial(gaussian, d=5), 5.23),
    "gaussian 10": (partial(gaussian, d=10), 9.71),
    "gaussian 50": (partial(gaussian, d=50), 33.2),
    "sphere 5": (partial(sphere, d=5), 5.15),
    "sphere 10": (partial(sphere, d=10), 9.58),
    "torus 2": (partial(torus, d=2), 1.995),
    "torus 5": (partial(torus, d=5), 5.08),
}


@pytest.mark.parametrize(("make", "dimension"), KNOWN.values(), ids=KNOWN)
def test_known_manifolds(make, dimension, read):
    mean = sum(read(make(5000, seed=seed)) for seed in range(3)) / 3
    assert mean == pytest.approx(dimension, rel=3 / math.sqrt(5000))


# --- duplicates, ties, outliers, too few rows: never NaN, never a silent number


@pytest.mark.parametrize(("copies", "dropped"), [(1, 40), (2, 60)])
def test_duplicates_are_counted_and_named_and_deduplication_restores_the_answer(copies, dropped):
    clean = gaussian(500, 5, seed=0)
    table = torch.cat([clean] + copies * [clean[:20]])
    for estimator in ESTIMATORS:
        found = estimator(*by_brute_force(table).T)
        assert found.n_zero_distance == dropped
        assert found.n == len(table) - dropped
        assert f"{dropped} pairs with r1 = 0 dropped" in found.note
        assert math.isfinite(found.value)
    first = earliest(table)
    unique = table[first == torch.arange(len(table))]
    restored, wanted = mle(*by_brute_force(unique).T), mle(*by_brute_force(clean).T)
    assert restored.value == pytest.approx(wanted.value, abs=1e-12)
    assert restored.n_zero_distance == 0


def test_ties_are_kept_as_zero_and_named():
    found = mle(torch.tensor([1.0, 1.0, 2.0]), torch.tensor([1.0, 2.0, 4.0]))
    assert found.n_ties == 1
    assert found.n == 3
    assert found.value == pytest.approx(2 / (2 * math.log(2)))
    assert "1 ties r1 = r2 kept as m = 0" in found.note


@pytest.mark.parametrize(
    ("r1", "r2", "says"),
    [
        ([1.0] * 5, [1.0] * 5, r"0 have r1 = 0 and 5 have r1 = r2.*3 distinct rows"),
        ([0.0, 0.0], [1.0, 1.0], "2 have r1 = 0.* Distances below 1e-162 beside much longer rows"),
    ],
)
def test_only_ties_or_zeros_have_no_dimension(r1, r2, says):
    with pytest.raises(TableError, match=says):
        mle(torch.tensor(r1), torch.tensor(r2))


def test_a_median_among_ties_says_so():
    with pytest.raises(TableError, match="3 of 5 pairs are ties: the median ratio is 1"):
        median(torch.ones(5), torch.tensor([1.0, 1.0, 1.0, 2.0, 3.0]))


@pytest.mark.parametrize(
    ("r1", "r2"),
    [
        ([1.0, 2.0, 1.0], [2.0, 1.0, 2.0]),
        ([1.0, math.nan, 1.0], [2.0, 2.0, 2.0]),
        ([1.0, -1.0, 1.0], [2.0, 2.0, 2.0]),
        ([1.0, 1.0, 1.0], [2.0, math.inf, 2.0]),
    ],
)
def test_pairs_that_are_no_distances_are_named(r1, r2):
    with pytest.raises(TableError, match=r"1 pairs aren't 0 <= r1 <= r2 < inf \(at 1;"):
        mle(torch.tensor(r1), torch.tensor(r2))


def test_lengths_that_differ_are_named():
    with pytest.raises(TableError, match=r"not shapes \(3,\) and \(2,\)"):
        inspect.unwrap(mle)(torch.ones(3), torch.ones(2))  # as outside the checked test run


@pytest.mark.parametrize("keep", [0.0, 1.5, -1.0])
def test_keep_is_a_fraction(keep):
    for estimator in (facco, censored):
        with pytest.raises(ParameterError, match=r"isn't a fraction in \(0, 1\]"):
            estimator(*pairs(MU), keep=keep)


def test_one_far_outlier_moves_nothing():
    roll = torch.cat([swiss_roll(300, 0), torch.zeros(300, 1, dtype=torch.float64)], dim=1)
    table = torch.cat([roll, 10 * sphere(300, 3, 1)])
    outlier = torch.cat([table, torch.tensor([[1000.0, 0, 0, 0]], dtype=torch.float64)])
    for estimator in ESTIMATORS:
        one, other = (estimator(*by_brute_force(t).T).value for t in (table, outlier))
        assert other == pytest.approx(one, rel=0.01)


def test_a_dimension_too_large_for_the_sample_is_flagged():
    direction = sphere(512, 49, seed=0)
    ball = direction * cube(512, 1, seed=1) ** (1 / 50)
    for estimator in ESTIMATORS:
        found = estimator(*by_brute_force(ball).T)
        assert limit(512) < found.value < 50
        assert "not identifiable from n = 512" in found.note
    assert "not identifiable" not in mle(*by_brute_force(cube(512, 2, 0)).T).note


def test_the_errors_of_a_hand_worked_table():
    """m = 1 and 3: d = 1/4, and the sd of m over its mean is sqrt(2)/2, so se = d/2."""
    value = mle(torch.ones(2), torch.tensor([1.0, 3.0], dtype=torch.float64).exp())
    assert value.value == pytest.approx(1 / 4, rel=1e-12)
    assert value.se == pytest.approx(1 / 8, rel=1e-12)
    m = torch.arange(1.0, 101.0, dtype=torch.float64)
    kept = censored(torch.ones(100), m.exp(), keep=0.49)
    assert kept.se == pytest.approx(kept.value / math.sqrt(49), rel=1e-12)  # 49 are looked at


# --- local dimension


def test_pointwise_agreement_with_scikit_dimension():
    rows = gaussian(400, 6, seed=0)
    found = nearest(rows, 20)
    theirs = skdim.id.MLE().fit(rows.numpy(), n_neighbors=20)
    assert torch.allclose(lid(found.distances), torch.tensor(theirs.dimension_pw_), rtol=1e-6)
    assert lid_harmonic(found.distances).value == pytest.approx(theirs.dimension_, rel=1e-6)


def test_the_tail_at_two_neighbours_is_pareto(poisson):
    d, n = 12.0, 40000
    local = lid(poisson(n, d, 2, seed=0), k=2)
    for t in (5.0, 12.0, 50.0, 500.0):
        expected = -math.expm1(-d / t)
        seen = float((local > t).double().mean())
        assert seen == pytest.approx(expected, abs=4 * math.sqrt(expected / n))
        assert lid_null(d, 2).sf(t) == pytest.approx(expected, rel=1e-12)
    assert math.isinf(lid_null(d, 2).mean())


def test_the_law_at_twenty_neighbours(poisson):
    local = lid(poisson(5000, 12.0, 20, seed=1), k=20)
    assert stats.kstest(local.numpy(), lid_null(12.0, 20).cdf).pvalue > 0.01
    null = lid_null(12.0, 20)
    assert null.ppf(0.99) / null.median() == pytest.approx(1.80, abs=0.005)
    assert float(local.quantile(0.99) / local.median()) == pytest.approx(1.80, rel=0.05)


def test_harmonic_mean_reads_d_with_its_error(poisson):
    r = poisson(200 * 100, 8.0, 20, seed=2).reshape(200, 100, 20)
    found = [lid_harmonic(one) for one in r]
    values = torch.tensor([e.value for e in found])
    assert float(values.mean()) == pytest.approx(8.0, rel=0.01)
    assert sum(e.se for e in found) / 200 == pytest.approx(float(values.std()), rel=0.15)


def test_a_neighbour_at_zero_is_named_or_dropped_and_counted():
    r = torch.tensor([[0.0, 1.0, 2.0], [1.0, 2.0, 4.0], [1.0, 1.0, 4.0]])
    with pytest.raises(TableError, match=r"1 rows have a neighbour at distance 0 \(at 0\)"):
        lid(r, k=3)
    found = lid_harmonic(r, k=3)
    assert (found.n, found.n_zero_distance) == (2, 1)
    assert "1 pairs with r1 = 0 dropped" in found.note


def test_neighbours_at_one_distance_are_named_or_counted():
    r = torch.tensor([[1.0, 2.0], [3.0, 3.0], [1.0, 4.0]])
    with pytest.raises(TableError, match=r"all 2 neighbours at one distance \(at 1\)"):
        lid(r, k=2)
    found = lid_harmonic(r, k=2)
    assert found.n_ties == 1
    assert found.value == pytest.approx(3 / math.log(8))
    with pytest.raises(TableError, match="4 have r1 = r2"):
        lid_harmonic(torch.ones(4, 3), k=3)


@pytest.mark.parametrize("k", [1, 4])
def test_k_lies_within_the_neighbours_found(k):
    with pytest.raises(ParameterError, match=f"k = {k} needs 2 <= k <= 3"):
        lid(torch.ones(2, 3), k=k)
