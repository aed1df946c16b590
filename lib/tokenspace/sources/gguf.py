"""The table in a GGUF file (llama.cpp), or in the files that such a model is split into."""

from pathlib import Path
from typing import Any

import numpy as np
import torch
from gguf import GGMLQuantizationType, GGUFReader, dequantize
from gguf.gguf_reader import ReaderField
from torch import Tensor

from tokenspace.errors import SourceError, TableError
from tokenspace.sources.files import DTYPES, not_a
from tokenspace.sources.table import EmbeddingTable
from tokenspace.sources.weights import PART, find_table, no_table

ROWS_AT_ONCE = 1024  # dequantizing makes three fp32 copies of them


class GGUFFile(GGUFReader):
    """A GGUF file of which one tensor is read, dequantized by the gguf library.

    The library builds all tensors at once, and refuses the whole file for one of a quantization
    that it doesn't know; here each is built when it is asked for. Raises SourceError when the file
    isn't a whole GGUF file.
    """

    def __init__(self, path: Path) -> None:
        self.path, self.size = path, path.stat().st_size
        self.infos: dict[str, ReaderField] = {}  # by tensor name
        with path.open("rb") as file:
            first = file.read(64)
        if first[:4] != b"GGUF":
            raise not_a("GGUF", path.name, first, self.size)
        try:
            super().__init__(path, "c")
        except (ValueError, IndexError, KeyError, OverflowError, UnicodeDecodeError) as error:
            raise SourceError(
                f"{path.name} begins as a GGUF file but can't be read to its end (size "
                f"{self.size} bytes; {error}). It is truncated or damaged: download it again."
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
        try:
            return default if field is None else field.contents()
        except UnicodeDecodeError as error:
            raise SourceError(
                f"{self.path.name}: {key} is not UTF-8 ({error}). The file is damaged: download it "
                "again."
            ) from error

    def read(self, name: str) -> tuple[Tensor, str]:
        """The rows of one tensor and the name of its stored type.

        F16, BF16, F32 and F64 are memory-mapped as stored; every other type becomes fp32.
        Raises TableError for a quantization that can't be undone, SourceError for missing bytes.
        """
        info = self.infos[name]
        shape = tuple(int(n) for n in reversed(info.parts[3]))
        if len(shape) != 2:
            raise TableError(f"{self.path.name}: {name} has shape {shape}; a table has (n, d).")
        code = int(info.parts[4][0])
        known = code in set(GGMLQuantizationType)
        stored = GGMLQuantizationType(code).name if known else f"quantization type {code}"
        try:
            super()._build_tensors(self.data_offset, [info])
            tensor = self.tensors[0]
            if stored in DTYPES:
                return torch.from_numpy(tensor.data).view(DTYPES[stored]).view(shape), stored
            rows = torch.empty(shape, dtype=torch.float32)
            for at in range(0, len(rows), ROWS_AT_ONCE):
                block = dequantize(tensor.data[at : at + ROWS_AT_ONCE], tensor.tensor_type)
                rows[at : at + ROWS_AT_ONCE] = torch.from_numpy(block)
        except (ValueError, NotImplementedError) as error:
            if known and isinstance(error, ValueError):
                raise SourceError(
                    f"{self.path.name} is truncated: {name} of shape {shape} lies beyond its "
                    f"{self.size} bytes. Download it again."
                ) from error
            raise TableError(
                f"{self.path.name}: {name} is stored as {stored}, which the gguf library can't "
                "dequantize. Try a newer gguf, or a file with this tensor in Q8_0 or F16."
            ) from error
        return rows, stored


def read_gguf(path: Path, side: str, tensor: str | None) -> EmbeddingTable:
    """The table in a GGUF file, or in the files that it is split into.

    A whole model without an output matrix of its own is tied. Raises SourceError when the table
    may lie in a part that isn't there.
    """
    names, split = [path.name], PART.fullmatch(path.name)
    count = int(GGUFFile(path).value("split.count", 0))
    if split and count > 1:
        names = [f"{split[1]}-{i:05d}-of-{count:05d}{split[4]}" for i in range(1, count + 1)]
    missing = [n for n in names if not path.with_name(n).exists()]
    files = [GGUFFile(path.with_name(n)) for n in names if n not in missing]
    file_of = {name: file for file in files for name in file.infos}
    output = find_table(file_of, "output", path.name)
    chosen = tensor or find_table(file_of, side, path.name)
    if len(files) < count and chosen not in file_of:
        raise SourceError(
            f"{path.name} is one of {count} files of a split model, and the {side} table is in "
            f"none of those that are here. Missing beside it: {', '.join(missing) or 'the others'}."
        )
    chosen = chosen or find_table(file_of, "input", path.name)
    if chosen is None or chosen not in file_of:
        raise no_table(file_of, path.name, side, chosen)
    rows, stored = file_of[chosen].read(chosen)
    tokens = next((t for each in files if (t := each.value("tokenizer.ggml.tokens"))), None)
    size = None if tokens is None else len(tokens)
    tied = False if output else True if len(files) >= count else None
    origin = f"{file_of[chosen].path.name}: {chosen}"
    return EmbeddingTable(str(path), rows, stored, tokens, size, side, tied, origin)
