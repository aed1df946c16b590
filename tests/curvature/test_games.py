"""Games and positions: legal, repeatable, refused by name; and as text that names squares."""

import chess
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.curvature.tiny import letter_reader

from tokenspace.curvature.chess.games import (
    FACTS,
    SQUARE_NAME,
    Fact,
    encode_game,
    facts,
    games_of,
    load_games,
    movetext,
    named_square,
    own_squares,
    random_games,
    replay,
)
from tokenspace.curvature.reader import untrained_reader
from tokenspace.errors import ParameterError, SourceError

NO_KING = "rnb1k1nr/1pp2ppp/8/3p4/5B2/5P2/6P1/4p3 w kq e6 0 1"
TWO_KINGS = "rnbkkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KQkq - 0 1"
IN_CHECK = "8/1k6/8/K7/4Q3/r7/8/8 w - - 0 1"  # Black's king is attacked and White is to move


@pytest.mark.parametrize(
    ("fen", "names"),
    [
        (NO_KING, "NO_WHITE_KING, PAWNS_ON_BACKRANK, INVALID_EP_SQUARE"),
        (TWO_KINGS, "TOO_MANY_KINGS"),
        (IN_CHECK, "OPPOSITE_CHECK"),
    ],
)
def test_a_game_from_a_position_that_cannot_occur_is_refused_by_name(fen, names):
    with pytest.raises(ParameterError, match=rf"start of game 1.* no chess position: .*{names}"):
        games_of(f'[SetUp "1"]\n[FEN "{fen}"]\n\n*')


def test_there_are_737_facts_each_once():
    assert len(FACTS) == len(set(FACTS)) == 737
    assert FACTS[0] == Fact(chess.Piece.from_symbol("P"), chess.A2)
    assert FACTS[-1] == Fact(None, -1)  # White to move


@given(st.integers(0, 10**6))
@settings(max_examples=15, deadline=None)
def test_facts_hold_what_a_fen_writes(seed):
    (board,) = random_games(1, seed, 60)
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
    (game,) = random_games(1, seed, 50, greed)
    assert [game] == random_games(1, seed, 50, greed)
    for board, move in replay(game):
        assert move in board.legal_moves
        assert move.promotion in (None, chess.QUEEN)
        assert board.is_valid()
    assert board.ply() == game.ply() == len(game.move_stack)
    assert game.ply() == 50 or game.is_game_over()


@given(st.integers(0, 10**6), st.integers(0, 60))
@settings(max_examples=15, deadline=None)
def test_own_squares_are_the_movers(seed, plies):
    (board,) = random_games(1, seed, plies)
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
    ],
)
def test_a_pgn_that_is_no_game_is_refused(pgn, message):
    with pytest.raises(ParameterError, match=message):
        games_of(pgn)


def test_games_come_from_a_file(tmp_path):
    path = tmp_path / "games.pgn"
    path.write_text("1. e4 e5 *\n\n1. d4 *\n")
    assert [len(game.move_stack) for game in load_games(path)] == [2, 1]
    path.write_bytes(b"\xef\xbb\xbf1. e4 *")  # with the mark that editors of Windows write
    assert len(load_games(path)) == 1
    path.write_bytes(b"\xff\xfe\xff")
    for bad in (path, tmp_path):
        with pytest.raises(SourceError, match=r"can't be read: .* Give a PGN file"):
            load_games(bad)


@pytest.fixture(scope="module")
def letters():
    return letter_reader()


def test_a_game_can_be_read_back_from_its_text():
    for game in random_games(5, 0, 40, greed=1.0):
        text, moves = movetext(game)
        assert games_of(text)[0].move_stack == game.move_stack
        assert all(text[place:].startswith(san) for place, san in moves)


def test_the_rank_comes_right_after_the_point(letters):
    game = random_games(1, 1, 40, greed=1.0)[0]
    ids, names = encode_game(letters, game)
    _, moves = movetext(game)
    assert ids[0] == letters.tokenizer.bos_token_id
    for name in names:
        place, san = moves[name.ply]
        end = place + list(SQUARE_NAME.finditer(san))[-1].end()
        assert name.position == end - 1  # BOS, then a token for each character
        assert named_square(letters, name.before, ids[name.position + 1]) == (
            game.move_stack[name.ply].to_square
        )


def test_castling_names_no_square(letters):
    game = games_of("1. e4 e5 2. Nf3 Nf6 3. Bc4 Bc5 4. O-O *")[0]
    assert [name.ply for name in encode_game(letters, game)[1]] == list(range(6))


def test_a_candidate_completes_its_square_or_none(letters):
    written = {"Nf3": "f3", "Nbd7": "d7", "R1e2": "e2", "exd8": "d8"}
    for text, square in {**written, "Nf9": None, "Nf+": None, "Nfd": None, "Nf ": None}.items():
        token = letters.tokenizer.convert_tokens_to_ids(text[-1])
        expected = -1 if square is None else chess.parse_square(square)
        assert named_square(letters, text[:-1], token) == expected


def test_a_tokenizer_that_cannot_write_chess_is_refused():
    with pytest.raises(ParameterError, match=r"can't write chess: '1\. e4' comes back as"):
        encode_game(untrained_reader(["hello"]), games_of("1. e4 *")[0])
