"""Tables shared by the hub's tests."""

import pytest
import torch
from torch import Tensor

from tokenspace.hub import Reading, mle, nearest, read_dimension
from tokenspace.sources import EmbeddingTable, load_table


@pytest.fixture(scope="session")
def minilm() -> EmbeddingTable:
    return load_table("minilm")


@pytest.fixture(scope="session")
def minilm_reading(minilm: EmbeddingTable) -> Reading:
    return read_dimension(minilm)


@pytest.fixture(scope="session")
def read():
    """MLE of a table, at all rows or at some."""

    def value(rows: Tensor, queries: Tensor | None = None) -> float:
        found = nearest(rows, 2, queries=queries)
        return mle(found.r1, found.r2).value

    return value


@pytest.fixture
def poisson():
    """Exact neighbour distances of a d-dimensional Poisson process: r_j^d are Gamma(j)."""

    def distances(n: int, d: float, k: int, seed: int) -> Tensor:
        u = torch.rand(n, k, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
        return (-torch.log1p(-u)).cumsum(1) ** (1 / d)

    return distances
