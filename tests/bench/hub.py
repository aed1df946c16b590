"""Part II's calls: exact neighbours and the dimension read from them, ours and the peers'."""

from typing import Any

import numpy as np
import torch
from tests.bench.measure import Call

from tokenspace.hub import facco, nearest
from tokenspace.sources import load_table


def table(name: str) -> torch.Tensor:
    return load_table(name).rows.contiguous()


def random_table(n: int = 262_144, d: int = 640) -> torch.Tensor:
    """Random rows, by default of the shape of Gemma 3 270M's table."""
    return torch.randn(n, d, generator=torch.Generator().manual_seed(0))


def our_neighbours(rows: torch.Tensor, queries: int | None = None) -> Call:
    chosen = None if queries is None else torch.arange(queries)
    return lambda: nearest(rows, 2, queries=chosen)


def faiss_neighbours(rows: torch.Tensor) -> Call:
    import faiss

    faiss.omp_set_num_threads(torch.get_num_threads())
    values = rows.numpy()

    def search() -> Any:
        index = faiss.IndexFlatL2(values.shape[1])
        index.add(values)
        return index.search(values, 3)

    return search


def sklearn_neighbours(rows: torch.Tensor) -> Call:
    from sklearn.neighbors import NearestNeighbors

    values = rows.numpy()
    search = NearestNeighbors(n_neighbors=3, algorithm="brute")
    return lambda: search.fit(values).kneighbors(values)


def skdim_twonn(rows: torch.Tensor) -> Call:
    from skdim.id import TwoNN

    values = rows.numpy().astype(np.float64)
    return lambda: TwoNN().fit(values)


def our_twonn(rows: torch.Tensor) -> Call:
    def read() -> Any:
        found = nearest(rows)
        return facco(found.r1, found.r2)

    return read
