"""The deterministic sampler: a plan of its evaluations, DDIM steps, the paper's three mechanisms.

N grid points are N - 1 steps and one final read-out; point i costs K_i + 1 evaluations. A strength
w and the number K of refinements are multiplied by g at each point: schedule A g = 1,
B 1/(1 + √(σ/α)), C 1/(1 + σ/α), which is the linear-equivalent time. States are in fp64. The
denoiser is a `predictor.Denoiser`: a trained model, the exact oracle, or any function, so that
errors of the model and of the solver can be told apart.
"""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from jaxtyping import Float, Float64, Int64
from torch import Tensor

from tokenspace.errors import ParameterError
from tokenspace.flow.path import Gumbel, ddim_step, preserving
from tokenspace.flow.predictor import Denoiser, Prediction, nearest_scores

SCHEDULES = ("A", "B", "C")
RULES = ("weights", "mean", "x")
Ask = Callable[[Tensor, float, Tensor], Prediction]  # (x, γ, c)


@dataclass(frozen=True)
class Mechanism:
    """How a point's denoised mean is made, and how far the step goes.

    `w_scg` is self-conditioning guidance (30), `K` iterative refinement (31), `w_ug` unconditional
    guidance (32), each times g of its `schedule`. `rolling` is (29): the last point's mean is the
    condition, one evaluation a point; it leaves no place for `w_scg` and `K`.
    Raises ParameterError for a value out of range.

    >>> Mechanism(K=0).w_scg
    1.0
    """

    K: int = 1
    w_scg: float = 1.0
    w_ug: float = 0.0
    schedule: str = "A"
    rolling: bool = False

    def __post_init__(self) -> None:
        if self.schedule not in SCHEDULES:
            raise ParameterError(f"schedule {self.schedule!r}: one of {', '.join(SCHEDULES)}.")
        for name, value in (("K", self.K), ("w_scg", self.w_scg), ("w_ug", self.w_ug)):
            if not 0 <= value < float("inf"):
                raise ParameterError(f"{name} = {value}: a finite number, at least 0.")
        if self.rolling and (self.K, self.w_scg) not in ((0, 1.0), (1, 1.0)):
            raise ParameterError(
                f"rolling self-conditioning with K = {self.K}, w_scg = {self.w_scg}: both refine "
                "the mean at one point, which rolling doesn't; leave them at 1."
            )

    @property
    def refinements(self) -> int:
        """K, or 0 where the refinements would change nothing or aren't made."""
        return 0 if self.rolling or self.w_scg == 0 else self.K

    def g(self, gamma: Float[Tensor, " n"]) -> Float[Tensor, " n"]:
        """The factor of the schedule at each γ.

        >>> Mechanism(schedule="C").g(torch.zeros(1)).item()
        0.5
        """
        alpha, sigma = preserving(gamma)
        if self.schedule == "A":
            return torch.ones_like(gamma)
        ratio = sigma / alpha
        return 1 / (1 + (ratio.sqrt() if self.schedule == "B" else ratio))


@dataclass(frozen=True, eq=False)
class Plan:
    """N points: γ from noise to data, refinements K_i, strengths of guidance at each."""

    gammas: Float64[Tensor, " N"]
    refinements: list[int]
    w_scg: Float64[Tensor, " N"]
    w_ug: Float64[Tensor, " N"]
    rolling: bool = False

    @property
    def nfe(self) -> int:
        """Network evaluations of a sequence."""
        return sum(self.refinements) + len(self.refinements)


def plan(nfe: int, mechanism: Mechanism, times: Gumbel) -> Plan:
    """The plan that spends exactly `nfe` evaluations, section 5 of the paper's notes.

    A: N = ⌈nfe/(K+1)⌉, the first points giving up what is too much, one refinement each.
    B, C: the largest N whose points, ⌈K g⌉ + 1 each, fit; what is left goes, one each, to those
    with the largest fractional part of K g.
    Raises ParameterError where nfe is below the cost of one point.

    >>> len(plan(64, Mechanism(K=3), Gumbel(4.9563, 0.9637)).gammas)
    16
    """
    K = mechanism.refinements

    def wanted(n: int) -> Tensor:
        return K * mechanism.g(times.grid(n))

    least = int(wanted(1).ceil()) + 1
    if nfe < least:
        raise ParameterError(
            f"nfe = {nfe} is below {least}, what one point of schedule {mechanism.schedule} with "
            f"K = {K} costs; raise nfe or lower K."
        )
    if mechanism.schedule == "A":
        n = -(-nfe // (K + 1))
        counts = [K] * n
        order = list(range(n))
    else:
        n = next(n for n in range(nfe, 0, -1) if int(wanted(n).ceil().sum()) + n <= nfe)
        counts = [int(k) for k in wanted(n).ceil()]
        order = wanted(n).frac().argsort(descending=True, stable=True).tolist()
    change = 1 if sum(counts) + n < nfe else -1
    for turn in range(abs(nfe - n - sum(counts))):
        counts[order[turn % n]] += change
    gammas = times.grid(n)
    g = mechanism.g(gammas)
    return Plan(gammas, counts, mechanism.w_scg * g, mechanism.w_ug * g, mechanism.rolling)


@dataclass(frozen=True, eq=False)
class Snapshot:
    """What the sampler has at a grid point: x before the step, and the mean D that drives it."""

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
    shape: tuple[int, int, int],
    generator: torch.Generator,
    *,
    batch: int = 256,
    device: str = "cpu",
    dtype: torch.dtype = torch.float64,
    watch: Callable[[Snapshot], None] | None = None,
) -> Samples:
    """n sequences of L positions from x ~ N(0, I) of `shape` (n, L, d), `batch` at a time.

    The denoiser computes in `dtype`; float32 is faster where a network is the larger error.
    `watch` is called at every point of every batch. Raises ParameterError for n or L below 1.

    >>> from tokenspace.flow.exact import MarkovMixture
    >>> how = plan(8, Mechanism(), Gumbel(1.5, 1.0))
    >>> oracle = MarkovMixture.random().oracle(torch.eye(12) * 12**0.5)
    >>> sample(oracle, how, (2, 16, 12), torch.Generator().manual_seed(0)).tokens.shape
    torch.Size([2, 16])
    """
    n, L, _ = shape
    if n < 1 or L < 1 or batch < 1:
        raise ParameterError(f"{n} sequences of {L} tokens, {batch} at a time: each at least 1.")
    noise = torch.randn(shape, generator=generator, dtype=torch.float64)

    def ask(x: Tensor, gamma: float, c: Tensor) -> Prediction:
        at = torch.full((len(x),), gamma, dtype=dtype, device=x.device)
        return denoiser(x.to(dtype), at, c.to(dtype))

    found = [_integrate(ask, plan, x.to(device), watch) for x in noise.split(batch)]
    x, mean, tokens = (torch.cat(each) for each in zip(*found, strict=True))
    return Samples(x, mean, tokens)


def _integrate(
    ask: Ask, plan: Plan, x: Tensor, watch: Callable[[Snapshot], None] | None
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
            watch(Snapshot(gamma, x, now.mean.double(), now.logits))
        if i < last:
            at, then = (plan.gammas[j].to(x) for j in (i, i + 1))
            mean, w_ug = now.mean.double(), float(plan.w_ug[i])
            x = ddim_step(x, mean, preserving(at), preserving(then), w_ug)
    return x.cpu(), now.mean.cpu(), now.logits.argmax(-1).cpu()


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
