"""Generation points with the chess position they stand in, of either kind of model."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import chess
import numpy as np
import torch
from jaxtyping import Bool, Float64, Int64
from torch import Tensor

from tokenspace.curvature.chess.board import cosines
from tokenspace.curvature.chess.model import BOS, facts_along, tokens_of
from tokenspace.curvature.chess.text import encode_game, squares_named
from tokenspace.curvature.connection import Curvature
from tokenspace.curvature.generation import read
from tokenspace.curvature.points import Points
from tokenspace.curvature.reader import Reader


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

    >>> from tokenspace.curvature import untrained_reader
    >>> from tokenspace.curvature.chess import games_of
    >>> reader = untrained_reader(["1. e4 e5 2. d4"])
    >>> len(text_points(reader, games_of("1. e4 e5 2. d4 *"))) <= 3
    True
    """
    encoded = [encode_game(reader, game) for game in games]
    names = [name for _, some in encoded for name in some]
    at = [[name.position for name in some] for _, some in encoded]
    holds = [
        facts_along(game)[[2 * name.ply for name in some]]
        for game, (_, some) in zip(games, encoded, strict=True)
    ]
    place = torch.tensor([name.ply for name in names])
    every = _chosen(reader, [ids for ids, _ in encoded], at, torch.cat(holds), place)
    here = [names[row] for row in every.row.tolist()]
    found = squares_named(reader, here, [(a, b) for a, b in every.squares.tolist()])
    return _naming(every, torch.tensor(found).reshape(-1, 2))


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
    at = [list(range(len(row))) for row in ids]
    holds = torch.cat([facts_along(game) for game in games])
    place = torch.cat([torch.arange(len(row)) for row in ids])
    every = _chosen(reader, ids, at, holds, place)
    return _naming(every, torch.where(every.squares == BOS, -1, every.squares))


def square_cosines(R: Curvature, label: Int64[Tensor, " N"]) -> Float64[np.ndarray, "64 64"]:
    """Cosines between the mean curvatures of the points of each square; nan for a square without.

    >>> from tokenspace.curvature import Curvature
    >>> x = torch.eye(3).double()
    >>> R = Curvature(torch.ones(3).double(), x, x[[1, 2, 0]])
    >>> abs(float(square_cosines(R, torch.tensor([0, 1, 1]))[0, 1])) < 1e-12
    True
    """
    n = R.f.shape[1]
    if len(R) <= 64 * n:  # pairs of points cost less than 64 matrices
        return cosines(R.gram_of_means(label, 64).numpy())
    members = [R[label == square] for square in range(64)]
    means = torch.stack([(r.sigma[:, None] * r.f).T @ r.g / len(r) for r in members])
    skew = (means - means.mT).flatten(1)
    return cosines((skew @ skew.T / 2).numpy())


def _naming(every: BoardPoints, squares: Int64[Tensor, "N 2"]) -> BoardPoints:
    return replace(every, squares=squares)[(squares >= 0).all(1)]


def _chosen(
    reader: Reader,
    ids: Sequence[Sequence[int]],
    at: Sequence[Sequence[int]],
    holds: Bool[Tensor, "K F"],
    place: Int64[Tensor, " K"],
) -> BoardPoints:
    """The points at positions `at` of each text, with the two likeliest tokens as `squares`."""
    every = read(reader, ids).points
    every = Points(**{name: value.cpu() for name, value in vars(every).items()})
    start = torch.tensor([0, *(len(row) for row in ids)]).cumsum(0)
    wanted = torch.cat([start[i] + torch.tensor(row).long() for i, row in enumerate(at)])
    game = torch.cat([torch.full((len(row),), i) for i, row in enumerate(at)])
    row = torch.isin(wanted, every.kept).nonzero().flatten()  # `wanted` ascends, as `kept` does
    points = every[torch.isin(every.kept, wanted)]
    top = torch.stack([points.top1, points.top2], dim=1)
    return BoardPoints(points, game[row], place[row], holds[row], top, row)
