"""What a run trains on, each with an identity."""

from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import torch
from jaxtyping import Int64
from torch import Tensor

from tokenspace.errors import ParameterError
from tokenspace.flow.markov import MarkovMixture
from tokenspace.nn.checkpoint import named
from tokenspace.nn.seeds import draw_windows


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
        return draw_windows(self.tokens, self.L, n, generator)

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
