"""One training loop: exact resume, several processes, averaged weights, an early stop.

Step n of a run is the moment after n updates; step 0 is the start. At a logged step it is logged,
then saved if it is time, then the next update is made of the batch of step n. All that is random
about that batch comes from `batches(n)`, so that a run taken up at step n is the run not stopped:
bit for bit on one machine's CPU.
"""

import math
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from copy import deepcopy
from dataclasses import dataclass, fields
from typing import Any, TypeVar

import torch
from torch import Tensor, nn

from tokenspace.errors import ParameterError
from tokenspace.nn.checkpoint import Checkpoint, copy_into, named, trained, whole
from tokenspace.nn.processes import average, process

OPTIMIZERS = {"adamw": torch.optim.AdamW, "adam": torch.optim.Adam, "sgd": torch.optim.SGD}
SCHEDULES = ("constant", "linear", "cosine", "one-cycle")
FLOOR = 0.1  # of the highest rate, where "cosine" ends: stated by arXiv:2608.30315, section 5
M = TypeVar("M", bound=nn.Module)


@dataclass(frozen=True)
class Settings:
    """How long and how a model is trained.

    The rate rises to `lr` over `warmup` steps, or over that share of all where it is below 1; then
    it stays ("constant"), falls to 0 in proportion to the steps left ("linear"), or along a cosine
    to a tenth ("cosine"). "one-cycle" is torch's OneCycleLR: up over .3 of the steps and down to
    nothing, momentum the other way.
    `clip` limits the norm of the gradient. Raises ParameterError for a value out of range.

    >>> [round(Settings(100, lr=1.0, warmup=10, schedule="cosine").rate(s), 2) for s in (0, 9, 55)]
    [0.1, 1.0, 0.55]
    """

    steps: int
    lr: float = 1e-3
    warmup: int | float = 0
    schedule: str = "constant"
    optimizer: str = "adamw"
    weight_decay: float = 0.0
    clip: float | None = None
    seed: int = 0
    save_every: int = 1000

    def __post_init__(self) -> None:
        if self.steps < 1 or not self.lr > 0 or self.warmup < 0 or self.save_every < 1:
            raise ParameterError(
                f"steps = {self.steps}, lr = {self.lr}, warmup = {self.warmup}, save_every = "
                f"{self.save_every}: steps and save_every are at least 1, lr above 0, warmup at "
                "least 0."
            )
        if self.optimizer not in OPTIMIZERS:
            raise ParameterError(
                f"optimizer {self.optimizer!r} is unknown; take one of {', '.join(OPTIMIZERS)}."
            )
        if self.schedule not in SCHEDULES:
            raise ParameterError(f"schedule {self.schedule!r}: one of {', '.join(SCHEDULES)}.")

    def rate(self, step: int) -> float:
        """Learning rate of the update after `step` others."""
        if self.schedule == "one-cycle":
            return self._cycled(step, self.lr / 25, self.lr, self.lr / 25 / 1e4)
        first = self.warmup
        if 0 < first < 1:
            first = max(1, round(first * self.steps))
        rise = min(1.0, (step + 1) / first) if first else 1.0
        fall = 1.0
        if self.schedule == "linear":
            fall = 1 - step / self.steps
        elif self.schedule == "cosine" and step >= first:
            done = (step - first) / max(1, self.steps - first)
            fall = FLOOR + (1 - FLOOR) * (1 + math.cos(math.pi * done)) / 2
        return self.lr * rise * fall

    def group(self, step: int) -> dict[str, Any]:
        """The optimizer's values for that update: its rate, and Adam's momentum where it moves."""
        found: dict[str, Any] = {"lr": self.rate(step)}
        if self.schedule == "one-cycle" and self.optimizer != "sgd":
            found["betas"] = (self._cycled(step, 0.95, 0.85, 0.95), 0.999)
        return found

    def _cycled(self, step: int, start: float, middle: float, end: float) -> float:
        """Half a cosine from start to middle over .3 of the steps, then half one to the end."""
        turn, last = 0.3 * self.steps - 1, self.steps - 1
        begun, until = (0.0, turn) if step <= turn else (turn, last)
        here, there = (start, middle) if step <= turn else (middle, end)
        share = (step - begun) / (until - begun)
        return there + (here - there) / 2 * (1 + math.cos(math.pi * share))


