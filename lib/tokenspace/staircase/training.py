"""Training all runs as one batch, with what is logged, checkpoints and exact resume.

The losses of the runs are summed, so each run's gradient is its own; Adam and SGD work
elementwise, so each run's update is its own too. A step counts updates: step 0 is the start.
"""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any

import torch
from jaxtyping import Bool, Float, Float64, Int64
from torch import Tensor, nn

from tokenspace.errors import ParameterError
from tokenspace.nn import settings as common
from tokenspace.nn import train as loop
from tokenspace.nn.checkpoint import Checkpoint, named
from tokenspace.nn.seeds import step_generator
from tokenspace.staircase.models import Attention, Model, Params
from tokenspace.staircase.tasks import Task

Callback = Callable[[int, Params], dict[str, Tensor]]


@dataclass(frozen=True)
class Settings(common.Settings):
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


@dataclass(frozen=True)
class History:
    """What training logged; S logged steps, R runs. `params` are those after the last step."""

    steps: Int64[Tensor, " S"]
    losses: Float64[Tensor, "S R"]  # nats; over the whole task
    records: dict[str, Tensor]  # (S, R, ...) of each thing logged
    params: Params

    @property
    def accuracy(self) -> Float64[Tensor, "S R"]:
        """P(argmax of the logits is the likeliest label)."""
        return self.records["accuracy"]

    @property
    def embeddings(self) -> Float[Tensor, "S R T d"]:
        """Rows of E of the task's targets."""
        return self.records["E"]

    def fitted(self, level: float = 0.5) -> Int64[Tensor, "R blocks"]:
        """First logged step at which a block's normalized cross entropy is at most `level`, or -1.

        1 is where nothing of the block is known, 0 where all is.
        """
        below = self.records["blocks"] <= level
        return torch.where(below.any(0), self.steps[below.int().argmax(0)], -1)

    @property
    def diverged(self) -> Bool[Tensor, " R"]:
        """Runs not finite at some logged step, or that end having lost half of their best gain.

        A claim about such a run reads "diverged", not a number.
        """
        best = self.losses.min(0).values
        lost, gained = self.losses[-1] - best, self.losses[0] - best
        worse = (lost > gained / 2) & (lost > 1e-6 * self.losses[0])  # a plateau's noise is none
        return ~self.losses.isfinite().all(0) | worse


def log_steps(steps: int, points: int = 40) -> list[int]:
    """0, then about `points` steps even in the logarithm, up to and with `steps`.

    >>> log_steps(100, 5)
    [0, 1, 3, 10, 32, 100]
    """
    even = torch.logspace(0, math.log10(steps), points, dtype=torch.float64)
    return sorted({0, steps, *even.round().long().tolist()})


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
    """`follow` for stacked parameters: loss(step, params) -> (R,), log -> a dict of (R, ...)."""
    runs = nn.ParameterDict()
    for name, value in params.items():
        runs[name] = value.detach().to(device, copy=True)
    live: Params = dict(runs.items())
    freeze = _freeze_steps(live, settings.freeze)
    own = {
        "seeds": settings.seeds_of(len(params["E"])),
        "freeze": {name: at.tolist() for name, at in freeze.items()},
    }

    @contextmanager
    def held(step: int) -> Iterator[None]:
        """Undo the update made inside where a run is frozen at this step."""
        held = {name: at <= step for name, at in freeze.items()}
        before = {n: live[n].detach().clone() for n, where in held.items() if where.any()}
        yield
        with torch.no_grad():
            for name, old in before.items():
                where = held[name].to(old.device)[:, None, None]  # (R, 1, 1)
                live[name].copy_(torch.where(where, old, live[name]))

    return follow(
        runs, lambda step: loss(step, live), lambda step: log(step, live), settings, names,
        own=own, around=held, checkpoint=checkpoint,
    )  # fmt: skip


def follow(
    module: nn.Module,
    loss: Callable[[int], Tensor],
    log: Callable[[int], dict[str, Tensor]],
    settings: Settings,
    names: tuple[str, str],
    *,
    own: Mapping[str, Any] | None = None,
    around: Callable[[int], AbstractContextManager[None]] = lambda step: nullcontext(),
    checkpoint: Path | None = None,
) -> History:
    """Train a module by loss(step), keeping what log(step) gives, with "loss", at logged steps.

    With a `checkpoint` path the state is saved every so many steps and at the end, and a second
    call goes on from there: bitwise the same on one machine's CPU. `names` tell the model and the
    data apart, `own` what else makes the run the same. Raises `ParameterError` for a checkpoint of
    other settings or nothing to log, and `SourceError` for a checkpoint that can't be read.
    """
    asked = log_steps(settings.steps) if settings.logged is None else settings.logged
    wanted = sorted({step for step in asked if 0 <= step <= settings.steps})
    if not wanted:
        raise ParameterError(
            f"steps = {settings.steps}, logged {list(asked)}: log one of 0..steps."
        )
    identity = common.identity_of(module, *names, settings) | (own or {})

    @torch.no_grad()
    def note(run: loop.Run) -> dict[str, Tensor]:
        return log(run.step)

    run = loop.train(
        module, lambda step: [step], loss, settings, log=note, logged=wanted,
        checkpoint=Checkpoint.at(checkpoint, identity, wanted), around=around,
    )  # fmt: skip
    records = {name: torch.stack(values) for name, values in run.records.items()}
    params = {name: p.detach().cpu() for name, p in module.named_parameters()}
    return History(torch.tensor(run.logged), records.pop("loss").double(), records, params)


def refuse_misfit(model: Model, task: Task) -> None:
    """Raises `ParameterError` for a model whose vocabulary, labels or length aren't the task's."""
    K, low = task.labels.shape[1], int(task.sequences.max()) + 1
    length = model.length if isinstance(model, Attention) else task.length
    if model.vocabulary < low or model.labels != K or length != task.length:
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


def _freeze_steps(
    params: Params, freeze: Mapping[str, int | Tensor]
) -> dict[str, Int64[Tensor, " R"]]:
    """The step from which each run holds a parameter."""
    unknown = [name for name in freeze if name not in params]
    if unknown:
        raise ParameterError(f"can't freeze {unknown}: the model has {', '.join(params)}.")
    R = len(params["E"])
    found = {n: torch.full((R,), at) if isinstance(at, int) else at for n, at in freeze.items()}
    for name, at in found.items():
        if at.shape != (R,):
            raise ParameterError(f"freeze[{name!r}]: shape {tuple(at.shape)}; one step a run.")
    return found


def _rows(
    n: int, batch: int | None, seeds: Sequence[int]
) -> Callable[[int], Int64[Tensor, "R batch"]]:
    """step -> each run's rows: a chain of permutations that depends on its seed alone."""
    size = batch or 0
    if batch is not None and not 1 <= batch <= n:
        raise ParameterError(f"batch = {batch} of {n} rows: 1 to {n} rows.")

    @lru_cache(maxsize=2 * len(seeds))  # this epoch's and the next one's
    def permutation(seed: int, epoch: int) -> Tensor:
        return torch.randperm(n, generator=step_generator(seed, epoch))

    def at(step: int) -> Tensor:
        epoch, offset = divmod(step * size, n)
        pairs = (torch.cat([permutation(s, epoch), permutation(s, epoch + 1)]) for s in seeds)
        return torch.stack([chain[offset : offset + size] for chain in pairs])

    return at
