"""Intrinsic dimension from the distances to the first neighbours.

Where a table is locally a d-dimensional manifold, a row's neighbours are a Poisson process, and
``m = log(r2 / r1)`` is exponential with rate d, at any density (Facco et al. 2017,
arXiv:1803.06992). Every estimator below reads d from m or from log(r_k / r_j), and returns its
standard error and the scale (median r2) beside the value.

Policy, the same everywhere: a pair with r1 = 0 has no ratio; it is dropped and counted in
``n_zero_distance``. A tie r1 = r2 > 0 is a true m = 0; it is kept and counted in ``n_ties``.
Both are named in ``note``. Nothing is clamped.

Local dimension (Levina and Bickel 2004): on a d-manifold (k-1) d / LID_k is Gamma(k - 1). At k = 2
its tail is Pareto with exponent 1 and can't disappear: claims about tails are made at k = 20.
"""

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
from jaxtyping import Float
from scipy import stats
from torch import Tensor

from tokenspace.errors import ParameterError, TableError


@dataclass(frozen=True)
class Estimate:
    """A dimension, its standard error, the pairs used, and what had to be left out."""

    value: float
    se: float
    n: int
    scale: float  # median r2 (median r_k for LID), in the table's units
    n_zero_distance: int = 0
    n_ties: int = 0
    note: str = ""


def policy_note(zeros: int, ties: int) -> str:
    """What was done with pairs at distance zero and with ties; empty where there were none."""
    parts = [f"{zeros} pairs with r1 = 0 dropped"] if zeros else []
    return "; ".join(parts + ([f"{ties} ties r1 = r2 kept as m = 0"] if ties else []))


def limit_note(value: float, n: int) -> str:
    """Says so where n points can't identify a dimension this large; empty where they can."""
    if value <= limit(n):
        return ""
    return (
        f"above 2 log10 n = {limit(n):.1f}: not identifiable from n = {n}, good for comparison only"
    )


class _Pairs(NamedTuple):
    m: Tensor
    scale: float
    zeros: int
    ties: int

    def estimate(self, value: float, se: float) -> Estimate:
        """An `Estimate` whose note names the policy that was applied and the limit, if passed."""
        n = len(self.m)
        notes = filter(None, [policy_note(self.zeros, self.ties), limit_note(value, n)])
        return Estimate(value, se, n, self.scale, self.zeros, self.ties, "; ".join(notes))


def limit(n: int) -> float:
    """Dimension above which n points only bound it from below: 2 log10 n.

    Eckmann and Ruelle, Physica D 56 (1992) 185: pairs at a tenth of the set's size must exist.

    >>> round(limit(512), 1)
    5.4
    """
    return 2 * math.log10(n)


def log_ratios(r1: Float[Tensor, " q"], r2: Float[Tensor, " q"]) -> Float[Tensor, " m"]:
    """m = log(r2 / r1) of the pairs with r1 > 0, in order, in float64.

    Raises `TableError` for distances that aren't finite, negative, or not ascending, with their
    positions, and where fewer than two pairs have r1 > 0.

    >>> log_ratios(torch.tensor([1.0, 0.0, 2.0]), torch.tensor([1.0, 1.0, 4.0])).tolist()
    [0.0, 0.69314718...]
    """
    return _pairs(r1, r2).m


def mle(r1: Float[Tensor, " q"], r2: Float[Tensor, " q"]) -> Estimate:
    """Unbiased maximum likelihood, d = (N - 1) / sum(m): a harmonic mean of LID at k = 2.

    The standard error is d cv(m) / sqrt(N), by the delta method; under the model cv(m) = 1.

    >>> mle(torch.ones(3), torch.tensor([2.0, 2.0, 2.0])).value * math.log(2)
    0.6666...
    """
    pairs = _pairs(r1, r2)
    n = len(pairs.m)
    value = (n - 1) / float(pairs.m.sum())
    spread = float(pairs.m.std() / pairs.m.mean())
    return pairs.estimate(value, value * spread / math.sqrt(n))


