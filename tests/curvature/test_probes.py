"""Probes against scikit-learn, on facts that are there, and on facts of other games."""

import numpy as np
import pytest
import torch
from sklearn.linear_model import Ridge
from sklearn.metrics import roc_auc_score
from tests.curvature.draws import normal

from tokenspace.curvature.chess.games import FACTS, random_games
from tokenspace.curvature.chess.model import BOS, facts_along, tokens_of
from tokenspace.curvature.chess.probes import (
    auc,
    bag_of_tokens,
    fit_probes,
    held_out,
    probe_auc,
    varied,
)
from tokenspace.errors import ParameterError

X = normal(200, 5)
Y = normal(200, 3, seed=1) + X[:, :3] > 0.5


def test_the_fit_is_that_of_ridge_regression():
    scale = X.var(0, correction=0).mean()
    oracle = Ridge(alpha=float(0.1 * scale * len(X))).fit(X, Y.double())
    found = fit_probes(X, Y, ridge=0.1)
    np.testing.assert_allclose(found.world, oracle.coef_, atol=1e-10)
    np.testing.assert_allclose(found.score(X), oracle.predict(X), atol=1e-10)


def test_the_area_is_that_of_scikit_learn():
    score = (X[:, :3] * 4).round()  # with ties
    expected = [roc_auc_score(Y[:, i], score[:, i]) for i in range(3)]
    np.testing.assert_allclose(auc(score, Y, torch.zeros(200).long()), expected)


def test_within_a_place_only_its_own_pairs_count():
    place = torch.arange(200) % 4
    score = X[:, :3] + 100.0 * place[:, None]  # what a place adds is no merit
    torch.testing.assert_close(auc(score, Y, place), auc(X[:, :3], Y, place))
    pairs = np.zeros((3, 2))
    for f in range(3):
        for k in range(4):
            yes, no = score[(place == k) & Y[:, f], f], score[(place == k) & ~Y[:, f], f]
            pairs[f] += [(yes[:, None] > no).sum(), len(yes) * len(no)]
    np.testing.assert_allclose(auc(score, Y, place), pairs[:, 0] / pairs[:, 1])


def test_games_are_held_out_whole_and_some_are_left():
    game = torch.arange(40) // 4
    out = held_out(game, 0.3, seed=0)
    assert int(out.sum()) == 12
    assert not set(game[out].tolist()) & set(game[~out].tolist())
    with pytest.raises(ParameterError, match="2 of 2 games held out"):
        held_out(torch.tensor([0, 1]), 0.9, seed=0)


def test_states_that_cannot_be_probed_are_said():
    broken = X.clone()
    broken[3, 1] = torch.nan
    with pytest.raises(ParameterError, match=r"1 states aren't finite \(first: \[3\]\)"):
        fit_probes(broken, Y)
    with pytest.raises(ParameterError, match="200 states are all equal"):
        fit_probes(torch.ones(200, 2), Y)


@pytest.fixture(scope="module")
def positions():
    """Facts, tokens and places of 120 short games."""
    games = random_games(120, 0, 12)
    facts = [facts_along(game) for game in games]
    ids = [tokens_of(game) for game in games]
    game = torch.cat([torch.full((len(row),), i) for i, row in enumerate(ids)])
    place = torch.cat([torch.arange(len(row)) for row in ids])
    return torch.cat(facts), ids, game, place


def hidden(facts, n=96, seed=0):
    """States with the facts in them along random directions, and as much noise."""
    world = normal(len(FACTS), n, seed=seed)
    return facts.double() @ world + normal(len(facts), n, seed=seed + 1)


def test_what_is_in_a_state_is_found_and_the_baseline_finds_less(positions):
    facts, ids, game, place = positions
    found = probe_auc(hidden(facts), facts, game, place)
    baseline = probe_auc(bag_of_tokens(ids, BOS + 1), facts, game, place)
    assert found.nanmean() > 0.9
    assert found.nanmean() > baseline.nanmean() > 0.7  # a square named is a piece moved


@pytest.mark.parametrize("seed", range(3))
def test_facts_of_other_games_are_not_found(positions, seed):
    facts, ids, game, place = positions
    for x in (hidden(facts), bag_of_tokens(ids, BOS + 1)):
        found = probe_auc(x, facts, game, place, seed=seed, exchanged=True)
        assert found.nanmean() == pytest.approx(0.5, abs=0.02)


def test_facts_that_vary_have_world_vectors_and_others_have_none(positions):
    facts, _, _, _ = positions
    length = fit_probes(hidden(facts), facts).world.norm(dim=1)
    assert torch.equal(length > 0, varied(facts, least=1))
    counts = facts[:, varied(facts, least=30)].sum(0)
    assert 30 <= counts.min() <= counts.max() <= len(facts) - 30