def identity_of(model: nn.Module, about: str, data: str, settings: Settings) -> dict[str, Any]:
    """What makes two runs the same: model, starting weights, data, settings with the seed.

    How often a run is logged and saved is left out; so is its length unless its rate depends on
    it, so that a run may be taken further.
    """
    values = {field.name: getattr(settings, field.name) for field in fields(settings)}
    free = {"save_every", "log_every", "logged"}
    if settings.schedule == "constant":
        free.add("steps")
    kept = {name: value for name, value in values.items() if name not in free}
    return {"model": about, "start": named(*whole(model).values()), "data": data, **kept}


class Ema:
    """Exponential average of a module's parameters, decay min(decay, (1 + n)/(10 + n)).

    The warm-up matters: at .9999 from the start, 1,000 steps leave 90 % of the initialization.

    >>> ema = Ema(nn.Linear(1, 1))
    >>> round(ema.rate, 3)  # of the first update
    0.1
    """

    def __init__(self, module: nn.Module, decay: float = 0.9999) -> None:
        if not 0 <= decay < 1:
            raise ParameterError(f"decay = {decay}: of an average, at least 0 and below 1.")
        self.decay, self.count = decay, 0
        self.weights = {n: p.detach().clone() for n, p in trained(module).items()}

    @property
    def rate(self) -> float:
        """Decay of the next update."""
        return min(self.decay, (1 + self.count) / (10 + self.count))

    @torch.no_grad()
    def update(self, module: nn.Module) -> None:
        """Move towards the module's weights by 1 - rate."""
        new = trained(module)
        for name, mean in self.weights.items():
            mean.lerp_(new[name], 1 - self.rate)
        self.count += 1

    def averaged(self, module: M) -> M:
        """A copy of the module with the averaged weights, in `eval` mode."""
        copy = deepcopy(module)
        copy_into(trained(copy), self.weights)
        return copy.eval()


