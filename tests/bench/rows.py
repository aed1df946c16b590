"""What is timed: each row names our call, the peer's, and the ratio that we aim for."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

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

    peer: str
    target: float
    ours: Callable[[], Call]
    theirs: Callable[[], Call] | None = None
    why: str = ""
    unit: str = "ratio"
    slow: bool = False
    single: bool = False
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
TOGETHER = (
    "a batch saves what each operation costs to start, not the arithmetic: it gains until the "
    "products themselves fill the cores"
)
HULL = (
    "the kernel's product with E and the mean over E are two more products of the size of the "
    "network's head"
)
FAISS, DENSE = "faiss IndexFlatL2", f"dense n × n, {{}} of {curvature.DENSE} points scaled"
POINTS = (curvature.POINTS, curvature.DENSE)


def of(name: str, call: Callable[..., Call]) -> Callable[[], Call]:
    """A call on a packaged table."""
    return lambda: call(hub.table(name))


def on_random(queries: int | None = None) -> Call:
    return hub.our_neighbours(hub.random_table(), queries)


# fmt: off
ROWS = {
    "neighbours: MiniLM, self-join": Row(
        FAISS, 0.7, of("minilm", hub.our_neighbours), of("minilm", hub.faiss_neighbours),
        NEIGHBOURS, single=True),
    "neighbours: SmolLM2, self-join": Row(
        FAISS, 0.7, of("smollm2", hub.our_neighbours), of("smollm2", hub.faiss_neighbours),
        NEIGHBOURS),
    "neighbours: MiniLM against scikit-learn": Row(
        "scikit-learn NearestNeighbors(brute)", 0.5,
        of("minilm", hub.our_neighbours), of("minilm", hub.sklearn_neighbours), NEIGHBOURS),
    "TwoNN: MiniLM": Row(
        "scikit-dimension TwoNN", 0.5,
        of("minilm", hub.our_twonn), of("minilm", hub.skdim_twonn),
        "the time goes to the neighbours"),
    "memory: 262144 × 640, 8,192 queries": Row(
        "2,500 MB", 2500, partial(on_random, 8192), why=TABLE, unit="peak MB"),
    "memory: 262144 × 640, self-join": Row(
        "2,500 MB", 2500, on_random, why=TABLE, unit="peak MB", slow=True),
    "training: 12 runs of 243 rows as one batch": Row(
        "the same runs one after another", 0.25,
        partial(training.train_together, True), partial(training.train_together, False),
        TOGETHER, single=True),
    "flow: a training step of the hull": Row(
        "cross entropy of the same network", 1.15,
        partial(training.flow_step, True), partial(training.flow_step, False), HULL),
    "flow: sampling at 16 evaluations": Row(
        "16 forward passes of the model", 1.1,
        partial(training.flow_samples, True), partial(training.flow_samples, False),
        "what is above the passes goes to the sampler's own steps and to drawing the tokens"),
    "curvature: 10,000 points, n = 576": Row(
        DENSE.format("time"), 0.01, curvature.by_vectors, curvature.by_matrices,
        CACHE, work=POINTS),
    "curvature: bytes of 10,000 points, n = 576": Row(
        DENSE.format("results"), 0.01, curvature.by_vectors, curvature.by_matrices,
        unit="memory", work=POINTS),
    "curvature: n = 2,304": Row(
        "as many numbers at n = 576", 1.25,
        partial(curvature.by_vectors, 2304), curvature.by_vectors, CACHE),
    "curvature: n = 8,192": Row(
        "as many numbers at n = 576", 1.25,
        partial(curvature.by_vectors, 8192), curvature.by_vectors, CACHE),
    "memory: SmolLM2 loaded and read": Row(
        "2,000 MB", 2000, curvature.model_read, unit="peak MB",
        why="the weights in fp32, and the logits of a batch of texts"),
    f"chess: {chess.DRAWS} exchanges of games, κ by piece": Row(
        "NumPy, a fact at a time", 0.25, chess.our_null, chess.null_by_facts,
        "each exchange copies all points, on both sides"),
    f"chess: Mantel null, {10 * chess.DRAWS:,} permutations": Row(
        "SciPy spearmanr, a permutation at a time", 0.5,
        chess.our_mantel, chess.scipy_mantel,
        "ours counts ranks where the peer sorts; both draw the permutations anew"),
}
# fmt: on
