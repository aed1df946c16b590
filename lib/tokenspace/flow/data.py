"""What a run trains on, each with an identity, and the generators of a step's randomness."""

import hashlib
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import torch
from jaxtyping import Int64
from torch import Tensor

from tokenspace.errors import ParameterError
from tokenspace.flow.markov import MarkovMixture
from tokenspace.tensors import digest


@runtime_checkable
class Data(Protocol):
    """(n, generator) to n sequences; `identity` is a text that tells data sets apart."""

    @property
    def identity(self) -> str: ...

    def __call__(self, n: int, generator: torch.Generator) -> Int64[Tensor, "n L"]: ...


@dataclass(frozen=True)
class Windows:
    """Random windows of L tokens of one text, as the released code draws them.

    Raises ParameterError for a text shorter than a window.

    >>> Windows(torch.arange(9), 4)(2, torch.Generator().manual_seed(0)).shape
    torch.Size([2, 4])
    """

    tokens: Int64[Tensor, " n"]
    L: int

    def __post_init__(self) -> None:
        if not 1 <= self.L <= len(self.tokens):
            raise ParameterError(f"Windows of {self.L} tokens from a text of {len(self.tokens)}.")

    def __call__(self, n: int, generator: torch.Generator) -> Int64[Tensor, "n L"]:
        starts = torch.randint(len(self.tokens) - self.L + 1, (n, 1), generator=generator)
        return self.tokens[starts + torch.arange(self.L)]

    @property
    def identity(self) -> str:
        """L, and length and digest of the text."""
        return f"windows of {self.L} from {len(self.tokens)} tokens {named(self.tokens)}"


@dataclass(frozen=True)
class Sequences:
    """Fresh sequences of L tokens from a known source."""

    source: MarkovMixture
    L: int

    def __call__(self, n: int, generator: torch.Generator) -> Int64[Tensor, "n L"]:
        return self.source.sample(n, self.L, generator)

    @property
    def identity(self) -> str:
        """L and a digest of the source's tables."""
        tables = (self.source.weights, self.source.initial, self.source.transitions)
        return f"sequences of {self.L} from {' '.join(map(named, tables))}"


def named(tensor: Tensor) -> str:
    """Name a tensor by its shape, type and values.

    >>> named(torch.zeros(2)) == named(torch.zeros(3))
    False
    """
    return digest(f"{tuple(tensor.shape)} {tensor.dtype}", tensor)


def seed_of(*parts: int | str) -> int:
    """A seed that depends on all the parts.

    >>> seed_of(0, 1, "noise") == seed_of(1, 0, "noise")
    False
    """
    raw = hashlib.sha256(" ".join(map(str, parts)).encode()).digest()
    return int.from_bytes(raw[:7], "big")


def generator(*parts: int | str) -> torch.Generator:
    """A generator seeded by `seed_of`."""
    return torch.Generator().manual_seed(seed_of(*parts))
