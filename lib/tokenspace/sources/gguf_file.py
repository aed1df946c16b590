"""GGUF files (llama.cpp): a table, dequantized by the gguf library, and the tokenizer's entries."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import torch
from gguf import GGMLQuantizationType, GGUFReader, dequantize
from gguf.gguf_reader import ReaderField
from torch import Tensor

from tokenspace.errors import SourceError, TableError
from tokenspace.sources.suspect import not_a

ROWS_AT_ONCE = 1024  # dequantizing makes three fp32 copies of them
AS_STORED = {
    "F64": torch.float64,
    "F32": torch.float32,
    "F16": torch.float16,
    "BF16": torch.bfloat16,
}


class _Reader(GGUFReader):
    """The library's reader, building tensors when they are asked for.

    It otherwise refuses the whole file for one tensor of a quantization it doesn't know.
    """

    infos: dict[str, ReaderField]

    @property  # type: ignore[override]
    def data(self) -> np.ndarray:
        return self._data

    @data.setter
    def data(self, mapped: np.ndarray) -> None:
        # Slicing np.memmap itself costs five times as much, once for every token.
        self._data = mapped.view(np.ndarray)

    def _build_tensors(self, start_offs: int, fields: list[ReaderField]) -> None:
        self.infos = {field.name: field for field in fields}

    def tensor(self, name: str) -> Any:
        super()._build_tensors(self.data_offset, [self.infos[name]])
        return self.tensors[0]


class GGUFFile:
    """A GGUF file: `names` of its tensors, `tokens`, and `read` for one table.

    Raises SourceError when the file isn't a whole GGUF file.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        size = path.stat().st_size
        with path.open("rb") as file:
            first = file.read(64)
        if first[:4] != b"GGUF":
            raise not_a("GGUF", path.name, first, size)
        try:
            self._reader = _Reader(path)
        except (ValueError, IndexError, KeyError, OverflowError, UnicodeDecodeError) as error:
            raise SourceError(
                f"{path.name} begins as a GGUF file but can't be read to its end (size {size} "
                f"bytes; {error}). It is truncated or damaged: download it again."
            ) from error

    @property
    def names(self) -> list[str]:
        return list(self._reader.infos)

    def shape(self, name: str) -> tuple[int, ...]:
        return tuple(int(n) for n in reversed(self._reader.infos[name].parts[3]))

    @property
    def tokens(self) -> list[str] | None:
        field = self._reader.get_field("tokenizer.ggml.tokens")
        return None if field is None else [str(t) for t in field.contents()]

    def read(self, name: str) -> tuple[Tensor, str]:
        """The rows of one tensor and the name of its stored type.

        F16, BF16, F32 and F64 are memory-mapped as stored; every other type becomes fp32.
        Raises TableError for a quantization that can't be undone, SourceError for missing bytes.
        """
        code = int(self._reader.infos[name].parts[4][0])
        try:
            stored = GGMLQuantizationType(code).name
            info = self._reader.tensor(name)
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
        if stored in AS_STORED:
            mapped = np.memmap(self.path, np.uint8, "c", info.data_offset, (info.n_bytes,))
            return torch.from_numpy(mapped).view(AS_STORED[stored]).view(self.shape(name)), stored
        return self._dequantized(info, name, stored), stored

    def _dequantized(self, info: Any, name: str, stored: str) -> Tensor:
        rows = torch.empty(self.shape(name), dtype=torch.float32)
        try:
            for at in range(0, len(rows), ROWS_AT_ONCE):
                block = dequantize(info.data[at : at + ROWS_AT_ONCE], info.tensor_type)
                rows[at : at + ROWS_AT_ONCE] = torch.from_numpy(block)
        except NotImplementedError as error:
            raise TableError(
                f"{self.path.name}: {name} is stored as {stored}, which the gguf library can't "
                "dequantize. Use a file with this tensor in Q8_0 or F16."
            ) from error
        return rows
