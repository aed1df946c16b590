"""Where tables and texts come from: packaged ones, files, and public models on the Hub."""

from tokenspace.sources.catalogue import HubModel, PackagedTable, hub_models, packaged_tables
from tokenspace.sources.causal import load_causal
from tokenspace.sources.corpus import Corpus, load_corpus
from tokenspace.sources.load import load_table, load_tokenizer
from tokenspace.sources.table import EmbeddingTable, check_rows

__all__ = [
    "Corpus",
    "EmbeddingTable",
    "HubModel",
    "PackagedTable",
    "check_rows",
    "hub_models",
    "load_causal",
    "load_corpus",
    "load_table",
    "load_tokenizer",
    "packaged_tables",
]
