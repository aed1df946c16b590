"""Where embedding tables come from: packaged models, files, and public models on the Hub."""

from tokenspace.sources.catalogue import HubModel, PackagedTable, hub_models, packaged_tables
from tokenspace.sources.load import load_table
from tokenspace.sources.table import EmbeddingTable, check_rows

__all__ = [
    "EmbeddingTable",
    "HubModel",
    "PackagedTable",
    "check_rows",
    "hub_models",
    "load_table",
    "packaged_tables",
]
