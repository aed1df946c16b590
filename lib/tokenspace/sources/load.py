"""One call for every place an embedding table can come from."""

import difflib
import re
from pathlib import Path

from tokenizers import Tokenizer

from tokenspace.errors import SourceError, TableError
from tokenspace.sources.catalogue import offline_hint, packaged_tables
from tokenspace.sources.files import KINDS, load_path
from tokenspace.sources.model import read_model
from tokenspace.sources.packaged import load_packaged
from tokenspace.sources.store import Folder, Store
from tokenspace.sources.table import EmbeddingTable
from tokenspace.sources.tokens import read_tokenizer

HUB_ID = re.compile(r"([\w.-]+/[\w.-]+)(?:@(.+))?")


def load_table(
    spec: str | Path,
    *,
    side: str = "input",
    tensor: str | None = None,
    revision: str | None = None,
) -> EmbeddingTable:
    """The embedding table of a packaged model, a file, a folder, or a public model on the Hub.

    `spec` is a name from `packaged_tables()`; a path to .gguf, .safetensors, .npy or a model
    folder; or a Hub id, "org/name" or "org/name@revision", of which only the one tensor is read.
    `side` is "input" (embedding) or "output" (unembedding); `tensor` names one outright.
    Raises SourceError when it can't be had and TableError when it isn't a table.

    >>> load_table("minilm").rows.shape
    torch.Size([30522, 384])
    """
    if side not in ("input", "output"):
        raise TableError(f"side is 'input' or 'output', not {side!r}.")
    path = Path(spec).expanduser()
    repo = None if path.exists() or path.suffix in KINDS else HUB_ID.fullmatch(str(spec))
    if repo and isinstance(spec, str):
        from tokenspace.sources.remote import HubRepo  # imports an HTTP client

        return read_model(HubRepo(repo[1], revision or repo[2]), spec, side, tensor)
    if revision is not None:
        raise SourceError(f"{spec} has no revision {revision}: only Hub ids (org/name) have one.")
    packaged = {entry.name: entry for entry in packaged_tables()}
    if spec in packaged:
        return load_packaged(packaged[str(spec)], side, tensor)
    if path.exists():
        return load_path(path, side, tensor)
    near = difflib.get_close_matches(str(spec), packaged, n=1)
    hint = f" Did you mean {near[0]}?" if near else ""
    raise SourceError(
        f"{spec}: no such file, folder or packaged table.{hint} A model on the Hub is written "
        f"org/name. {offline_hint()}"
    )


def load_tokenizer(spec: str | Path, *, revision: str | None = None) -> Tokenizer:
    """The tokenizer of a packaged model, a model folder, or a public model on the Hub.

    Raises SourceError for a model whose tokenizer.json isn't there or can't be read.

    >>> load_tokenizer("minilm").get_vocab_size()
    30522
    """
    packaged = {entry.name: entry for entry in packaged_tables()}
    path = packaged[str(spec)].required_path() if spec in packaged else Path(spec).expanduser()
    repo = HUB_ID.fullmatch(str(spec))
    if path.is_dir():
        store: Store = Folder(path)
    elif repo and isinstance(spec, str):
        from tokenspace.sources.remote import HubRepo  # imports an HTTP client

        store = HubRepo(repo[1], revision or repo[2])
    else:
        raise SourceError(
            f"{spec} is no model folder and no id on the Hub (org/name): a tokenizer "
            f"is read from a model's tokenizer.json."
        )
    return read_tokenizer(store)
