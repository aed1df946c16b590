"""A table beside added rows of every length: what dragging a hub to the origin does.

|x - s y|² = |x|² + s² |y|² - 2 s <x, y>, so one product of the two tables serves every scale s.
"""

from collections.abc import Iterator, Sequence
from itertools import product

import torch
from jaxtyping import Float
from torch import Tensor

from tokenspace.errors import TableError
from tokenspace.hub.neighbours import Neighbours


def beside(
    rows: Float[Tensor, "n D"],
    alone: Neighbours,
    extra: Float[Tensor, "h D"],
    scales: Sequence[float],
    counts: Sequence[int],
) -> Iterator[tuple[float, int, Neighbours]]:
    """Two neighbours of every row when the first `count` of `scale` x `extra` are appended.

    `alone` is `nearest(rows)`; an appended row has the id it would have in the joined table.
    Gives (scale, count, neighbours) for every pair. Raises `TableError` where `alone` is not of
    all rows, or a count not within 1..h.

    >>> from tokenspace.hub import nearest
    >>> rows, far = torch.eye(3), torch.tensor([[9.0, 0.0, 0.0], [0.0, 9.0, 0.0]])
    >>> found = beside(rows, nearest(rows), far, [1.0, 0.1], [2])
    >>> [neighbours.indices[0].tolist() for _, _, neighbours in found]
    [[1, 2], [3, 4]]
    """
    n, h = len(rows), len(extra)
    if len(alone.queries) != n or not all(1 <= count <= h for count in counts):
        raise TableError(
            f"neighbours of {len(alone.queries)} of {n} rows, and counts {list(counts)} of {h} "
            "added rows: give nearest(rows), and counts between 1 and the rows added."
        )
    x, y = rows.double(), extra.double()
    squares, added, products = x.square().sum(1)[:, None], y.square().sum(1), x @ y.T
    for scale, count in product(scales, counts):
        near = squares + scale**2 * added[:count] - 2 * scale * products[:, :count]
        best = near.topk(min(2, count), largest=False)
        distances = torch.cat([alone.distances[:, :2], best.values.clamp_min(0).sqrt()], dim=1)
        indices = torch.cat([alone.indices[:, :2], best.indices + n], dim=1)
        first = distances.sort(dim=1, stable=True)
        two = first.indices[:, :2]
        yield (
            scale,
            count,
            Neighbours(first.values[:, :2], indices.gather(1, two), alone.queries, alone.redone),
        )
