"""Chess games: positions and the facts that probes look for, and games as text for a model.

A game is a `chess.Board` at its end, with the moves that led there on its stack. Squares are
numbered as in the `chess` library: a1 = 0, b1 = 1, ..., h8 = 63. In "1. e4 e5 2. Nf3" most
tokenizers write a square as two tokens. Where a move's last file has been written and its rank
comes next, the candidates are squares: f3, or f2, or f6.
"""

import io
import math
import random
import re
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import NamedTuple

import chess
import chess.pgn
import torch
from jaxtyping import Bool
from torch import Tensor

from tokenspace.curvature.reader import Reader
from tokenspace.errors import ParameterError, SourceError

SQUARE_NAME = re.compile(r"[a-h][1-8]")
NONE = -1  # the square of a token that names none
# from pawn to king, in pawns; a king is never exchanged
VALUES = dict(zip(chess.PIECE_TYPES, (1.0, 3.0, 3.0, 5.0, 9.0, 0.0), strict=True))


class Fact(NamedTuple):
    """A piece on a square; the one fact without a piece is that White is to move."""

    piece: chess.Piece | None
    square: int


# 12 · 64 pieces on squares, less the 32 pawns on ranks 1 and 8, make 736. Modenbach
# (arXiv:2605.04899) has 737 probes and the text that could be read doesn't list them; the side
# to move as the last one is our reconstruction.
FACTS = (
    *(
        Fact(chess.Piece(kind, colour), square)
        for colour, kind, square in product(chess.COLORS, chess.PIECE_TYPES, chess.SQUARES)
        if kind != chess.PAWN or 0 < chess.square_rank(square) < 7
    ),
    Fact(None, -1),
)
_NUMBER = {(fact.piece, fact.square): i for i, fact in enumerate(FACTS)}


def facts(board: chess.Board) -> Bool[Tensor, " F"]:
    """Which of the 737 `FACTS` hold on a board. Raises ParameterError for a pawn on its end ranks.

    >>> int(facts(chess.Board()).sum())  # 32 pieces, and White to move
    33
    """
    here = [_NUMBER.get((piece, square)) for square, piece in board.piece_map().items()]
    if None in here:
        _check(board, f"The board {board.fen()!r}")
    held = torch.zeros(len(FACTS), dtype=torch.bool)
    held[torch.tensor(here, dtype=torch.int64)] = True
    held[-1] = board.turn == chess.WHITE
    return held


def own_squares(holds: Bool[Tensor, "N F"]) -> Bool[Tensor, "N 64"]:
    """Squares with a piece of the side to move, from the facts: what a choice of square asks.

    A fact has a colour and a choice has none, so a state may tell this where it tells no fact.

    >>> own_squares(facts(chess.Board())[None])[0].nonzero().flatten().tolist() == [*range(16)]
    True
    """
    white = torch.tensor([fact.piece is not None and fact.piece.color for fact in FACTS[:-1]])
    square = torch.tensor([fact.square for fact in FACTS[:-1]])
    own = holds[:, :-1] & (white == holds[:, -1:])  # (N, F - 1): the last fact is White to move
    return own.float() @ torch.nn.functional.one_hot(square, 64).float() > 0  # (N, 64)


def _check(board: chess.Board, what: str) -> None:
    names = [status.name or "" for status in board.status()]
    if names:
        raise ParameterError(f"{what} is no chess position: {', '.join(names)}.")


def games_of(pgn: str) -> list[chess.Board]:
    """The main lines of all games in a PGN text.

    Raises ParameterError, with the game's number, for a move that can't be read or isn't legal,
    for a start that is no chess position, for a variant of chess and for a game without moves.

    >>> games_of("1. e4 e5 2. Nf3 *")[0].peek().uci()
    'g1f3'
    """
    stream = io.StringIO(pgn)
    found: list[chess.Board] = []
    while (game := chess.pgn.read_game(stream)) is not None:
        found.append(_game(game, f"Game {len(found) + 1} of the PGN"))
    if not found:
        raise ParameterError("The PGN holds no game.")
    return found


def load_games(path: Path) -> list[chess.Board]:
    """`games_of` a file. Raises SourceError when it can't be read as text."""
    try:
        return games_of(path.read_text("utf-8-sig"))
    except (OSError, UnicodeDecodeError) as error:
        raise SourceError(
            f"The games of {path} can't be read: {error}. Give a PGN file."
        ) from error


def _game(game: chess.pgn.Game, what: str) -> chess.Board:
    if game.errors:
        raise ParameterError(f"{what} can't be followed: {game.errors[0]}")
    board = game.board()
    if board.uci_variant != "chess":
        raise ParameterError(f"{what} is {board.uci_variant}: only chess itself is read.")
    _check(board, f"The start of {what[0].lower()}{what[1:]}")
    for move in game.mainline_moves():
        if not board.is_legal(move):  # a null move, which PGN can write
            raise ParameterError(f"{what}: {move.uci()} isn't legal at {board.fen()}")
        board.push(move)
    if not board.move_stack:
        raise ParameterError(f"{what} has no moves, so nothing is read from it.")
    return board


