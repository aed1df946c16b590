"""Probability signatures of tokens, exact for a `Task` (arXiv:2608.30315, section 3).

φ^{y;m}_α(ν, β1..βm) = P(y = ν, x_J1 = β1, ..., x_Jm = βm | x_I = α): I a uniform position, J a
uniform ordered tuple of m other positions. Kept to labels and context tokens that occur:
`label_ids` and `context_ids` name the axes.
"""

import math
from itertools import combinations, permutations

import torch
from jaxtyping import Float64, Int64
from torch import Tensor

from tokenspace.errors import ParameterError
from tokenspace.staircase.tasks import Task

LARGEST = 2**27  # entries of one signature or table of counts, 1 GiB


def label_ids(task: Task) -> Int64[Tensor, " K"]:
    """Labels that occur: the signatures' label axis.

    >>> from tokenspace.staircase import arithmetic
    >>> label_ids(arithmetic("add", 2)).tolist()
    [2, 3, 4]
    """
    return (task.labels > 0).any(0).nonzero()[:, 0]


def context_ids(task: Task) -> Int64[Tensor, " C"]:
    """Tokens that stand beside a target: the signatures' context axes.

    >>> from tokenspace.staircase import factorial
    >>> context_ids(factorial(2)).tolist()
    [8, 9, 10, 11]
    """
    target = torch.isin(task.sequences, task.targets)
    others = target.sum(1, keepdim=True) - target.long() > 0  # a target stands elsewhere in the row
    return task.sequences[others].unique()


def signature_tensor(task: Task, order: int) -> Float64[Tensor, "T K *contexts"]:
    """φ^{y;m} with its axes kept: target, label, m contexts. Every row sums to 1 (Lemma 1).

    Raises `ParameterError` for an order above L - 1 and for a target that never occurs.

    >>> from tokenspace.staircase import arithmetic
    >>> signature_tensor(arithmetic("add", 2), 1)[0].tolist()  # 1: (2, with 1), (3, with 2)
    [[0.5, 0.0], [0.0, 0.5], [0.0, 0.0]]
    """
    _check_order(task, order)
    return _joint(task, [(p[0], p[1:]) for p in permutations(range(task.length), order + 1)])


def label_signature(task: Task, order: int) -> Float64[Tensor, "T features"]:
    """`signature_tensor`, one flat row a target.

    >>> from tokenspace.staircase import arithmetic
    >>> label_signature(arithmetic("add", 2), 0).tolist()
    [[0.5, 0.5, 0.0], [0.0, 0.5, 0.5]]
    """
    return signature_tensor(task, order).flatten(1)


def pure(task: Task, order: int) -> Float64[Tensor, "T features"]:
    """The part of φ^{y;m} that lower orders don't hold: Σ_S⊆J (-1)^(m-|S|) P(y, c_S | v) Π P(c_s).

    Hoeffding's interaction, taken at each set J of context places and laid side by side: order 1
    is P(y, c | v) - P(y | v) P(c). Contexts are taken as independent, with their law over all
    targets. Ours.

    >>> from tokenspace.staircase import factorial
    >>> pure(factorial(), 1).shape  # two places, 15 labels, 6 context tokens
    torch.Size([27, 180])
    """
    _check_order(task, order)
    # Context places are counted without the target's own: slot s of a target at i.
    slots = [[j for j in range(task.length) if j != i] for i in range(task.length)]
    parts = []
    for J in combinations(range(task.length - 1), order):
        places = [(i, tuple(slots[i][s] for s in J)) for i in range(task.length)]
        part = _joint(task, places)  # (T, K, C, ..., C), P(y, c_J | v)
        for axis, s in enumerate(J, start=2):  # less what holds without the context at s
            law = _context_law(task, [(i, slots[i][s]) for i in range(task.length)])
            law = law.reshape(-1, *[1] * (order + 1 - axis))  # (C, 1, ..., 1) along `axis`
            part = part - part.sum(axis, keepdim=True) * law
        parts.append(part.flatten(1))  # (T, K C^order)
    return torch.cat(parts, dim=1)


def fourier(task: Task, k: int) -> Float64[Tensor, "T K"]:
    """h_α = φ^{y;1}_α c_k, c_k(j) = cos(2πkj/p), j of p context tokens. k = 0: order 0.

    >>> from tokenspace.staircase import arithmetic, cosine_gram
    >>> gram = cosine_gram(fourier(arithmetic("mod", 8), 2))  # cos(2π·2(a - b)/8)
    >>> [round(abs(float(x)), 6) for x in gram[0, :3]]
    [1.0, 0.0, 1.0]
    """
    phi = signature_tensor(task, 1)  # (T, K, p)
    p = phi.shape[2]
    if not 0 <= k <= p // 2:
        raise ParameterError(f"k = {k}: {p} context tokens have components 0 to {p // 2}.")
    return phi @ torch.cos(2 * math.pi * k * torch.arange(p, dtype=torch.float64) / p)


def _check_order(task: Task, order: int) -> None:
    if not 0 <= order <= task.length - 1:
        raise ParameterError(
            f"order {order}: {task.name} has sequences of {task.length} tokens, so orders 0 to "
            f"{task.length - 1}."
        )
    entries = len(task.targets) * len(label_ids(task)) * len(context_ids(task)) ** order
    if entries > LARGEST:
        raise ParameterError(
            f"order {order} of {task.name} has {entries:,} entries, more than {LARGEST:,}; take "
            "fewer targets or a lower order."
        )


def _joint(
    task: Task, places: list[tuple[int, tuple[int, ...]]]
) -> Float64[Tensor, "T K *contexts"]:
    """P(y, x_J | x_I = α) averaged over places (I, J), weighted by how often α stands at I."""
    labels, tokens = task.labels[:, label_ids(task)], context_ids(task)
    T, C, order = len(task.targets), len(tokens), len(places[0][1])
    target, context = (place_of(ids, task.vocabulary) for ids in (task.targets, tokens))
    rows = torch.zeros(T * C**order, labels.shape[1], dtype=torch.float64)
    for i, J in places:
        at = target[task.sequences[:, i]]
        here = at >= 0
        index = at[here]
        for j in J:
            index = index * C + context[task.sequences[here, j]]
        rows.index_add_(0, index, task.weights[here, None] * labels[here])
    rows = rows.reshape(T, C**order, -1)  # (T, C^m, K)
    mass = rows.sum((1, 2))
    if (mass == 0).any():
        raise ParameterError(
            f"{task.name}: target tokens {task.targets[mass == 0].tolist()} never occur there; "
            f"leave them out of `targets`."
        )
    joint = (rows / mass[:, None, None]).movedim(1, -1)  # (T, K, C^m)
    return joint.reshape(T, -1, *[C] * order)  # (T, K, C, ..., C)


def place_of(ids: Int64[Tensor, " n"], V: int, missing: int = -1) -> Int64[Tensor, " V"]:
    """Where each of V tokens stands among `ids`; `missing` for one that doesn't."""
    place = torch.full((V,), missing)
    place[ids] = torch.arange(len(ids))
    return place


def _context_law(task: Task, places: list[tuple[int, int]]) -> Float64[Tensor, " C"]:
    """P(x_j = c) beside a target at i, averaged over the places (i, j)."""
    law = torch.zeros(task.vocabulary, dtype=torch.float64)
    for i, j in places:
        here = torch.isin(task.sequences[:, i], task.targets)
        law.index_add_(0, task.sequences[here, j], task.weights[here])
    return law[context_ids(task)] / law.sum()
