"""Small checkpoints written by the formats' own libraries."""

import json
from pathlib import Path

import torch
from safetensors.torch import save as save_unshared
from tokenizers import Tokenizer
from tokenizers.models import WordLevel
from torch import Tensor

EMBED = "model.embed_tokens.weight"
HEAD = "lm_head.weight"
SHARDS = ("model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors")
INDEX = "model.safetensors.index.json"


def save(tensors: dict[str, Tensor]) -> bytes:
    return save_unshared({name: t.clone() for name, t in tensors.items()})


def random_rows(n: int, d: int, dtype: torch.dtype = torch.bfloat16, seed: int = 0) -> Tensor:
    return torch.randn(n, d, generator=torch.Generator().manual_seed(seed)).to(dtype)


def tokenizer(size: int) -> bytes:
    vocab = {f"t{i}": i for i in range(size - 1)} | {"[UNK]": size - 1}
    return Tokenizer(WordLevel(vocab, "[UNK]")).to_str().encode()


def config(tied: bool | None = None, **more: object) -> bytes:
    fields = {"architectures": ["LlamaForCausalLM"]} | more
    return json.dumps(fields | ({} if tied is None else {"tie_word_embeddings": tied})).encode()


def index(weight_map: dict[str, str]) -> bytes:
    return json.dumps({"metadata": {}, "weight_map": weight_map}).encode()


def single(tensors: dict[str, Tensor], tied: bool | None = None) -> dict[str, bytes]:
    return {"config.json": config(tied), "model.safetensors": save(tensors)}


def sharded(rows: Tensor, head: Tensor) -> dict[str, bytes]:
    """A model of two shards, its table between other tensors in the first."""
    other = torch.zeros(100, 300)
    first = {"model.a.weight": other, EMBED: rows, "model.z.weight": other}
    return {
        "config.json": config(tied=False),
        "tokenizer.json": tokenizer(len(rows) - 3),
        SHARDS[0]: save(first),
        SHARDS[1]: save({HEAD: head, "model.norm.weight": torch.ones(7)}),
        INDEX: index(dict.fromkeys(first, SHARDS[0]) | {HEAD: SHARDS[1]}),
    }


def write(folder: Path, files: dict[str, bytes]) -> Path:
    folder.mkdir(exist_ok=True)
    for name, data in files.items():
        (folder / name).write_bytes(data)
    return folder
