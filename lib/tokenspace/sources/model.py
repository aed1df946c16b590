"""A model's embedding table from its safetensors: tied or not, fp8 multiplied by its scale."""

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from tokenspace.errors import TableError
from tokenspace.sources.table import EmbeddingTable
from tokenspace.sources.text import read_tokens
from tokenspace.sources.weights import Store, Weights, find_table, no_table

NESTED = ("text_config", "llm_config", "language_config")  # where multimodal models keep theirs
SCALES = ("_scale_inv", "_scale")  # both multiply: DeepSeek's, compressed-tensors
SPEAKS = ("CausalLM", "LMHead", "MaskedLM", "ConditionalGeneration")  # architectures with logits


def read_model(store: Store, name: str, side: str, tensor: str | None) -> EmbeddingTable:
    """The input or output table of the model in `store`; only that one tensor is read.

    A tied model's output table is its input table and says so. Raises TableError when the model
    has no such table, SourceError when its files aren't as they should be.
    """
    config = store.json("config.json") if "config.json" in store.files else {}
    weights = Weights(store)
    tied, note = _is_tied(config, weights)
    chosen = tensor or _choose(weights, side, tied, config)
    rows, stored, scale = _read_scaled(weights, chosen, config)
    if rows.ndim != 2:
        raise TableError(
            f"{store.where}: {chosen} has shape {tuple(rows.shape)}; a table has shape (n, d)."
        )
    tokens = read_tokens(store)
    size = None if tokens is None else len(tokens)
    origin = f"{store.where}: {chosen}" + (f" times {scale}" if scale else "")
    notes = (note,) if note else ()
    return EmbeddingTable(name, rows, stored, tokens, size, side, tied, origin, notes)


def _setting(config: dict, key: str, kind: type = object) -> Any:
    """A setting of this kind of the model, or of its language part when it has several parts."""
    parts = [config, *(config.get(part) for part in NESTED)]
    found = (part.get(key) for part in parts if isinstance(part, Mapping))
    return next((value for value in found if value is not None and isinstance(value, kind)), None)


def _is_tied(config: dict, weights: Weights) -> tuple[bool | None, str]:
    """Whether the output matrix equals the input one, None when nothing says so; and a note.

    The configuration's flag is believed where the files can't contradict it. Without a flag, a
    whole language model without an output matrix must use its input one.
    """
    flag, where = _setting(config, "tie_word_embeddings"), weights.store.where
    head = find_table(weights.file_of, "output", where)
    if flag and head:
        table = find_table(weights.file_of, "input", where)
        says = f"the configuration says tied, yet the files hold {head}"
        if table is None or not weights.store.local:  # both would have to travel
            return None, f"{says}, which was not compared with the input table"
        if torch.equal(weights.read(head)[0], weights.read(table)[0]):
            return True, ""
        return False, f"{says}, which differs from {table}: not tied"
    if flag is not None:
        return bool(flag), ""
    speaks = any(kind in str(config.get("architectures")) for kind in SPEAKS)
    return True if speaks and head is None and weights.whole else None, ""


def _choose(weights: Weights, side: str, tied: bool | None, config: dict) -> str:
    where = weights.store.where
    table = find_table(weights.file_of, side, where)
    if table is None and side == "output":
        if not tied:
            says = {False: "says tie_word_embeddings: false", None: "doesn't say that it is tied"}
            raise TableError(
                f"{where}: the configuration {says[tied]}, yet no tensor is an output matrix "
                f"(architectures: {config.get('architectures', 'not given')}). "
                "The output side can't be read; side='input' can."
            )
        table = find_table(weights.file_of, "input", where)
    if table is None and len(weights.file_of) == 1:
        table = next(iter(weights.file_of))  # a state dict that holds the table and nothing else
    if table is None:
        raise no_table(weights.file_of, where, side)
    return table


def _read_scaled(weights: Weights, name: str, config: dict) -> tuple[Tensor, str, str | None]:
    """A tensor and its stored type; fp8 is multiplied by its scale, whose name is returned too.

    Raises TableError for fp8 that lost its scale: the configuration speaks of quantization, or
    other tensors have scales.
    """
    rows, entry = weights.read(name)
    if not entry.dtype.startswith("F8"):
        return rows, entry.dtype, None
    scale = next((name + end for end in SCALES if name + end in weights.file_of), None)
    if scale:
        factor = weights.read(scale)[0].float()
        if factor.numel() not in (1, len(rows)):
            raise TableError(
                f"The scale {scale} has shape {tuple(factor.shape)}, which doesn't fit a table of "
                f"shape {tuple(rows.shape)}: expected one number, or one per row. Use the model's "
                "unquantized release."
            )
        return rows.float() * factor.reshape(-1, 1), entry.dtype, scale
    others = sum(n.endswith(tuple("weight" + end for end in SCALES)) for n in weights.file_of)
    method = (_setting(config, "quantization_config", dict) or {}).get("quant_method")
    signs = [f"quantization_config says {method}"] if method else []
    signs += [f"{others} other tensors have scales"] if others else []
    if signs:
        raise TableError(
            f"{name} is stored as {entry.dtype} and its scale is missing: no tensor "
            f"{' or '.join(name + end for end in SCALES)}, though {' and '.join(signs)}. "
            "Its numbers mean nothing without the scale; use the model's unquantized release."
        )
    return rows, entry.dtype, None
