"""A model's embedding table, from whatever store its files lie in."""

import json
from typing import Any

from torch import Tensor

from tokenspace.errors import SourceError, TableError
from tokenspace.sources.names import find_table, no_table
from tokenspace.sources.safetensors_file import Entry
from tokenspace.sources.scales import apply_scale, refuse_if_scaled, scale_of
from tokenspace.sources.store import Store
from tokenspace.sources.table import EmbeddingTable
from tokenspace.sources.tokens import read_tokens
from tokenspace.sources.weights import Weights

NESTED = ("text_config", "llm_config", "language_config")  # where multimodal models keep theirs


def read_model(store: Store, name: str, side: str, tensor: str | None) -> EmbeddingTable:
    """The input or output table of the model in `store`; only that one tensor is read.

    A tied model's output table is its input table and says so. Raises TableError when the model
    has no such table, SourceError when its files aren't as they should be.
    """
    config = read_config(store)
    weights = Weights(store)
    tied = is_tied(config, weights, store.where)
    chosen = tensor or _choose(weights, side, tied, config)
    rows, entry, scale = _read_scaled(weights, chosen, config)
    if rows.ndim != 2:
        raise TableError(
            f"{store.where}: {chosen} has shape {tuple(rows.shape)}; a table has shape (n, d)."
        )
    tokens = read_tokens(store)
    return EmbeddingTable(
        name=name,
        rows=rows,
        stored=entry.dtype,
        tokens=tokens,
        tokenizer_size=None if tokens is None else len(tokens),
        side=side,
        tied=tied,
        origin=f"{store.where}: {chosen}" + (f" times {scale}" if scale else ""),
    )


def read_config(store: Store) -> dict:
    """config.json, or nothing when the store has none; raises SourceError when it isn't JSON."""
    if "config.json" not in store.files:
        return {}
    raw = store.small("config.json").read_bytes()
    try:
        return dict(json.loads(raw))
    except (ValueError, TypeError) as error:
        raise SourceError(
            f"{store.where}: config.json isn't JSON (first bytes {raw[:20]!r}, size {len(raw)} "
            "bytes). Download it again."
        ) from error


def is_tied(config: dict, weights: Weights, where: str) -> bool | None:
    """Whether the output matrix equals the input one; None when nothing says so.

    The configuration's flag decides. Without it, a language model whose files hold no output
    matrix must use its input one.
    """
    flag = _setting(config, "tie_word_embeddings")
    if flag is not None:
        return bool(flag)
    heads = ("CausalLM", "LMHead", "MaskedLM", "ConditionalGeneration")
    speaks = any(head in str(a) for a in config.get("architectures") or () for head in heads)
    if speaks and find_table(weights.files, "output", where) is None:
        return True
    return None


def _setting(config: dict, key: str) -> Any:
    """A setting of the model, or of its language part when it has several parts."""
    parts = (config, *(config.get(part) or {} for part in NESTED))
    return next((part[key] for part in parts if part.get(key) is not None), None)


def _choose(weights: Weights, side: str, tied: bool | None, config: dict) -> str:
    where = weights.store.where
    table = find_table(weights.files, side, where)
    if table is None and side == "output":
        if not tied:
            says = {False: "says tie_word_embeddings: false", None: "doesn't say that it is tied"}
            raise TableError(
                f"{where}: the configuration {says[tied]}, yet no tensor is an output matrix "
                f"(architectures: {', '.join(config.get('architectures') or ['not given'])}). "
                "The output side can't be read; side='input' can."
            )
        table = find_table(weights.files, "input", where)
    if table is None and len(weights.files) == 1:
        table = next(iter(weights.files))  # a state dict that holds the table and nothing else
    if table is None:
        raise no_table(side, weights.files, where)
    return table


def _read_scaled(weights: Weights, name: str, config: dict) -> tuple[Tensor, Entry, str | None]:
    rows, entry = weights.read(name)
    if not entry.dtype.startswith("F8"):
        return rows, entry, None
    scale = scale_of(name, weights.files)
    quantization = _setting(config, "quantization_config") or {}
    if scale is None:
        refuse_if_scaled(name, entry.dtype, weights.files, quantization)
        return rows, entry, None
    block = quantization.get("weight_block_size")
    pair = (int(block[0]), int(block[1])) if block else None
    return apply_scale(rows, weights.read(scale)[0], scale, pair), entry, scale
