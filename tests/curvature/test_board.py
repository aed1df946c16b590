"""Points with the board that they stand in, and what curvature says of it."""

import pytest
import torch
from tests.curvature.draws import random_points
from tests.curvature.tiny import letter_gpt2, letter_llama, letter_reader

from tokenspace.curvature.chess.board import board_tests, read_board, square_cosines, text_points
from tokenspace.curvature.chess.games import facts, random_games, replay
from tokenspace.curvature.connection import curvature
from tokenspace.errors import ParameterError


@pytest.fixture(scope="module", params=[letter_llama, letter_gpt2])
def letters(request):
    return letter_reader(request.param)


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


def test_means_by_matrix_and_by_pairs_agree():
    R = curvature(random_points(400, 5))
    label = torch.arange(400) % 63  # one square never comes up
    found = square_cosines(R, label)
    expected = cosines(R.gram_of_means(label, 64).numpy())
    torch.testing.assert_close(*map(torch.from_numpy, (found, expected)), equal_nan=True)


def test_few_points_are_read_by_pairs():
    R: Curvature = curvature(random_points(70, 5))
    assert square_cosines(R, torch.arange(70) % 64).shape == (64, 64)


def test_too_few_games_are_said(letters):
    at = text_points(letters, random_games(3, 2, 10))
    with pytest.raises(ParameterError, match=r"No fact holds at 500 of the .* read more games"):
        read_board(at, least=500)
