"""One rule for what is random: a draw depends on the seed, the step and what it is drawn for.

So a step can be repeated, a run resumed and a batch split over processes, and the step alone is
the state of all random numbers. Part I follows the older `step_generator`: its pages are made by
those numbers.
"""

import hashlib

import torch
from jaxtyping import Int64
from torch import Tensor


def seed_of(*parts: int | str) -> int:
    """A seed that depends on all the parts, in their order.

    >>> seed_of(0, 1, "noise") == seed_of(1, 0, "noise")
    False
    """
    raw = hashlib.sha256(" ".join(map(str, parts)).encode()).digest()
    return int.from_bytes(raw[:7], "big")  # 56 bits: a generator takes up to 64


def generator(*parts: int | str) -> torch.Generator:
    """A generator seeded by `seed_of`."""
    return torch.Generator().manual_seed(seed_of(*parts))


def step_generator(seed: int, step: int) -> torch.Generator:
    """The generator of Part I's draws at a step (or an epoch) of a run.

    >>> one, two = step_generator(0, 1), step_generator(1, 0)
    >>> one.initial_seed() == two.initial_seed()
    False
    """
    # A prime above the number of steps keeps the seeds' sequences apart.
    return torch.Generator().manual_seed(1_000_003 * (seed + 1) + step)


def draw_windows(
    tokens: Int64[Tensor, " n"], width: int, count: int, generator: torch.Generator
) -> Int64[Tensor, "count width"]:
    """Windows of `width` tokens of a text, each place equally likely, the first and last too.

    >>> draw_windows(torch.arange(9), 3, 2, generator(0)).diff(dim=1).tolist()
    [[1, 1], [1, 1]]
    """
    first = torch.randint(len(tokens) - width + 1, (count, 1), generator=generator)
    return tokens[first + torch.arange(width)]  # (count, 1) + (width,) -> (count, width)
