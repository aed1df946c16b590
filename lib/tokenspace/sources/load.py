"""One call for every place an embedding table can come from."""

from __future__ import annotations

from pathlib import Path

from tokenspace.errors import SourceError
from tokenspace.sources.catalogue import offline_hint, packaged_tables
from tokenspace.sources.packaged import load_packaged
from tokenspace.sources.table import EmbeddingTable


def load_table(
    spec: str | Path,
    *,
    side: str = "input",
    tensor: str | None = None,
    revision: str | None = None,
) -> EmbeddingTable:
    """The embedding table of a packaged model, a file or folder, or a public model on the Hub.

    >>> load_table("minilm").rows.shape
    torch.Size([30522, 384])
    """
    for entry in packaged_tables():
        if entry.name == spec:
            return load_packaged(entry, side, tensor)
    raise SourceError(f"{spec}: not yet. {offline_hint()}")
