"""Training on one process or several, resumed exactly, and stopped when embeddings collapse.

All that is random about step n is drawn from generators seeded by (seed, n): the tokens of the
whole batch, their times and noise. A process takes its rows of those draws, so two processes see
what one would, and a resumed run what an unbroken one would. Dropout is seeded by part of the
batch: it is the same on any number of processes that go through the same parts (`micro`).
"""

import hashlib
import json
import math
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch
from jaxtyping import Float64, Int64
from torch import Tensor

from tokenspace.errors import ParameterError
from tokenspace.flow.data import Data, generator, named, seed_of
from tokenspace.flow.network import DiT
from tokenspace.flow.objective import Objective, spread_of
from tokenspace.flow.processes import average, process, shares
from tokenspace.flow.state import Ema, copy_into, load, refuse_other_run, save, trained, whole

COLLAPSED = 0.1  # of the distance between rows at the start


@dataclass(frozen=True)
class Settings:
    """A run's numbers; `batch` counts all processes, `micro` examples go through at a time.

    `warmup` steps raise the rate from 0; then it stays, or falls to 0 with `anneal`. Raises
    ParameterError for a value out of range.

    >>> Settings(steps=100).rate(0)
    0.001
    """

    steps: int
    batch: int = 64
    lr: float = 1e-3
    warmup: int = 0
    anneal: bool = False
    weight_decay: float = 0.0
    decay: float = 0.9999
    micro: int | None = None
    precision: str = "fp32"
    seed: int = 0

    def __post_init__(self) -> None:
        if self.steps < 1 or self.batch < 1 or not self.lr > 0 or self.warmup < 0:
            raise ParameterError(
                f"{self}: steps and batch are at least 1, lr above 0, warmup at least 0."
            )
        if self.precision not in ("fp32", "bf16"):
            raise ParameterError(f"precision {self.precision!r}: 'fp32' or 'bf16'.")

    def rate(self, step: int) -> float:
        """Learning rate of the update after `step` others."""
        rise = min(1.0, (step + 1) / self.warmup) if self.warmup else 1.0
        return self.lr * rise * (1 - step / self.steps if self.anneal else 1.0)


@dataclass(frozen=True)
class Run:
    """What training leaves: S logged steps; the averaged model; why it stopped early, or ""."""

    steps: Int64[Tensor, " S"]
    losses: Float64[Tensor, " S"]  # mean since the step logged before
    spread: Float64[Tensor, "S+1 3"]  # from step 0: mean, least distance of E's rows; its rank
    averaged: Objective
    stopped: str = ""


def train(
    model: Objective,
    data: Data,
    settings: Settings,
    *,
    checkpoint: Path | None = None,
    save_every: int = 1000,
    log_every: int = 50,
    device: str = "cpu",
    callback: Callable[[int, Objective], None] | None = None,
) -> Run:
    """AdamW on `model.loss` in place, with an average of the weights (`Ema`).

    With `checkpoint` the state is saved every `save_every` steps, and a second call goes on from
    it: bitwise the same on one machine's CPU. Under `processes()` each process takes its share of
    the batch. The run stops where the mean or least distance between embeddings falls below .1
    of the start's, or the loss isn't finite. `callback(step, model)` is called at logged steps.
    Runs in threads beside one another are what they are alone, unless they use dropout, which
    draws from the one generator of torch.
    Raises ParameterError for a checkpoint of another run, or a batch that doesn't split.
    """
    cuda = [torch.device(device)] if torch.device(device).type == "cuda" else []
    with torch.random.fork_rng(cuda):
        loop = Loop(model.to(device).train(), data, settings, device)
        if checkpoint is not None and checkpoint.exists():
            loop.restore(checkpoint)
        while loop.step < settings.steps and not loop.stopped:
            loop.update()
            last = loop.step == settings.steps
            if loop.step % log_every == 0 or last:
                loop.log()
                if callback:
                    callback(loop.step, model)
            if checkpoint is not None and (loop.step % save_every == 0 or last or loop.stopped):
                loop.save(checkpoint)
    return loop.run()


