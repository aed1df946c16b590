"""A source that is known exactly: a sparse mixture of Markov chains, and its exact denoiser.

Which of K chains wrote a sequence is drawn once, so every position tells of every other. The
likelihood is a sum over K, and the posterior given a noisy sequence is a forward-backward pass
over K V states: model error, solver error and mechanism can be told apart. All in float64.
"""

import math
from dataclasses import dataclass
from functools import cached_property

import torch
from jaxtyping import Float, Float64, Int64
from torch import Tensor

from tokenspace.errors import ParameterError
from tokenspace.flow.path import preserving
from tokenspace.flow.predictor import Prediction, check_simplex, log_kernel


@dataclass(frozen=True, eq=False)
class MarkovMixture:
    """Chain k with probability `weights`, then x_1 ~ `initial`[k], x_{i+1} ~ `transitions`[k, x_i].

    Raises ParameterError for tables off the simplex or of shapes that don't fit.

    >>> source = MarkovMixture.random(seed=0)
    >>> source.V, source.sample(2, 16, torch.Generator().manual_seed(0)).shape
    (12, torch.Size([2, 16]))
    """

    weights: Float64[Tensor, " K"]
    initial: Float64[Tensor, "K V"]
    transitions: Float64[Tensor, "K ..."]  # (K, V, V)

    def __post_init__(self) -> None:
        K, V = self.initial.shape
        if self.weights.shape != (K,) or self.transitions.shape != (K, V, V):
            raise ParameterError(
                f"weights {tuple(self.weights.shape)}, initial {tuple(self.initial.shape)} and "
                f"transitions {tuple(self.transitions.shape)} aren't (K,), (K, V), (K, V, V)."
            )
        for table in (self.weights, self.initial, self.transitions):
            check_simplex(table)

    @classmethod
    def random(
        cls,
        V: int = 12,
        components: int = 4,
        seed: int = 0,
        branching: int = 3,
        floor: float = 0.05,
    ) -> "MarkovMixture":
        """Equally likely chains; `branching` other tokens follow each token, Dirichlet(1) law.

        With probability `floor` the next token is any of the V instead, so that a wrong sequence
        is unlikely, not impossible, and its likelihood says how wrong it is.
        Raises ParameterError unless 1 <= branching < V, components >= 1 and 0 <= floor <= 1.
        """
        if not (1 <= branching < V and components >= 1 and 0 <= floor <= 1):
            raise ParameterError(
                f"V = {V}, components = {components}, branching = {branching}, floor = {floor}: a "
                "token has 1 to V - 1 successors, there is a chain, and floor is in [0, 1]."
            )
        generator = torch.Generator().manual_seed(seed)
        shape = (components, V, V)
        rank = torch.rand(shape, generator=generator, dtype=torch.float64)
        rank[:, range(V), range(V)] = 2  # a token never follows itself: it comes last
        order = rank.argsort(-1).argsort(-1)
        mass = torch.empty(shape, dtype=torch.float64).exponential_(generator=generator)
        mass = mass * (order < branching)
        first = torch.empty(shape[:2], dtype=torch.float64).exponential_(generator=generator)
        weights = torch.full((components,), 1 / components, dtype=torch.float64)
        transitions = floor / V + (1 - floor) * mass / mass.sum(-1, True)
        return cls(weights, first / first.sum(-1, True), transitions)

    @property
    def V(self) -> int:
        """Tokens in the vocabulary."""
        return self.initial.shape[1]

    @cached_property
    def logs(self) -> tuple[Tensor, Tensor]:
        """log P(k, x_1) (K, V) and log P(x' | k, x) (K, V, V); -inf where it can't be."""
        return (self.weights[:, None] * self.initial).log(), self.transitions.log()

    def sample(self, n: int, L: int, generator: torch.Generator) -> Int64[Tensor, "n L"]:
        """n sequences of L tokens, drawn in float64."""
        chain = self.weights.multinomial(n, replacement=True, generator=generator)
        tokens = [self.initial[chain].multinomial(1, generator=generator).squeeze(1)]
        for _ in range(L - 1):
            law = self.transitions[chain, tokens[-1]]
            tokens.append(law.multinomial(1, generator=generator).squeeze(1))
        return torch.stack(tokens, 1)  # (n, L)

    def log_likelihoods(self, tokens: Int64[Tensor, "n L"]) -> Float64[Tensor, "n K"]:
        """log P(k, x) of each chain; -inf where the chain can't have written the sequence.

        Raises ParameterError for ids outside the vocabulary.
        """
        if bool(((tokens < 0) | (tokens >= self.V)).any()):
            raise ParameterError(
                f"Token ids from {int(tokens.min())} to {int(tokens.max())}; this source has 0 to "
                f"{self.V - 1}."
            )
        first, step = self.logs
        return first[:, tokens[:, 0]].T + step[:, tokens[:, :-1], tokens[:, 1:]].sum(-1).T

    def nll(self, tokens: Int64[Tensor, "n L"]) -> Float64[Tensor, " n"]:
        """-log P(x)/L in nats a token; +inf for a sequence that no chain can write.

        >>> source = MarkovMixture.random(V=2, components=1, branching=1)
        >>> both = torch.tensor([[0, 0], [0, 1], [1, 0], [1, 1]])
        >>> round(float((-2 * source.nll(both)).exp().sum()), 6)
        1.0
        """
        return -self.log_likelihoods(tokens).logsumexp(1) / tokens.shape[1]

    def entropy(self, L: int, n: int, generator: torch.Generator) -> tuple[float, float]:
        """H(x_1..x_L)/L in nats a token, and its standard error from n sequences.

        H = H(x | k) + H(k) - H(k | x): the first two are sums, only H(k | x) is sampled.
        """
        rows = torch.special.entr(self.transitions).sum(-1)  # (K, V)
        inside = torch.special.entr(self.initial).sum(-1)
        inside = inside + (self.chain_marginals(L)[:-1] * rows).sum((0, 2))
        known = float(self.weights @ inside + torch.special.entr(self.weights).sum())
        chain = self.log_likelihoods(self.sample(n, L, generator)).softmax(1)
        left = torch.special.entr(chain).sum(1)
        return (known - float(left.mean())) / L, float(left.std()) / math.sqrt(n) / L

    def chain_marginals(self, L: int) -> Float64[Tensor, "L K V"]:
        """P(x_i = v | k), exactly."""
        laws = [self.initial]
        for _ in range(L - 1):
            laws.append((laws[-1][:, None] @ self.transitions)[:, 0])
        return torch.stack(laws)  # (L, K, V)

    def marginals(self, L: int) -> Float64[Tensor, "L V"]:
        """P(x_i = v), exactly: the prior of a denoiser that ignores context."""
        return torch.einsum("k,lkv->lv", self.weights, self.chain_marginals(L))  # (L, V)

    def bigram(self, L: int) -> Float64[Tensor, "V V"]:
        """P(x_i = u, x_{i+1} = v) with i uniform on 1..L-1, exactly."""
        before = self.chain_marginals(L)[:-1].mean(0)
        return torch.einsum("k,ku,kuv->uv", self.weights, before, self.transitions)  # (V, V)

    def log_odds_bound(self) -> float:
        """The most that any context can favour one token over another, in nats.

        Given the rest of a sequence, token u has at most e^bound times the odds of token v: the
        largest ratio on the way in plus the largest on the way out, in one chain. It bounds the
        `excess` of the oracle's certificates; +inf where something can't be.
        """
        first, step = self.logs
        if bool(step.isneginf().any() | first.isneginf().any()):
            return math.inf
        K, V = first.shape
        into = torch.cat([step, first[:, None], torch.zeros(K, 1, V)], 1)  # or first, or no way
        out = torch.cat([step, torch.zeros(K, V, 1)], 2)
        gain = (into[..., None] - into[..., None, :]).amax(1)  # (K, u, v)
        return float((gain + (out[:, :, None] - out[:, None]).amax(-1)).max())

    def oracle(self, E: Float[Tensor, "V d"]) -> "Oracle":
        """The exact denoiser E[e | x]; raises ParameterError unless E has a row for each token."""
        return Oracle(self, E)


