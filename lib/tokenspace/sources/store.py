"""Where a model's files lie: a folder on disk here, a repository on the Hub in `remote`."""

from collections.abc import Sequence
from pathlib import Path
from typing import Protocol, runtime_checkable

from torch import Tensor

from tokenspace.errors import SourceError
from tokenspace.sources.safetensors_file import Entry, read_header, read_tensor


@runtime_checkable
class Store(Protocol):
    """A model's files by name; a table can be read from either kind of store by the same code."""

    where: str  # how messages name it

    @property
    def files(self) -> Sequence[str]:
        """Names of all files."""

    def small(self, name: str) -> Path:
        """A whole small file (configuration, index, tokenizer) on disk."""

    def header(self, name: str) -> dict[str, Entry]:
        """The checked header of a safetensors file."""

    def tensor(self, name: str, entry: Entry) -> Tensor:
        """One tensor of a safetensors file, memory-mapped."""


class Folder:
    """A model folder on disk, or the part of it beside one given safetensors file."""

    def __init__(self, path: Path, only: str | None = None) -> None:
        self.path = path
        self.where = str(path / only if only else path)
        try:
            names = sorted(p.name for p in path.iterdir() if p.is_file())
        except OSError as error:
            raise SourceError(f"{path} can't be read: {error.strerror}.") from error
        weights = (".safetensors", ".safetensors.index.json")
        self.files = [n for n in names if only in (None, n) or not n.endswith(weights)]

    def small(self, name: str) -> Path:
        return self.path / name

    def header(self, name: str) -> dict[str, Entry]:
        return read_header(self.path / name)

    def tensor(self, name: str, entry: Entry) -> Tensor:
        return read_tensor(self.path / name, entry)
