"""What a model's curvature says about the board: one set of readouts for every kind of model.

World vectors are fitted on one half of the games, and held against the curvature of the other:
a probe leans towards the states that it was fitted on, and the curvature's plane contains some of
its own state.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache, cached_property, partial

import chess
import numpy as np
import torch
from jaxtyping import Bool, Float64, Int64
from torch import Tensor

from tokenspace.curvature.chess import statistics
from tokenspace.curvature.chess.games import FACTS, NONE, encode_game, named_square, own_squares
from tokenspace.curvature.chess.model import BOS, facts_along, tokens_of
from tokenspace.curvature.chess.probes import fit_probes, held_out, kappa, varied
from tokenspace.curvature.connection import Curvature, curvature
from tokenspace.curvature.points import Points
from tokenspace.curvature.reader import Reader, read
from tokenspace.errors import ParameterError

FACT_KIND = torch.tensor([0 if fact.piece is None else fact.piece.piece_type for fact in FACTS])
FACT_SQUARE = torch.tensor([fact.square for fact in FACTS])


@dataclass(frozen=True)
class BoardPoints:
    """Points on the CPU, each at a `place` of a `game` where some of `FACTS` hold.

    `squares` are those that the two likeliest tokens would name, -1 where a token names none.
    `row` numbers the points among those asked for.
    """

    points: Points
    game: Int64[Tensor, " N"]
    place: Int64[Tensor, " N"]
    holds: Bool[Tensor, "N F"]
    squares: Int64[Tensor, "N 2"]
    row: Int64[Tensor, " N"]

    def __len__(self) -> int:
        return len(self.points)

    @property
    def label(self) -> Int64[Tensor, " N"]:
        """The likeliest square."""
        return self.squares[:, 0]

    def __getitem__(self, rows: Bool[Tensor, " N"] | Int64[Tensor, " K"]) -> "BoardPoints":
        return BoardPoints(**{name: value[rows] for name, value in vars(self).items()})


def text_points(reader: Reader, games: Sequence[chess.Board]) -> BoardPoints:
    """A language model at each move of games in text, where the rank of its square comes next.

    `holds` are the facts before the move. Points where a candidate names no square are left out.
    """
    encoded = [encode_game(reader, game) for game in games]
    names = [name for _, some in encoded for name in some]
    game = torch.tensor([i for i, (_, some) in enumerate(encoded) for _ in some]).long()
    place = torch.tensor([name.ply for name in names]).long()
    at = torch.tensor([name.position for name in names]).long()
    holds = [
        facts_along(game)[[2 * name.ply for name in some]]
        for game, (_, some) in zip(games, encoded, strict=True)
    ]
    square = cache(partial(named_square, reader))  # few texts and tokens come up again and again

    def named(row: int, token: int) -> int:
        return square(names[row].before, token)

    return _chosen(reader, [ids for ids, _ in encoded], game, at, place, torch.cat(holds), named)


def square_points(reader: Reader, games: Sequence[chess.Board]) -> BoardPoints:
    """The small chess model at every token: at an even place it chooses a from square, else a to.

    Points where BOS, which is no square, is a candidate are left out.

    >>> from tokenspace.curvature import reader_of
    >>> from tokenspace.curvature.chess import ChessRecipe, games_of, untrained_chess
    >>> reader = reader_of(untrained_chess(ChessRecipe(width=16, layers=1)))
    >>> square_points(reader, games_of("1. e4 e5 *")).holds.shape
    torch.Size([5, 737])
    """
    ids = [tokens_of(game) for game in games]
    holds = torch.cat([facts_along(game) for game in games])
    game = torch.cat([torch.full((len(row),), i) for i, row in enumerate(ids)])
    place = torch.cat([torch.arange(len(row)) for row in ids])

    def named(row: int, token: int) -> int:
        return NONE if token == BOS else token

    return _chosen(reader, ids, game, place, place, holds, named)


def _chosen(
    reader: Reader,
    ids: Sequence[Sequence[int]],
    game: Int64[Tensor, " K"],
    at: Int64[Tensor, " K"],
    place: Int64[Tensor, " K"],
    holds: Bool[Tensor, "K F"],
    named: Callable[[int, int], int],
) -> BoardPoints:
    """The points at positions `at` of texts where both candidates name a square.

    `named(row, token)` is the square of a token at one of the K positions.
    """
    every = read(reader, ids).points
    every = Points(**{name: value.cpu() for name, value in vars(every).items()})
    wanted = torch.tensor([0, *map(len, ids)]).cumsum(0)[game] + at  # (K,)
    row = torch.isin(wanted, every.kept).nonzero().flatten()  # `wanted` ascends, as `kept` does
    points = every[torch.isin(every.kept, wanted)]
    top = torch.stack([points.top1, points.top2], dim=1).tolist()
    pairs = zip(row.tolist(), top, strict=True)
    squares = torch.tensor([[named(r, token) for token in pair] for r, pair in pairs])
    squares = squares.long().reshape(-1, 2)  # (N, 2), also of none
    found = BoardPoints(points, game[row], place[row], holds[row], squares, row)
    return found[(squares != NONE).all(1)]


def square_cosines(R: Curvature, label: Int64[Tensor, " N"]) -> Float64[np.ndarray, "64 64"]:
    """Cosines of the mean curvatures of each square's points; nan for a square without."""
    return statistics.cosines(R.gram_of_means(label, 64).numpy())


