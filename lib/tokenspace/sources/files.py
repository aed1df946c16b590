"""Readers of single files: safetensors, GGUF and .npy, each checked before a number is used.

The safetensors header is parsed here rather than by the library, which refuses the whole file for
one tensor of an unknown type, and whose parser for Hugging Face trusts any answer of a server.
"""

import json
import math
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from gguf import GGMLQuantizationType, GGUFReader, dequantize
from gguf.gguf_reader import ReaderField
from torch import Tensor

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
GGUF_ROWS_AT_ONCE = 1024  # dequantizing makes three fp32 copies of them
PART = re.compile(r"(.*)-(\d{5})-of-(\d{5})(\.\w+)")  # of a model split into several files


def not_a(kind: str, where: str, first: bytes, size: int) -> SourceError:
    """The error for `size` bytes that begin with `first` and aren't a file of this kind.

    >>> print(not_a("GGUF", "m.gguf", b"<html><head>", 900))
    m.gguf is not a GGUF file (first bytes b'<html><h', size 900 bytes): it is a web page,
    usually a login or error page. Download it again.
    """
    hint = ""
    text = first.lstrip().lower()
    if size == 0:
        hint = " it is empty."
    elif text.startswith((b"<html", b"<!doc", b"<?xml")):
        hint = " it is a web page, usually a login or error page."
    elif text.startswith(b"version "):
        hint = " it is a Git LFS pointer; fetch the file itself with `git lfs pull`."
    return SourceError(
        f"{where} is not a {kind} file (first bytes {first[:8]!r}, size {size} bytes):"
        f"{hint} Download it again."
    )


@dataclass(frozen=True)
class Entry:
    """One tensor of a safetensors file: stored type, shape, and its bytes [start, end)."""

    name: str
    dtype: str
    shape: tuple[int, ...]
    start: int
    end: int

    @property
    def nbytes(self) -> int:
        return self.end - self.start


def header_length(first: bytes, size: int, where: str) -> int:
    """Bytes of JSON after the 8 bytes `first` of a safetensors file of `size` bytes.

    Raises SourceError when they can't begin one.
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
        if entry.end > size:
            raise SourceError(
                f"{where} is truncated: {entry.name} ends at byte {entry.end}, the file has "
                f"{size}. Download it again."
            )
        if not 0 <= entry.start <= entry.end or min(entry.shape, default=0) < 0:
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
    need = math.prod(entry.shape) * dtype.itemsize
    if need != entry.nbytes:
        raise SourceError(
            f"{where}: {entry.name} of shape {entry.shape} in {entry.dtype} needs {need} bytes, "
            f"the header gives it {entry.nbytes}. The file is damaged."
        )
    return dtype


def read_header(path: Path) -> dict[str, Entry]:
    """The checked header of a safetensors file on disk."""
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


def load_npy(path: Path, side: str = "input", tensor: str | None = None) -> EmbeddingTable:
    """The matrix in a .npy file, memory-mapped. It has no tokens, no tensor names, no sides."""
    if tensor is not None:
        raise TableError(f"{path} holds one unnamed array; there is no tensor {tensor} in it.")
    with path.open("rb") as file:
        first = file.read(64)
    if not first.startswith(b"\x93NUMPY"):
        raise not_a(".npy", path.name, first, path.stat().st_size)
    try:
        array = np.load(path, mmap_mode="c", allow_pickle=False)
    except ValueError as error:
        raise SourceError(
            f"{path} can't be read as a plain array ({error}; size {path.stat().st_size} bytes). "
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


class GGUFFile(GGUFReader):
    """A GGUF file (llama.cpp) of which one tensor is read, dequantized by the gguf library.

    The library builds all tensors at once, and refuses the whole file for one of a quantization
    that it doesn't know; here each is built when it is asked for. Raises SourceError when the file
    isn't a whole GGUF file.
    """

    def __init__(self, path: Path) -> None:
        self.path, size = path, path.stat().st_size
        self.infos: dict[str, ReaderField] = {}  # by tensor name
        with path.open("rb") as file:
            first = file.read(64)
        if first[:4] != b"GGUF":
            raise not_a("GGUF", path.name, first, size)
        try:
            super().__init__(path)
        except (ValueError, IndexError, KeyError, OverflowError, UnicodeDecodeError) as error:
            raise SourceError(
                f"{path.name} begins as a GGUF file but can't be read to its end (size {size} "
                f"bytes; {error}). It is truncated or damaged: download it again."
            ) from error

    @property  # type: ignore[override]
    def data(self) -> np.ndarray:
        return self._data

    @data.setter
    def data(self, mapped: np.ndarray) -> None:
        # Slicing np.memmap itself costs five times as much, once for every token.
        self._data = mapped.view(np.ndarray)

    def _build_tensors(self, start_offs: int, fields: list[ReaderField]) -> None:
        self.infos = {field.name: field for field in fields}

    def value(self, key: str, default: Any = None) -> Any:
        """A field of the file's header, such as `tokenizer.ggml.tokens`."""
        field = self.get_field(key)
        return default if field is None else field.contents()

    def shape(self, name: str) -> tuple[int, ...]:
        return tuple(int(n) for n in reversed(self.infos[name].parts[3]))

    def read(self, name: str) -> tuple[Tensor, str]:
        """The rows of one tensor and the name of its stored type.

        F16, BF16, F32 and F64 are memory-mapped as stored; every other type becomes fp32.
        Raises TableError for a quantization that can't be undone, SourceError for missing bytes.
        """
        code = int(self.infos[name].parts[4][0])
        try:
            stored = GGMLQuantizationType(code).name
            super()._build_tensors(self.data_offset, [self.infos[name]])
            info = self.tensors[0]
        except ValueError as error:
            if code in set(GGMLQuantizationType):
                raise SourceError(
                    f"{self.path.name} is truncated: {name} of shape {self.shape(name)} lies "
                    f"beyond its {self.path.stat().st_size} bytes. Download it again."
                ) from error
            raise TableError(
                f"{self.path.name}: {name} has quantization type {code}, which the gguf library "
                "doesn't know. Try a newer gguf, or a file with this tensor in Q8_0 or F16."
            ) from error
        if stored in DTYPES:
            mapped = np.memmap(self.path, np.uint8, "c", info.data_offset, (info.n_bytes,))
            return torch.from_numpy(mapped).view(DTYPES[stored]).view(self.shape(name)), stored
        rows = torch.empty(self.shape(name), dtype=torch.float32)
        try:
            for at in range(0, len(rows), GGUF_ROWS_AT_ONCE):
                block = dequantize(info.data[at : at + GGUF_ROWS_AT_ONCE], info.tensor_type)
                rows[at : at + GGUF_ROWS_AT_ONCE] = torch.from_numpy(block)
        except NotImplementedError as error:
            raise TableError(
                f"{self.path.name}: {name} is stored as {stored}, which the gguf library can't "
                "dequantize. Use a file with this tensor in Q8_0 or F16."
            ) from error
        return rows, stored
