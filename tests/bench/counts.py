"""What the arithmetic says: how much work, or memory, each curve's call is on paper.

Only products are counted: 2 operations for each multiplication with its addition.
"""

from itertools import pairwise

from tests.bench.training import FLOW, staircase_task

BLOCK = 640  # rows of a block of `nearest` on a CPU
PART = 65_536  # rows that are centred at once


def self_join(n: int, d: int = 384) -> float:
    """Operations of the distance matrix's lower half, block by block, of rows [x, 1, h]."""
    edges = [*range(0, n, BLOCK), n]
    sides = sum((b - a) ** 2 for a, b in pairwise(edges))
    return 2 * (d + 2) * (n**2 + sides) / 2


def self_join_mb(n: int, d: int = 384, part: int | None = None, keep: int = 4, k: int = 2) -> float:
    """The table, its prepared copy, a `part` being centred, candidates twice, the answer."""
    rows = 4 * n * d + 4 * n * (d + 2) + 4 * min(n, part or PART) * d
    return (rows + n * (keep * (12 + 16) + k * 16 + 24)) / 1e6


def hull_step(
    V: int, d: int = FLOW["d"], depth: int = 4, network: float | None = None, own: float = 0.25
) -> float:
    """Operations of a training step of the hull; `network` parameters replace the small one's.

    Forward of each token: the network without its head, its head, the kernel's x Eᵀ, the mean
    over E; a share `own` goes forward once more. Backward: twice the network's and its head's, and
    once the mean's, since neither x nor E has a gradient.
    """
    tokens = FLOW["batch"] * FLOW["L"]
    body = 4 * d**2 + depth * (24 * d**2 + 4 * FLOW["L"] * d) if network is None else 2 * network
    return tokens * ((1 + own) * (body + 6 * V * d) + 2 * body + 6 * V * d)


def batch_of_runs(runs: int, V: int | None = None, d: int = 64, m: int = 128) -> float:
    """Operations of a training step of Part I's runs: E Wᵀ and the read-out, forward and back."""
    task, _ = staircase_task()
    N, K = task.labels.shape
    return 6.0 * runs * ((V or task.vocabulary) * d * m + N * m * K)


def vectors(n: int, points: int = 2000) -> float:
    """Numbers in the points' vectors: each goes through a fixed number of operations."""
    return float(points * n)


def matrices(n: int, points: int = 10) -> float:
    """Numbers in the points' matrices."""
    return float(points * n**2)
