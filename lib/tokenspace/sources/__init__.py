"""Where embedding tables come from: packaged models, files, and public models on the Hub."""

from tokenspace.sources.catalogue import PackagedTable, packaged_tables
from tokenspace.sources.load import load_table
from tokenspace.sources.table import EmbeddingTable, check_rows

__all__ = ["EmbeddingTable", "PackagedTable", "check_rows", "load_table", "packaged_tables"]
