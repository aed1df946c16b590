"""World vectors against the planes that curvature turns: an artefact, and κ with its null.

Rw lies in the plane of R for every w, so the rotated directions of any two world vectors share a
plane, where the mean |cos| of random directions is 2/π = .637. A high cosine of this kind is
passed by random planes; κ asks instead how much of a world vector lies in the plane at all.
"""

import chess
import numpy as np
import torch
from jaxtyping import Bool, Float64, Int64
from torch import Tensor
from torch.nn.functional import normalize, one_hot

from tokenspace.curvature.chess.games import VALUES
from tokenspace.curvature.chess.statistics import (
    PermutationTest,
    exchanged_games,
    permutation_test,
    square_permutations,
)
from tokenspace.curvature.statistics import rank_correlation
from tokenspace.errors import ParameterError

Planes = Float64[Tensor, "N 2 n"]  # an orthonormal pair each
World = Float64[Tensor, "F n"]
Kappa = Float64[Tensor, "N F"]
OnSquare = Float64[Tensor, "N 64"]
Pairs = Int64[Tensor, "N 2"]
Index = Int64[Tensor, " N"]


def rotated_cosine(plane: Planes, world: World) -> Float64[Tensor, " N"]:
    """Mean |cos| between R w_i and R w_j over pairs of world vectors, at each point.

    >>> x = torch.eye(3).double()
    >>> round(rotated_cosine(x[None, :2], torch.stack([x[0], x[0] + x[1]])).item() ** 2, 9)
    0.5
    """
    if len(world) < 2:
        raise ParameterError("A pair takes two world vectors at least.")
    inside = normalize(plane @ _unit(world).T, dim=1)  # (N, 2, F): each Rw, turned a quarter
    F = inside.shape[-1]
    total = torch.stack([(u.T @ u).abs().sum() for u in inside])  # over (F, F), point by point
    return (total - inside.square().sum((1, 2))) / (F * (F - 1))


def random_planes(N: int, n: int, seed: int) -> Planes:
    """Orthonormal pairs of uniformly random planes.

    >>> pair = random_planes(1, 3, seed=0)[0]
    >>> torch.allclose(pair @ pair.T, torch.eye(2).double())
    True
    """
    generator = torch.Generator().manual_seed(seed)
    drawn = torch.randn(N, n, 2, generator=generator, dtype=torch.float64)
    return torch.linalg.qr(drawn).Q.mT  # (N, 2, n)


def kappa(plane: Planes, world: World) -> Kappa:
    """κ = |Π w|² / |w|², the share of a world vector that lies in a point's plane.

    Of random planes the mean is 2/n. The paper's coupling is described, not defined; this is ours.

    >>> x = torch.eye(3).double()
    >>> kappa(x[None, :2], torch.stack([x[0], x[0] + x[2]]))
    tensor([[1.0000, 0.5000]], dtype=torch.float64)
    """
    return (plane @ _unit(world).T).square().sum(1)  # (N, 2, F) -> (N, F)


def _unit(world: World) -> World:
    none = int((world.norm(dim=1) == 0).sum())
    if none:
        raise ParameterError(
            f"{none} of {len(world)} world vectors are 0: the probes of facts that never changed. "
            "Fit only those that `varied` finds."
        )
    return normalize(world, dim=1)


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
        return [*(float(m.mean()) if len(m) else float("nan") for m in means), rho]

    kappa, holds = kappa.float(), holds.float()  # thousands of times over: half the bytes
    null = [
        statistics(kappa[rows], holds[partners])
        for rows, partners in exchanged_games(game, place, draws, seed)
    ]
    names = [*(chess.piece_name(k) for k in kinds), "value"]
    found = statistics(kappa, holds)
    return {
        name: permutation_test(one, drawn[np.isfinite(drawn)])
        for name, one, drawn in zip(names, found, np.transpose(null), strict=True)
    }
