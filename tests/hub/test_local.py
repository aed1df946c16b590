"""Local dimension: exact null law, scikit-dimension, and where it isn't defined."""

import math

import pytest
import skdim
import torch
from scipy import stats

from tokenspace.errors import ParameterError, TableError
from tokenspace.hub import gaussian, lid, lid_harmonic, lid_null, nearest


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


def test_nothing_left_to_read():
    with pytest.raises(TableError, match="4 have r1 = r2"):
        lid_harmonic(torch.ones(4, 3), k=3)


@pytest.mark.parametrize("k", [1, 4])
def test_k_lies_within_the_neighbours_found(k):
    with pytest.raises(ParameterError, match=f"k = {k} needs 2 <= k <= 3"):
        lid(torch.ones(2, 3), k=k)