def facco(r1: Float[Tensor, " q"], r2: Float[Tensor, " q"], keep: float = 0.9) -> Estimate:
    """Facco's line through the origin, y = -log(1 - i/N) on sorted m, i = 1 .. int(keep N).

    F = i/N counts from i = 1; the last point has F = 1, no finite y, and is always dropped.
    The standard error is the delta method on Renyi's form of exponential order statistics.

    >>> r2 = torch.tensor([1.1, 1.2, 1.5, 2.0, 3.0])
    >>> round(facco(torch.ones(5), r2, keep=1.0).value, 4)
    2.3305
    """
    pairs = _pairs(r1, r2)
    n = len(pairs.m)
    k = _kept(keep, n)
    x, y = survival(pairs.m)
    x, y = x[:k], y[:k]
    value = float(x @ y / (x @ x))
    # m_(i) d = sum_{j<=i} Z_j / (N-j+1), Z ~ Exp(1), so dvalue/value = -sum_j Z_j tail_j / (N-j+1)
    tail = y.flip(0).cumsum(0).flip(0) / torch.arange(n, n - k, -1, dtype=torch.float64)
    return pairs.estimate(value, value * float(tail.norm() / (y @ y)))


def censored(r1: Float[Tensor, " q"], r2: Float[Tensor, " q"], keep: float = 0.9) -> Estimate:
    """Likelihood of the n smallest m, the rest censored: (n-1) / (sum m + (N-n) m_(n)).

    Unbiased under the model, with relative standard error 1 / sqrt(n).

    >>> round(censored(torch.ones(4), torch.full((4,), math.e), keep=0.5).value, 6)
    0.25
    """
    pairs = _pairs(r1, r2)
    n = len(pairs.m)
    k = n if keep == 1 else _kept(keep, n)
    m = pairs.m.sort().values[:k]
    total = float(m.sum() + (n - k) * m[-1])
    if k < 2 or total == 0:
        raise TableError(f"keep = {keep:g} of {n} pairs leaves no ratio to read; keep more.")
    value = (k - 1) / total
    return pairs.estimate(value, value / math.sqrt(k))


