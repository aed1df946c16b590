"""Board statistics: exact cases, their nulls, and the artefacts that a null has to catch."""

import itertools
import math

import chess
import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import spearmanr
from tests.curvature.draws import normal, random_points

from tokenspace.curvature import chess as cc
from tokenspace.curvature.chess.games import VALUES
from tokenspace.curvature.chess.statistics import (
    RANK,
    by_piece,
    coupling_test,
    purity,
    square_permutations,
)
from tokenspace.curvature.connection import curvature
from tokenspace.errors import ParameterError

KING = cc.king_distance()


def gram(x):
    return cc.cosines(x @ x.T)


def test_s8xs8_keeps_files_and_ranks_whole_and_s64_does_not():
    for group, whole in [("S8xS8", True), ("S64", False)]:
        moved = square_permutations(1, 0, group)[0]
        assert sorted(moved) == list(range(64))
        kept = (RANK[moved][:, None] == RANK[moved]) == (RANK[:, None] == RANK)
        assert bool(kept.all()) is whole
    with pytest.raises(ParameterError, match="No group 'S9'"):
        square_permutations(1, 0, "S9")


@pytest.mark.parametrize("unknown", [[], [5, 30]])
def test_mantel_is_the_correlation_of_ranks_over_pairs_and_so_is_its_null(unknown):
    """Squares that never came up are left out, whichever squares they are after a permutation."""
    x = gram(np.random.default_rng(0).normal(size=(64, 5)))
    x[unknown], x[:, unknown] = np.nan, np.nan
    pairs = [p for p in itertools.combinations(range(64), 2) if not set(p) & set(unknown)]

    def expected(distance):
        both = zip(*[(x[i, j], distance[i, j]) for i, j in pairs], strict=True)
        return spearmanr(*both).statistic

    assert cc.mantel(x, KING) == pytest.approx(expected(KING))
    for group in ("S8xS8", "S64"):
        found = cc.mantel_test(x, KING, 5, 3, group)
        moved = square_permutations(5, 3, group)
        assert found.value == pytest.approx(expected(KING))
        np.testing.assert_allclose(found.null, [expected(KING[np.ix_(p, p)]) for p in moved])


def test_p_counts_the_statistic_itself_and_both_sides():
    null = [-1.0, 0.0, 1.0]
    assert cc.permutation_test(9.0, null).p == cc.permutation_test(-9.0, null).p == 0.25
    assert cc.permutation_test(0.0, [0.0] * 9).p == 1


def test_purity_is_that_of_average_linkage():
    """Squares in a chain, by hand: single linkage would join what a chain joins."""
    place = np.array([0.0, 1.0, 2.1, 3.3, 4.6])  # each step longer than the last
    near = np.full((64, 64), np.nan)
    near[:5, :5] = 1 - np.abs(place[:, None] - place) / 10
    region = np.zeros(64, int)
    region[[2, 3, 4]] = 1
    # average: {0, 1}, {2, 3}, then {2, 3, 4} at 1.9 before {0, 1, 2, 3} at 2.2; single: that one
    assert purity(near, region) == 1


@given(st.lists(st.floats(0, 1), min_size=1, max_size=8), st.floats(0.001, 0.2))
def test_holm_rejects_what_its_steps_reject(p, alpha):
    """The procedure itself: smallest first, against α over the number of tests left."""
    rejected, left = set(), len(p)
    for i in np.argsort(p, kind="stable"):
        if p[i] * left > alpha:
            break
        rejected.add(int(i))
        left -= 1
    adjusted = cc.holm(np.array(p))
    assert {i for i in range(len(p)) if adjusted[i] <= alpha} == rejected
    assert (adjusted >= np.array(p)).all()


@given(st.integers(2, 6), st.integers(0, 1000))
@settings(max_examples=30)
def test_whole_games_are_exchanged(games, seed):
    length = np.random.default_rng(seed).integers(1, 5, games)
    game = torch.arange(games).repeat_interleave(torch.from_numpy(length))
    place = torch.cat([torch.arange(n) for n in length])
    for rows, partners in cc.exchanged_games(game, place, 2, seed):
        assert torch.equal(place[rows], place[partners])
        pairs = set(zip(game[rows].tolist(), game[partners].tolist(), strict=True))
        assert len(pairs) == len({g for g, _ in pairs}) == len({g for _, g in pairs})
        assert all(g != other for g, other in pairs)


