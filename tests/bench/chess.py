"""Part IV's calls on chess boards: the nulls of exchanged games and permuted squares."""

from functools import cache
from typing import Any

import chess
import numpy as np
import torch
from tests.bench.measure import Call

from tokenspace.curvature import chess as cc
from tokenspace.curvature.chess.board import FACT_KIND
from tokenspace.curvature.chess.model import facts_along
from tokenspace.curvature.chess.statistics import by_piece, square_permutations

DRAWS = 100
KIND = FACT_KIND[:-1]  # the last fact is about no piece


@cache
def positions() -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """40 random games: the facts at each place, the game, the place."""
    holds = [facts_along(game) for game in cc.random_games(40, seed=0, plies=50)]
    game = torch.cat([torch.full((len(some),), i) for i, some in enumerate(holds)])
    place = torch.cat([torch.arange(len(some)) for some in holds])
    return torch.cat(holds), game, place


def shares() -> torch.Tensor:
    """κ of random planes, near enough: chi-squared of two degrees."""
    holds, _, _ = positions()
    drawn = torch.randn(2, len(holds), len(KIND), generator=torch.Generator().manual_seed(0))
    return drawn.double().square().sum(0)


def our_null(draws: int = DRAWS) -> Call:
    """κ by kind of piece, its means and ρ with the pieces' value, over exchanged games."""
    holds, game, place = positions()
    kappa = shares()
    return lambda: by_piece(kappa, holds[:, :-1], KIND, game, place, draws, 0)


def null_by_facts(draws: int = DRAWS) -> Call:
    """The same means, NumPy, a fact at a time; it is spared ρ."""
    all_holds, game, place = positions()
    kappa, holds = shares().numpy(), all_holds[:, :-1].numpy()

    def ratios(k: np.ndarray, h: np.ndarray) -> list[float]:
        with np.errstate(invalid="ignore"):
            return [k[h[:, f], f].sum() / h[:, f].sum() / k[:, f].mean() for f in range(len(KIND))]

    def read(draws: int = draws) -> dict[str, list[float]]:
        found: dict[str, list[float]] = {chess.piece_name(k): [] for k in chess.PIECE_TYPES}
        for rows, partners in cc.exchanged_games(game, place, draws, 0):
            ratio = np.array(ratios(kappa[rows.numpy()], holds[partners.numpy()]))
            for kind in chess.PIECE_TYPES:
                mean = np.nanmean(ratio[KIND.numpy() == kind])
                found[chess.piece_name(kind)].append(float(mean))
        return found

    ours: Any = our_null(2)()
    assert all(np.allclose(ours[name].null, null, rtol=1e-4) for name, null in read(2).items())
    return read


def similarity() -> np.ndarray:
    drawn = np.random.default_rng(0).normal(size=(64, 64))
    return drawn + drawn.T


def our_mantel(draws: int = 10 * DRAWS) -> Call:
    near, distance = similarity(), cc.king_distance()
    return lambda: cc.mantel_test(near, distance, draws, 0)


def scipy_mantel(draws: int = 10 * DRAWS) -> Call:
    """Spearman's ρ by SciPy for the same permutations."""
    from scipy.stats import spearmanr

    near, distance, above = similarity(), cc.king_distance(), np.triu_indices(64, 1)

    def read(draws: int = draws) -> list[float]:
        permuted = square_permutations(draws, 0)
        return [spearmanr(near[above], distance[np.ix_(p, p)][above])[0] for p in permuted]

    assert np.allclose(read(5), cc.mantel_test(near, distance, 5, 0).null)
    return read
