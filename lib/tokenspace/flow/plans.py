"""Where the sampler stops and how often it asks the network there: NFE plans of schedules A, B, C.

N grid points are N - 1 moves and one final read-out; point i costs K_i + 1 evaluations. A strength
w and the number K of refinements are multiplied by g at each point: A g = 1, B 1/(1 + √(σ/α)),
C 1/(1 + σ/α), which is the linear-equivalent time.
"""

from dataclasses import dataclass
from functools import cached_property

import torch
from jaxtyping import Float, Float64
from torch import Tensor

from tokenspace.errors import ParameterError
from tokenspace.flow.path import Gumbel, preserving

SCHEDULES = ("A", "B", "C")
RULES = ("weights", "mean", "x")


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

    @cached_property
    def nfe(self) -> int:
        """Network evaluations of a sequence."""
        return sum(self.refinements) + len(self.refinements)


def plan(nfe: int, mechanism: Mechanism, times: Gumbel, grid: str = "midpoint") -> Plan:
    """The plan that spends exactly `nfe` evaluations, section 5 of the paper's notes.

    A: N = ⌈nfe/(K+1)⌉, the first points giving up what is too much, one refinement each.
    B, C: the largest N whose points, ⌈K g⌉ + 1 each, fit; what is left goes, one each, to those
    with the largest fractional part of K g. `grid` "midpoint" is the paper's, "ends" LangFlow's.
    Raises ParameterError where nfe is below the cost of one point.

    >>> len(plan(64, Mechanism(K=3), Gumbel(4.9563, 0.9637)).gammas)
    16
    """
    K = mechanism.refinements

    def wanted(n: int) -> Tensor:
        return K * mechanism.g(points(n, times, grid))

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
    gammas = points(n, times, grid)
    g = mechanism.g(gammas)
    return Plan(gammas, counts, mechanism.w_scg * g, mechanism.w_ug * g, mechanism.rolling)


def points(n: int, times: Gumbel, grid: str = "midpoint") -> Float64[Tensor, " n"]:
    """γ of n points: u at the midpoints of n equal parts, or from 1 - eps to eps in equal steps.

    >>> points(2, Gumbel(0.0, 1.0), "ends").diff() < 0
    tensor([True])
    """
    if grid == "midpoint":
        return times.grid(n)
    if grid != "ends":
        raise ParameterError(f"grid {grid!r}: 'midpoint' or 'ends'.")
    return times.gamma(torch.linspace(1 - times.eps, times.eps, n, dtype=torch.float64))
