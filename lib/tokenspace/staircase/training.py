"""Training all runs as one batch, with what is logged, checkpoints and exact resume.

The losses of the runs are summed, so each run's gradient is its own; Adam and SGD work
elementwise, so each run's update is its own too. A step counts updates: step 0 is the start.
"""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import torch
from jaxtyping import Float, Float64, Int64
from torch import Tensor, nn

from tokenspace.errors import ParameterError
from tokenspace.nn import train as loop
from tokenspace.nn.checkpoint import Checkpoint, named
from tokenspace.nn.seeds import step_generator
from tokenspace.nn.settings import Settings as Common
from tokenspace.nn.settings import identity_of
from tokenspace.staircase.history import History, steps_to_log
from tokenspace.staircase.models import Attention, Model, Params, Scaled
from tokenspace.staircase.tasks import Task

Callback = Callable[[int, Params], dict[str, Tensor]]


@dataclass(frozen=True)
class Settings(Common):
    """How R runs train as one batch.

    `batch` rows are drawn a step, for each run by its own of the `seeds` (default 0..R-1).
    `logged` are the steps at which is logged (default `log_steps`). `freeze` maps a parameter to
    the step from which it stays, one for all runs or one a run (R,).
    """

    optimizer: str = "adam"
    save_every: int = 500
    batch: int | None = None
    seeds: Sequence[int] | None = None
    logged: Sequence[int] | None = None
    freeze: Mapping[str, int | Int64[Tensor, " R"]] = field(default_factory=dict)

    def seeds_of(self, R: int) -> list[int]:
        """A seed of each run's batches."""
        found = list(range(R)) if self.seeds is None else list(self.seeds)
        if len(found) != R:
            raise ParameterError(f"{len(found)} seeds for {R} runs: a seed a run.")
        return found


def train(
    model: Model,
    params: Params,
    task: Task,
    settings: Settings,
    *,
    callback: Callback | None = None,
    checkpoint: Path | None = None,
    device: str = "cpu",
) -> History:
    """Minimise cross entropy on the whole weighted task, or on batches of its rows.

    `settings.batch` rows are the next ones of an endless chain of permutations: an epoch is
    N/batch steps. Logs loss, accuracy, target rows of E, normalized cross entropy of each block.
    Raises `ParameterError` for a model of other sizes than the task's, and as `train_runs` does.

    >>> from tokenspace.staircase import FFN, arithmetic
    >>> task, model = arithmetic("add", 3, vocabulary=7), FFN(7, 7, d=8)
    >>> train(model, model.init([0.5], [0, 1]), task, Settings(steps=3)).losses.shape
    torch.Size([4, 2])
    """
    refuse_misfit(model, task)
    dtype, batch = params["E"].dtype, settings.batch
    x, targets = task.sequences.to(device), task.targets.to(device)
    weights = task.weights.to(dtype).to(device)
    exact = task.weights.to(device)
    q = task.labels.to(device, dtype).mT.contiguous().mT  # stored as the logits are
    rows = _rows(len(x), batch, settings.seeds_of(len(params["E"])))

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
        return found | (callback(step, params) if callback else {})

    content = named(task.sequences, task.labels, task.weights, targets)
    names = str(model), f"{task.name} {content}"
    return train_runs(loss, params, log, settings, names, checkpoint=checkpoint, device=device)


def train_runs(
    loss: Callable[[int, Params], Float[Tensor, " R"]],
    params: Params,
    log: Callback,
    settings: Settings,
    names: tuple[str, str],
    *,
    checkpoint: Path | None = None,
    device: str = "cpu",
) -> History:
    """The loop under `train`: loss(step, params) -> (R,), log -> a dict of (R, ...) with "loss".

    With a `checkpoint` path the state is saved every so many steps and at the end, and a second
    call goes on from there: bitwise the same on one machine's CPU. `names` tell the model and the
    data apart. Raises `ParameterError` for a checkpoint of other settings or nothing to log, and
    `SourceError` for a checkpoint that can't be read.
    """
    wanted = steps_to_log(settings.steps, settings.logged)
    runs = nn.ParameterDict()
    for name, value in params.items():
        runs[name] = value.detach().to(device, copy=True)
    live: Params = dict(runs.items())
    frozen = Frozen(live, settings.freeze)
    own = {
        "seeds": settings.seeds_of(len(params["E"])),
        "freeze": {name: at.tolist() for name, at in frozen.steps.items()},
    }
    keep = Checkpoint.at(checkpoint, identity_of(runs, *names, settings) | own, wanted)

    @torch.no_grad()
    def note(run: loop.Run) -> dict[str, Tensor]:
        return log(run.step, live)

    run = loop.train(
        runs, lambda step: [step], lambda step: loss(step, live), settings,
        log=note, logged=wanted, checkpoint=keep, around=frozen.held,
    )  # fmt: skip
    return History.of(run, {name: p.detach().cpu() for name, p in live.items()})


class Frozen:
    """Holds parameters at their value from a given step on, each run at its own step."""

    def __init__(self, params: Params, freeze: Mapping[str, int | Tensor]) -> None:
        unknown = [name for name in freeze if name not in params]
        if unknown:
            raise ParameterError(f"can't freeze {unknown}: the model has {', '.join(params)}.")
        self.params = params
        self.steps: dict[str, Tensor] = {}
        for name, step in freeze.items():
            R = len(params[name])
            at = torch.as_tensor(step).expand(R) if isinstance(step, int) else step
            if at.shape != (R,):
                raise ParameterError(f"freeze[{name!r}]: shape {tuple(at.shape)}; one step a run.")
            self.steps[name] = at

    @contextmanager
    def held(self, step: int) -> Iterator[None]:
        """Undo the update made inside where a run is frozen at this step."""
        held = {name: at <= step for name, at in self.steps.items()}
        before = {n: self.params[n].detach().clone() for n, where in held.items() if where.any()}
        yield
        with torch.no_grad():
            for name, old in before.items():
                where = held[name].to(old.device)[:, None, None]  # (R, 1, 1)
                self.params[name].copy_(torch.where(where, old, self.params[name]))


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
    n: int, batch: int | None, seeds: Sequence[int]
) -> Callable[[int], Int64[Tensor, "R batch"]]:
    """step -> each run's rows: a chain of permutations that depends on its seed alone."""
    size = batch or 0
    if batch is not None and not 1 <= batch <= n:
        raise ParameterError(f"batch = {batch} of {n} rows: 1 to {n} rows.")
    cache: dict[tuple[int, int], Tensor] = {}

    def permutation(seed: int, epoch: int) -> Tensor:
        if (seed, epoch) not in cache:
            for old in [key for key in cache if key[1] < epoch - 1]:
                del cache[old]
            cache[seed, epoch] = torch.randperm(n, generator=step_generator(seed, epoch))
        return cache[seed, epoch]

    def at(step: int) -> Tensor:
        epoch, offset = divmod(step * size, n)
        chains = {
            s: torch.cat([permutation(s, epoch), permutation(s, epoch + 1)]) for s in set(seeds)
        }
        return torch.stack([chains[s][offset : offset + size] for s in seeds])

    return at
