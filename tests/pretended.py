"""A GPU that isn't there: tensors that refuse to mix with the CPU's, though their values lie there.

What a GPU would refuse raises here too: an operation on tensors of two devices, a generator of the
CPU that draws on the GPU, NumPy on a tensor that wasn't brought back. The device is called "meta",
the only one besides "cpu" that every build of torch knows.
"""

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any
from unittest.mock import patch

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode, return_and_correct_aliasing
from torch.utils._pytree import tree_iter, tree_map_only

TENSOR, GENERATOR, AUTOCAST = torch.tensor, torch.Generator, torch.autocast
GENERATORS: list[torch.Generator] = []  # of the GPU that isn't there; told by their seeds

aten = torch.ops.aten
CROSSING = {aten.copy_.default, aten._to_copy.default}  # between devices by their nature
INDEXING = {aten.index.Tensor, aten.index_put_.default, aten.index_put.default}  # by CPU ids too


class Pretended(Tensor):
    """A tensor on the GPU that isn't there; `inner` holds its values."""

    inner: Tensor

    @staticmethod
    def __new__(cls, inner: Tensor) -> "Pretended":
        """Wrap a tensor of the CPU."""
        made = Tensor._make_wrapper_subclass(
            cls,
            inner.size(),
            inner.stride(),
            inner.storage_offset(),
            dtype=inner.dtype,
            device="meta",
            requires_grad=inner.requires_grad,
        )
        made.inner = inner
        return made

    def tolist(self) -> Any:
        """Bring values back, as a GPU's tensor does."""
        return self.inner.tolist()

    def __repr__(self) -> str:
        return f"Pretended({self.inner!r})"

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return compute(func, args, kwargs or {})


class Mode(TorchDispatchMode):
    """Takes what is made on the device from nothing, or brought there, to the same place."""

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return compute(func, args, kwargs or {})


def compute(func: Any, args: Any, kwargs: dict[str, Any]) -> Any:
    """Carry out an operation on the values; refuse it where a GPU would."""
    tensors = [t for t in tree_iter((args, kwargs)) if isinstance(t, Tensor)]
    ours = [t for t in tensors if isinstance(t, Pretended)]
    wanted = kwargs.get("device")
    there = bool(ours) if wanted is None else torch.device(wanted).type == "meta"
    if ours and func not in CROSSING:
        checked = args[:1] if func in INDEXING else (args, kwargs)
        stray = [t for t in tree_iter(checked) if is_plain(t) and t.ndim]
        if stray:
            raise RuntimeError(f"{func} on two devices: cpu {[tuple(t.shape) for t in stray]}")
    drawn_by = kwargs.get("generator")
    seeds = {made.initial_seed() for made in GENERATORS}
    if drawn_by is not None and (drawn_by.initial_seed() in seeds) != there:
        raise RuntimeError(f"{func} by a generator of another device")
    kwargs = {**kwargs, **({"device": torch.device("cpu")} if there and wanted is not None else {})}
    inner_args, inner_kwargs = tree_map_only(Pretended, lambda t: t.inner, (args, kwargs))
    out = func(*inner_args, **inner_kwargs)
    if not there and func not in {aten.copy_.default}:
        return out
    if func is aten.copy_.default:
        return args[0]
    out = tree_map_only(Tensor, lambda t: Pretended(t), out)
    return return_and_correct_aliasing(func, args, kwargs, out)


def is_plain(value: Any) -> bool:
    return isinstance(value, Tensor) and not isinstance(value, Pretended)


def tensor(data: Any, device: Any = "cpu", **more: Any) -> Tensor:
    return TENSOR(data, **more).to(device)  # torch fills none on "meta"


def generator(device: Any = "cpu") -> torch.Generator:
    if torch.device(device).type != "meta":
        return GENERATOR(device)
    GENERATORS.append(GENERATOR())
    return GENERATORS[-1]


def autocast(kind: str, *words: Any, **options: Any) -> AbstractContextManager:
    """A GPU that isn't there casts nothing."""
    return nullcontext() if kind == "meta" else AUTOCAST(kind, *words, **options)


@contextmanager
def pretended() -> Iterator[str]:
    """Give the device's name, and make it usable."""
    fused = [*torch.utils._foreach_utils._get_fused_kernels_supported_devices(), "meta"]
    with (
        patch("torch.optim.optimizer._get_fused_kernels_supported_devices", lambda: fused),
        patch.multiple(torch, tensor=tensor, Generator=generator, autocast=autocast),
        Mode(),
    ):
        yield "meta"
