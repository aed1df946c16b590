"""Tasks whose signatures are exact: weighted sequences with the law of their label.

Yao, Hang and Xu (arXiv:2608.30315): arithmetic, label laws, parity, min-max, length three.
Ours: tasks whose label is a mixture of blocks, one context order a block, so that the orders can be
told apart: `factorial` for orders 0, 1 and 2, `pointer` for attention alone.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import torch
import torch.nn.functional as F  # noqa: N812
from jaxtyping import Float64, Int64
from torch import Tensor

from tokenspace.errors import ParameterError

_Y = torch.arange(51, dtype=torch.float64)
LAWS = {  # of the label in Task 1: uniform, normal(25, 1), Poisson(10), exp(-5y), renormalized
    "uniform": torch.zeros_like(_Y).softmax(0),
    "normal": (-((_Y - 25) ** 2) / 2).softmax(0),
    "poisson": (_Y * math.log(10) - torch.lgamma(_Y + 1)).softmax(0),
    "exponential": (-5 * _Y).softmax(0),
}
BLOCKS = ("a", "b+c1", "c+c1+c2", "c1", "c2")  # of `factorial`; the first three have order 0, 1, 2


@dataclass(frozen=True)
class Task:
    """A distribution over (sequence, label): rows X with weight P(X) and labels P(y | X).

    Labels are tokens of the one vocabulary (K = vocabulary) in the paper's tasks, a set of their
    own in ours. `targets` are the tokens whose geometry is studied; `ordered` says that the label
    depends on positions; `blocks` names the label blocks of a mixture.
    """

    name: str
    sequences: Int64[Tensor, "N L"]
    labels: Float64[Tensor, "N K"]
    weights: Float64[Tensor, " N"]
    vocabulary: int
    targets: Int64[Tensor, " T"]
    ordered: bool = False
    blocks: dict[str, slice] = field(default_factory=dict)

    def __post_init__(self) -> None:
        low, high = int(self.sequences.min()), int(self.sequences.max())
        if low < 0 or high >= self.vocabulary:
            raise ParameterError(
                f"{self.name}: tokens {low} to {high} don't fit a vocabulary of "
                f"{self.vocabulary}; it needs at least {high + 1}, and no token below 0."
            )

    @property
    def length(self) -> int:
        """L, tokens in a sequence."""
        return self.sequences.shape[1]

    @property
    def counts(self) -> Float64[Tensor, "N V"]:
        """N_α(X), occurrences of each token: all that a permutation-invariant model sees."""
        zeros = torch.zeros(len(self.sequences), self.vocabulary, dtype=torch.float64)
        return zeros.scatter_add_(1, self.sequences, torch.ones_like(self.sequences).double())

    @property
    def rate(self) -> Float64[Tensor, " T"]:
        """L r_α = E[N_α] of the targets."""
        return self.weights @ self.counts[:, self.targets]

    def merged(self) -> "Task":
        """One row a multiset; raises `ParameterError` when the label depends on positions.

        >>> arithmetic("add", 3).merged().sequences.tolist()
        [[1, 1], [1, 2], [1, 3], [2, 2], [2, 3], [3, 3]]
        """
        if self.ordered:
            raise ParameterError(f"{self.name}: the label depends on positions; train it unmerged.")
        rows, group = self.sequences.sort(dim=1).values.unique(dim=0, return_inverse=True)
        labels, weights = _grouped(self, group)
        return replace(self, sequences=rows, labels=labels, weights=weights)


def best_loss(task: Task, known: Int64[Tensor, "N features"]) -> float:
    """H(y | known features of X), nats: the least cross entropy of who sees only them.

    >>> task = arithmetic("add", 2)
    >>> round(best_loss(task, task.sequences[:, :1]), 4)  # the second summand is one bit
    0.6931
    """
    labels, weights = _grouped(task, known.unique(dim=0, return_inverse=True)[1])
    return float(weights @ torch.special.entr(labels).sum(1))


def _grouped(task: Task, group: Int64[Tensor, " N"]) -> tuple[Tensor, Tensor]:
    """P(y | group), (G, K), and P(group), (G,), for rows put into G groups."""
    size = int(group.max()) + 1
    weights = torch.zeros(size, dtype=torch.float64).index_add_(0, group, task.weights)
    labels = torch.zeros(size, task.labels.shape[1], dtype=torch.float64)
    labels.index_add_(0, group, task.weights[:, None] * task.labels)
    return labels / weights[:, None], weights


def prescribed(kind: str, seed: int = 0) -> Task:
    """Task 1: (a, x1, x2), a = 100, x in {0, ..., 50}; each label drawn once from p_a.

    >>> prescribed("normal").sequences.shape
    torch.Size([2601, 3])
    """
    if kind not in LAWS:
        raise ParameterError(f"law {kind!r} is unknown; take one of {', '.join(LAWS)}.")
    x = torch.cartesian_prod(torch.arange(51), torch.arange(51))
    sequences = torch.cat([torch.full((len(x), 1), 100), x], dim=1)
    g = torch.Generator().manual_seed(seed)
    drawn = torch.multinomial(LAWS[kind], len(x), replacement=True, generator=g)
    return _hard(f"label law {kind}", sequences, drawn, 200, torch.tensor([100]))


def arithmetic(
    operation: str, N: int, vocabulary: int | None = None, modulus: int | None = None
) -> Task:
    """Task 2: all pairs from {1, ..., N}; x1+x2, |x1-x2|, x1 x2, or 1 + (x1+x2) mod M, M = N.

    `vocabulary` is 200 or, when a label is larger, just enough: unused tokens set the common
    early direction of F_mod.

    >>> arithmetic("mod", 3).labels.argmax(1).tolist()
    [3, 1, 2, 1, 2, 3, 2, 3, 1]
    """
    if modulus is not None and (operation != "mod" or modulus < 1):
        raise ParameterError(f"modulus = {modulus} with {operation!r}: give one >= 1, to mod only.")
    x = torch.cartesian_prod(*[torch.arange(1, N + 1)] * 2)  # (N^2, 2)
    a, b = x.T
    sums = {"add": a + b, "sub": (a - b).abs(), "mul": a * b, "mod": 1 + (a + b) % (modulus or N)}
    if operation not in sums:
        raise ParameterError(f"operation {operation!r}: take one of {', '.join(sums)}.")
    return _hard(operation, x, sums[operation], vocabulary, torch.arange(1, N + 1))


def modular(N: int, L: int, vocabulary: int | None = None) -> Task:
    """1 + (x1 + ... + xL) mod N over all N^L sequences of {1, ..., N}, as weighted multisets.

    >>> task = modular(3, 3)
    >>> len(task.weights), round(float(task.weights.sum()), 12)
    (10, 1.0)
    """
    rows = torch.combinations(torch.arange(1, N + 1), r=L, with_replacement=True).reshape(-1, L)
    task = _hard(f"mod, L={L}", rows, 1 + rows.sum(1) % N, vocabulary, torch.arange(1, N + 1))
    orderings = math.lgamma(L + 1) - torch.lgamma(task.counts + 1).sum(1)  # log L!/Πn!
    return replace(task, weights=torch.exp(orderings - L * math.log(N)))


def parity(rows: int = 10_000, seed: int = 0) -> Task:
    """Task 3: an anchor a of {11..20} somewhere among 7 noise tokens of {21..60}; y = a mod 2.

    >>> parity(100).targets.tolist()
    [11, 12, 13, 14, 15, 16, 17, 18, 19, 20]
    """
    g = torch.Generator().manual_seed(seed)
    sequences = torch.randint(21, 61, (rows, 8), generator=g)
    anchor = torch.randint(11, 21, (rows,), generator=g)
    sequences[torch.arange(rows), torch.randint(8, (rows,), generator=g)] = anchor
    task = _hard("parity", sequences, anchor % 2, 61, torch.arange(11, 21))
    return replace(task, ordered=True)


def minmax(N: int) -> Task:
    """(c, x1, x2), x in {1..N}: c = N+1 asks for the larger, c = N+2 for the smaller.

    >>> minmax(2).labels.argmax(1).tolist()
    [1, 2, 2, 2, 1, 1, 1, 2]
    """
    rows = torch.cartesian_prod(torch.arange(N + 1, N + 3), *[torch.arange(1, N + 1)] * 2)
    c, a, b = rows.T
    y = torch.where(c == N + 1, torch.maximum(a, b), torch.minimum(a, b))
    return _hard("min-max", rows, y, N + 3, torch.arange(1, N + 3))


def length_three(A: int = 20, X: int = 40) -> Task:
    """Task 4: (a1, a2, x), a in {1..A}, x in {A+1..A+X}; y = (a1 + a2 + x) mod X.

    When A is a multiple of X order 1 is blank (erratum f).

    >>> length_three(2, 3).sequences.shape
    torch.Size([12, 3])
    """
    anchors, others = torch.arange(1, A + 1), torch.arange(A + 1, A + X + 1)
    rows = torch.cartesian_prod(anchors, anchors, others)
    return _hard("length three", rows, rows.sum(1) % X, A + X + 1, torch.arange(1, A + X + 1))


def factorial(
    q: int = 3, weights: Sequence[int | float] = (1, 1, 1, 1, 1), drop: Sequence[str] = ()
) -> Task:
    """Ours: v = (a, b, c) with contexts c1, c2; y is one of a | b+c1 | c+c1+c2 | c1 | c2, mod q.

    The blocks of `BLOCKS` are mixed in proportion to `weights`; a dropped or weightless block has
    no labels. Tokens: v = q^2 a + q b + c, then c1, then c2, so that a sum knows the place.

    >>> task = factorial()
    >>> task.sequences.shape, task.labels.shape
    (torch.Size([243, 3]), torch.Size([243, 15]))
    """
    unknown = [name for name in drop if name not in BLOCKS]
    if unknown or len(weights) != len(BLOCKS) or min(weights) < 0:
        raise ParameterError(
            f"weights {tuple(weights)}, drop {tuple(drop)}: give {len(BLOCKS)} weights >= 0 and "
            f"names from {', '.join(BLOCKS)}."
        )
    a, b, c, c1, c2 = torch.cartesian_prod(*[torch.arange(q)] * 5).T
    every = zip(BLOCKS, (a, b + c1, c + c1 + c2, c1, c2), weights, strict=True)
    parts = {name: (y, float(w)) for name, y, w in every if w > 0 and name not in drop}
    if not parts:
        raise ParameterError("every block is dropped or weighs 0; leave one.")
    sequences = torch.stack([q * q * a + q * b + c, q**3 + c1, q**3 + q + c2], dim=1)
    return _mixed(f"factorial q={q}", sequences, parts, q, q**3)


def pointer(slots: int = 4, values: int = 4) -> Task:
    """Ours, for attention: y is one of a | the value in slot b, for the last token v = (a, b).

    Before v stands one token a slot, (slot, value); 16 + 16 tokens by default.

    >>> task = pointer()
    >>> task.vocabulary, task.sequences.shape
    (32, torch.Size([4096, 5]))
    """
    n = values * slots
    rows = torch.cartesian_prod(*[torch.arange(values)] * (slots + 1), torch.arange(slots))
    held, a, b = rows[:, :slots], rows[:, slots], rows[:, slots + 1]
    context = n + values * torch.arange(slots) + held
    sequences = torch.cat([context, (slots * a + b)[:, None]], dim=1)
    parts = {"a": (a, 1.0), "pointed": (held.gather(1, b[:, None])[:, 0], 1.0)}
    task = _mixed("pointer", sequences, parts, values, n)
    return replace(task, ordered=True)


def _hard(name: str, sequences: Tensor, y: Tensor, vocabulary: int | None, targets: Tensor) -> Task:
    """The task of one label y (N,) a row of sequences (N, L)."""
    least = max(int(y.max()), int(sequences.max())) + 1
    V = max(200, least) if vocabulary is None else vocabulary
    if least > V:
        raise ParameterError(
            f"{name}: tokens and labels don't fit a vocabulary of {V}; it needs at least {least}."
        )
    labels = F.one_hot(y, V).double()  # (N, V)
    weights = torch.full((len(y),), 1 / len(y), dtype=torch.float64)
    return Task(name, sequences, labels, weights, V, targets)


def _mixed(
    name: str, sequences: Tensor, parts: dict[str, tuple[Tensor, float]], q: int, targets: int
) -> Task:
    """The label is one part's value, mod q, drawn by the parts' weights; q labels a part."""
    total = sum(weight for _, weight in parts.values())
    labels = [F.one_hot(y % q, q).double() * (weight / total) for y, weight in parts.values()]
    blocks = {block: slice(q * i, q * i + q) for i, block in enumerate(parts)}
    weights = torch.full((len(sequences),), 1 / len(sequences), dtype=torch.float64)
    V, ids = int(sequences.max()) + 1, torch.arange(targets)
    return Task(name, sequences, torch.cat(labels, dim=1), weights, V, ids, blocks=blocks)
