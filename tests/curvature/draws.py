"""Random points for the tests of Part IV."""

import torch

from tokenspace.curvature.points import Points, assemble


def normal(*shape: int, seed: int = 0) -> torch.Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(*shape, generator=generator, dtype=torch.float64)


def random_points(N: int, n: int, seed: int = 0) -> Points:
    """States with some part along their two rows, probabilities of every size."""
    h, v1, v2 = normal(3, N, n, seed=seed)
    share = torch.rand(3, N, generator=torch.Generator().manual_seed(seed)).double()
    share = share / share.sum(0)
    p1, p2 = share[:2].sort(dim=0, descending=True).values
    ids = torch.arange(N)
    return assemble(3 * h + v1, v1, 2 * v2, (p1, p2), (ids, ids + 1))
