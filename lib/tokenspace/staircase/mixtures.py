"""Ours: tasks whose label is a mixture of blocks, one context order a block.

`factorial` tells orders 0, 1 and 2 apart exactly; `pointer` is for attention alone.
"""

from collections.abc import Sequence
from dataclasses import replace

import torch
from jaxtyping import Int64
from torch import Tensor

from tokenspace.errors import ParameterError
from tokenspace.staircase.tasks import Task

BLOCKS = ("a", "b+c1", "c+c1+c2", "c1", "c2")  # of `factorial`; the first three have order 0, 1, 2


def factorial(
    q: int = 3, weights: Sequence[int | float] = (1, 1, 1, 1, 1), drop: Sequence[str] = ()
) -> Task:
    """Ours: v = (a, b, c) with contexts c1, c2; y is one of a | b+c1 | c+c1+c2 | c1 | c2, mod q.

    The blocks of `BLOCKS` are mixed in proportion to `weights`; a dropped or weightless block has
    no labels. Tokens: v = q^2 a + q b + c, then c1, then c2, so that a sum knows the place.

    >>> task = factorial()
    >>> task.sequences.shape, task.labels.shape, round(task.entropy, 4)
    (torch.Size([243, 3]), torch.Size([243, 15]), 1.6094)
    """
    unknown = [name for name in drop if name not in BLOCKS]
    if unknown or len(weights) != len(BLOCKS) or min(weights) < 0:
        raise ParameterError(
            f"weights {tuple(weights)}, drop {tuple(drop)}: give {len(BLOCKS)} weights >= 0 and "
            f"names from {', '.join(BLOCKS)}."
        )
    mix = {n: float(w) for n, w in zip(BLOCKS, weights, strict=True) if w > 0 and n not in drop}
    if not mix:
        raise ParameterError("every block is dropped or weighs 0; leave one.")
    a, b, c, c1, c2 = torch.cartesian_prod(*[torch.arange(q)] * 5).T
    values = dict(zip(BLOCKS, (a, b + c1, c + c1 + c2, c1, c2), strict=True))
    sequences = torch.stack([q * q * a + q * b + c, q**3 + c1, q**3 + q + c2], dim=1)
    return _mixed(f"factorial q={q}", sequences, values, mix, q, q**3 + 2 * q, q**3)


def pointer(slots: int = 4, values: int = 4) -> Task:
    """Ours, for attention: y is one of a | the value in slot b, for the last token v = (a, b).

    Before v stands one token a slot, (slot, value); 16 + 16 tokens by default.

    >>> task = pointer()
    >>> task.vocabulary, task.sequences.shape, round(task.entropy, 4)
    (32, torch.Size([4096, 5]), 0.6931)
    """
    n = values * slots
    rows = torch.cartesian_prod(*[torch.arange(values)] * (slots + 1), torch.arange(slots))
    held, a, b = rows[:, :slots], rows[:, slots], rows[:, slots + 1]
    context = n + values * torch.arange(slots) + held
    sequences = torch.cat([context, (slots * a + b)[:, None]], dim=1)
    pointed = held.gather(1, b[:, None])[:, 0]
    named = {"a": a, "pointed": pointed}
    task = _mixed("pointer", sequences, named, {"a": 1.0, "pointed": 1.0}, values, 2 * n, n)
    return replace(task, ordered=True)


def _mixed(
    name: str,
    sequences: Int64[Tensor, "N L"],
    values: dict[str, Tensor],
    mix: dict[str, float],
    q: int,
    vocabulary: int,
    targets: int,
) -> Task:
    total, n = sum(mix.values()), len(sequences)
    labels = torch.zeros(n, q * len(mix), dtype=torch.float64)
    blocks = {}
    for place, (block, weight) in enumerate(mix.items()):
        labels[torch.arange(n), q * place + values[block] % q] = weight / total
        blocks[block] = slice(q * place, q * place + q)
    ids = torch.arange(targets)
    return Task(
        name,
        sequences,
        labels,
        torch.full((n,), 1 / n, dtype=torch.float64),
        vocabulary,
        ids,
        blocks=blocks,
    )
