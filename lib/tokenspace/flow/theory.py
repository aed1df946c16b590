"""What arXiv:2608.23551 states, as numbers, and certificates of capture.

The paper's: Proposition 1 and Theorem 1's grid. Ours: certificates, that from here on this
trajectory can end at one token only. In y = x/α and s = σ/α a step is y' = (s'/s) y + (1 - s'/s) D,
a point between y and D. Half the difference of squared distances to e_u and e_v is affine in y, so
it moves between its values at y and at D; where D is close enough to e_v, it can't fall below its
threshold again. The argument holds for every step size, and for rows of any norm.
"""

import math

import torch
from jaxtyping import Float, Float64, Int64
from scipy import integrate, stats
from torch import Tensor

from tokenspace.errors import ParameterError
from tokenspace.flow.exact import MarkovMixture
from tokenspace.flow.path import preserving
from tokenspace.flow.predictor import log_kernel

SEQUENCES = 100_000  # brute force lists them all: above this, gigabytes


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
        return torch.stack(by_token, -1).log_softmax(-1)  # (B, L, V)

    return marginal(joint.expand_as(each)), marginal(joint - each)


def leave_one_out(
    logits: Float[Tensor, "*N V"],
    x: Float[Tensor, "*N d"],
    gamma: Float[Tensor, "*B"],
    E: Float[Tensor, "V d"],
) -> Float[Tensor, "*N V"]:
    """Proposition 1 backwards: log P(s_i = j | x_(-i)) = logit less the token's own kernel."""
    return (logits - log_kernel(x, *preserving(gamma), E)).log_softmax(-1)


def theorem_grid(delta: float, end: float) -> Float64[Tensor, " K"]:
    """Times from 0 with (t' - t)/(1 - t')³ = delta at each step, until 1 - t <= end.

    The coarsest grid that Theorem 1 (c) allows. It has about (end^-2 - 1)/(2 delta) steps, so
    N delta², which the proof needs bounded, is delta/(2 end²). Raises ParameterError unless
    delta > 0 and 0 < end < 1.
    """
    if not (0 < delta < math.inf and 0 < end < 1):
        raise ParameterError(f"delta = {delta} must be above 0, end = {end} in (0, 1).")
    left = [1.0]  # 1 - t
    while left[-1] > end:
        u = left[-1]  # Newton for u + delta u³ = left, from above: convex, so it only descends
        while (excess := u + delta * u**3 - left[-1]) > 1e-15:  # fp64 has no more digits
            u -= excess / (1 + 3 * delta * u**2)
        left.append(u)
    return 1 - torch.tensor(left, dtype=torch.float64)


def nearest_accuracy(snr: float, V: int, d: int) -> float:
    """P(the row nearest to x is the token's own), orthogonal rows of norm √d, exact noise.

    ∫ φ(z) Φ(z + √(d snr))^(V-1) dz.
    """
    ahead = math.sqrt(d * snr)

    def density(z: float) -> float:
        return stats.norm.pdf(z) * math.exp((V - 1) * stats.norm.logcdf(z + ahead))

    return float(integrate.quad(density, -10, 10, limit=200)[0])


def margin(
    y: Float[Tensor, "*N d"], E: Float[Tensor, "V d"]
) -> tuple[Int64[Tensor, "*N"], Float[Tensor, "*N"]]:
    """Nearest row v, and min_u (|y - e_u|² - |y - e_v|²)/2: 0 on a Voronoi face.

    >>> token, m = margin(torch.tensor([0.5]), torch.tensor([[1.0], [-1.0]]))
    >>> token.item(), m.item()
    (0, 1.0)
    """
    two = squared_distances(y, E).topk(2, dim=-1, largest=False)
    return two.indices[..., 0], (two.values[..., 1] - two.values[..., 0]) / 2


def squared_distances(y: Float[Tensor, "*N d"], E: Float[Tensor, "V d"]) -> Float[Tensor, "*N V"]:
    """|y - e_j|² by differences: the expanded square loses the last digits near a token."""
    return torch.stack([(y - e).square().sum(-1) for e in E.to(y)], -1)  # (*N, V)


def threshold(
    s: Float[Tensor, "..."], excess: Float[Tensor, "..."] | float, E: Float[Tensor, "V d"]
) -> Float[Tensor, "..."]:
    """s² [excess + log(2(V-1)(g + Δ²/2)/g)]: a margin above it, and below g/2, is a certificate.

    g is half the least squared distance between rows, Δ their largest distance. A logit error of
    at most B around equal priors has an excess of at most 2B.
    Raises ParameterError where two rows of E are equal.
    """
    half, widest = geometry(E)
    constant = math.log(2 * (len(E) - 1) * (half + widest**2 / 2) / half)
    return s**2 * (excess + constant)


def certify(
    y: Float[Tensor, "*N d"],
    s: Float[Tensor, "..."],
    E: Float[Tensor, "V d"],
    excess: Float[Tensor, "..."] | float,
) -> Int64[Tensor, "*N"]:
    """The token that each position must end at, -1 where nothing is certain yet.

    `excess` bounds log f_u - log f_v, over all u, for the rest of the way: v the nearest row.

    >>> E = torch.tensor([[1.0], [-1.0]])
    >>> certify(torch.tensor([[0.8], [0.01]]), torch.tensor(0.3), E, excess=1.0).tolist()
    [0, -1]
    """
    token, m = margin(y, E)
    mu = threshold(s, excess, E)
    sure = (m > mu) & (mu < geometry(E)[0] / 2)
    return token.masked_fill(~sure, -1)


def excess_of(
    logits: Float[Tensor, "*N V"],
    y: Float[Tensor, "*N d"],
    s: Float[Tensor, "..."],
    E: Float[Tensor, "V d"],
) -> Float[Tensor, "*N"]:
    """max_u log f_u - log f_v at y, v the nearest row: what a predictor adds to the kernel.

    It is measured here, and a certificate needs it for the rest of the way.
    """
    far = squared_distances(y, E)
    f = logits + far / (2 * s[..., None] ** 2)
    nearest = far.argmin(-1, keepdim=True)
    return f.amax(-1) - f.gather(-1, nearest).squeeze(-1)


def audit(certified: Int64[Tensor, "K *N"], final: Int64[Tensor, "*N"]) -> tuple[int, int]:
    """Certificates that named another token than the final one; trajectories without any."""
    given = certified >= 0
    return int((given & (certified != final)).sum()), int((~given.any(0)).sum())


def geometry(E: Float[Tensor, "V d"]) -> tuple[float, float]:
    """g, half the least squared distance between two rows, and Δ, their largest distance."""
    far = torch.pdist(E.double())
    if len(E) < 2 or float(far.min()) == 0:
        raise ParameterError(
            f"E of shape {tuple(E.shape)} has two equal rows, or only one: no trajectory can be "
            "told to end at either."
        )
    return float(far.min()) ** 2 / 2, float(far.max())
