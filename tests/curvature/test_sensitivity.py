"""Divergence after a swap: against brute force and closed forms; ranks against scipy."""

import math

import numpy as np
import pandas as pd
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy.spatial.distance import jensenshannon
from scipy.stats import spearmanr
from tests.curvature.draws import normal
from tests.curvature.tiny import gpt2, llama

from tokenspace import curvature as cv
from tokenspace.curvature import statistics
from tokenspace.curvature.statistics import jensen_shannon, swap_divergence
from tokenspace.errors import ParameterError

IDS = [[1, 2, 3], [4, 5, 6, 7, 4, 8], [2, 5, 5]]


@given(st.integers(0, 100), st.floats(0.1, 30))
def test_divergence_is_scipys_squared_distance(seed, size):
    first, second = size * normal(2, 7, seed=seed)
    expected = jensenshannon(first.softmax(-1), second.softmax(-1)) ** 2
    assert float(jensen_shannon(first, second)) == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize("model", [llama(), gpt2()])
@pytest.mark.parametrize("tokens", [1, 4096])
def test_a_swap_is_the_model_run_twice(model, tokens, monkeypatch):
    monkeypatch.setattr(statistics, "ONE_STEP", tokens)
    found = cv.reader_of(model)
    reading = cv.read(found, IDS)
    got = swap_divergence(found, reading)
    for k in range(len(reading.points)):
        prefix = IDS[reading.text[k]][: int(reading.position[k]) + 1]
        tops = int(reading.points.top1[k]), int(reading.points.top2[k])
        after = [model(torch.tensor([[*prefix, top]])).logits[0, -1].detach() for top in tops]
        assert float(got[k]) == pytest.approx(float(jensen_shannon(*after)), abs=1e-6)


def test_the_table_starts_where_it_is_told_to():
    table = cv.swap_table(cv.reader_of(llama()), IDS, since=[2, 4, 0])
    assert table.text.tolist() == [0, 1, 1, 2, 2, 2]
    assert table.position.tolist() == [2, 4, 5, 0, 1, 2]
    np.testing.assert_allclose(table.expected, table.p1 * table.p2 * table.js)
    p1, p2 = (torch.from_numpy(table[c].to_numpy(copy=True)) for c in ("p1", "p2"))
    np.testing.assert_allclose(table.q, cv.charge(p1, p2))
    assert bool((table["norm at q = 1"] >= table.norm).all())
    model = llama()
    for row in table.itertuples():
        ids = torch.tensor([IDS[row.text][: row.position + 1]])
        first, second = model(ids).logits[0, -1].topk(2).indices
        apart = model.lm_head.weight[first] - model.lm_head.weight[second]
        assert table.at[row.Index, "row distance"] == pytest.approx(apart.norm().item(), rel=1e-5)
    with pytest.raises(ParameterError, match="1 first positions for 3 texts"):
        cv.swap_table(cv.reader_of(llama()), IDS, since=[0])


def test_rank_correlations():
    x, y, z = normal(3, 60).numpy()
    assert cv.rank_correlation(x, y) == pytest.approx(spearmanr(x, y).statistic)
    a, b, c = spearmanr(x, y).statistic, spearmanr(x, z).statistic, spearmanr(y, z).statistic
    partial = (a - b * c) / math.sqrt((1 - b**2) * (1 - c**2))
    assert cv.rank_correlation(x, y, given=z) == pytest.approx(partial)
    assert math.isnan(cv.rank_correlation(x, np.ones(60)))


def test_drawing_texts_again_covers_the_truth_where_drawing_points_would_not():
    """Points of a text share its mean: the interval must be as wide as between texts."""
    inside = 0
    for seed in range(25):
        generator = np.random.default_rng(seed)
        text = np.repeat(np.arange(20), 15)
        x = generator.normal(size=20)[text] + 0.1 * generator.normal(size=300)
        table = pd.DataFrame({"text": text, "x": x})
        _, low, high = cv.interval_over_texts(table, lambda t: t.x.mean(), draws=100, seed=seed)
        inside += low <= 0 <= high
    assert inside >= 19


def test_an_interval_of_many_texts_is_that_of_their_mean():
    x = np.random.default_rng(0).normal(size=60)
    table = pd.DataFrame({"text": np.arange(60), "x": x})
    mean, low, high = cv.interval_over_texts(table, lambda t: t.x.mean(), draws=1500, seed=0)
    half = 1.96 * x.std() / 60**0.5  # of 95 %; of 90 % it would be 16 % less
    assert (high - mean, mean - low) == pytest.approx((half, half), rel=0.1)


def test_chance_is_that_of_independent_points_and_wider_for_points_that_stay_alike():
    generator = np.random.default_rng(0)
    text = np.repeat(np.arange(20), 15)

    def chance(x, y):
        table = pd.DataFrame({"x": x, "y": y})
        rho = lambda t: cv.rank_correlation(t.x.to_numpy(), t.y.to_numpy())  # noqa: E731
        return cv.shift_null(table, rho, "y", draws=250, seed=0)

    alone = chance(generator.normal(size=300), generator.normal(size=300))
    alike = chance(generator.normal(size=20)[text], generator.normal(size=20)[text])
    assert alone == pytest.approx(1.96 / 300**0.5, rel=0.25)
    assert alike > 2 * alone
