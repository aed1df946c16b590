"""What is timed: each row names our call, the peer's, and the ratio that we aim for."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tests.bench import chess, curvature, hub, training
from tests.bench.measure import Call


@dataclass(frozen=True)
class Row:
    """One comparison: each side prepares outside the clock and returns the call to time.

    `unit` is "ratio" (of seconds), "peak MB" against the target alone, or "memory", a ratio of
    the bytes that the results hold. `work` is how much each side does, where that isn't the same.
    `single` rows are measured with one thread too, where that teaches something. `why` says what a
    miss of the target is due to.
    """

    part: str
    peer: str
    target: float
    ours: Callable[[], Call]
    theirs: Callable[[], Call] | None = None
    unit: str = "ratio"
    slow: bool = False
    single: bool = False
    why: str = ""
    work: tuple[int, int] = (1, 1)


NEIGHBOURS = (
    "half the products of the distance matrix are the floor of any exact self-join; what is above "
    "it goes to keeping candidates (row minima, top-k) and to the fp64 answer, which the peer "
    "doesn't give"
)
TABLE = "the table, its centred copy and PyTorch itself are held"
CACHE = (
    "a block of points fits the cache, where a second thread gains little and, on a busy machine, "
    "waits for the first"
)


def minilm(call: Callable[[Any], Call]) -> Callable[[], Call]:
    """A call on MiniLM's table."""
    return lambda: call(hub.table("minilm"))


HUB = {
    "neighbours: MiniLM, self-join": Row(
        "hub",
        "faiss IndexFlatL2",
        0.7,
        minilm(hub.our_neighbours),
        minilm(hub.faiss_neighbours),
        single=True,
        why=NEIGHBOURS,
    ),
    "neighbours: SmolLM2, self-join": Row(
        "hub",
        "faiss IndexFlatL2",
        0.7,
        lambda: hub.our_neighbours(hub.table("smollm2")),
        lambda: hub.faiss_neighbours(hub.table("smollm2")),
        why=NEIGHBOURS,
    ),
    "neighbours: MiniLM against scikit-learn": Row(
        "hub",
        "scikit-learn NearestNeighbors(brute)",
        0.5,
        minilm(hub.our_neighbours),
        minilm(hub.sklearn_neighbours),
        why=NEIGHBOURS,
    ),
    "TwoNN: MiniLM": Row(
        "hub",
        "scikit-dimension TwoNN",
        0.5,
        minilm(hub.our_twonn),
        minilm(hub.skdim_twonn),
        why="the time goes to the neighbours",
    ),
    "memory: 262144 × 640, 8,192 queries": Row(
        "hub",
        "2,500 MB",
        2500,
        lambda: hub.our_neighbours(hub.random_table(), 8192),
        unit="peak MB",
        why=TABLE,
    ),
    "memory: 262144 × 640, self-join": Row(
        "hub",
        "2,500 MB",
        2500,
        lambda: hub.our_neighbours(hub.random_table()),
        unit="peak MB",
        slow=True,
        why=TABLE,
    ),
}

TRAINING = {
    "training: 12 runs of 243 rows as one batch": Row(
        "staircase",
        "the same runs one after another",
        0.25,
        lambda: training.train_together(True),
        lambda: training.train_together(False),
        single=True,
        why="a batch saves what each operation costs to start, not the arithmetic: it gains until "
        "the products themselves fill the cores",
    ),
    "flow: a training step of the hull": Row(
        "flow",
        "cross entropy of the same network",
        1.15,
        lambda: training.flow_step(True),
        lambda: training.flow_step(False),
        why="the kernel's product with E and the mean over E are two more products of the size of "
        "the network's head",
    ),
    "flow: sampling at 16 evaluations": Row(
        "flow",
        "16 forward passes of the model",
        1.1,
        lambda: training.flow_samples(True),
        lambda: training.flow_samples(False),
        why="what is above the passes goes to the sampler's own steps and to drawing the tokens",
    ),
}

CURVATURE = {
    "curvature: 10,000 points, n = 576": Row(
        "curvature",
        f"dense n × n, time of {curvature.DENSE} points scaled",
        0.01,
        curvature.by_vectors,
        curvature.by_matrices,
        why=CACHE,
        work=(curvature.POINTS, curvature.DENSE),
    ),
    "curvature: bytes of 10,000 points, n = 576": Row(
        "curvature",
        f"dense n × n, results of {curvature.DENSE} points scaled",
        0.01,
        curvature.by_vectors,
        curvature.by_matrices,
        unit="memory",
        work=(curvature.POINTS, curvature.DENSE),
    ),
    "curvature: n = 2,304": Row(
        "curvature",
        "as many numbers at n = 576",
        1.25,
        lambda: curvature.by_vectors(2304),
        curvature.by_vectors,
        why=CACHE,
    ),
    "curvature: n = 8,192": Row(
        "curvature",
        "as many numbers at n = 576",
        1.25,
        lambda: curvature.by_vectors(8192),
        curvature.by_vectors,
        why=CACHE,
    ),
    "memory: SmolLM2 loaded and read": Row(
        "curvature",
        "2,000 MB",
        2000,
        curvature.model_read,
        unit="peak MB",
        why="the weights in fp32, and the logits of a batch of texts",
    ),
}

CHESS = {
    "chess: ridge probes of all facts": Row(
        "curvature",
        "scikit-learn Ridge(cholesky), all targets at once",
        1.0,
        chess.our_probes,
        chess.sklearn_probes,
        why="both solve one system for all facts; ours also checks states and facts and turns them "
        "into fp64 inside the clock",
    ),
    "chess: AUC of all facts": Row(
        "curvature",
        "scikit-learn roc_auc_score, a fact at a time",
        0.5,
        chess.our_auc,
        chess.sklearn_auc,
        why="the ranks are a sort, which both need",
    ),
    f"chess: {chess.DRAWS} exchanges of games, κ by piece": Row(
        "curvature",
        "NumPy, a fact at a time",
        0.25,
        chess.our_null,
        chess.null_by_facts,
        why="each exchange copies all points, on both sides",
    ),
    f"chess: Mantel null, {10 * chess.DRAWS:,} permutations": Row(
        "curvature",
        "SciPy spearmanr, a permutation at a time",
        0.5,
        chess.our_mantel,
        chess.scipy_mantel,
        why="ours counts ranks where the peer sorts; both draw the permutations anew",
    ),
}

ROWS = {**HUB, **TRAINING, **CURVATURE, **CHESS}
