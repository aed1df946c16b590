"""Readers of the packaged tables."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch

from tokenspace.sources.catalogue import PackagedTable
from tokenspace.sources.gguf_file import GGUFFile
from tokenspace.sources.safetensors_file import read_header, read_tensor
from tokenspace.sources.table import EmbeddingTable


def load_packaged(entry: PackagedTable, side: str, tensor: str | None) -> EmbeddingTable:
    path = entry.required_path()
    if entry.name == "glove":
        return _glove(path)
    if entry.name == "minilm":
        n = "embeddings.word_embeddings.weight"
        rows = read_tensor(path / "model.safetensors", read_header(path / "model.safetensors")[n])
        tokens = (path / "vocab.txt").read_text("utf-8").split("\n")[:-1]
        return EmbeddingTable("minilm", rows, "F32", tokens, len(tokens), origin=f"{path}:{n}")
    file = GGUFFile(path)
    rows, stored = file.read("token_embd.weight")
    toks = file.tokens
    return EmbeddingTable(entry.name, rows, stored, toks, len(toks or ()), origin=str(path))


def _glove(path: Path) -> EmbeddingTable:
    import pyarrow.parquet as pq

    rows = np.load(path / "glove_6B_50d_emb.npy", mmap_mode="c", allow_pickle=False)
    words = pq.read_table(path / "glove_6B_index.parquet").column(0).to_pylist()
    return EmbeddingTable(
        "glove", torch.from_numpy(rows), "F32", words, len(words), origin=str(path)
    )
