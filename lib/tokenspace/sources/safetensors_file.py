"""Safetensors: a header that names every tensor, then the bytes.

Read here rather than with the library because the same checked header also serves range requests,
and because a type that the library doesn't know, in a tensor nobody asked for, must not hide the
table beside it.
"""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor

from tokenspace.errors import SourceError, TableError
from tokenspace.sources.suspect import not_a

MAX_HEADER = 25_000_000  # bytes; the Hub's own limit

DTYPES = {
    "F64": torch.float64,
    "F32": torch.float32,
    "F16": torch.float16,
    "BF16": torch.bfloat16,
    "F8_E4M3": torch.float8_e4m3fn,
    "F8_E5M2": torch.float8_e5m2,
}


@dataclass(frozen=True)
class Entry:
    """One tensor of a file: its stored type, its shape, its bytes [start, end) in the file."""

    name: str
    dtype: str
    shape: tuple[int, ...]
    start: int
    end: int

    @property
    def nbytes(self) -> int:
        return self.end - self.start


def header_length(first: bytes, size: int, where: str) -> int:
    """Bytes of JSON that follow the 8 bytes `first` of a file of `size` bytes.

    Raises SourceError when they can't begin a safetensors file.
    """
    length = int.from_bytes(first[:8], "little")
    if len(first) < 8 or not 2 <= length <= MAX_HEADER:
        raise not_a("safetensors", where, first, size)
    if 8 + length > size:
        raise SourceError(
            f"{where} is truncated: its header needs {8 + length} bytes, the file has {size}. "
            "Download it again."
        )
    return length


def parse_header(raw: bytes, size: int, where: str) -> dict[str, Entry]:
    """The tensors that the header `raw` lists, each checked to lie inside the file's `size` bytes.

    Raises SourceError for a header that isn't one, and for bytes that the file doesn't have.
    """
    try:
        header = json.loads(raw)
        header.pop("__metadata__", None)
        entries = {name: _entry(name, e, 8 + len(raw)) for name, e in header.items()}
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise SourceError(
            f"{where}: the safetensors header can't be read ({error}). Download it again."
        ) from error
    for entry in entries.values():
        if entry.end > size:
            raise SourceError(
                f"{where} is truncated: {entry.name} ends at byte {entry.end}, the file has "
                f"{size}. Download it again."
            )
        if not 0 <= entry.start <= entry.end or min(entry.shape, default=0) < 0:
            raise SourceError(f"{where}: {entry.name} has impossible offsets or shape: {entry}.")
    return entries


def _entry(name: str, raw: dict, base: int) -> Entry:
    start, end = raw["data_offsets"]
    shape = tuple(int(n) for n in raw["shape"])
    return Entry(name, str(raw["dtype"]), shape, base + int(start), base + int(end))


def torch_dtype(entry: Entry, where: str) -> torch.dtype:
    """The torch type of an entry, after checking that its bytes are as many as its shape needs.

    Raises TableError naming the tensor and the type when no table is stored so.
    """
    dtype = DTYPES.get(entry.dtype)
    if dtype is None:
        raise TableError(
            f"{where}: {entry.name} is stored as {entry.dtype}, which can't be read as a table. "
            f"Readable types: {', '.join(DTYPES)}."
        )
    need = math.prod(entry.shape) * dtype.itemsize
    if need != entry.nbytes:
        raise SourceError(
            f"{where}: {entry.name} of shape {entry.shape} in {entry.dtype} needs {need} bytes, "
            f"the header gives it {entry.nbytes}. The file is damaged."
        )
    return dtype


def read_header(path: Path) -> dict[str, Entry]:
    """The checked header of a file on disk."""
    size = path.stat().st_size
    with path.open("rb") as file:
        length = header_length(file.read(8), size, path.name)
        return parse_header(file.read(length), size, path.name)


def read_tensor(path: Path, entry: Entry) -> Tensor:
    """One tensor, memory-mapped: nothing is read until it is used, nothing else is read at all."""
    dtype = torch_dtype(entry, path.name)
    size = path.stat().st_size
    raw = torch.from_file(str(path), shared=False, size=size, dtype=torch.uint8)
    raw = raw[entry.start : entry.end]
    if entry.start % dtype.itemsize:  # torch views aligned bytes only
        raw = raw.clone()
    return raw.view(dtype).view(entry.shape)