def test_the_rotated_cosine_is_that_of_the_vectors_rw():
    R, world = curvature(random_points(3, 9)), normal(5, 9, seed=1)
    turned = [(R.dense() @ w) for w in world]
    pairs = [
        torch.nn.functional.cosine_similarity(x, y, dim=-1).abs()
        for x, y in itertools.combinations(turned, 2)
    ]
    torch.testing.assert_close(cc.rotated_cosine(R.plane(), world), torch.stack(pairs).mean(0))


def test_kappa_of_random_planes_is_two_over_n():
    found = cc.kappa(cc.random_planes(2000, 24, 0), normal(20, 24, seed=1))
    assert float(found.mean()) == pytest.approx(2 / 24, rel=0.03)
    assert float(found.max()) <= 1


def planes_and_world(seed, strength, games=12, plies=20, n=24):
    """Planes that lean by `strength` towards the world vectors of their two squares."""
    generator = torch.Generator().manual_seed(seed)
    N = games * plies
    top = torch.stack([torch.randperm(64, generator=generator)[:2] for _ in range(N)])
    world = normal(64, n, seed=seed)
    pair = strength * world[top] + normal(N, 2, n, seed=seed + 1)
    plane = torch.linalg.qr(pair.mT).Q.mT
    game, place = torch.arange(N) // plies, torch.arange(N) % plies
    on_square = cc.by_square(cc.kappa(plane, world), torch.arange(64))
    return on_square, top, game, place


@pytest.mark.parametrize("seed", range(3))
def test_coupling_is_found_where_it_is(seed):
    on_square, top, game, place = planes_and_world(seed, strength=2.0)
    assert cc.coupling_ratio(on_square, top) > 2.5
    for found in (
        coupling_test(on_square, top, draws=39, seed=seed),
        cc.coupling_over_games(on_square, top, game, place, draws=39, seed=seed),
    ):
        assert found.value > found.null.max()
        assert found.p == pytest.approx(1 / 40)


def test_the_null_of_squares_permutes_squares_and_not_points():
    """One point whose two squares stand out: of 2,016 pairs of squares only its own is as high."""
    on_square = torch.ones(1, 64).double()
    on_square[0, [10, 20]] = 9.0
    found = coupling_test(on_square, torch.tensor([[10, 20]]), 99, 0, "S64")
    expected = [
        cc.coupling_ratio(on_square, torch.from_numpy(p)[torch.tensor([[10, 20]])])
        for p in square_permutations(99, 0, "S64")
    ]
    np.testing.assert_allclose(found.null, expected)
    assert found.p < 0.05


def test_what_cannot_be_counted_is_said():
    with pytest.raises(ParameterError, match="read more games"):
        next(cc.exchanged_games(torch.zeros(3).long(), torch.arange(3), 1, 0))
    with pytest.raises(ParameterError, match="1 of 2 points have a token that is no square"):
        cc.coupling_ratio(torch.ones(2, 64).double(), torch.tensor([[1, 64], [2, 3]]))
    world = normal(3, 5)
    world[1] = 0
    for statistic in (cc.kappa, cc.rotated_cosine):
        with pytest.raises(ParameterError, match="1 of 3 world vectors are 0"):
            statistic(cc.random_planes(2, 5, 0), world)


def pieces(seed, strength, games=20, plies=15):
    """κ that grows with the value of a piece where its fact holds, by `strength`."""
    generator = torch.Generator().manual_seed(seed)
    kind = torch.arange(60) % 6 + 1
    N = games * plies
    holds = torch.rand(N, 60, generator=generator) < 0.3
    value = torch.tensor([VALUES[k] for k in kind.tolist()]).double()
    kappa = torch.rand(N, 60, generator=generator).double() * (1 + strength * value * holds)
    return kappa, holds, kind, torch.arange(N) // plies, torch.arange(N) % plies


def test_the_value_of_pieces_is_found_where_it_is():
    found = by_piece(*pieces(0, 0.2), draws=39, seed=0)
    assert found["piece value"].value > 0.6
    assert found["piece value"].value > found["piece value"].null.max()
    ratios = [found[chess.piece_name(k)].value for k in (1, 3, 4, 5)]
    assert ratios == sorted(ratios)
    assert found["king"].value == pytest.approx(1, abs=0.1)


def test_a_fact_that_never_holds_takes_no_part():
    kappa, holds, kind, game, place = pieces(1, 0.2)
    holds[:, kind == chess.KNIGHT] = False
    found = by_piece(kappa, holds, kind, game, place, draws=9, seed=0)
    assert math.isnan(found["knight"].value)
    assert found["piece value"].value > 0.6
