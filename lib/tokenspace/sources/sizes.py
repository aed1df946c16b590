"""How large a table or a model is, before any of it is fetched.

Packaged ones and the commonest public models stand in a catalogue. Of any other on the Hub only
the headers of its files travel; when the Hub can't be reached, a size is assumed and said to be.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache
from importlib.resources import files
from math import prod
from pathlib import Path
from typing import Any

import yaml
from huggingface_hub.errors import HfHubHTTPError

from tokenspace.errors import TokenspaceError
from tokenspace.sources.load import load_table
from tokenspace.sources.packaged import hf_models, packaged_tables
from tokenspace.sources.weights import Weights, find_table

HUB_ID = re.compile(r"([\w.-]+/[\w.-]+)(?:@(.+))?")
BYTES = {"F32": 4.0, "F16": 2.0, "BF16": 2.0}
ASSUMED = {"rows": 152_000, "width": 4096, "stored": "BF16", "numbers": 8e9}  # of an unknown one


@dataclass(frozen=True)
class Size:
    """A table's rows and width, its model's count of numbers, and how many bytes would travel.

    `table_bytes` and `model_bytes` are 0 for what is on this machine already; `origin` says where
    it would come from, and `known` whether the size is more than an assumption.
    """

    spec: str
    rows: int
    width: int
    numbers: float
    table_bytes: float
    model_bytes: float
    origin: str
    known: bool = True


class Sizes:
    """Sizes by the name that a notebook's parameter gives; without `network` the Hub isn't asked.

    >>> Sizes(network=False)("minilm").rows
    30522
    """

    def __init__(self, *, network: bool = True) -> None:
        self.network = network
        self._found: dict[str, Size] = {}

    def __call__(self, spec: str) -> Size:
        """Give the size of a packaged table or model, a file or folder, or an id on the Hub."""
        if spec not in self._found:
            self._found[spec] = self._look(spec)
        return self._found[spec]

    def functions(self) -> dict[str, Callable[..., Any]]:
        """Give what a formula may call with a name, and `public_ids()`."""
        return {
            "rows_of": lambda spec: self(spec).rows,
            "width_of": lambda spec: self(spec).width,
            "numbers_of": lambda spec: self(spec).numbers,
            "public_ids": lambda: [model.id for model in hf_models()],
        }

    def _look(self, spec: str) -> Size:
        packaged = {entry.name: entry for entry in packaged_tables()}
        if spec in packaged:
            entry = packaged[spec]
            whole = _catalogue().get(entry.model, {}).get("numbers", entry.rows * entry.dims)
            origin = f"package {entry.package}"
            return Size(spec, entry.rows, entry.dims, float(whole), 0.0, 0.0, origin)
        repo = None if Path(spec).expanduser().exists() else HUB_ID.fullmatch(spec)
        if repo is None:
            return _of_file(spec) if spec else Size(spec, 0, 0, 0.0, 0.0, 0.0, "nothing")
        if repo[1] in _catalogue():
            size = _size(spec, _catalogue()[repo[1]], "huggingface.co, size by our catalogue")
            return replace(size, **_kept(repo[1]))
        if self.network:
            try:
                return replace(_of_hub(spec, repo[1], repo[2]), **_kept(repo[1]))
            except TokenspaceError as error:
                # where there is no network, the next name shouldn't wait for it again
                self.network = isinstance(error.__cause__, HfHubHTTPError)
                return _assumed(spec, str(error).split(". ")[0])
        return _assumed(spec, "the Hub was not asked")


@cache
def _catalogue() -> dict[str, dict[str, Any]]:
    text = (files("tokenspace.sources") / "data" / "sizes.yaml").read_text("utf-8")
    return dict(yaml.safe_load(text))


def _size(spec: str, about: dict[str, Any], origin: str, known: bool = True) -> Size:
    rows, width, numbers = about["rows"], about["width"], float(about["numbers"])
    each = BYTES[about["stored"]]
    table = rows * width * each
    return Size(spec, rows, width, numbers, table, numbers * each, origin, known)


def _assumed(spec: str, why: str) -> Size:
    return _size(spec, ASSUMED, f"huggingface.co, size unknown: {why}", known=False)


def _kept(repo: str) -> dict[str, Any]:
    """Say what of a model the Hub's cache holds; a part of a model counts as all of it."""
    from huggingface_hub import constants
    from huggingface_hub.file_download import repo_folder_name

    folder = Path(constants.HF_HUB_CACHE) / repo_folder_name(repo_id=repo, repo_type="model")
    whole = any(folder.glob("snapshots/*/*.safetensors"))
    table = whole or any(folder.glob("tables/*/*/*.safetensors"))
    here = {"model_bytes": 0.0} if whole else {}
    return here | ({"table_bytes": 0.0, "origin": "the cache of huggingface_hub"} if table else {})


def _of_hub(spec: str, repo: str, revision: str | None) -> Size:
    """Read the headers of all files of a model, which say each tensor's shape and bytes."""
    from tokenspace.sources.hf import HfRepo  # imports an HTTP client

    store = HfRepo(repo, revision)
    weights = Weights(store)
    entries = {
        n: e for file in set(weights.file_of.values()) for n, e in store.header(file).items()
    }
    name = find_table(weights.file_of, "input", store.where)
    shape = entries[name].shape if name else (0, 0)
    numbers = float(sum(prod(e.shape) for e in entries.values()))
    table = float(entries[name].nbytes) if name else 0.0
    whole = float(sum(e.nbytes for e in entries.values()))
    return Size(spec, shape[0], shape[1], numbers, table, whole, "huggingface.co")


def _of_file(spec: str) -> Size:
    """Look at a file or folder; one that can't be read costs nothing, and its run says why."""
    path = Path(spec).expanduser()
    try:
        rows, width = load_table(path).rows.shape
    except TokenspaceError:
        return Size(spec, 0, 0, 0.0, 0.0, 0.0, "no such file or packaged name", known=False)
    stored = sum(p.stat().st_size for p in (path.rglob("*") if path.is_dir() else [path]))
    return Size(spec, rows, width, float(max(stored / 2, rows * width)), 0.0, 0.0, str(path))
