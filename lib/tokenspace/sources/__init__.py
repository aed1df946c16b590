"""Where tables and texts come from: packages, files, and public models of Hugging Face."""

from tokenspace.sources.load import load_causal as load_causal
from tokenspace.sources.load import load_table as load_table
from tokenspace.sources.load import load_tokenizer as load_tokenizer
from tokenspace.sources.packaged import PackagedTable as PackagedTable
from tokenspace.sources.packaged import hf_models as hf_models
from tokenspace.sources.packaged import packaged_tables as packaged_tables
from tokenspace.sources.table import EmbeddingTable as EmbeddingTable
from tokenspace.sources.table import check_rows as check_rows
from tokenspace.sources.text import Corpus as Corpus
from tokenspace.sources.text import load_corpus as load_corpus
