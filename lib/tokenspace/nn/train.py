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
from typing import Any, TypeVar

import torch
from torch import Tensor, nn

from tokenspace.errors import ParameterError
from tokenspace.nn.checkpoint import Checkpoint, copy_into, trained, whole
from tokenspace.nn.processes import average, process
from tokenspace.nn.settings import Settings

M = TypeVar("M", bound=nn.Module)


class Ema:
    """Exponential average of a module's parameters, decay min(decay, (1 + n)/(10 + n)).

    The warm-up matters: at .9999 from the start, 1,000 steps leave 90 % of the initialization.

    >>> mean = Ema(nn.Linear(1, 1))
    >>> mean.averaged(nn.Linear(1, 1)).training
    False
    """

    def __init__(self, module: nn.Module, decay: float = 0.9999) -> None:
        if not 0 <= decay < 1:
            raise ParameterError(f"decay = {decay}: of an average, at least 0 and below 1.")
        self.decay, self.count = decay, 0
        self.weights = {n: p.detach().clone() for n, p in trained(module).items()}

    @torch.no_grad()
    def update(self, module: nn.Module) -> None:
        """Move towards the module's weights."""
        rate, new = min(self.decay, (1 + self.count) / (10 + self.count)), trained(module)
        for name, mean in self.weights.items():
            mean.lerp_(new[name], 1 - rate)
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
        self.optimizer = settings.optimizer_of(self.weights)
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
        if run.step in due and run.logged[-1:] != [run.step]:
            run.note(log(run))
        over = run.step == settings.steps or bool(run.stopped)
        due_to_save = over or run.step % settings.save_every == 0
        if checkpoint is not None and run.step > begun and due_to_save:
            run.save(checkpoint)
        if over:
            return run
        run.update(batches(run.step), loss, around)
