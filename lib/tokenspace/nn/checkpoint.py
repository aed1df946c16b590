"""One form of checkpoint for every training: a safetensors file with a JSON header.

The tensors lie in sections: "model." (parameters and buffers), "ema." (their average),
"optimizer." (its moments), "records." (what was logged), "since." (losses since then). The header
holds the run's identity (model, data, settings with the seed), the step and a digest of all the
rest. All that is random about a step is a function of the seed and the step (`seeds`), so that the
step is the state of the random numbers and the place in the data too.
"""

import hashlib
import json
from argparse import Namespace
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from tokenspace.errors import ParameterError, SourceError
from tokenspace.files import placing

WRAPPERS = ("_orig_mod", "module", "backbone")  # torch.compile, DDP, the released model
Header = dict[str, Any]
Sections = dict[str, dict[str, Tensor]]


@dataclass(frozen=True)
class Checkpoint:
    """Where a run is saved, and what makes it the same run.

    With `logged`, a saved run must have been logged at these steps, up to its own.
    """

    path: Path
    identity: Mapping[str, Any]
    logged: Sequence[int] | None = None

    @classmethod
    def at(
        cls, path: Path | None, identity: Mapping[str, Any], logged: Sequence[int] | None = None
    ) -> "Checkpoint | None":
        """A checkpoint, or None where nothing is to be saved."""
        return None if path is None else cls(path, identity, logged)

    def save(self, header: Header, sections: Sections) -> None:
        """Write the run into one file, whole or not at all."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        flat = {
            f"{section}.{name}": tensor.detach().cpu().contiguous()
            for section, tensors in sections.items()
            for name, tensor in tensors.items()
        }
        about = {"identity": self.identity, **header}
        about["digest"] = _digest_of(about, flat)
        with placing(self.path) as part:
            save_file(flat, part, metadata={"run": json.dumps(about)})

    def load(self) -> tuple[Header, Sections] | None:
        """The saved run, or None where there is no file.

        Raises ParameterError for another run, naming what differs, and SourceError for a file
        that is damaged or no checkpoint.
        """
        if not self.path.exists():
            return None
        header, sections = load(self.path)
        ours = dict(json.loads(json.dumps(self.identity)))  # as it comes back: tuples are lists
        saved = header["identity"]
        if self.logged is not None:
            saved = saved | {"logged": header["logged"]}
            ours["logged"] = [step for step in self.logged if step <= header["step"]]
        differing = [
            f"{key}: {saved.get(key)!r} there, {ours.get(key)!r} here"
            for key in sorted({*saved, *ours})
            if saved.get(key) != ours.get(key)
        ]
        if differing:
            raise ParameterError(
                f"{self.path} is of another run. {'; '.join(differing)}. Remove it or take another "
                "path."
            )
        return header, sections


def load(path: Path) -> tuple[Header, Sections]:
    """Header and sections of a checkpoint. Raises SourceError when it is damaged or not ours."""
    try:
        metadata, flat = _read(path)
        header = dict(json.loads(metadata["run"]))
        if header.pop("digest", None) != _digest_of(header, flat):
            raise ValueError("its content doesn't have its digest")
    except (SafetensorError, OSError, KeyError, TypeError, ValueError) as error:
        raise SourceError(
            f"{path} ({_size(path)}) is no checkpoint of a training run, or a damaged one: "
            f"{error!r}. Remove it to begin anew, or copy it again."
        ) from error
    sections: Sections = {}
    for name, tensor in flat.items():
        section, _, rest = name.partition(".")
        sections.setdefault(section, {})[rest] = tensor
    return header, sections


def load_weights(module: nn.Module, path: Path, section: str = "model") -> None:
    """Read a file's weights into a module; raises SourceError where they don't fit it."""
    found, wanted = read_tensors(path, section), whole(module)
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
    """Weights in a file by their plain names: safetensors or a torch file, ours or as released.

    `section` picks "model" or "ema" where a file holds both. Raises SourceError for a file that
    can't be read.
    """
    try:
        if path.suffix == ".safetensors":
            metadata, found = _read(path)
            if "run" in metadata:  # an average is of what trained; the rest is the model's own
                heads = [f"{part}." for part in ("model", section)]
                found = {n[len(h) :]: t for h in heads for n, t in found.items() if n.startswith(h)}
        else:
            with torch.serialization.safe_globals([Namespace]):  # the released files hold one
                state = torch.load(path, map_location="cpu", weights_only=True)
            inside = (state[key] for key in (section, "state_dict") if key in state)
            found = next((each for each in inside if isinstance(each, dict)), state)
    except Exception as error:  # torch raises many kinds for a file cut short
        raise SourceError(f"{path} ({_size(path)}) can't be read: {str(error)[:200]}.") from error
    return {plain(name): tensor for name, tensor in found.items()}


def trained(module: nn.Module) -> dict[str, Tensor]:
    """Parameters that train, by their plain names."""
    return {plain(n): p for n, p in module.named_parameters() if p.requires_grad}


def whole(module: nn.Module) -> dict[str, Tensor]:
    """Parameters and buffers, by their plain names."""
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


def digest(*parts: str | Tensor) -> str:
    """The first 12 hexadecimal digits of SHA-256 over texts and tensors' bytes.

    Bytes know neither shape nor type: say them in a text before the tensor, or take `named`.

    >>> digest("(2,)", torch.zeros(2)) == digest("(1, 2)", torch.zeros(1, 2))
    False
    """
    found = hashlib.sha256()
    for part in parts:
        if isinstance(part, str):
            found.update(part.encode())
        else:
            raw = part.detach().cpu().contiguous().flatten().view(torch.uint8)  # its bytes
            found.update(raw.numpy().data)
    return found.hexdigest()[:12]


def named(*tensors: Tensor) -> str:
    """Name tensors by their shapes, types and values.

    >>> named(torch.zeros(2)) == named(torch.zeros(1, 2))
    False
    """
    return digest(*(part for t in tensors for part in (f"{tuple(t.shape)} {t.dtype}", t)))


def _read(path: Path) -> tuple[dict[str, str], dict[str, Tensor]]:
    """A safetensors file's metadata and tensors."""
    with safe_open(path, "pt") as file:
        metadata = file.metadata() or {}
    return metadata, load_file(path)


def _digest_of(header: Header, flat: Mapping[str, Tensor]) -> str:
    return digest(
        json.dumps(header), *(part for name in sorted(flat) for part in (name, flat[name]))
    )


def _size(path: Path) -> str:
    return f"{path.stat().st_size:,} bytes" if path.exists() else "missing"
