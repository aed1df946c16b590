"""Shortcuts that people take, to see what they do to a reading: neighbours that are only probably
the nearest, and rows stored with few bits.
"""

from collections.abc import Sequence

import gguf
import numpy as np
import torch
from jaxtyping import Float, Int64
from torch import Tensor

from tokenspace.errors import ParameterError
from tokenspace.hub.neighbours import Neighbours, measure


def approximate(
    rows: Float[Tensor, "n d"],
    index: str,
    settings: Sequence[str] = ("",),
    *,
    k: int = 2,
    queries: Int64[Tensor, " q"] | None = None,
) -> list[Neighbours]:
    """Neighbours by a faiss index, one result for each of its search settings.

    `index` is a faiss factory string ("HNSW32", "IVF128,Flat"), `settings` like "efSearch=64" or
    "nprobe=4". Distances to what it found are measured in fp64, so that only the choice of
    neighbours is approximate; queries with fewer than k are left out. Built on one thread: with
    more, an HNSW graph depends on their timing.

    >>> rows = torch.tensor([[0.0], [1.0], [3.0]])
    >>> approximate(rows, "Flat")[0].indices.tolist()
    [[1, 2], [0, 2], [1, 0]]
    """
    import faiss  # large, and wanted by one section of one page

    vectors = np.ascontiguousarray(rows.float().numpy())
    at = torch.arange(len(rows)) if queries is None else queries
    built = faiss.index_factory(rows.shape[1], index)
    threads = faiss.omp_get_max_threads()
    faiss.omp_set_num_threads(1)
    built.train(vectors)
    built.add(vectors)
    faiss.omp_set_num_threads(threads)
    found = []
    for setting in settings:
        if setting:
            # faiss's stub knows only the form that takes a number
            faiss.ParameterSpace().set_index_parameters(built, setting)  # type: ignore[arg-type]
        _, ids = built.search(vectors[at.numpy()], k + 1)  # one may be the row itself
        others = torch.from_numpy(np.where(ids == at.numpy()[:, None], -1, ids))
        far, some = measure(rows, at, others, k)
        enough = far[:, -1].isfinite()
        found.append(Neighbours(far[enough], some[enough], at[enough], 0))
    return found


def recall(found: Neighbours, exact: Neighbours) -> float:
    """Share of the exact neighbours that were found, over the queries of `found`.

    Both must hold their queries in ascending order, those of `found` among those of `exact`.

    >>> rows = torch.tensor([[0.0], [1.0], [3.0]])
    >>> recall(approximate(rows, "Flat")[0], approximate(rows, "Flat")[0])
    1.0
    """
    truth = exact.indices[torch.searchsorted(exact.queries, found.queries)]
    return float((truth[:, :, None] == found.indices[:, None]).any(2).double().mean())


def requantize(rows: Float[Tensor, "n d"], kind: str) -> Float[Tensor, "n d"]:
    """Rows as they come back from GGUF storage of a kind: "Q8_0", "Q5_0", "Q4_1", "Q4_0".

    Raises `ParameterError` for a kind that the gguf library can't write, and for a width that
    isn't a multiple of its block.

    >>> rows = torch.linspace(-1, 1, 64).reshape(2, 32)
    >>> bool((requantize(rows, "Q8_0") - rows).abs().max() < 1 / 127)
    True
    """
    try:
        code = gguf.GGMLQuantizationType[kind]
        block, _ = gguf.GGML_QUANT_SIZES[code]
        if rows.shape[1] % block:
            raise ParameterError(
                f"{kind} stores blocks of {block} numbers; rows of {rows.shape[1]} don't divide."
            )
        packed = gguf.quantize(rows.float().numpy(), code)
        return torch.from_numpy(np.array(gguf.dequantize(packed, code), dtype=np.float32))
    except (KeyError, NotImplementedError):
        raise ParameterError(
            f"the gguf library can't write {kind!r}; try Q8_0, Q5_0, Q4_1 or Q4_0."
        ) from None
