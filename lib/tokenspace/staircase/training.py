"""Training all runs as one batch, with what is logged, checkpoints and exact resume.

The losses of the runs are summed, so each run's gradient is its own; Adam and SGD work
elementwise, so each run's update is its own too. A step counts updates: step 0 is the start.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import torch
from jaxtyping import Float, Float64, Int64
from torch import Tensor

from tokenspace.errors import ParameterError
from tokenspace.staircase.history import History, log_steps
from tokenspace.staircase.models import Attention, Model, Params, Scaled
from tokenspace.staircase.state import Checkpoint, Frozen, State, make_optimizer, named
from tokenspace.staircase.tasks import Task

Callback = Callable[[int, Params], dict[str, Tensor]]


def train(
    model: Model,
    params: Params,
    task: Task,
    *,
    steps: int,
    optimizer: str = "adam",
    lr: float = 1e-3,
    batch: int | None = None,
    logged: Sequence[int] | None = None,
    seeds: Sequence[int] | None = None,
    freeze: Mapping[str, int | Int64[Tensor, " R"]] | None = None,
    callback: Callback | None = None,
    checkpoint: Path | None = None,
    save_every: int = 500,
    device: str = "cpu",
) -> History:
    """Minimise cross entropy on the whole weighted task, or on batches of its rows.

    `batch` rows are the next ones of an endless chain of permutations, drawn per run from
    `seeds` (default 0..R-1): an epoch is N/batch steps. `freeze` maps a parameter to the step from
    which it stays. Logs loss, accuracy, target rows of E, normalized cross entropy of each block.
    Raises `ParameterError` for a model of other sizes than the task's, and as `run` does.

    >>> from tokenspace.staircase import FFN, arithmetic
    >>> task, model = arithmetic("add", 3, vocabulary=7), FFN(7, 7, d=8)
    >>> train(model, model.init([0.5], [0, 1]), task, steps=3).losses.shape
    torch.Size([4, 2])
    """
    refuse_misfit(model, task)
    dtype, R = params["E"].dtype, len(params["E"])
    x, targets = task.sequences.to(device), task.targets.to(device)
    weights = task.weights.to(dtype).to(device)
    exact = task.weights.to(device)
    q = task.labels.to(device, dtype).mT.contiguous().mT  # stored as the logits are
    names = list(range(R)) if seeds is None else list(seeds)
    rows = _rows(len(x), batch, names, R)

    def loss(step: int, params: Params) -> Float[Tensor, " R"]:
        if batch is None:
            return cross_entropy(model(params, x), q) @ weights
        at = rows(step).to(device)
        found = cross_entropy(model(params, x[at]), q[at])
        return (found * weights[at]).sum(1) * (len(x) / batch)

    def log(step: int, params: Params) -> dict[str, Tensor]:
        logits = model(params, x)
        found = {
            "loss": cross_entropy(logits, q).double() @ exact,
            "accuracy": (logits.argmax(-1) == q.argmax(-1)).double() @ exact,
            "E": params["E"][:, targets].clone(),
        }
        if task.blocks:
            found["blocks"] = block_losses(logits, q, exact, task.blocks)
        return found

    return run(
        loss,
        params,
        log,
        steps=steps,
        optimizer=optimizer,
        lr=lr,
        logged=logged,
        freeze=freeze,
        callback=callback,
        checkpoint=checkpoint,
        save_every=save_every,
        device=device,
        settings={
            "model": model,
            "task": f"{task.name} {named(task.sequences, task.labels, task.weights, targets)}",
            "batch": batch,
            "seeds": names,
        },
    )


def run(
    loss: Callable[[int, Params], Tensor],
    params: Params,
    log: Callback,
    *,
    steps: int,
    optimizer: str,
    lr: float,
    logged: Sequence[int] | None = None,
    freeze: Mapping[str, int | Int64[Tensor, " R"]] | None = None,
    callback: Callback | None = None,
    checkpoint: Path | None = None,
    save_every: int = 500,
    device: str = "cpu",
    settings: Mapping[str, object] | None = None,
) -> History:
    """The loop under `train`: loss(step, params) -> (R,), log -> a dict of (R, ...) with "loss".

    What `callback` returns is logged with it, at the steps of `log_steps` unless `logged` is given.

    With a `checkpoint` path the state is saved every `save_every` steps and at the end, and a
    second call goes on from there: bitwise the same on one machine's CPU. `settings` name what
    else the run depends on. Raises `ParameterError` for a checkpoint of other settings, an unknown
    optimizer, or steps out of range, and `SourceError` for a checkpoint that can't be read.
    """
    if logged is None:
        logged = log_steps(steps) if steps >= 1 else []
    wanted = sorted({s for s in logged if 0 <= s <= steps})
    if steps < 1 or not wanted:
        raise ParameterError(f"steps = {steps}, logged {list(logged)}: log one of 0..steps.")
    live = {name: p.detach().to(device, copy=True).requires_grad_() for name, p in params.items()}
    state = State(live, make_optimizer(optimizer, list(live.values()), lr))
    kept, file = Frozen(live, freeze or {}), None
    if checkpoint is not None:
        begun = {
            "optimizer": f"{optimizer} lr {lr:g}",
            "freeze": {name: at.tolist() for name, at in kept.steps.items()},
            "parameters": {name: named(p) for name, p in params.items()},
        }
        file = Checkpoint(checkpoint, {**(settings or {}), **begun})
        file.load(state, wanted)
    start = state.step
    if start > steps:
        raise ParameterError(f"{checkpoint} is at step {start}, beyond the {steps} asked for.")
    for step in range(start, steps + 1):
        state.step = step
        if step in wanted and step not in state.done:
            with torch.no_grad():
                state.note(log(step, live) | (callback(step, live) if callback else {}))
        if file and step > start and (step % save_every == 0 or step == steps):
            file.save(state)
        if step == steps:
            break
        state.optimizer.zero_grad()
        loss(step, live).sum().backward()
        kept.remember(step)
        state.optimizer.step()
        kept.restore(step)
    stacked = {name: torch.stack(values) for name, values in state.records.items()}
    final = {name: p.detach().cpu() for name, p in live.items()}
    return History(torch.tensor(state.done), stacked.pop("loss").double(), stacked, final)


def refuse_misfit(model: Model, task: Task) -> None:
    """Raises `ParameterError` for a model whose vocabulary, labels or length aren't the task's."""
    K, low = task.labels.shape[1], int(task.sequences.max()) + 1
    sizes = model.model if isinstance(model, Scaled) else model
    length = sizes.length if isinstance(sizes, Attention) else task.length
    if sizes.vocabulary < low or sizes.labels != K or length != task.length:
        raise ParameterError(
            f"{model} doesn't fit {task.name}: it needs a vocabulary of {low} or more, {K} labels, "
            f"sequences of {task.length} tokens."
        )


def block_losses(
    logits: Float[Tensor, "R N K"],
    labels: Float[Tensor, "N K"],
    weights: Float64[Tensor, " N"],
    blocks: dict[str, slice],
) -> Float64[Tensor, "R blocks"]:
    """Cross entropy inside each block of labels over log of its size: 1 knows nothing, 0 all."""
    out = []
    for at in blocks.values():
        inside = labels[:, at] / labels[:, at].sum(1, keepdim=True)
        found = cross_entropy(logits[..., at], inside).double() @ weights
        out.append(found / math.log(inside.shape[1]))
    return torch.stack(out, dim=-1)


def cross_entropy(
    logits: Float[Tensor, "R N K"], q: Float[Tensor, "*runs N K"]
) -> Float[Tensor, "R N"]:
    """-Σ_y q(y) log softmax(logits)(y), nats."""
    return -(logits.mT.log_softmax(-2) * q.mT).sum(-2)


def _rows(
    n: int, batch: int | None, seeds: Sequence[int], R: int
) -> Callable[[int], Int64[Tensor, "R batch"]]:
    """step -> each run's rows: a chain of permutations that depends on its seed alone."""
    if batch is not None and (not 1 <= batch <= n or len(seeds) != R):
        raise ParameterError(
            f"batch = {batch} of {n} rows, {len(seeds)} seeds for {R} runs: 1 to {n} rows, and a "
            f"seed a run."
        )
    cache: dict[tuple[int, int], Tensor] = {}

    def permutation(seed: int, epoch: int) -> Tensor:
        if (seed, epoch) not in cache:
            for old in [key for key in cache if key[1] < epoch - 1]:
                del cache[old]
            g = torch.Generator().manual_seed(1_000_003 * (seed + 1) + epoch)
            cache[seed, epoch] = torch.randperm(n, generator=g)
        return cache[seed, epoch]

    def at(step: int) -> Tensor:
        epoch, offset = divmod(step * (batch or 0), n)
        chains = {
            s: torch.cat([permutation(s, epoch), permutation(s, epoch + 1)]) for s in set(seeds)
        }
        return torch.stack([chains[s][offset : offset + (batch or 0)] for s in seeds])

    return at
