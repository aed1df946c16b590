"""What training logged: losses and records at chosen steps, and whether a run went well."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Float64, Int64
from torch import Tensor

from tokenspace.errors import ParameterError
from tokenspace.nn.train import Run
from tokenspace.staircase.models import Params


@dataclass(frozen=True)
class History:
    """What training logged; S logged steps, R runs. `params` are those after the last step."""

    steps: Int64[Tensor, " S"]
    losses: Float64[Tensor, "S R"]  # nats; over the whole task
    records: dict[str, Tensor]  # (S, R, ...) of each thing logged
    params: Params

    @classmethod
    def of(cls, run: Run, params: Params) -> "History":
        """What a run logged, with its parameters."""
        records = {name: torch.stack(values) for name, values in run.records.items()}
        return cls(torch.tensor(run.logged), records.pop("loss").double(), records, params)

    @property
    def accuracy(self) -> Float64[Tensor, "S R"]:
        """P(argmax of the logits is the likeliest label)."""
        return self.records["accuracy"]

    @property
    def embeddings(self) -> Float[Tensor, "S R T d"]:
        """Rows of E of the task's targets."""
        return self.records["E"]

    def fitted(self, level: float = 0.5) -> Int64[Tensor, "R blocks"]:
        """First logged step at which a block's cross entropy is at most `level`; -1 for never.

        Block losses are normalized: 1 where nothing is known, 0 where all is.
        """
        below = self.records["blocks"] <= level
        first = self.steps[below.int().argmax(0)]
        return torch.where(below.any(0), first, -1)

    @property
    def diverged(self) -> Bool[Tensor, " R"]:
        """Runs not finite at some logged step, or that end having lost half of their best gain.

        A claim about such a run reads "diverged", not a number.
        """
        best = self.losses.min(0).values
        lost, gained = self.losses[-1] - best, self.losses[0] - best
        worse = (lost > gained / 2) & (lost > 1e-6 * self.losses[0])  # a plateau's noise is none
        return ~self.losses.isfinite().all(0) | worse


def steps_to_log(steps: int, logged: Sequence[int] | None) -> list[int]:
    """The steps asked for, in order, or `log_steps`; raises ParameterError where none is left."""
    asked = log_steps(steps) if logged is None else logged
    found = sorted({step for step in asked if 0 <= step <= steps})
    if not found:
        raise ParameterError(f"steps = {steps}, logged {list(asked)}: log one of 0..steps.")
    return found


def log_steps(steps: int, points: int = 40) -> list[int]:
    """0, then about `points` steps even in the logarithm, up to and with `steps`.

    >>> log_steps(100, 5)
    [0, 1, 3, 10, 32, 100]
    """
    even = torch.logspace(0, math.log10(steps), points, dtype=torch.float64)
    return sorted({0, steps, *even.round().long().tolist()})