def _gain(board: chess.Board, move: chess.Move) -> float:
    taken, own = board.piece_type_at(move.to_square), board.piece_type_at(move.from_square)
    at_risk = board.is_attacked_by(not board.turn, move.to_square)
    return VALUES.get(taken or 0, 0.0) - (VALUES.get(own or 0, 0.0) if at_risk else 0.0)


def random_games(count: int, seed: int, plies: int, greed: float = 0.0) -> list[chess.Board]:
    """Legal games of at most `plies` half-moves, drawn move by move; pawns become queens.

    A move's weight is exp(greed · gain), where the gain (in pawns) is what it takes less what can
    be taken back: 0 draws uniformly, 1 makes games look a little more like real ones. Each game
    has a seed of its own, so that fewer of them are the first of more.

    >>> random_games(2, 0, 8)[0] == random_games(1, 0, 8)[0]
    True
    """
    games = [chess.Board() for _ in range(count)]
    for i, board in enumerate(games):
        generator = random.Random(f"{seed}/{i}")
        while board.ply() < plies and not board.is_game_over():
            moves = [m for m in board.legal_moves if m.promotion in (None, chess.QUEEN)]
            weights = [math.exp(greed * _gain(board, m)) for m in moves] if greed else None
            board.push(generator.choices(moves, weights)[0])
    return games


def replay(game: chess.Board) -> Iterator[tuple[chess.Board, chess.Move]]:
    """Each move of a game with the board before it. The board is one object, moved on.

    >>> [move.uci() for _, move in replay(games_of("1. e4 e5 *")[0])]
    ['e2e4', 'e7e5']
    """
    board = game.root()
    for move in game.move_stack:
        yield board, move
        board.push(move)


class Naming(NamedTuple):
    """The token `position` after which move `ply` names its square; `before` is its text so far."""

    ply: int
    position: int
    before: str


def movetext(game: chess.Board) -> tuple[str, list[tuple[int, str]]]:
    """A game's moves as PGN writes them, and each move with its place in the text.

    >>> movetext(games_of("1. e4 e5 2. Nf3 *")[0])
    ('1. e4 e5 2. Nf3', [(3, 'e4'), (6, 'e5'), (12, 'Nf3')])
    """
    text, moves = "", []
    for board, move in replay(game):
        text += (" " if text else "") + (f"{board.fullmove_number}. " if board.turn else "")
        moves.append((len(text), board.san(move)))
        text += moves[-1][1]
    return text, moves


def encode_game(reader: Reader, game: chess.Board) -> tuple[list[int], list[Naming]]:
    """Token ids of a game's text, with a BOS if there is one, and where its squares are named.

    Castling names no square. Raises ParameterError for a tokenizer that doesn't give the text
    back.

    >>> from tokenspace.curvature import untrained_reader
    >>> reader = untrained_reader(["1. e4 e5"])
    >>> encode_game(reader, games_of("1. e4 e5 *")[0])[1][1]
    Naming(ply=1, position=3, before='')
    """
    text, moves = movetext(game)
    found = reader.tokenizer(text, add_special_tokens=False, return_offsets_mapping=True)
    ids, spans = list(found["input_ids"]), found["offset_mapping"]
    back = reader.tokenizer.decode(ids, clean_up_tokenization_spaces=False)
    if "".join(back.split()) != "".join(text.split()):
        raise ParameterError(
            f"This tokenizer can't write chess: {text[:30]!r} comes back as {back[:30]!r}. Take a "
            "model whose tokens spell any text."
        )
    mark = reader.tokenizer.bos_token_id
    first = 0 if mark is None else 1
    holder = {place: i for i, (start, end) in enumerate(spans) for place in range(start, end)}
    names = []
    for ply, (place, san) in enumerate(moves):
        squares = list(SQUARE_NAME.finditer(san))
        if squares:
            token = holder[place + squares[-1].end() - 1]  # the one that holds the rank
            before = text[place : max(place, spans[token][0])]
            names.append(Naming(ply, token - 1 + first, before))
    return ids if mark is None else [mark, *ids], [name for name in names if name.position >= 0]


def named_square(reader: Reader, before: str, token: int) -> int:
    """The square that a token completes after a move's text so far; `NONE` if it completes none.

    >>> from tokenspace.curvature import untrained_reader
    >>> chess.square_name(named_square(untrained_reader(["3"]), "Nf", 1))
    'f3'
    """
    written = before + reader.tokenizer.decode([token]).strip()
    found = SQUARE_NAME.findall(written)
    return chess.parse_square(found[-1]) if found and len(written) > len(before) else NONE
