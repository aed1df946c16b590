"""Calls of Parts I and III: training many runs at once, a training step of the hull, sampling."""

from typing import Any

import torch
from tests.bench.measure import Call


def staircase_task() -> tuple[Any, Any]:
    """Part I's extension: 243 rows, and a feed-forward network with a hidden width."""
    from tokenspace.staircase import FFN, factorial

    task = factorial()
    return task, FFN(task.vocabulary, task.labels.shape[1], d=64, activation="silu", width=128)


def train_together(together: bool, steps: int = 300) -> Call:
    """γ = .3, .5, .8, 1 with three seeds each, all at once or in turn."""
    from tokenspace.staircase import Settings, train

    task, model = staircase_task()
    params = model.init([0.3, 0.5, 0.8, 1.0], range(3))
    size = 12 if together else 1
    parts = [{n: p[r : r + size] for n, p in params.items()} for r in range(0, 12, size)]
    train(model, parts[0], task, Settings(5, logged=[0]))
    settings = Settings(steps, logged=[0, steps])
    return lambda: [train(model, each, task, settings) for each in parts]


FLOW = {"V": 1024, "d": 128, "L": 32, "batch": 16}


def flow_model(V: int = FLOW["V"]) -> Any:
    """Part III: a hull predictor of a vocabulary of words."""
    from tokenspace import flow

    E = flow.embeddings(V, FLOW["d"], seed=0, kind="gaussian")
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
    from tokenspace.flow.sampling import Mechanism, plan, sample

    model, n, L, d = flow_model(), FLOW["batch"], FLOW["L"], FLOW["d"]
    how = plan(nfe, Mechanism(), model.schedule)
    x, gamma = torch.randn(n, L, d), torch.zeros(n)

    def passes() -> Any:
        with torch.no_grad():
            return [model.predictor(x, gamma, x) for _ in range(nfe)]

    def samples() -> Any:
        generator = torch.Generator().manual_seed(0)
        return sample(model.predictor, how, (n, L, d), generator, dtype=torch.float32)

    return samples if sampler else passes