class Oracle:
    """A `Denoiser` without error: log P(x_i = j | x) as logits, and the mean under them.

    Rows of E may have any norm. Self-conditioning is accepted and changes nothing.

    >>> source, x = MarkovMixture.random(V=3, branching=2), torch.zeros(1, 4, 3)
    >>> at = source.oracle(torch.eye(3))(x, torch.tensor([40.0]), x)  # noise: the prior
    >>> torch.allclose(at.logits[0].exp().double(), source.marginals(4), atol=1e-6)
    True
    """

    def __init__(self, source: MarkovMixture, E: Float[Tensor, "V d"]) -> None:
        if len(E) != source.V:
            raise ParameterError(f"E has {len(E)} rows for a source of {source.V} tokens.")
        self.source, self.E = source, E

    def __call__(
        self, x: Float[Tensor, "B L d"], gamma: Float[Tensor, "*B"], c: Tensor | None = None
    ) -> Prediction:
        evidence = log_kernel(x.double(), *preserving(gamma.double()), self.E)
        logits = self.log_posterior(evidence.to(self.source.transitions.device))
        return Prediction(logits.to(x), (logits.exp() @ self.E.to(logits)).to(x))

    def log_posterior(self, evidence: Float64[Tensor, "B L V"]) -> Float64[Tensor, "B L V"]:
        """log P(x_i = j | evidence) by forward-backward over (chain, token), in log space."""
        seen = evidence.transpose(0, 1)[:, None]  # (L, 1, B, V)
        L, T = len(seen), self.source.transitions
        forward = [self.source.logs[0][:, None] + seen[0]]  # (K, B, V)
        for i in range(1, L):
            forward.append(log_matmul(forward[-1], T) + seen[i])
        backward = [torch.zeros_like(forward[0])]
        for i in range(L - 1, 0, -1):
            backward.append(log_matmul(backward[-1] + seen[i], T.mT))
        each = [a + b for a, b in zip(forward, backward[::-1], strict=True)]
        joint = torch.stack(each, 2)  # (K, B, L, V)
        return joint.logsumexp(0).log_softmax(-1)  # (B, L, V)


def log_matmul(
    a: Float64[Tensor, "K B V"], T: Float64[Tensor, "K V W"]
) -> Float64[Tensor, "K B W"]:
    """log(exp(a) T) row by row, without under- or overflow.

    Where all of T is positive, rows scaled by their largest entry lose nothing that counts. Where
    it isn't, T may forbid the very token that holds all of the scaled mass, since near the data
    the evidence spans over 700 nats: then it is a sum of logarithms, several times slower.

    >>> a = torch.tensor([[[0.0, -2000.0]]], dtype=torch.float64)
    >>> log_matmul(a, torch.tensor([[[0.0], [1.0]]], dtype=torch.float64)).round().item()
    -2000.0
    """
    if not bool((T > 0).all()):
        return (a[..., None] + T.log()[:, None]).logsumexp(-2)
    top = a.amax(-1, keepdim=True)
    return ((a - top).exp() @ T).log() + top
