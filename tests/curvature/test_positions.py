"""Games and positions: legal, the same on every run, and refused by name when they can't occur."""

import chess
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tokenspace.curvature.chess.games import (
    FACTS,
    board_of,
    facts,
    games_of,
    load_games,
    own_squares,
    random_game,
    random_games,
    replay,
    status_names,
)
from tokenspace.errors import ParameterError, SourceError

NO_KING = "rnb1k1nr/1pp2ppp/8/3p4/5B2/5P2/6P1/4p3 w kq e6 0 1"
TWO_KINGS = "rnbkkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KQkq - 0 1"
IN_CHECK = "8/1k6/8/K7/4Q3/r7/8/8 w - - 0 1"  # Black's king is attacked and White is to move


@pytest.mark.parametrize(
    ("fen", "names"),
    [
        (NO_KING, ["NO_WHITE_KING", "PAWNS_ON_BACKRANK", "INVALID_EP_SQUARE"]),
        (TWO_KINGS, ["TOO_MANY_KINGS"]),
        (IN_CHECK, ["OPPOSITE_CHECK"]),
    ],
)
def test_a_position_that_cannot_occur_is_refused_by_name(fen, names):
    with pytest.raises(ParameterError, match="is no chess position") as refused:
        board_of(fen)
    assert all(name in str(refused.value) for name in names)


def test_a_start_position_is_valid_and_an_unreadable_fen_is_said():
    assert status_names(board_of(chess.STARTING_FEN)) == []
    with pytest.raises(ParameterError, match="'what' can't be read"):
        board_of("what")


def test_there_are_737_facts_each_once():
    assert len(FACTS) == len(set(map(str, FACTS))) == 737
    assert str(FACTS[0]) == "white pawn on a2"
    assert str(FACTS[-1]) == "white to move"


@given(st.integers(0, 10**6))
@settings(max_examples=15, deadline=None)
def test_facts_hold_what_a_fen_writes(seed):
    board = random_game(seed, 60)
    held = [fact for fact, holds in zip(FACTS, facts(board), strict=True) if holds]
    again = chess.Board(None)
    for fact in held:
        if fact.piece is not None:
            again.set_piece_at(fact.square, fact.piece)
    assert again.board_fen() == board.board_fen()
    assert (held[-1].piece is None) == (board.turn == chess.WHITE)


@given(st.integers(0, 10**6), st.sampled_from([0.0, 1.0]))
@settings(max_examples=15, deadline=None)
def test_random_games_are_legal_and_repeat(seed, greed):
    game = random_game(seed, 50, greed)
    assert game == random_game(seed, 50, greed)
    for board, move in replay(game):
        assert move in board.legal_moves
        assert move.promotion in (None, chess.QUEEN)
        assert status_names(board) == []
    assert board.ply() == game.ply() == len(game.move_stack)
    assert game.ply() == 50 or game.is_game_over()


@given(st.integers(0, 10**6), st.integers(0, 60))
@settings(max_examples=15, deadline=None)
def test_own_squares_are_the_movers(seed, plies):
    board = random_game(seed, plies)
    expected = [bool(board.occupied_co[board.turn] >> square & 1) for square in range(64)]
    assert own_squares(facts(board)[None])[0].tolist() == expected


def test_an_impossible_board_has_no_facts():
    with pytest.raises(ParameterError, match="NO_WHITE_KING, PAWNS_ON_BACKRANK"):
        facts(chess.Board(NO_KING))


def test_other_seeds_give_other_games_and_a_longer_list_begins_the_same():
    few, more = random_games(3, 0, 20), random_games(6, 0, 20)
    assert more[:3] == few
    assert len({game.fen() for game in more + random_games(6, 1, 20)}) == 12


def test_greed_takes_what_is_free():
    def material(games):
        return sum(len(game.piece_map()) for game in games)

    assert material(random_games(10, 0, 40, greed=1.0)) < material(random_games(10, 0, 40))


def test_a_pgn_is_its_moves():
    first, second = games_of('[Event "x"]\n\n1. e4 e5 2. Nf3 (2. f4) *\n\n1. d4 d5 1/2-1/2\n')
    assert [m.uci() for m in first.move_stack] == ["e2e4", "e7e5", "g1f3"]
    assert second.peek().uci() == "d7d5"


@pytest.mark.parametrize(
    ("pgn", "message"),
    [
        ("", "holds no game"),
        ("1. e4 e4 *", "Game 1 of the PGN can't be followed: illegal san: 'e4'"),
        ("1. e4 *\n\n1. e4 Ke6 *", "Game 2 of the PGN can't be followed"),
        ("1. e4 -- 2. d4 *", "Game 1 of the PGN: 0000 isn't legal"),
        ("what is this", "has no moves"),
        ('[Variant "Atomic"]\n\n1. e4 *', "is atomic: only chess itself"),
        (f'[SetUp "1"]\n[FEN "{IN_CHECK}"]\n\n1. Qa4 *', "no chess position: OPPOSITE_CHECK"),
    ],
)
def test_a_pgn_that_is_no_game_is_refused(pgn, message):
    with pytest.raises(ParameterError, match=message):
        games_of(pgn)


def test_games_come_from_a_file(tmp_path):
    path = tmp_path / "games.pgn"
    path.write_text("1. e4 e5 *\n\n1. d4 *\n")
    assert [len(game.move_stack) for game in load_games(path)] == [2, 1]
    path.write_bytes(b"\xff\xfe\xff")
    for bad in (path, tmp_path):
        with pytest.raises(SourceError, match=r"can't be read: .* Give a PGN file"):
            load_games(bad)
