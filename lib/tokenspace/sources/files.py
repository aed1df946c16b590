"""Tables from files and folders on disk."""

from pathlib import Path

import numpy as np
import torch

from tokenspace.errors import SourceError, TableError
from tokenspace.sources.gguf_file import GGUFFile
from tokenspace.sources.model import read_model
from tokenspace.sources.names import find_table, no_such_tensor, no_table
from tokenspace.sources.store import Folder
from tokenspace.sources.suspect import not_a
from tokenspace.sources.table import EmbeddingTable
from tokenspace.sources.weights import PICKLED


def load_path(path: Path, side: str, tensor: str | None) -> EmbeddingTable:
    """The table in a .gguf, .safetensors or .npy file, or in a model folder.

    Raises SourceError for a file that can't be read and TableError for one without a table.
    """
    if path.is_dir():
        return _load_folder(path, side, tensor)
    if path.suffix in PICKLED:
        raise SourceError(
            f"{path} is a pickle, which can run code when opened and is never loaded here. Save "
            "its state dict with safetensors.torch.save_file."
        )
    if path.suffix not in KINDS:
        raise SourceError(f"{path}: unknown kind of file. Readable: {', '.join(KINDS)}, a folder.")
    try:
        return KINDS[path.suffix](path, side, tensor)
    except OSError as error:
        raise SourceError(f"{path} can't be read: {error.strerror or error}.") from error


def _load_folder(path: Path, side: str, tensor: str | None) -> EmbeddingTable:
    folder = Folder(path)
    gguf = [n for n in folder.files if n.endswith(".gguf")]
    if len(gguf) == 1 and not any(n.endswith(".safetensors") for n in folder.files):
        return load_gguf(path / gguf[0], side, tensor)
    return read_model(folder, str(path), side, tensor)


def load_safetensors(path: Path, side: str, tensor: str | None) -> EmbeddingTable:
    """The table in one safetensors file; a configuration and tokenizer beside it are used."""
    return read_model(Folder(path.parent, only=path.name), str(path), side, tensor)


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


def load_gguf(path: Path, side: str = "input", tensor: str | None = None) -> EmbeddingTable:
    """The table in a GGUF file; without an output matrix of its own the model is tied."""
    file = GGUFFile(path)
    output = find_table(file.names, "output", path.name)
    chosen = tensor or (output if side == "output" else None)
    chosen = chosen or find_table(file.names, "input", path.name)
    if chosen is None:
        raise no_table(side, file.names, path.name)
    if chosen not in file.names:
        raise no_such_tensor(chosen, file.names, path.name)
    if len(file.shape(chosen)) != 2:
        raise TableError(
            f"{path.name}: {chosen} has shape {file.shape(chosen)}; a table has shape (n, d)."
        )
    rows, stored = file.read(chosen)
    tokens = file.tokens
    return EmbeddingTable(
        name=str(path),
        rows=rows,
        stored=stored,
        tokens=tokens,
        tokenizer_size=None if tokens is None else len(tokens),
        side=side,
        tied=output is None,
        origin=f"{path.name}: {chosen}",
    )


KINDS = {".gguf": load_gguf, ".safetensors": load_safetensors, ".npy": load_npy}
