"""What arXiv:2608.23551 proves, as numbers: Propositions 1 to 3, Theorem 1's grid, exact flows.

Ours: hull identity A, the one-dimensional quantile map, and the Brier form of the loss.
"""

import math

import torch
from jaxtyping import Float, Float64, Int64
from scipy import integrate, spatial, stats
from torch import Tensor

from tokenspace.errors import ParameterError
from tokenspace.flow.markov import MarkovMixture
from tokenspace.flow.path import Point, preserving
from tokenspace.flow.predictor import log_kernel

SEQUENCES = 100_000  # brute force lists them all


def brute_force(
    source: MarkovMixture,
    x: Float[Tensor, "B L d"],
    gamma: Float[Tensor, "*B"],
    E: Float[Tensor, "V d"],
) -> tuple[Float64[Tensor, "B L V"], Float64[Tensor, "B L V"]]:
    """log P(s_i = j | x), and log P(s_i = j | x without position i), summing all V^L sequences.

    Raises ParameterError above 100,000 sequences.

    >>> source, x = MarkovMixture.random(V=2, branching=1), torch.zeros(1, 3, 2)
    >>> full, without = brute_force(source, x, torch.tensor([0.0]), torch.eye(2))
    >>> torch.allclose(full, without)  # x = 0 tells nothing of its own token
    True
    """
    (_, L, _), V = x.shape, source.V
    if V**L > SEQUENCES:
        raise ParameterError(f"{V}^{L} sequences are too many to list; at most {SEQUENCES:,}.")
    every = torch.cartesian_prod(*[torch.arange(V)] * L).reshape(-1, L)  # (V^L, L)
    evidence = log_kernel(x.double(), *preserving(gamma.double()), E)
    each = evidence[:, torch.arange(L), every]  # (B, V^L, L)
    joint = (-L * source.nll(every))[:, None] + each.sum(-1, keepdim=True)  # (B, V^L, 1)

    def marginal(log_p: Float[Tensor, "B S L"]) -> Float[Tensor, "B L V"]:
        by_token = [log_p.masked_fill(every != j, -math.inf).logsumexp(1) for j in range(V)]
        return torch.stack(by_token, -1).log_softmax(-1)

    return marginal(joint.expand_as(each)), marginal(joint - each)


def leave_one_out(
    logits: Float[Tensor, "*N V"],
    x: Float[Tensor, "*N d"],
    gamma: Float[Tensor, "*B"],
    E: Float[Tensor, "V d"],
) -> Float[Tensor, "*N V"]:
    """Proposition 1 backwards: log P(s_i = j | x_(-i)) = logit less the token's own kernel.

    >>> x, gamma, E = torch.ones(1, 1, 2), torch.zeros(1), torch.eye(2)
    >>> leave_one_out(torch.zeros(1, 1, 2), x, gamma, E).exp().round(decimals=5).tolist()
    [[[0.5, 0.5]]]
    """
    return (logits - log_kernel(x, *preserving(gamma), E)).log_softmax(-1)


def hull_average(means: Float[Tensor, "M *N d"], points: Point) -> Float[Tensor, "*N d"]:
    """D̄ of identity A: x_K = (σ_K/σ_0) x_0 + (α_K - σ_K α_0/σ_0) D̄, on any grid with σ > 0.

    Its weights are the steps of α/σ over their sum: D̄ is in any convex set that holds all means.

    >>> at = (torch.tensor([0.0, 0.5, 0.8]), torch.tensor([1.0, 0.5, 0.2]))
    >>> round(hull_average(torch.tensor([[0.0], [4.0]]), at).item(), 5)
    3.0
    """
    steps = (points[0] / points[1]).diff()
    return torch.tensordot((steps / steps.sum()).to(means), means, dims=1)


def theorem_grid(delta: float, end: float) -> Float64[Tensor, " K"]:
    """Times from 0 with (t' - t)/(1 - t')³ = delta at each step, until 1 - t <= end.

    The coarsest grid that Theorem 1 (c) allows. It has about (end^-2 - 1)/(2 delta) steps, so
    N delta², which the proof needs bounded, is delta/(2 end²). Raises ParameterError unless
    delta > 0 and 0 < end < 1.

    >>> t = theorem_grid(0.5, 0.1)
    >>> len(t), round(float((t[1] - t[0]) / (1 - t[1]) ** 3), 6)
    (104, 0.5)
    """
    if not (0 < delta < math.inf and 0 < end < 1):
        raise ParameterError(f"delta = {delta} must be above 0, end = {end} in (0, 1).")
    left = [1.0]  # 1 - t
    while left[-1] > end:
        u = left[-1]  # Newton for u + delta u³ = left, from above: convex, so it only descends
        while (excess := u + delta * u**3 - left[-1]) > 1e-15:
            u -= excess / (1 + 3 * delta * u**2)
        left.append(u)
    return 1 - torch.tensor(left, dtype=torch.float64)


