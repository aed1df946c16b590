"""How long and how a model is trained, with its rate at each step, and what names a run."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

import torch
from torch import Tensor, nn

from tokenspace.errors import ParameterError
from tokenspace.nn.checkpoint import named, whole

OPTIMIZERS = {"adamw": torch.optim.AdamW, "adam": torch.optim.Adam, "sgd": torch.optim.SGD}
SCHEDULES = ("constant", "linear", "cosine", "one-cycle")
FLOOR = 0.1  # of the highest rate, where "cosine" ends: stated by arXiv:2608.30315, section 5


@dataclass(frozen=True)
class Settings:
    """How long and how a model is trained.

    The rate rises to `lr` over `warmup` steps, or over that share of all where it is below 1; then
    it stays ("constant"), falls to 0 in proportion to the steps left ("linear"), or along a cosine
    to a tenth ("cosine"). "one-cycle" is torch's OneCycleLR: up over .3 of the steps and down to
    nothing, momentum the other way.
    `clip` limits the norm of the gradient; torch's fused and plain steps differ in rounding only.
    Raises ParameterError for a value out of range.

    >>> [round(Settings(100, lr=1.0, warmup=10, schedule="cosine").rate(s), 2) for s in (0, 9, 55)]
    [0.1, 1.0, 0.55]
    """

    steps: int
    lr: float = 1e-3
    warmup: int | float = 0
    schedule: str = "constant"
    optimizer: str = "adamw"
    fused: bool = True
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

    def optimizer_of(self, weights: Mapping[str, Tensor]) -> torch.optim.Optimizer:
        """The optimizer of these weights."""
        how = {"lr": self.lr, "weight_decay": self.weight_decay, "fused": self.fused}
        return OPTIMIZERS[self.optimizer](weights.values(), **how)

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
    free = {"save_every", "log_every", "logged"}
    if settings.schedule == "constant":
        free.add("steps")
    kept = {f.name: getattr(settings, f.name) for f in fields(settings) if f.name not in free}
    return {"model": about, "start": named(*whole(model).values()), "data": data, **kept}
