"""Part IV's calls: curvature by vectors and by dense matrices, and a model that is read."""

from collections.abc import Callable
from typing import Any

import torch

POINTS = 10_000  # of width 576: SmolLM2's
DENSE = 200  # of them are enough to time the dense matrices; 10,000 would take 26 GB
NUMBERS = POINTS * 576


def random_points(N: int, n: int) -> Any:
    """Random states, each with two random rows, block by block so that no copy is left over."""
    from tokenspace import curvature as cv
    from tokenspace.curvature.points import join

    generator = torch.Generator().manual_seed(0)
    parts = []
    for start in range(0, N, 500):
        size = min(500, N - start)
        z, v1, v2 = torch.randn(3, size, n, generator=generator, dtype=torch.float64)
        half, ids = torch.full((size,), 0.4, dtype=torch.float64), torch.arange(size)
        parts.append(cv.assemble(z, v1, v2, (half, half), (ids, ids + 1)))
    return join(parts)


def by_vectors(n: int = 576) -> Callable[[], Any]:
    """As many points of width n as make up the numbers of 10,000 points of width 576."""
    from tokenspace import curvature as cv

    points = random_points(NUMBERS // n, n)
    cv.curvature(points[:100])
    return lambda: cv.curvature(points)


def dense(points: Any) -> Callable[[int], torch.Tensor]:
    """The dense formula in its cheapest form, outer products alone, with its frame for nothing."""
    from tokenspace import curvature as cv

    at = cv.frame(points)
    a, b = (torch.nn.functional.normalize(v, dim=-1) for v in (points.v1, points.v2))

    def one(i: int) -> torch.Tensor:
        return cv.curvature_on(points.z[i], a[i], b[i], points.q[i], at.e1[i], at.e2[i])

    same = torch.stack([one(i) for i in range(3)]) - cv.curvature(points[:3]).dense()
    assert float(same.abs().max()) < 1e-12
    return one


def by_matrices() -> Callable[[], Any]:
    """Some of the points by the dense formula, which keeps an n × n matrix each."""
    one = dense(random_points(DENSE, 576))
    return lambda: [one(i) for i in range(DENSE)]


def model_read() -> Callable[[], Any]:
    """SmolLM2 loaded, and the points of 33 texts of 14 tokens read."""
    from tokenspace import curvature as cv

    def read() -> Any:
        reader = cv.load_reader("smollm2")
        ids = torch.randint(len(reader.rows), (33, 14), generator=torch.Generator().manual_seed(0))
        return cv.read(reader, ids.tolist())

    return read