class Loop:
    """The state of one run of `train`, and its update."""

    def __init__(self, model: Objective, data: Data, settings: Settings, device: str) -> None:
        self.model, self.data, self.settings, self.device = model, data, settings, device
        self.parts = shares(settings.batch, settings.micro)
        self.identity = identity_of(model, data, settings)
        self.weights = trained(model)
        self.optimizer = torch.optim.AdamW(
            self.weights.values(), lr=settings.lr, weight_decay=settings.weight_decay, fused=True
        )
        self.ema = Ema(model, settings.decay)
        self.step, self.stopped = 0, ""
        self.since = torch.zeros(2, dtype=torch.float64, device=device)  # sum, count of losses
        self.history = torch.tensor([[0.0, math.nan, *spread_of(model.E)]], dtype=torch.float64)

    def update(self) -> None:
        """One step of the optimizer on the whole batch, and of the average."""
        s, step = self.settings, self.step
        tokens = self.data(s.batch, generator(s.seed, step, "tokens"))
        noise = generator(s.seed, step, "noise")
        draws = self.model.draw(s.batch, tokens.shape[1], noise, self.device)
        total = torch.zeros((), device=self.device)
        for part in self.parts:
            torch.manual_seed(seed_of(s.seed, step, "dropout", part.start))
            mine = {name: draw[part] for name, draw in draws.items()}
            bf16 = s.precision == "bf16"
            with torch.autocast(torch.device(self.device).type, torch.bfloat16, enabled=bf16):
                loss = self.model.loss(tokens[part].to(self.device), mine) / len(self.parts)
            loss.backward()
            total += loss.detach()
        total = average(list(self.weights.values()), total)
        self.optimizer.param_groups[0]["lr"] = s.rate(step)
        self.optimizer.step()
        self.optimizer.zero_grad()
        self.ema.update(self.model)
        self.since += torch.stack([total.double(), torch.ones_like(total).double()])
        self.step += 1

    def log(self) -> None:
        """Note the mean loss since the last note and E's spread; stop where they went wrong."""
        loss, spread = float(self.since[0] / self.since[1]), self.history[0, 2:]
        self.since.zero_()
        if self.model.E.requires_grad:
            spread = torch.tensor(spread_of(self.model.E), dtype=torch.float64)
        row = torch.cat([torch.tensor([self.step, loss], dtype=torch.float64), spread])
        self.history = torch.cat([self.history, row[None]])
        ratio, which = (spread / self.history[0, 2:])[:2].min(0)
        if not math.isfinite(loss):
            self.stopped = f"The loss is {loss} at step {self.step}: lower lr = {self.settings.lr}."
        elif float(ratio) < COLLAPSED:
            self.stopped = (
                f"Embeddings collapsed by step {self.step}: the {('mean', 'least')[int(which)]} "
                f"distance between rows is {float(ratio):.2g} of the start's (limit {COLLAPSED}). "
                "An MSE to embeddings that train is least where all are equal: freeze them, or "
                "train with cross entropy."
            )

    def save(self, path: Path) -> None:
        """Write everything that the next step depends on; one process does."""
        moments = self.optimizer.state_dict()["state"]
        if process()[0] == 0:
            save(
                path,
                {
                    "identity": self.identity,
                    "step": self.step,
                    "ema": self.ema.count,
                    "stopped": self.stopped,
                },
                {
                    "model": whole(self.model),
                    "ema": self.ema.weights,
                    "optimizer": {f"{i}.{k}": v for i in moments for k, v in moments[i].items()},
                    "history": {"rows": self.history, "since": self.since},
                },
            )

    def restore(self, path: Path) -> None:
        """Take up a saved run. Raises ParameterError where it isn't this one."""
        header, sections = load(path)
        refuse_other_run(path, header["identity"], self.identity)
        copy_into(whole(self.model), sections["model"])
        copy_into(self.ema.weights, sections["ema"])
        moments = self.optimizer.state_dict()
        for name, value in sections["optimizer"].items():
            index, _, key = name.partition(".")
            moments["state"].setdefault(int(index), {})[key] = value
        self.optimizer.load_state_dict(moments)
        self.step, self.ema.count = header["step"], header["ema"]
        self.stopped = header["stopped"]
        self.history = sections["history"]["rows"]
        self.since = sections["history"]["since"].to(self.device)

    def run(self) -> Run:
        """What was logged, and the averaged model."""
        rows = self.history[1:]
        averaged = self.ema.averaged(self.model)
        return Run(rows[:, 0].long(), rows[:, 1], self.history[:, 2:], averaged, self.stopped)


def identity_of(model: Objective, data: Data, settings: Settings) -> dict[str, Any]:
    """What makes two runs the same: model, starting weights, data, settings with the seed."""
    start = {name: named(tensor) for name, tensor in whole(model).items()}
    shapes = [str(m.shape) for m in model.modules() if isinstance(m, DiT)]  # compiled or not
    return {
        "model": "; ".join([model.name, *shapes]),
        "start": hashlib.sha256(json.dumps(start).encode()).hexdigest()[:12],
        "data": data.identity,
        # a run may be taken further, unless its rate depends on its length
        **{k: v for k, v in asdict(settings).items() if k != "steps" or settings.anneal},
    }