class Run:
    """A training under way: its step, its mean loss since it was last logged, what was logged.

    A log may set `stopped` to the reason why the run should end here.
    """

    def __init__(self, model: nn.Module, settings: Settings, average: Ema | None) -> None:
        self.model, self.settings, self.average = model, settings, average
        self.weights = trained(model)
        self.optimizer = OPTIMIZERS[settings.optimizer](
            self.weights.values(), settings.lr, weight_decay=settings.weight_decay, fused=True
        )
        self.step, self.stopped = 0, ""
        self.logged: list[int] = []
        self.records: dict[str, list[Tensor]] = {}
        self.losses, self.updates = torch.zeros((), dtype=torch.float64), 0  # since the last log

    @property
    def mean_loss(self) -> Tensor:
        """Mean loss of the updates since the last log; nan where there was none."""
        return self.losses / self.updates if self.updates else self.losses * math.nan

    def note(self, found: dict[str, Tensor]) -> None:
        """Keep what is logged at this step; raises ParameterError when its names change."""
        if self.logged and self.records.keys() != found.keys():
            raise ParameterError(
                f"logged {sorted(found)} at step {self.step} after {sorted(self.records)}: log and "
                "callback return the same names at every step, also after a resume."
            )
        for name, value in found.items():
            self.records.setdefault(name, []).append(value.detach().cpu())
        self.logged.append(self.step)
        self.losses, self.updates = torch.zeros_like(self.losses), 0

    def update(
        self,
        parts: Sequence[Any],
        loss: Callable[[Any], Tensor],
        around: Callable[[int], AbstractContextManager[None]],
    ) -> None:
        """One step of the optimizer on the mean loss of the parts, and of the average."""
        total = torch.zeros((), device=next(iter(self.weights.values())).device)
        for part in parts:
            found = loss(part) / len(parts)
            found.sum().backward()
            total = total + found.detach()
        total = average(list(self.weights.values()), total)
        if self.settings.clip is not None:
            nn.utils.clip_grad_norm_(self.weights.values(), self.settings.clip)
        for group in self.optimizer.param_groups:
            group.update(self.settings.group(self.step))
        with around(self.step):
            self.optimizer.step()
        self.optimizer.zero_grad()
        if self.average:
            self.average.update(self.model)
        self.losses = self.losses.to(total.device) + total.double()
        self.updates += 1
        self.step += 1

    def save(self, checkpoint: Checkpoint) -> None:
        """Write everything that the next step depends on; one process does."""
        if process()[0] != 0:
            return
        moments = self.optimizer.state_dict()["state"]
        checkpoint.save(
            {
                "step": self.step,
                "logged": self.logged,
                "stopped": self.stopped,
                "updates": self.updates,
                "averages": self.average.count if self.average else 0,
            },
            {
                "model": whole(self.model),
                "ema": self.average.weights if self.average else {},
                "optimizer": {
                    f"{i}.{key}": value
                    for i, state in moments.items()
                    for key, value in state.items()
                    if isinstance(value, Tensor)  # SGD keeps none
                },
                "records": {name: torch.stack(values) for name, values in self.records.items()},
                "since": {"losses": self.losses},
            },
        )

    def restore(self, checkpoint: Checkpoint) -> None:
        """Take up a saved run, if there is one; raises as `Checkpoint.load` does."""
        saved = checkpoint.load()
        if saved is None:
            return
        header, sections = saved
        if header["step"] > self.settings.steps:
            raise ParameterError(
                f"{checkpoint.path} is at step {header['step']}, beyond the {self.settings.steps} "
                "asked for."
            )
        copy_into(whole(self.model), sections["model"])
        if self.average:
            copy_into(self.average.weights, sections["ema"])
            self.average.count = header["averages"]
        moments = self.optimizer.state_dict()
        for name, value in sections.get("optimizer", {}).items():
            index, _, key = name.partition(".")
            moments["state"].setdefault(int(index), {})[key] = value
        self.optimizer.load_state_dict(moments)
        self.step, self.stopped = header["step"], header["stopped"]
        self.logged, self.updates = header["logged"], header["updates"]
        records = sections.get("records", {})
        self.records = {name: list(values) for name, values in records.items()}
        self.losses = sections["since"]["losses"]


def train(
    model: nn.Module,
    batches: Callable[[int], Sequence[Any]],
    loss: Callable[[Any], Tensor],
    settings: Settings,
    *,
    log: Callable[[Run], dict[str, Tensor]] = lambda run: {"loss": run.mean_loss},
    logged: Sequence[int] = (),
    average: Ema | None = None,
    checkpoint: Checkpoint | None = None,
    around: Callable[[int], AbstractContextManager[None]] = lambda step: nullcontext(),
) -> Run:
    """Minimise the loss over `batches`, in place.

    batches(n): the parts of step n's batch that this process takes, one after the other; a loss of
    several numbers is summed, so that models stacked along an axis train beside one another.
    `around(n)` is entered for the optimizer's step. What `log` gives at the `logged` steps is kept.
    With a `checkpoint` the run is saved every so many steps and where it ends, and a second call
    goes on from there. Raises ParameterError for a checkpoint of another or of a longer run, and
    SourceError for one that can't be read.

    >>> model = nn.Linear(1, 1)
    >>> point = torch.ones(1, 1)
    >>> run = train(model, lambda n: [point], lambda x: (model(x) - 3) ** 2, Settings(400, lr=0.1))
    >>> round(model(point).item(), 2)
    3.0
    """
    run, due = Run(model, settings, average), set(logged)
    if checkpoint is not None:
        run.restore(checkpoint)
    begun = run.step
    while True:
        if run.step in due and run.step not in run.logged:
            run.note(log(run))
        over = run.step == settings.steps or bool(run.stopped)
        due_to_save = over or run.step % settings.save_every == 0
        if checkpoint is not None and run.step > begun and due_to_save:
            run.save(checkpoint)
        if over:
            return run
        run.update(batches(run.step), loss, around)
