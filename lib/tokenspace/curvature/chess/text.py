"""Chess games as text for a language model, and the tokens after which a move's square is named.

In "1. e4 e5 2. Nf3" most tokenizers write a square as two tokens. Where a move's last file has
been written and its rank comes next, the candidates are squares: f3, or f2, or f6.
"""

import re
from collections.abc import Sequence
from typing import NamedTuple

import chess

from tokenspace.curvature.chess.games import replay
from tokenspace.curvature.reader import Reader
from tokenspace.errors import ParameterError

SQUARE = re.compile(r"[a-h][1-8]")


class Naming(NamedTuple):
    """The token `position` after which move `ply` names its square; `before` is its text so far."""

    ply: int
    position: int
    before: str


def movetext(game: chess.Board) -> tuple[str, list[tuple[int, str]]]:
    """A game's moves as PGN writes them, and each move with its place in the text.

    >>> from tokenspace.curvature.chess.games import games_of
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
    >>> from tokenspace.curvature.chess import games_of
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
        squares = list(SQUARE.finditer(san))
        if squares:
            token = holder[place + squares[-1].end() - 1]  # the one that holds the rank
            before = text[place : max(place, spans[token][0])]
            names.append(Naming(ply, token - 1 + first, before))
    return ids if mark is None else [mark, *ids], [name for name in names if name.position >= 0]


def named_square(reader: Reader, before: str, token: int) -> int:
    """The square that a token completes after a move's text so far; -1 if it completes none.

    >>> from tokenspace.curvature import untrained_reader
    >>> chess.square_name(named_square(untrained_reader(["3"]), "Nf", 1))
    'f3'
    """
    written = before + reader.tokenizer.decode([token]).strip()
    found = SQUARE.findall(written)
    return chess.parse_square(found[-1]) if found and len(written) > len(before) else -1


def squares_named(
    reader: Reader, names: Sequence[Naming], top: Sequence[tuple[int, int]]
) -> list[list[int]]:
    """`named_square` of the two candidates at each naming.

    >>> from tokenspace.curvature import untrained_reader
    >>> squares_named(untrained_reader(["3"]), [Naming(0, 0, "f")], [(1, 0)])
    [[21, -1]]
    """
    known: dict[tuple[str, int], int] = {}
    for name, pair in zip(names, top, strict=True):
        for token in pair:
            if (name.before, token) not in known:
                known[name.before, token] = named_square(reader, name.before, token)
    return [[known[n.before, t] for t in pair] for n, pair in zip(names, top, strict=True)]
