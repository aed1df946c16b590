"""Linear probes: is a fact of the position written in a state, and along which vector?

A probe's weights are the fact's world vector (Modenbach, arXiv:2605.04899, which doesn't say how
they were fitted; ridge regression in closed form is ours). Scores count on games held out whole,
and among positions at one place of a game: how far a game has gone tells much about a board.
The baseline reads no state at all, but counts the tokens so far.

World vectors against the planes that curvature turns: Rw lies in the plane of R for every w, so
the rotated directions of any two world vectors share a plane, where the mean |cos| of random
directions is 2/π = .637. A high cosine of this kind is passed by random planes; κ asks instead
how much of a world vector lies in the plane at all.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Bool, Float, Float64, Int64
from scipy.stats import rankdata
from torch import Tensor
from torch.nn.functional import normalize

from tokenspace.curvature.chess.statistics import exchanged_games
from tokenspace.errors import ParameterError

RIDGE = 1e-3  # over the mean variance of a coordinate: enough that the system can be solved

Planes = Float64[Tensor, "N 2 n"]  # an orthonormal pair each
World = Float64[Tensor, "F n"]


@dataclass(frozen=True)
class Probes:
    """One linear probe a fact: score = world · x + bias, near 1 where it holds and 0 elsewhere."""

    world: World
    bias: Float64[Tensor, " F"]

    def score(self, x: Float[Tensor, "N n"]) -> Float64[Tensor, "N F"]:
        """How much each state speaks for each fact."""
        return x.double() @ self.world.T + self.bias


def fit_probes(x: Float[Tensor, "N n"], holds: Bool[Tensor, "N F"], ridge: float = RIDGE) -> Probes:
    """Ridge regression of every fact on the states, all at once.

    Raises ParameterError for states that aren't finite or don't vary.

    >>> x = torch.eye(2).repeat(4, 1)
    >>> fit_probes(x, x > 0).score(x)[0].round().tolist()
    [1.0, 0.0]
    """
    x, y = x.double(), holds.double()
    bad = (~x.isfinite().all(1)).nonzero().flatten().tolist()
    if bad:
        raise ParameterError(f"{len(bad)} states aren't finite (first: {bad[:5]}).")
    centred = x - x.mean(0)
    covariance = centred.T @ centred / len(x)  # (n, n)
    scale = covariance.trace() / x.shape[1]
    if not scale > 0:
        raise ParameterError(f"The {len(x)} states are all equal: there is nothing to be probed.")
    damped = covariance + ridge * scale * torch.eye(x.shape[1], dtype=x.dtype)
    world = torch.linalg.solve(damped, centred.T @ (y - y.mean(0)) / len(x)).T  # (F, n)
    return Probes(world, y.mean(0) - world @ x.mean(0))


def varied(holds: Bool[Tensor, "N F"], least: int) -> Bool[Tensor, " F"]:
    """Facts that hold, and fail, in `least` rows or more; others teach a probe nothing.

    >>> varied(torch.tensor([[1, 0, 1], [1, 0, 0]]).bool(), least=1).tolist()
    [False, False, True]
    """
    count = holds.sum(0)
    return (count >= least) & (len(holds) - count >= least)


def held_out(game: Int64[Tensor, " N"], share: float, seed: int) -> Bool[Tensor, " N"]:
    """Rows of the games that are kept for testing: `share` of all games, at least one.

    >>> held_out(torch.tensor([0, 0, 1, 1]), share=0.5, seed=0).sum().item()
    2
    """
    games = game.unique()
    count = max(1, round(share * len(games)))
    if count >= len(games):
        raise ParameterError(
            f"{count} of {len(games)} games held out leave none to fit; read more games."
        )
    order = torch.randperm(len(games), generator=torch.Generator().manual_seed(seed))
    return torch.isin(game, games[order[:count]])


def auc(
    score: Float[Tensor, "N F"], holds: Bool[Tensor, "N F"], place: Int64[Tensor, " N"]
) -> Float64[Tensor, " F"]:
    """Chance that a row where a fact holds scores above one where it doesn't, at the same place.

    The area under the ROC curve (ties count half) over pairs of rows of equal `place`; nan for a
    fact without such a pair. Places all equal give the usual area.

    >>> score, holds = torch.tensor([[1.0], [2.0], [3.0]]), torch.tensor([[0], [1], [0]]).bool()
    >>> auc(score, holds, torch.zeros(3).long()).item()
    0.5
    """
    above = torch.zeros(score.shape[1], dtype=torch.float64)
    pairs = torch.zeros_like(above)
    for at in place.unique():
        here = place == at
        ranks = torch.from_numpy(rankdata(score[here].numpy(), axis=0))
        y = holds[here].double()
        yes = y.sum(0)
        above += (ranks * y).sum(0) - yes * (yes + 1) / 2  # Mann and Whitney's U
        pairs += yes * (len(y) - yes)
    return above / torch.where(pairs > 0, pairs, torch.nan)


def probe_auc(
    x: Float[Tensor, "N n"],
    holds: Bool[Tensor, "N F"],
    game: Int64[Tensor, " N"],
    place: Int64[Tensor, " N"],
    *,
    share: float = 0.25,
    seed: int = 0,
    ridge: float = RIDGE,
    exchanged: bool = False,
) -> Float64[Tensor, " F"]:
    """`auc` of every fact on held-out games, by probes fitted on the others.

    `exchanged` is the null: each game has the facts of another, place by place, and auc is near .5.

    >>> x, game = torch.eye(2).repeat(4, 1), torch.arange(8) // 2
    >>> probe_auc(x, x > 0, game, torch.zeros(8).long()).tolist()
    [1.0, 1.0]
    """
    if exchanged:
        rows, partners = next(exchanged_games(game, place, 1, seed))
        x, holds, game, place = x[rows], holds[partners], game[rows], place[rows]
    out = held_out(game, share, seed)
    probes = fit_probes(x[~out], holds[~out], ridge)
    return auc(probes.score(x[out]), holds[out], place[out])


def bag_of_tokens(ids: Sequence[Sequence[int]], size: int) -> Float[Tensor, "N V"]:
    """How often each of `size` tokens has come up to each position: the baseline of probes.

    >>> bag_of_tokens([[1, 0, 1]], size=2).tolist()
    [[0.0, 1.0], [1.0, 1.0], [1.0, 2.0]]
    """
    eye = np.eye(size, dtype=np.float32)
    return torch.from_numpy(np.concatenate([eye[list(row)].cumsum(0) for row in ids]))


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


def kappa(plane: Planes, world: World) -> Float64[Tensor, "N F"]:
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
