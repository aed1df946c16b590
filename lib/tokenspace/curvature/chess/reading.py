"""What a model's curvature says about the board: one set of readouts for every kind of model.

World vectors are fitted on one half of the games, and held against the curvature of the other:
a probe leans towards the states that it was fitted on, and the curvature's plane contains some of
its own state.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch
from jaxtyping import Float64, Int64
from torch import Tensor

from tokenspace.curvature.chess.board import (
    PermutationTest,
    king_distance,
    mantel_test,
    purity_test,
    quadrants,
)
from tokenspace.curvature.chess.coupling import (
    by_piece,
    by_square,
    coupling_over_games,
    coupling_test,
    kappa,
)
from tokenspace.curvature.chess.games import FACTS, own_squares
from tokenspace.curvature.chess.points import BoardPoints, square_cosines
from tokenspace.curvature.chess.probes import fit_probes, held_out, varied
from tokenspace.curvature.connection import Curvature, curvature
from tokenspace.errors import ParameterError

KIND = torch.tensor([0 if fact.piece is None else fact.piece.piece_type for fact in FACTS])
SQUARE = torch.tensor([fact.square for fact in FACTS])


@dataclass(frozen=True)
class BoardReading:
    """Curvature of all points; of the held-out half, κ with the facts and with the squares.

    `label` is each point's likeliest square; `on_square` is κ with the
    world vector of "a piece of the side to move stands here"; `fact` numbers the `FACTS` that
    have a world vector, of which `kappa` is the κ.
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

    >>> from tokenspace.curvature import reader_of
    >>> from tokenspace.curvature.chess import ChessRecipe, random_games, untrained_chess
    >>> from tokenspace.curvature.chess import square_points
    >>> reader = reader_of(untrained_chess(ChessRecipe(width=16, layers=1)))
    >>> read_board(square_points(reader, random_games(4, 0, 12)), least=2).similarity.shape
    (64, 64)
    """
    out = held_out(at.game, 0.5, seed)
    fit, held = at[~out], at[out]
    known = varied(fit.holds, least) & held.holds.any(0) & (KIND > 0)
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
    return BoardReading(
        R,
        at.label,
        held,
        by_square(kappa(plane, squares), square),
        kappa(plane, world),
        fact,
        world,
    )


def board_tests(
    reading: BoardReading, draws: int, seed: int, group: str
) -> dict[str, PermutationTest]:
    """Every statistic against its null: squares permuted within `group`, or whole games exchanged.

    κ is of the facts on a square, a piece each, or of "a piece of the side to move", own.

    >>> from tokenspace.curvature import reader_of
    >>> from tokenspace.curvature.chess import ChessRecipe, random_games, untrained_chess
    >>> from tokenspace.curvature.chess import square_points
    >>> reader = reader_of(untrained_chess(ChessRecipe(width=16, layers=1)))
    >>> board = read_board(square_points(reader, random_games(4, 0, 12)), least=2)
    >>> list(board_tests(board, 9, 0, "S64"))[:2]
    ['distance', 'quadrants']
    """
    held, rule = reading.held, (draws, seed)
    own = (reading.on_square, held.squares)
    facts = (by_square(reading.kappa, SQUARE[reading.fact]), held.squares)
    games = (held.game, held.place)
    pieces = by_piece(reading.kappa, held.holds[:, reading.fact], KIND[reading.fact], *games, *rule)
    return {
        "distance": mantel_test(reading.similarity, king_distance(), *rule, group),
        "quadrants": purity_test(reading.similarity, quadrants(), *rule, group),
        "κ of facts, squares": coupling_test(*facts, *rule, group),
        "κ of facts, games": coupling_over_games(*facts, *games, *rule),
        "κ of own, squares": coupling_test(*own, *rule, group),
        "κ of own, games": coupling_over_games(*own, *games, *rule),
        "piece value": pieces["value"],
        **{name: test for name, test in pieces.items() if name != "value"},
    }