@dataclass(frozen=True)
class BoardReading:
    """Curvature of all points; of the held-out half, κ with the facts and with the squares.

    `label` is each point's likeliest square; `on_square` is κ with the world vector of "a piece of
    the side to move stands here"; `fact` numbers the `FACTS` that have a vector in `world`, of
    which `kappa` is the κ.
    """

    R: Curvature
    label: Int64[Tensor, " M"]
    held: BoardPoints
    on_square: Float64[Tensor, "N 64"]
    kappa: Float64[Tensor, "N K"]
    fact: Int64[Tensor, " K"]
    world: Float64[Tensor, "K n"]

    @cached_property
    def similarity(self) -> Float64[np.ndarray, "64 64"]:
        """Cosines of the mean curvatures by likeliest square."""
        return square_cosines(self.R, self.label)


def read_board(at: BoardPoints, *, least: int = 20, seed: int = 0) -> BoardReading:
    """Curvature, world vectors and κ of a model's points.

    A fact takes part that holds, and fails, at `least` points of the half that probes are fitted
    on. Raises ParameterError when there is none.
    """
    out = held_out(at.game, 0.5, seed)
    fit, held = at[~out], at[out]
    known = varied(fit.holds, least) & held.holds.any(0) & (FACT_KIND > 0)
    fact = known.nonzero().flatten()
    own = own_squares(fit.holds)
    square = varied(own, least).nonzero().flatten()
    if not len(fact) or not len(square):
        raise ParameterError(
            f"No fact holds at {least} of the {len(fit)} points that probes are fitted on, and "
            "fails at as many; read more games."
        )
    R = curvature(at.points)
    plane = R[out].plane()
    world = fit_probes(fit.points.z, fit.holds[:, fact]).world
    squares = fit_probes(fit.points.z, own[:, square]).world
    on_square = statistics.by_square(kappa(plane, squares), square)
    return BoardReading(R, at.label, held, on_square, kappa(plane, world), fact, world)


def board_tests(
    reading: BoardReading, draws: int, seed: int, group: str
) -> dict[str, statistics.PermutationTest]:
    """Every statistic against its null: squares permuted within `group`, or whole games exchanged.

    κ is of the facts on a square, a piece each, or of "a piece of the side to move", own.

    >>> from tokenspace.curvature import reader_of
    >>> from tokenspace.curvature.chess import ChessRecipe, random_games, untrained_chess
    >>> reader = reader_of(untrained_chess(ChessRecipe(width=16, layers=1)))
    >>> board = read_board(square_points(reader, random_games(4, 0, 12)), least=2)
    >>> list(board_tests(board, 9, 0, "S64"))[:2]
    ['distance', 'quadrants']
    """
    held, near, rule = reading.held, reading.similarity, (draws, seed)
    quarters, moved = statistics.quadrants(), statistics.square_permutations(*rule, group)
    purities = (statistics.purity(near, quarters[p]) for p in moved)
    own = (reading.on_square, held.squares)
    facts = (statistics.by_square(reading.kappa, FACT_SQUARE[reading.fact]), held.squares)
    games, fact = (held.game, held.place), reading.fact
    return {
        "distance": statistics.mantel_test(near, statistics.king_distance(), *rule, group),
        "quadrants": statistics.permutation_test(statistics.purity(near, quarters), purities),
        "κ of facts, squares": statistics.coupling_test(*facts, *rule, group),
        "κ of facts, games": statistics.coupling_over_games(*facts, *games, *rule),
        "κ of own, squares": statistics.coupling_test(*own, *rule, group),
        "κ of own, games": statistics.coupling_over_games(*own, *games, *rule),
        **statistics.by_piece(reading.kappa, held.holds[:, fact], FACT_KIND[fact], *games, *rule),
    }