def proposition_2_bound(d: int) -> float:
    """P(χ²_d >= (1 + √d)²): how often its flow ends at distance 1 or more from every row.

    >>> round(proposition_2_bound(768), 4)
    0.0774
    """
    return float(stats.chi2.sf((1 + math.sqrt(d)) ** 2, d))


def proposition_3(
    weights: Float[Tensor, "*N V"], E: Float[Tensor, "V d"]
) -> tuple[Float[Tensor, "*N"], Float[Tensor, "*N"]]:
    """|μ|²/|e|² and its bound 1 - ρ + ρ Σ w², ρ = 1 - the largest cosine; rows of one norm.

    >>> [round(v.item(), 5) for v in proposition_3(torch.tensor([0.5, 0.5]), torch.eye(2))]
    [0.5, 0.5]
    """
    gram = torch.nn.functional.normalize(E, dim=-1)
    gram = (gram @ gram.mT).abs().fill_diagonal_(0)
    rho = 1 - gram.max()
    share = (weights @ E).square().sum(-1) / E[0].square().sum()
    return share, 1 - rho + rho * weights.square().sum(-1)


def nearest_accuracy(snr: float, V: int, d: int) -> float:
    """P(the row nearest to x is the token's own), orthogonal rows of norm √d, exact noise.

    ∫ φ(z) Φ(z + √(d snr))^(V-1) dz.

    >>> round(nearest_accuracy(0.0, 4, 8), 6)
    0.25
    """
    ahead = math.sqrt(d * snr)

    def density(z: float) -> float:
        return stats.norm.pdf(z) * math.exp((V - 1) * stats.norm.logcdf(z + ahead))

    return float(integrate.quad(density, -10, 10, limit=200)[0])


def nearest_band(d: int, low: float = 0.01, high: float = 0.99) -> tuple[float, float]:
    """Quantiles of the exact flow's |x - α e|/(σ√d), a χ over its √d.

    >>> [round(v, 4) for v in nearest_band(768)]
    [0.9408, 1.0595]
    """
    low_q, high_q = stats.chi2.ppf([low, high], d)
    return math.sqrt(low_q / d), math.sqrt(high_q / d)


def quantile_map(
    x: Float[Tensor, " n"], tokens: Float[Tensor, " V"], prior: Float[Tensor, " V"]
) -> Int64[Tensor, " n"]:
    """Where the exact flow on a line takes x ~ N(0, 1): it keeps order, so it maps quantiles.

    >>> two, half = torch.tensor([1.0, -1.0]), torch.tensor([0.5, 0.5])
    >>> quantile_map(torch.tensor([-0.1, 0.1]), two, half).tolist()
    [1, 0]
    """
    order = tokens.argsort()
    edges = prior.double()[order].cumsum(0)[:-1]
    return order[torch.searchsorted(edges, torch.special.ndtr(x.double()))]


def brier(weights: Float[Tensor, "*N V"], tokens: Int64[Tensor, "*N"]) -> Float[Tensor, "*N"]:
    """Σ_j (w_j - [j is the token])²; times d it is |μ - e|² for orthogonal rows of norm √d.

    >>> brier(torch.tensor([0.5, 0.5]), torch.tensor(0)).item()
    0.5
    """
    return (weights - torch.nn.functional.one_hot(tokens, weights.shape[-1])).square().sum(-1)


def extreme_share(E: Float[Tensor, "V d"]) -> float:
    """Share of rows that no mixture of the others can make; 1 for rows of one norm. d <= 8.

    >>> extreme_share(torch.tensor([[1.0, 1], [-1, 1], [-1, -1], [1, -1], [0, 0]]))
    0.8
    """
    if not 2 <= E.shape[1] <= 8:
        raise ParameterError(f"d = {E.shape[1]}: the convex hull is found for d from 2 to 8 only.")
    return len(spatial.ConvexHull(E.double().numpy()).vertices) / len(E)
