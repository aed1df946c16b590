"""Statistics over the squares of a chess board, each with a null that it can fail.

A square is a file and a rank. Where its vector is a file's plus a rank's (two tokens a square, as
most tokenizers write it), squares of one file are alike for no reason of chess, so files and
ranks are permuted apart (S8×S8); permuting all 64 squares (S64) calls that structure a finding.
Squares are numbered as in the `chess` library: a1 = 0, b1 = 1, ..., h8 = 63.
"""

from collections.abc import Iterable, Iterator
from typing import NamedTuple

import chess
import numpy as np
import torch
from jaxtyping import Bool, Float, Float64, Int, Int64
from scipy.cluster.hierarchy import fcluster, linkage
from scipy.spatial.distance import squareform
from scipy.stats import rankdata
from torch import Tensor
from torch.nn.functional import one_hot

from tokenspace.curvature.chess.games import VALUES
from tokenspace.curvature.statistics import rank_correlation
from tokenspace.errors import ParameterError

RANK, FILE = np.divmod(np.arange(64), 8)
ABOVE = np.triu_indices(64, 1)  # every pair of different squares once: 2,016
ROUNDING = 1e-12  # values of one permutation that are summed in another order may differ by it

Similarity = Float[np.ndarray, "64 64"]
Index = Int64[Tensor, " N"]
Kappa = Float64[Tensor, "N F"]
OnSquare = Float64[Tensor, "N 64"]
Pairs = Int64[Tensor, "N 2"]


class PermutationTest(NamedTuple):
    """A statistic, the same one under every permutation, and the two-sided p.

    p = (1 + permutations at least as far from their mean as the statistic is) / (1 + all).
    """

    value: float
    null: Float[np.ndarray, " K"]
    p: float


def permutation_test(value: float, null: Iterable[float]) -> PermutationTest:
    """A statistic held against its values under permutations.

    >>> permutation_test(3.0, [0.0, 1.0, -1.0]).p
    0.25
    """
    drawn = np.array(list(null))
    centre = np.append(drawn, value).mean()  # the unpermuted board is one of its permutations
    beyond = np.abs(drawn - centre) >= abs(value - centre) - ROUNDING
    return PermutationTest(value, drawn, float((1 + beyond.sum()) / (1 + len(drawn))))


def king_distance() -> Int[np.ndarray, "64 64"]:
    """Moves of a king between two squares on an empty board.

    >>> int(king_distance()[0, 63])
    7
    """
    return np.array([[chess.square_distance(i, j) for j in range(64)] for i in range(64)])


