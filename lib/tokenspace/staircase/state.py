"""The state of a training loop: its optimizer, what is frozen, and its checkpoint on disk."""

import pickle
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import torch
from torch import Tensor

from tokenspace.errors import ParameterError, SourceError
from tokenspace.nn.checkpoint import digest
from tokenspace.placing import placing

UNREADABLE = (
    OSError,
    RuntimeError,
    EOFError,
    ValueError,
    zipfile.BadZipFile,
    pickle.UnpicklingError,
)


def make_optimizer(name: str, params: list[Tensor], lr: float) -> torch.optim.Optimizer:
    """Adam or SGD of torch, fused; both are elementwise, so stacked runs stay apart."""
    if not lr > 0:
        raise ParameterError(f"lr = {lr}: a learning rate is above 0.")
    if name == "adam":
        return torch.optim.Adam(params, lr=lr, fused=True)
    if name == "sgd":
        return torch.optim.SGD(params, lr=lr, fused=True)
    raise ParameterError(f"optimizer {name!r} is unknown; take 'adam' or 'sgd'.")


class Frozen:
    """Holds parameters at their value from a given step on, each run at its own step."""

    def __init__(self, params: dict[str, Tensor], freeze: Mapping[str, int | Tensor]) -> None:
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
        self.before: dict[str, Tensor] = {}

    def remember(self, step: int) -> None:
        """Call before the update of `step`."""
        for name, at in self.steps.items():
            if bool((at <= step).any()):
                self.before[name] = self.params[name].detach().clone()

    @torch.no_grad()
    def restore(self, step: int) -> None:
        """Call after it: undoes the update where the run is frozen."""
        for name, old in self.before.items():
            held = (self.steps[name] <= step).to(old.device)[:, None, None]
            self.params[name].copy_(torch.where(held, old, self.params[name]))


@dataclass
class State:
    """All that a run of training is at one step; `done` are the steps that `records` hold."""

    params: dict[str, Tensor]
    optimizer: torch.optim.Optimizer
    records: dict[str, list[Tensor]] = field(default_factory=dict)
    done: list[int] = field(default_factory=list)
    step: int = 0

    def note(self, found: dict[str, Tensor]) -> None:
        """Keep what is logged at this step; raises `ParameterError` when its names change."""
        if self.done and self.records.keys() != found.keys():
            raise ParameterError(
                f"logged {sorted(found)} at step {self.step} after {sorted(self.records)}: log and "
                f"callback return the same names at every step, also after a resume."
            )
        for name, value in found.items():
            self.records.setdefault(name, []).append(value.cpu())
        self.done.append(self.step)


class Checkpoint:
    """A `State` in a file, with the text of the settings that it belongs to."""

    def __init__(self, path: Path, settings: Mapping[str, object]) -> None:
        self.path = path
        self.settings = {name: str(value) for name, value in settings.items()}

    def save(self, state: State) -> None:
        """Write everything into one file, whole or not at all."""
        found = {
            "settings": self.settings,
            "step": state.step,
            "params": {name: p.detach() for name, p in state.params.items()},
            "optimizer": state.optimizer.state_dict(),
            "records": state.records,
            "done": state.done,
        }
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with placing(self.path) as part:
            torch.save(found, part)

    def load(self, state: State, wanted: Sequence[int]) -> None:
        """Put a saved state, if there is one, in the place of `state`.

        Raises `ParameterError` for one of other settings or other logged steps than `wanted`, and
        `SourceError` for a file that is damaged or no checkpoint.
        """
        if not self.path.exists():
            return
        found = self._read()
        old, new = found["settings"], self.settings
        other = [name for name in old | new if old.get(name) != new.get(name)]
        told = [f"{name} {old.get(name)}, now {new.get(name)}" for name in other]
        due = [s for s in wanted if s <= found["step"]]
        if found["done"] != due:
            told.append(f"logged {found['done']} up to step {found['step']}, now {due}")
        if told:
            raise ParameterError(
                f"{self.path} was saved with other settings: {'; '.join(told)}. Remove it or take "
                f"another path."
            )
        with torch.no_grad():
            for name, p in state.params.items():
                p.copy_(found["params"][name])
        state.optimizer.load_state_dict(found["optimizer"])
        state.records, state.done, state.step = found["records"], found["done"], found["step"]

    def _read(self) -> dict:
        try:
            with zipfile.ZipFile(self.path) as archive:  # torch.load compares no checksums
                bad = archive.testzip()
            if bad:
                raise self._damaged(f"{bad} doesn't have its checksum")
            state = torch.load(self.path, weights_only=True)
        except UNREADABLE as error:
            raise self._damaged(str(error).split("\n")[0]) from error
        if not isinstance(state, dict) or "settings" not in state:
            raise self._damaged("it holds something else")
        return state

    def _damaged(self, why: str) -> SourceError:
        return SourceError(
            f"{self.path} ({self.path.stat().st_size:,} bytes) is no checkpoint of a training run, "
            f"or a damaged one: {why}. Remove it to begin anew."
        )


def named(*tensors: Tensor) -> str:
    """Name tensors by their types, shapes and values.

    >>> named(torch.zeros(2)) == named(torch.zeros(1, 2))
    False
    """
    return digest(*(part for t in tensors for part in (f"{t.dtype} {tuple(t.shape)}", t)))
