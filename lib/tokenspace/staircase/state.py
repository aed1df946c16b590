"""The state of a training loop: its optimizer, what is frozen, and its checkpoint on disk."""

import os
from collections.abc import Mapping
from pathlib import Path

import torch
from torch import Tensor

from tokenspace.errors import ParameterError


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


def save(
    path: Path,
    what: str,
    step: int,
    params: dict[str, Tensor],
    optimizer: torch.optim.Optimizer,
    records: dict[str, list[Tensor]],
    done: list[int],
) -> None:
    """Writes the whole state beside `path`, then puts it in place in one move."""
    path.parent.mkdir(parents=True, exist_ok=True)
    state = {
        "what": what,
        "step": step,
        "params": {name: p.detach() for name, p in params.items()},
        "optimizer": optimizer.state_dict(),
        "records": records,
        "done": done,
    }
    temporary = path.with_name(path.name + ".part")
    torch.save(state, temporary)
    os.replace(temporary, path)


def load(
    path: Path,
    what: str,
    params: dict[str, Tensor],
    optimizer: torch.optim.Optimizer,
    records: dict[str, list[Tensor]],
    done: list[int],
) -> int:
    """Puts a saved state back in place; returns its step. Refuses one of other settings."""
    state = torch.load(path, weights_only=True)
    if state["what"] != what:
        raise ParameterError(
            f"{path} was saved by {state['what']!r}, not {what!r}; remove it or take another path."
        )
    with torch.no_grad():
        for name, p in params.items():
            p.copy_(state["params"][name])
    optimizer.load_state_dict(state["optimizer"])
    records.update(state["records"])
    done.extend(state["done"])
    return int(state["step"])