def quadrants() -> Int[np.ndarray, " 64"]:
    """Which quarter of the board (0-3) a square lies in.

    >>> np.bincount(quadrants()).tolist()
    [16, 16, 16, 16]
    """
    return 2 * (RANK // 4) + FILE // 4


def square_permutations(draws: int, seed: int, group: str = "S8xS8") -> Int[np.ndarray, "draws 64"]:
    """Random permutations of the squares: files and ranks apart ("S8xS8"), or all ("S64").

    >>> [len(set(rank)) for rank in square_permutations(1, 0).reshape(8, 8) // 8]
    [1, 1, 1, 1, 1, 1, 1, 1]
    """
    generator = np.random.default_rng(seed)
    if group == "S64":
        return np.array([generator.permutation(64) for _ in range(draws)])
    if group != "S8xS8":
        raise ParameterError(f"No group {group!r} of permutations. Take S8xS8 or S64.")
    return np.array(
        [generator.permutation(8)[RANK] * 8 + generator.permutation(8)[FILE] for _ in range(draws)]
    )


def mantel(similarity: Similarity, distance: np.ndarray) -> float:
    """Spearman's ρ over pairs of different squares; pairs without a similarity are left out.

    >>> round(mantel(-1.0 * king_distance(), king_distance()), 9)
    -1.0
    """
    x, y = similarity[ABOVE], distance[ABOVE]
    known = np.isfinite(x)
    return rank_correlation(x[known], y[known])


def mantel_test(
    similarity: Similarity, distance: np.ndarray, draws: int, seed: int, group: str = "S8xS8"
) -> PermutationTest:
    """`mantel` against permuted squares (Mantel 1967; the choice of the group is ours).

    Similarities are ranked once. Distances take few values, so that counts give their ranks; these
    are not the same after each permutation, where some squares have no similarity.

    >>> mantel_test(-1.0 * king_distance(), king_distance(), draws=9, seed=0).p
    0.1
    """
    known = np.isfinite(similarity[ABOVE])
    i, j = (side[known] for side in ABOVE)  # the pairs, (P,) each
    x = rankdata(similarity[i, j]) - (len(i) + 1) / 2
    level = np.unique(distance, return_inverse=True)[1].reshape(64, 64)  # 0 for the smallest
    null = []
    for p in square_permutations(draws, seed, group):
        levels = level[p[i], p[j]]  # (P,)
        count = np.bincount(levels)
        y = (count.cumsum() - (count - 1) / 2 - (len(i) + 1) / 2)[levels]  # mean rank of equal ones
        length = np.linalg.norm(x) * np.linalg.norm(y)
        null.append(float(x @ y / length) if length > 0 else float("nan"))
    return permutation_test(mantel(similarity, distance), null)


def cosines(gram: Float[np.ndarray, "K K"]) -> Float[np.ndarray, "K K"]:
    """Cosines from inner products; nan where a length is 0 or unknown.

    >>> float(cosines(np.array([[4.0, 2.0], [2.0, 4.0]]))[0, 1])
    0.5
    """
    length = np.sqrt(np.where(np.diag(gram) > 0, np.diag(gram), np.nan))
    return gram / (length[:, None] * length)


def purity(similarity: Similarity, region: Int[np.ndarray, " 64"]) -> float:
    """Share of squares that lie in their cluster's commonest region; as many clusters as regions.

    Clusters are by average linkage on 1 - similarity, of the squares that have one.

    >>> same = (quadrants()[:, None] == quadrants()).astype(float)
    >>> purity(same, quadrants())
    1.0
    """
    known = np.isfinite(similarity).sum(1) > 1
    near, region = similarity[np.ix_(known, known)], region[known]
    apart = 1 - (near + near.T) / 2
    np.fill_diagonal(apart, 0)
    tree = linkage(squareform(apart, checks=False), "average")
    cluster = fcluster(tree, len(set(region.tolist())), "maxclust")
    common = sum(np.bincount(region[cluster == c]).max() for c in set(cluster.tolist()))
    return float(common / len(region))


def holm(p: Float[np.ndarray, " K"]) -> Float[np.ndarray, " K"]:
    """Holm's adjusted p of K tests, in their order (Holm 1979): below α, the test stands.

    >>> [round(float(p), 9) for p in holm(np.array([0.01, 0.04, 0.03]))]
    [0.03, 0.06, 0.06]
    """
    order = np.argsort(p)
    grown = np.maximum.accumulate(p[order] * np.arange(len(p), 0, -1))
    adjusted = np.empty(len(p))
    adjusted[order] = np.minimum(grown, 1)
    return adjusted


def exchanged_games(
    game: Index, place: Index, draws: int, seed: int
) -> Iterator[tuple[Tensor, Tensor]]:
    """Rows, and for each the row at the same place of another game; `draws` times anew.

    Rows of one game aren't independent, so shuffling rows makes chance look smaller than it is:
    whole games are permuted. Rows whose partner game has no such place are left out.
    """
    games, number = np.unique(game.numpy(), return_inverse=True)
    if len(games) < 2:
        raise ParameterError("One game has no other to be exchanged with; read more games.")
    row = np.full((len(games), int(place.max()) + 1), -1)  # of each game and place; -1: no such row
    row[number, place] = np.arange(len(game))
    for k in range(draws):
        order = np.random.default_rng(seed + k).permutation(len(games))
        partner = np.empty_like(order)
        partner[order] = np.roll(order, 1)  # in a ring, so that no game stays with itself
        found = row[partner[number], place]
        yield torch.from_numpy(np.flatnonzero(found >= 0)), torch.from_numpy(found[found >= 0])


def by_square(kappa: Kappa, square: Int64[Tensor, " F"]) -> OnSquare:
    """Mean κ of the world vectors on each square; those of no square (-1) are left out.

    >>> by_square(torch.tensor([[1.0, 3.0, 9.0]]).double(), torch.tensor([5, 5, -1]))[0, 5].item()
    2.0
    """
    here = square >= 0
    members = one_hot(square[here], 64).double()  # (F, 64)
    return kappa[:, here] @ members / members.sum(0)


def coupling_ratio(on_square: OnSquare, top: Pairs) -> float:
    """Mean κ on the two likeliest squares of each point over the mean on all other squares.

    Raises ParameterError when a point's likeliest token is no square.

    >>> on_square = torch.ones(1, 64).double()
    >>> on_square[0, 3] = 3.0
    >>> coupling_ratio(on_square, torch.tensor([[3, 4]]))
    2.0
    """
    no_square = int(((top < 0) | (top > 63)).any(1).sum())
    if no_square:
        raise ParameterError(
            f"{no_square} of {len(top)} points have a token that is no square (0-63) among their "
            "two likeliest; leave those points out, and say how many."
        )
    chosen, everywhere = on_square.gather(1, top), on_square.nansum()
    known, places = chosen.isfinite().sum(), on_square.isfinite().sum()
    elsewhere = (everywhere - chosen.nansum()) / (places - known)
    return float(chosen.nansum() / known / elsewhere)


def coupling_test(
    on_square: OnSquare, top: Pairs, draws: int, seed: int, group: str = "S8xS8"
) -> PermutationTest:
    """`coupling_ratio` when the squares of the world vectors are permuted."""
    moved = torch.from_numpy(square_permutations(draws, seed, group))
    null = (coupling_ratio(on_square, m[top]) for m in moved)
    return permutation_test(coupling_ratio(on_square, top), null)


def coupling_over_games(
    on_square: OnSquare, top: Pairs, game: Index, place: Index, draws: int, seed: int
) -> PermutationTest:
    """`coupling_ratio` when each game's planes meet the likeliest squares of another game.

    Games meet place by place: squares that are likely at a place in every game survive this
    null, those of the position itself don't.
    """
    null = (
        coupling_ratio(on_square[rows], top[partners])
        for rows, partners in exchanged_games(game, place, draws, seed)
    )
    return permutation_test(coupling_ratio(on_square, top), null)


def by_piece(
    kappa: Kappa,
    holds: Bool[Tensor, "N F"],
    kind: Int64[Tensor, " F"],
    game: Index,
    place: Index,
    draws: int,
    seed: int,
) -> dict[str, PermutationTest]:
    """κ of a fact where it holds over its mean everywhere: by kind of piece, and ρ with its value.

    `kind` is the piece type of a fact as in `chess` (1 to 6); kings have no value and take no part
    in ρ. Of the null, each game's planes meet the positions of another game, place by place.
    """
    kinds, priced = kind.unique().tolist(), (kind != chess.KING).numpy()
    value = np.array([VALUES[k] for k in kind[priced].tolist()])

    def statistics(kappa: Tensor, holds: Tensor) -> list[float]:
        ratio = ((kappa * holds).sum(0) / holds.sum(0) / kappa.mean(0)).numpy()  # (F,)
        known = np.isfinite(ratio)
        means = [ratio[known & (kind.numpy() == k)] for k in kinds]
        rho = rank_correlation(ratio[priced & known], value[known[priced]])
        return [rho, *(float(m.mean()) if len(m) else float("nan") for m in means)]

    kappa, holds = kappa.float(), holds.float()  # thousands of times over: half the bytes
    null = [
        statistics(kappa[rows], holds[partners])
        for rows, partners in exchanged_games(game, place, draws, seed)
    ]
    names = ["piece value", *(chess.piece_name(k) for k in kinds)]
    found = statistics(kappa, holds)
    return {
        name: permutation_test(one, drawn[np.isfinite(drawn)])
        for name, one, drawn in zip(names, found, np.transpose(null), strict=True)
    }
