"""Points with the board that they stand in, and what curvature says of it."""

import pytest
import torch
from tests.curvature.draws import normal, random_points
from tests.curvature.tiny import letter_reader

from tokenspace.curvature.chess.board import BoardPoints, read_board, square_cosines, text_points
from tokenspace.curvature.chess.games import facts, own_squares, random_games, replay
from tokenspace.curvature.chess.model import facts_along
from tokenspace.curvature.chess.probes import fit_probes, held_out, kappa
from tokenspace.curvature.connection import curvature
from tokenspace.curvature.points import assemble
from tokenspace.errors import ParameterError


@pytest.fixture(scope="module")
def letters():
    return letter_reader()


def test_points_carry_the_position_before_their_move(letters):
    games = random_games(3, 2, 20)
    at = text_points(letters, games)
    assert 0 < len(at) <= 60
    before = [[facts(board) for board, _ in replay(game)] for game in games]
    for game, place, holds in zip(at.game.tolist(), at.place.tolist(), at.holds, strict=True):
        assert torch.equal(holds, before[game][place])
    files = at.squares % 8  # the file is written, so that only the rank is open
    assert torch.equal(files[:, 0], files[:, 1])
    some = at[at.game == 1]
    assert set(some.game.tolist()) <= {1}
    assert len(some.points) == len(some)


def test_similarity_is_the_cosine_of_mean_matrices():
    R = curvature(random_points(400, 5))
    label = torch.arange(400) % 63  # one square never comes up
    means = torch.stack([R.dense()[label == square].mean(0) for square in range(64)]).flatten(1)
    expected = torch.cosine_similarity(means[:, None], means[None], dim=-1)
    torch.testing.assert_close(torch.from_numpy(square_cosines(R, label)), expected, equal_nan=True)


def noise(seed, games=24, plies=20, n=40):
    """States and rows of noise at the positions of some games."""
    at = [facts_along(game) for game in random_games(games, seed, plies)]
    holds = torch.cat(at)
    game = torch.cat([torch.full((len(some),), i) for i, some in enumerate(at)])
    place = torch.cat([torch.arange(len(some)) for some in at])
    h, v1, v2 = normal(3, len(holds), n, seed=seed)
    half, ids = torch.full((len(holds),), 0.4).double(), torch.arange(len(holds))
    points = assemble(h, v1, v2, (half, half), (ids, ids))
    squares = torch.stack([ids % 64, (ids + 1) % 64], dim=1)
    return BoardPoints(points, game, place, holds, squares, ids)


def test_world_vectors_are_fitted_on_games_whose_curvature_is_not_read():
    """Of states that are noise, κ is that of any plane: 2/n. Fitted on the same states it is more,
    since a world vector leans towards the states that it was fitted on."""
    at = noise(0)
    reading, fit = read_board(at, least=20), at[~held_out(at.game, 0.5, 0)]
    assert set(reading.held.game.tolist()).isdisjoint(fit.game.tolist())
    expected = fit_probes(fit.points.z, fit.holds[:, reading.fact]).world
    torch.testing.assert_close(reading.world, expected)
    own = fit_probes(reading.held.points.z, own_squares(reading.held.holds)).world
    leaked = kappa(curvature(reading.held.points).plane(), own[own.norm(dim=1) > 0])
    assert float(reading.on_square.nanmean()) < float(leaked.mean())
    assert float(reading.kappa.mean()) == pytest.approx(2 / 40, rel=0.15)


def test_too_few_games_are_said(letters):
    at = text_points(letters, random_games(3, 2, 10))
    with pytest.raises(ParameterError, match=r"No fact holds at 500 of the .* read more games"):
        read_board(at, least=500)
