"""The state of a training run: the averaged weights, and checkpoints as plain safetensors.

A checkpoint is one file: raw weights ("model."), their average ("ema."), the optimizer's moments
("optimizer."), what was logged ("history."), and in its header, as JSON, the step, the average's
counter and the run's identity. All randomness of a step is a function of the seed and the step
(`training`), so the step is the random state and the data position too.
"""

import json
from argparse import Namespace
from collections.abc import Mapping
from copy import deepcopy
from pathlib import Path
from typing import Any, TypeVar

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from tokenspace.errors import ParameterError, SourceError
from tokenspace.placing import placing

WRAPPERS = ("_orig_mod", "module", "backbone")  # torch.compile, DDP, the released model
M = TypeVar("M", bound=nn.Module)


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


def trained(module: nn.Module) -> dict[str, Tensor]:
    """Parameters that train, by their name without prefixes of wrappers."""
    return {plain(n): p for n, p in module.named_parameters() if p.requires_grad}


def whole(module: nn.Module) -> dict[str, Tensor]:
    """Parameters and buffers, by their name without prefixes of wrappers."""
    return {plain(n): t for n, t in module.state_dict().items()}


def plain(name: str) -> str:
    """A parameter's name without what compiling and wrapping put into it.

    >>> plain("network._orig_mod.blocks.0.norm1.weight")
    'network.blocks.0.norm1.weight'
    """
    return ".".join(part for part in name.split(".") if part not in WRAPPERS)


@torch.no_grad()
def copy_into(to: Mapping[str, Tensor], tensors: Mapping[str, Tensor]) -> None:
    """Copy values in place, name by name."""
    for name, tensor in to.items():
        tensor.copy_(tensors[name])


def save(
    path: Path, header: Mapping[str, Any], sections: Mapping[str, Mapping[str, Tensor]]
) -> None:
    """Write the sections into one file, whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    flat = {
        f"{section}.{name}": tensor.detach().cpu().contiguous()
        for section, tensors in sections.items()
        for name, tensor in tensors.items()
    }
    with placing(path) as part:
        save_file(flat, part, metadata={"run": json.dumps(header)})


def load(path: Path) -> tuple[dict[str, Any], dict[str, dict[str, Tensor]]]:
    """Header and sections of a checkpoint. Raises SourceError when it is truncated or not ours."""
    try:
        with safe_open(path, "pt") as file:
            metadata = file.metadata() or {}
        tensors = load_file(path)
    except (SafetensorError, OSError) as error:
        raise SourceError(
            f"{path} ({_size(path)}) can't be read as a checkpoint: {error}. It was cut short or "
            "isn't safetensors; remove it, or copy it again."
        ) from error
    if "run" not in metadata:
        raise SourceError(f"{path} holds {len(tensors)} tensors but no run: it isn't a checkpoint.")
    sections: dict[str, dict[str, Tensor]] = {}
    for name, tensor in tensors.items():
        section, _, rest = name.partition(".")
        sections.setdefault(section, {})[rest] = tensor
    return json.loads(metadata["run"]), sections


def refuse_other_run(path: Path, saved: Mapping[str, Any], ours: Mapping[str, Any]) -> None:
    """Raise ParameterError naming what differs between the saved run's identity and ours."""
    differing = [
        f"{key}: {saved.get(key)!r} there, {ours.get(key)!r} here"
        for key in sorted({*saved, *ours})
        if saved.get(key) != ours.get(key)
    ]
    if differing:
        raise ParameterError(
            f"{path} is of another run. {'; '.join(differing)}. Remove it or take another path."
        )


def load_weights(module: nn.Module, path: Path, section: str = "model") -> None:
    """Read weights into a module: safetensors or a torch file, ours or of the released shape.

    Prefixes of torch.compile, DDP and the released model are dropped. `section` picks "model" or
    "ema" where a file holds both.
    Raises SourceError for a file that can't be read, with missing or with misshaped tensors.
    """
    found = read_tensors(path, section)
    wanted = whole(module)
    missing = [n for n in wanted if n not in found]
    misshaped = [
        f"{n} is {tuple(found[n].shape)} there, {tuple(t.shape)} here"
        for n, t in wanted.items()
        if n in found and found[n].shape != t.shape
    ]
    if missing or misshaped:
        raise SourceError(
            f"{path} doesn't fit {type(module).__name__}: {len(misshaped)} tensors of another "
            f"shape ({'; '.join(misshaped[:3]) or 'none'}), {len(missing)} of {len(wanted)} "
            f"missing ({', '.join(missing[:3]) or 'none'}). Build the model with the file's shape; "
            f"the file has {', '.join(list(found)[:3])}."
        )
    copy_into(wanted, found)


def read_tensors(path: Path, section: str = "model") -> dict[str, Tensor]:
    """Weights in a file by their plain names; raises SourceError where it can't be read."""
    return {plain(name): tensor for name, tensor in _tensors(path, section).items()}


def _tensors(path: Path, section: str) -> dict[str, Tensor]:
    if path.suffix == ".safetensors":
        try:
            tensors = load_file(path)
        except (SafetensorError, OSError) as error:
            raise SourceError(f"{path} ({_size(path)}) can't be read: {error}.") from error
        own: dict[str, Tensor] = {}
        for wanted in ("model", section):  # an average is of what trained; the rest is raw
            head = f"{wanted}."
            own |= {n.removeprefix(head): t for n, t in tensors.items() if n.startswith(head)}
        return own or tensors
    try:
        with torch.serialization.safe_globals([Namespace]):  # the released files hold one
            state = torch.load(path, map_location="cpu", weights_only=True)
    except Exception as error:  # torch raises many kinds for a file cut short
        raise SourceError(
            f"{path} ({_size(path)}) can't be read as torch weights: {str(error)[:200]}"
        ) from error
    for key in (section, "state_dict"):
        if isinstance(state.get(key), dict):
            return dict(state[key])
    return dict(state)


def _size(path: Path) -> str:
    return f"{path.stat().st_size:,} bytes" if path.exists() else "missing"
