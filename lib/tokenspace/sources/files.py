"""Readers of single files: safetensors and .npy, each checked before a number is used.

The safetensors header is parsed here rather than by the library, which refuses the whole file for
one tensor of an unknown type, and whose parser for Hugging Face trusts any answer of a server.
"""

import json
import math
from dataclasses import dataclass
from pathlib import Path
from tokenize import TokenError

import numpy as np
import torch

from tokenspace.errors import SourceError, TableError
from tokenspace.sources.table import EmbeddingTable

MAX_HEADER = 25_000_000  # bytes; the limit of Hugging Face
DTYPES = {
    "F64": torch.float64,
    "F32": torch.float32,
    "F16": torch.float16,
    "BF16": torch.bfloat16,
    "F8_E4M3": torch.float8_e4m3fn,
    "F8_E5M2": torch.float8_e5m2,
}


def not_a(kind: str, where: str, first: bytes, size: int | None = None) -> SourceError:
    """The error for a file of `size` bytes that begins with `first` and isn't of this kind."""
    hint, text = "", first.lstrip().lower()
    if size == 0:
        hint = " it is empty."
    elif text.startswith((b"<html", b"<!doc", b"<?xml")):
        hint = " it is a web page, usually a login or error page."
    elif text.startswith(b"version "):
        hint = " it is a Git LFS pointer; fetch the file itself with `git lfs pull`."
    long = "" if size is None else f", size {size} bytes"
    return SourceError(
        f"{where} is not a {kind} file (first bytes {first[:8]!r}{long}):{hint} Download it again."
    )


@dataclass(frozen=True)
class Entry:
    """One tensor of a safetensors file: stored type, shape, and its bytes [start, end)."""

    name: str
    dtype: str
    shape: tuple[int, ...]
    start: int
    end: int


def parse_header(raw: bytes, where: str) -> dict[str, Entry]:
    """The tensors that the header `raw` lists; raises SourceError for a header that isn't one."""
    entries: dict[str, Entry] = {}
    try:
        header = json.loads(raw)
        header.pop("__metadata__", None)
        for name, about in header.items():
            start, end = (8 + len(raw) + int(offset) for offset in about["data_offsets"])
            shape = tuple(int(n) for n in about["shape"])
            entries[name] = Entry(name, str(about["dtype"]), shape, start, end)
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise SourceError(
            f"{where}: the safetensors header can't be read ({error}). Download it again."
        ) from error
    for entry in entries.values():
        if not 8 + len(raw) <= entry.start <= entry.end or min(entry.shape, default=0) < 0:
            raise SourceError(f"{where}: {entry.name} has impossible offsets or shape: {entry}.")
    return entries


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
    need, given = math.prod(entry.shape) * dtype.itemsize, entry.end - entry.start
    if need != given:
        raise SourceError(
            f"{where}: {entry.name} of shape {entry.shape} in {entry.dtype} needs {need} bytes, "
            f"the header gives it {given}. The file is damaged."
        )
    return dtype


def load_npy(path: Path, side: str = "input", tensor: str | None = None) -> EmbeddingTable:
    """The matrix in a .npy file, memory-mapped. It has no tokens, no tensor names, no sides."""
    if tensor is not None:
        raise TableError(f"{path} holds one unnamed array; there is no tensor {tensor} in it.")
    size = path.stat().st_size
    with path.open("rb") as file:
        first = file.read(64)
    if not first.startswith(b"\x93NUMPY"):
        raise not_a(".npy", path.name, first, size)
    try:
        array = np.load(path, mmap_mode="c", allow_pickle=False)
    except (ValueError, TokenError) as error:  # the header is parsed as Python
        raise SourceError(
            f"{path} can't be read as a plain array ({error}; size {size} bytes). "
            "Save it again with numpy.save from a float32 array."
        ) from error
    if array.ndim != 2 or array.dtype.kind != "f" or array.dtype.itemsize > 8:
        raise TableError(
            f"{path} holds an array of shape {array.shape} and type {array.dtype}; a table has "
            "shape (n, d) and type float16, float32 or float64."
        )
    native = np.asarray(array, dtype=array.dtype.newbyteorder("="))
    stored = f"F{8 * array.dtype.itemsize}"
    return EmbeddingTable(str(path), torch.from_numpy(native), stored, side=side, origin=str(path))
