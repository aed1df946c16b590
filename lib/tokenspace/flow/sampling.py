"""The deterministic sampler: Euler's step with the paper's three mechanisms, and what is watched.

States are in fp64. The denoiser is a `predictor.Denoiser`: a trained model, the exact oracle, or
any function, so that errors of the model and of the solver can be told apart.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from jaxtyping import Float, Float64, Int64
from scipy.optimize import nnls
from torch import Tensor

from tokenspace.errors import ParameterError
from tokenspace.flow.path import euler, preserving
from tokenspace.flow.plans import RULES, Plan
from tokenspace.flow.predictor import Denoiser, Prediction, nearest_scores

Ask = Callable[[Tensor, float, Tensor], Prediction]  # (x, γ, c)


@dataclass(frozen=True, eq=False)
class Point:
    """What the sampler has at a grid point: x before the step, and the mean D that drives it."""

    index: int
    gamma: float
    x: Float64[Tensor, "B L d"]
    mean: Float64[Tensor, "B L d"]
    logits: Float[Tensor, "B L V"]


@dataclass(frozen=True, eq=False)
class Samples:
    """Sequences at the last point: the state, its mean D, and the token of largest weight."""

    x: Float64[Tensor, "n L d"]
    mean: Float[Tensor, "n L d"]
    tokens: Int64[Tensor, "n L"]
    nfe: int

    def decode(self, E: Float[Tensor, "V d"], rule: str = "weights") -> Int64[Tensor, "n L"]:
        """Tokens: the largest weight (28), the row nearest to x (27), or nearest to the "mean".

        The paper's (27) is of x; its released code takes the mean. Distances in fp64, where
        expanded norms don't floor at 1e-4. Raises ParameterError for another rule.
        """
        if rule not in RULES:
            raise ParameterError(f"rule {rule!r}: one of {', '.join(RULES)}.")
        if rule == "weights":
            return self.tokens
        of = self.x if rule == "x" else self.mean.double()
        return nearest_scores(of, E.to(of)).argmax(-1)


@torch.no_grad()
def sample(
    denoiser: Denoiser,
    plan: Plan,
    n: int,
    L: int,
    d: int,
    generator: torch.Generator,
    *,
    batch: int = 256,
    device: str = "cpu",
    asked: torch.dtype = torch.float64,
    watch: Callable[[Point], None] | None = None,
) -> Samples:
    """n sequences of L positions from x ~ N(0, I), `batch` at a time, by the plan.

    The denoiser is asked in `asked`; float32 is faster where a network is the larger error.
    `watch` is called at every point of every batch. Raises ParameterError for n or L below 1.

    >>> from tokenspace.flow.markov import MarkovMixture
    >>> from tokenspace.flow.path import Gumbel
    >>> from tokenspace.flow.plans import Mechanism, plan
    >>> how = plan(8, Mechanism(), Gumbel(1.5, 1.0))
    >>> oracle = MarkovMixture.random().oracle(torch.eye(12) * 12**0.5)
    >>> sample(oracle, how, 2, 16, 12, torch.Generator().manual_seed(0)).decode(oracle.E).shape
    torch.Size([2, 16])
    """
    if n < 1 or L < 1 or batch < 1:
        raise ParameterError(f"{n} sequences of {L} tokens, {batch} at a time: each at least 1.")
    noise = torch.randn(n, L, d, generator=generator, dtype=torch.float64)
    ask = _in(asked, denoiser)
    found = [_flow(ask, plan, x.to(device), watch) for x in noise.split(batch)]
    x, mean, tokens = (torch.cat(each) for each in zip(*found, strict=True))
    return Samples(x, mean, tokens, plan.nfe)


def _flow(
    ask: Ask, plan: Plan, x: Tensor, watch: Callable[[Point], None] | None
) -> tuple[Tensor, Tensor, Tensor]:
    """x, mean and tokens at the last point; not the logits, V numbers a position."""
    rolled = torch.zeros_like(x)
    last = len(plan.gammas) - 1
    for i, gamma in enumerate(plan.gammas.tolist()):
        K, w = plan.refinements[i], float(plan.w_scg[i])
        if plan.rolling:
            now = ask(x, gamma, rolled)
            rolled = now.mean.double()
        elif i == last:  # K - 1 guided refinements, then a plain one
            now = refine(ask, x, gamma, max(K - 1, 0), w)
            now = ask(x, gamma, now.mean) if K else now
        else:
            now = refine(ask, x, gamma, K, w)
        if watch:
            watch(Point(i, gamma, x, now.mean.double(), now.logits))
        if i < last:
            at, then = (plan.gammas[j].to(x) for j in (i, i + 1))
            x = euler(x, now.mean.double(), at, then, float(plan.w_ug[i]))
    return x.cpu(), now.mean.cpu(), now.logits.argmax(-1).cpu()


def _in(dtype: torch.dtype, denoiser: Denoiser) -> Ask:
    """The denoiser in its own type, one γ for the whole batch."""

    def ask(x: Tensor, gamma: float, c: Tensor) -> Prediction:
        at = torch.full((len(x),), gamma, dtype=dtype, device=x.device)
        return denoiser(x.to(dtype), at, c.to(dtype))

    return ask


def refine(ask: Ask, x: Tensor, gamma: float, K: int, w: float) -> Prediction:
    """D = u⁰ + w (μ(x, D) - u⁰), K times from D = u⁰ = μ(x, 0): (30) inside (31).

    K = 1 is (30), w = 1 is (31); K = 0 or w = 0 leave u⁰. The logits are the last ones asked for.
    """
    first = ask(x, gamma, torch.zeros_like(x))
    now = first
    for _ in range(K):
        found = ask(x, gamma, now.mean)
        now = Prediction(found.logits, first.mean + w * (found.mean - first.mean))
    return now


@dataclass
class Monitor:
    """A `watch` that notes, at each point, the first `positions` positions of the first batch.

    Columns of `rows`: γ; medians over positions of |x - α e|/(σ √d) to the nearest and to the
    second token, and of |x/α - e| to the nearest; the largest distance of the mean D to the hull
    of E (exact, by non-negative least squares; nan where E has more than `largest` rows).
    """

    E: Float[Tensor, "V d"]
    positions: int = 64
    largest: int = 512
    rows: list[dict[str, Any]] = field(default_factory=list)

    def __call__(self, point: Point) -> None:
        if self.rows and point.index <= self.rows[-1]["index"]:
            return  # a later batch
        E = self.E.double()
        x, mean = (t.flatten(0, 1)[: self.positions].to(E) for t in (point.x, point.mean))
        alpha, sigma = preserving(torch.tensor(point.gamma, dtype=torch.float64))
        two = torch.cdist(x, alpha * E).topk(2, largest=False).values
        scaled = two / (sigma * E.shape[1] ** 0.5)
        outside = float(hull_distance(mean, E).max()) if len(E) <= self.largest else float("nan")
        self.rows.append(
            {
                "index": point.index,
                "gamma": point.gamma,
                "nearest": float(scaled[:, 0].median()),
                "second": float(scaled[:, 1].median()),
                "to_token": float((two[:, 0] / alpha).median()),
                "outside": outside,
            }
        )


def hull_distance(points: Float[Tensor, "n d"], E: Float[Tensor, "V d"]) -> Float64[Tensor, " n"]:
    """Distance of each point to the convex hull of the rows of E; 0 inside, up to rounding.

    Least squares over weights >= 0, with their sum held at 1 by a large weight.

    >>> hull_distance(torch.tensor([[0.5], [3.0]]), torch.tensor([[-1.0], [1.0]])).round().abs()
    tensor([0., 2.], dtype=torch.float64)
    """
    rows, at = E.detach().cpu().double().numpy(), points.detach().cpu().double().numpy()
    sum_to_one = 1e4 * max(1.0, float(np.abs(rows).max()))
    A = np.vstack([rows.T, np.full(len(rows), sum_to_one)])
    weights = np.stack([nnls(A, np.append(point, sum_to_one))[0] for point in at])
    return torch.from_numpy(np.linalg.norm(weights @ rows - at, axis=1))
