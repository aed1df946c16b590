"""What is timed: each row names our call, the peer's, and the ratio that we aim for."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from tests.bench import curvature

from tokenspace.hub import nearest
from tokenspace.sources import load_table

Call = Callable[[], Any]


@dataclass(frozen=True)
class Row:
    """One comparison: each side prepares outside the clock and returns the call to time.

    `unit` is "ratio" (of seconds), "peak MB" against the target alone, or "memory", a ratio of
    the bytes that the results hold. `work` is how much each side does, where that isn't the same.
    """

    part: str
    peer: str
    target: float
    ours: Callable[[], Call]
    theirs: Callable[[], Call] | None = None
    unit: str = "ratio"
    slow: bool = False
    work: tuple[int, int] = (1, 1)


def table(name: str) -> torch.Tensor:
    return load_table(name).rows.contiguous()


def random_table() -> torch.Tensor:
    """The shape of Gemma 3 270M's table."""
    return torch.randn(262_144, 640, generator=torch.Generator().manual_seed(0))


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
    from tokenspace.hub import facco

    def read() -> Any:
        found = nearest(rows)
        return facco(found.r1, found.r2)

    return read


def train_together(together: bool, steps: int = 300) -> Call:
    """Part I's extension: γ = .3, .5, .8, 1 with three seeds each, all at once or in turn."""
    from tokenspace.staircase import FFN, factorial, train

    task = factorial()
    model = FFN(task.vocabulary, task.labels.shape[1], d=64, activation="silu", width=128)
    params = model.init([0.3, 0.5, 0.8, 1.0], range(3))
    size = 12 if together else 1
    parts = [{n: p[r : r + size] for n, p in params.items()} for r in range(0, 12, size)]
    train(model, parts[0], task, steps=5, logged=[0])
    return lambda: [train(model, each, task, steps=steps, logged=[0, steps]) for each in parts]


FLOW = {"V": 1024, "d": 128, "L": 32, "batch": 16}


def flow_model() -> Any:
    """Part III: a hull predictor of a small vocabulary of words."""
    from tokenspace import flow

    E = flow.embeddings(FLOW["V"], FLOW["d"], seed=0, kind="gaussian")
    return flow.build("hull", E, flow.Gumbel(4.9563, 0.9637), width=128, depth=4, heads=4)


def flow_step(hull: bool) -> Call:
    """Forward and backward of the paper's loss, or of cross entropy on the network's own logits."""
    model = flow_model()
    draws = model.draw(FLOW["batch"], FLOW["L"], torch.Generator().manual_seed(0))
    tokens = torch.arange(FLOW["batch"] * FLOW["L"]).reshape(FLOW["batch"], -1) % FLOW["V"]

    def bare() -> torch.Tensor:
        from tokenspace.flow import corrupt

        x, gamma = corrupt(model.E[tokens], draws["gamma"], draws["noise"]), draws["gamma"]
        logits = model.predictor.network(x, gamma, model.condition(x, gamma, draws["own"]))
        return torch.nn.functional.cross_entropy(logits.flatten(0, 1), tokens.flatten())

    return lambda: (model.loss(tokens, draws) if hull else bare()).backward()


def flow_samples(sampler: bool, nfe: int = 16) -> Call:
    """Sampling with the paper's default mechanism, or as many forward passes of the model."""
    from tokenspace import flow

    model, n, L, d = flow_model(), FLOW["batch"], FLOW["L"], FLOW["d"]
    how = flow.plan(nfe, flow.Mechanism(), model.schedule)
    x, gamma = torch.randn(n, L, d), torch.zeros(n)

    def passes() -> Any:
        with torch.no_grad():
            return [model.predictor(x, gamma, x) for _ in range(nfe)]

    def samples() -> Any:
        generator = torch.Generator().manual_seed(0)
        return flow.sample(model.predictor, how, n, L, d, generator, asked=torch.float32)

    return samples if sampler else passes


ROWS = {
    "neighbours: MiniLM, self-join": Row(
        "hub",
        "faiss IndexFlatL2",
        0.7,
        lambda: our_neighbours(table("minilm")),
        lambda: faiss_neighbours(table("minilm")),
    ),
    "neighbours: SmolLM2, self-join": Row(
        "hub",
        "faiss IndexFlatL2",
        0.7,
        lambda: our_neighbours(table("smollm2")),
        lambda: faiss_neighbours(table("smollm2")),
    ),
    "neighbours: MiniLM against scikit-learn": Row(
        "hub",
        "scikit-learn NearestNeighbors(brute)",
        0.5,
        lambda: our_neighbours(table("minilm")),
        lambda: sklearn_neighbours(table("minilm")),
    ),
    "TwoNN: MiniLM": Row(
        "hub",
        "scikit-dimension TwoNN",
        0.5,
        lambda: our_twonn(table("minilm")),
        lambda: skdim_twonn(table("minilm")),
    ),
    "memory: 262144 × 640, 8,192 queries": Row(
        "hub", "2,500 MB", 2500, lambda: our_neighbours(random_table(), 8192), unit="peak MB"
    ),
    "memory: 262144 × 640, self-join": Row(
        "hub", "2,500 MB", 2500, lambda: our_neighbours(random_table()), unit="peak MB", slow=True
    ),
    "training: 12 runs of 243 rows as one batch": Row(
        "staircase",
        "the same runs one after another",
        0.25,
        lambda: train_together(True),
        lambda: train_together(False),
    ),
    "flow: a training step of the hull": Row(
        "flow",
        "cross entropy of the same network",
        1.15,
        lambda: flow_step(True),
        lambda: flow_step(False),
    ),
    "flow: sampling at 16 evaluations": Row(
        "flow",
        "16 forward passes of the model",
        1.1,
        lambda: flow_samples(True),
        lambda: flow_samples(False),
    ),
    "curvature: 10,000 points, n = 576": Row(
        "curvature",
        f"dense n × n, time of {curvature.DENSE} points scaled",
        0.01,
        curvature.by_vectors,
        curvature.by_matrices,
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
    ),
    "curvature: n = 8,192": Row(
        "curvature",
        "as many numbers at n = 576",
        1.25,
        lambda: curvature.by_vectors(8192),
        curvature.by_vectors,
    ),
    "memory: SmolLM2 loaded and read": Row(
        "curvature", "2,000 MB", 2000, curvature.model_read, unit="peak MB"
    ),
}
