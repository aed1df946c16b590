"""Training all runs as one batch, with what is logged, checkpoints and exact resume.

The losses of the runs are summed, so each run's gradient is its own; Adam and SGD work
elementwise, so each run's update is its own too. A step counts updates: step 0 is the start.
"""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path

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
    freeze: Mapping[str, int | Sequence[int] | Int64[Tensor, " R"]] = field(default_factory=dict)

    def of(self, params: Params) -> "Settings":
        """These settings with a seed and a step of freezing for each run; refuses other numbers."""
        R = len(params["E"])
        seeds = list(range(R)) if self.seeds is None else list(self.seeds)
        if len(seeds) != R:
            raise ParameterError(f"{len(seeds)} seeds for {R} runs: a seed a run.")
        unknown = [name for name in self.freeze if name not in params]
        if unknown:
            raise ParameterError(f"can't freeze {unknown}: the model has {', '.join(params)}.")
        steps = {name: torch.as_tensor(at) for name, at in self.freeze.items()}
        for name, at in steps.items():
            if at.shape not in ((), (R,)):
                raise ParameterError(f"freeze[{name!r}]: shape {tuple(at.shape)}; one step a run.")
        freeze = {name: at.expand(R).tolist() for name, at in steps.items()}
        return replace(self, seeds=seeds, freeze=freeze)


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
    Raises `ParameterError` for a model of other sizes than the task's, and as `follow` does.

    >>> from tokenspace.staircase import FFN, arithmetic
    >>> task, model = arithmetic("add", 3, vocabulary=7), FFN(7, 7, d=8)
    >>> train(model, model.init([0.5], [0, 1]), task, Settings(steps=3)).losses.shape
    torch.Size([4, 2])
    """
    refuse_misfit(model, task)
    settings, runs = settings.of(params), stacked(params, device)
    live, dtype, batch = dict(runs.items()), params["E"].dtype, settings.batch
    x, targets = task.sequences.to(device), task.targets.to(device)
    weights = task.weights.to(dtype).to(device)
    exact = task.weights.to(device)
    q = task.labels.to(device, dtype).mT.contiguous().mT  # stored as the logits are
    rows = _rows(len(x), batch, settings.seeds or [])

    def loss(step: int) -> Float[Tensor, " R"]:
        if batch is None:
            return cross_entropy(model(live, x), q) @ weights
        at = rows(step).to(device)
        found = cross_entropy(model(live, x[at]), q[at])
        return (found * weights[at]).sum(1) * (len(x) / batch)

    def log(step: int) -> dict[str, Tensor]:
        logits = model(live, x)
        found = {
            "loss": cross_entropy(logits, q).double() @ exact,
            "accuracy": (logits.argmax(-1) == q.argmax(-1)).double() @ exact,
            "E": live["E"][:, targets].clone(),
        }
        if task.blocks:
            found["blocks"] = block_losses(logits, q, exact, task.blocks)
        return found | (callback(step, live) if callback else {})

    content = named(task.sequences, task.labels, task.weights, targets)
    return follow(runs, loss, log, settings, (str(model), f"{task.name} {content}"), checkpoint)


def stacked(params: Params, device: str) -> nn.ParameterDict:
    """The parameters' copies that train."""
    return nn.ParameterDict({n: p.detach().to(device, copy=True) for n, p in params.items()})


def follow(
    module: nn.Module,
    loss: Callable[[int], Tensor],
    log: Callable[[int], dict[str, Tensor]],
    settings: Settings,
    names: tuple[str, str],
    checkpoint: Path | None,
) -> History:
    """Train a module by loss(step), keeping what log(step) gives, with "loss", at logged steps.

    With a `checkpoint` path the state is saved every so many steps and at the end, and a second
    call goes on from there: bitwise the same on one machine's CPU. `names` tell the model and the
    data apart. Raises `ParameterError` for a checkpoint of other settings or nothing to log, and
    `SourceError` for a checkpoint that can't be read.
    """
    asked = log_steps(settings.steps) if settings.logged is None else settings.logged
    wanted = sorted({step for step in asked if 0 <= step <= settings.steps})
    if not wanted:
        raise ParameterError(
            f"steps = {settings.steps}, logged {list(asked)}: log one of 0..steps."
        )
    params = dict(module.named_parameters())

    @torch.no_grad()
    def note(run: loop.Run) -> dict[str, Tensor]:
        return log(run.step)

    @contextmanager
    def held(step: int) -> Iterator[None]:
        """Undo the update made inside where a run is frozen at this step."""
        frozen = {name: torch.as_tensor(at) <= step for name, at in settings.freeze.items()}
        before = {n: params[n].detach().clone() for n, where in frozen.items() if where.any()}
        yield
        with torch.no_grad():
            for name, old in before.items():
                where = frozen[name].to(old.device)[:, None, None]  # (R, 1, 1)
                params[name].copy_(torch.where(where, old, params[name]))

    keep = Checkpoint.at(checkpoint, common.identity_of(module, *names, settings), wanted)
    run = loop.train(
        module, lambda step: [step], loss, settings,
        log=note, logged=wanted, checkpoint=keep, around=held,
    )  # fmt: skip
    records = {name: torch.stack(values) for name, values in run.records.items()}
    ended = {name: p.detach().cpu() for name, p in params.items()}
    return History(torch.tensor(run.logged), records.pop("loss").double(), records, ended)


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
    logits: Float[Tensor, "R N K"], labels: Tensor, weights: Tensor, blocks: dict[str, slice]
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


def _rows(n: int, batch: int | None, seeds: Sequence[int]) -> Callable[[int], Tensor]:
    """step -> rows (R, batch): of each run a chain of permutations, by its seed alone."""
    size = batch or 0
    if batch is not None and not 1 <= batch <= n:
        raise ParameterError(f"batch = {batch} of {n} rows: 1 to {n} rows.")

    @lru_cache(maxsize=2 * len(seeds))  # this epoch's and the next one's
    def permutation(seed: int, epoch: int) -> Tensor:
        return torch.randperm(n, generator=step_generator(seed, epoch))

    def at(step: int) -> Tensor:
        epoch, offset = divmod(step * size, n)
        chains = (torch.cat([permutation(s, epoch), permutation(s, epoch + 1)]) for s in seeds)
        return torch.stack([chain[offset : offset + size] for chain in chains])

    return at