def median(r1: Float[Tensor, " q"], r2: Float[Tensor, " q"]) -> Estimate:
    """ln 2 / median(m): robust, where `mle` listens to the largest ratios.

    Its standard error: the order statistics sqrt(N)/2 on either side of the median.

    >>> round(median(torch.ones(3), torch.tensor([1.0, 2.0, 9.0])).value, 6)
    1.0
    """
    pairs = _pairs(r1, r2)
    m = pairs.m.sort().values
    n = len(m)
    middle = float(m[(n - 1) // 2] + m[n // 2]) / 2
    if middle == 0:
        raise TableError(f"{pairs.ties} of {n} pairs are ties: the median ratio is 1; read `mle`.")
    half = math.sqrt(n) / 2
    low, high = max(0, int(n / 2 - half)), min(n - 1, int(n / 2 + half))
    value = math.log(2) / middle
    return pairs.estimate(value, value * float(m[high] - m[low]) / 2 / middle)


def survival(m: Float[Tensor, " n"]) -> tuple[Float[Tensor, " k"], Float[Tensor, " k"]]:
    """Sorted m against -log(1 - i/N), i = 1 .. N-1: a line of slope d under the model.

    >>> [v.tolist() for v in survival(torch.tensor([2.0, 1.0]))]
    [[1.0], [0.6931...]]
    """
    n = len(m)
    f = torch.arange(1, n, dtype=torch.float64) / n
    return m.to(torch.float64).sort().values[:-1], -torch.log1p(-f)


def exponential_check(m: Float[Tensor, " n"], d: float) -> tuple[float, float]:
    """Kolmogorov-Smirnov distance of m from Exp(d), and its p-value for a d known beforehand.

    With d read from the same m the p-value is too large: a small one still refutes the model.
    """
    test = stats.kstest(m.numpy(), "expon", args=(0, 1 / d))
    return float(test.statistic), float(test.pvalue)


def lid(distances: Float[Tensor, "q k_max"], k: int = 20) -> Float[Tensor, " q"]:
    """Levina-Bickel local dimension of each row, 1 / mean_{j<k} log(r_k / r_j).

    Raises `TableError` for rows with r1 = 0 (deduplicate first), and for rows whose k neighbours
    are all at one distance, where it is infinite; both with their positions.

    >>> round(lid(torch.tensor([[1.0, 2.0]]), k=2).item(), 4)
    1.4427
    """
    r = _neighbourhood(distances, k)
    zero = (r[:, 0] == 0).nonzero().flatten()
    if len(zero):
        raise TableError(
            f"{len(zero)} rows have a neighbour at distance 0 ({_some_ids(zero)}): "
            "local dimension isn't defined there. Deduplicate the table first."
        )
    mean = (r[:, -1:] / r[:, :-1]).log().mean(dim=1)
    flat = (mean == 0).nonzero().flatten()
    if len(flat):
        raise TableError(
            f"{len(flat)} rows have all {k} neighbours at one distance ({_some_ids(flat)}): "
            "local dimension is infinite there. Deduplicate the table, or use a larger k."
        )
    return 1 / mean


def lid_harmonic(distances: Float[Tensor, "q k_max"], k: int = 20) -> Estimate:
    """Harmonic mean of `lid` over the rows with r1 > 0; at k = 2 it is N/(N-1) times `mle`.

    Rows whose k neighbours are all at one distance count as ties, with 1/LID = 0. The standard
    error takes the rows as independent, which overlapping neighbourhoods aren't quite.

    >>> round(lid_harmonic(torch.tensor([[1.0, 2.0], [1.0, 2.0]]), k=2).value, 4)
    1.4427
    """
    r = _neighbourhood(distances, k)
    some = r[:, 0] > 0
    zeros = int((~some).sum())
    r = r[some]
    inverse = (r[:, -1:] / r[:, :-1]).log().mean(dim=1)
    n, ties = len(inverse), int((inverse == 0).sum())
    if n < 2 or ties == n:
        raise TableError(_nothing_left(len(some), zeros, ties))
    value = 1 / float(inverse.mean())
    se = value**2 * float(inverse.std()) / math.sqrt(n)
    scale = float(r[:, -1].median())
    return _Pairs(inverse, scale, zeros, ties).estimate(value, se)


def lid_null(d: float, k: int) -> Any:
    """Exact law of `lid` on a perfect d-manifold, InvGamma(k - 1, scale (k - 1) d), from scipy.

    At k = 2 it is a Pareto tail, P(LID > t) = 1 - exp(-d/t), of infinite mean; at k = 20 not.

    >>> null = lid_null(d=10.0, k=20)
    >>> print(round(null.ppf(0.99) / null.median(), 2))
    1.8
    """
    return stats.invgamma(k - 1, scale=(k - 1) * d)


def _pairs(r1: Tensor, r2: Tensor) -> _Pairs:
    if r1.ndim != 1 or r1.shape != r2.shape:
        raise TableError(
            f"r1 and r2 must be two vectors of one length, not shapes {tuple(r1.shape)} and "
            f"{tuple(r2.shape)}."
        )
    a, b = r1.to(torch.float64), r2.to(torch.float64)
    bad = (~(a.isfinite() & b.isfinite()) | (a < 0) | (b < a)).nonzero().flatten()
    if len(bad):
        raise TableError(
            f"{len(bad)} pairs aren't 0 <= r1 <= r2 < inf ({_some_ids(bad)}; the first is "
            f"r1 = {float(a[bad[0]])}, r2 = {float(b[bad[0]])}). Check the rows first."
        )
    some = a > 0
    zeros = int((~some).sum())
    a, b = a[some], b[some]
    m = torch.log1p((b - a) / a)
    ties = int((m == 0).sum())
    if len(m) < 2 or ties == len(m):
        raise TableError(_nothing_left(len(some), zeros, ties))
    return _Pairs(m, float(b.median()), zeros, ties)


def _kept(keep: float, n: int) -> int:
    if not 0 < keep <= 1:
        raise ParameterError(f"keep = {keep} isn't a fraction in (0, 1].")
    k = min(int(keep * n), n - 1)
    if k < 1:
        raise TableError(f"keep = {keep:g} of {n} pairs leaves none; keep more.")
    return k


def _some_ids(rows: Tensor) -> str:
    shown = ", ".join(str(int(i)) for i in rows[:5])
    return f"at {shown}{', ...' if len(rows) > 5 else ''}"


def _nothing_left(n: int, zeros: int, ties: int) -> str:
    return (
        f"No dimension can be read from {n} pairs: {zeros} have r1 = 0 and {ties} have r1 = r2. "
        "Deduplicate the table; it needs at least 3 distinct rows that aren't equidistant."
        + " Distances below 1e-162 beside much longer rows count as 0."
        * bool(zeros)
    )


def _neighbourhood(distances: Tensor, k: int) -> Tensor:
    if not 2 <= k <= distances.shape[1]:
        raise ParameterError(
            f"k = {k} needs 2 <= k <= {distances.shape[1]}, the neighbours that were found."
        )
    return distances[:, :k].to(torch.float64)
