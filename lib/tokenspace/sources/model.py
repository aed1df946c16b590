"""A model's embedding table: its GGUF or safetensors, tied or not, fp8 multiplied by its scale."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from jaxtyping import Float
from torch import Tensor

from tokenspace.errors import SourceError, TableError
from tokenspace.sources.files import PART, Entry, GGUFFile
from tokenspace.sources.table import ROWS_AT_ONCE, EmbeddingTable
from tokenspace.sources.text import read_tokens
from tokenspace.sources.weights import Folder, Weights, find_table, no_table

if TYPE_CHECKING:
    from tokenspace.sources.weights import Store

NESTED = ("text_config", "llm_config", "language_config")  # where multimodal models keep theirs
SCALES = ("_scale_inv", "_scale")  # both multiply: DeepSeek's blocks, compressed-tensors


def read_gguf(path: Path, side: str, tensor: str | None) -> EmbeddingTable:
    """The table in a GGUF file, or in the files that it is split into.

    A whole model without an output matrix of its own is tied. Raises SourceError when the table
    may lie in a part that isn't there.
    """
    split = PART.fullmatch(path.name)
    count = int(GGUFFile(path).value("split.count", 0))
    names = [path.name]
    if split and count > 1:
        names = [f"{split[1]}-{i:05d}-of-{count:05d}{split[4]}" for i in range(1, count + 1)]
    files = [GGUFFile(path.with_name(n)) for n in names if path.with_name(n).exists()]
    file_of = {name: file for file in files for name in file.infos}
    output = find_table(file_of, "output", path.name)
    chosen = tensor or find_table(file_of, side, path.name)
    if len(files) < count and (chosen not in file_of):
        missing = [n for n in names if not path.with_name(n).exists()]
        raise SourceError(
            f"{path.name} is one of {count} files of a split model, and the {side} table is in "
            f"none of those that are here. Missing beside it: {', '.join(missing) or 'the others'}."
        )
    chosen = chosen or find_table(file_of, "input", path.name)
    if chosen is None or chosen not in file_of:
        raise no_table(file_of, path.name, side, chosen)
    file = file_of[chosen]
    if len(file.shape(chosen)) != 2:
        raise TableError(
            f"{path.name}: {chosen} has shape {file.shape(chosen)}; a table has shape (n, d)."
        )
    rows, stored = file.read(chosen)
    tokens = next((t for each in files if (t := each.value("tokenizer.ggml.tokens"))), None)
    tied = output is None if len(files) >= count else None if output is None else False
    origin, size = f"{file.path.name}: {chosen}", None if tokens is None else len(tokens)
    return EmbeddingTable(str(path), rows, stored, tokens, size, side, tied, origin)


def read_model(store: Store, name: str, side: str, tensor: str | None) -> EmbeddingTable:
    """The input or output table of the model in `store`; only that one tensor is read.

    A tied model's output table is its input table and says so. Raises TableError when the model
    has no such table, SourceError when its files aren't as they should be.
    """
    config = _read_config(store)
    weights = Weights(store)
    tied, notes = _is_tied(config, weights)
    chosen = tensor or _choose(weights, side, tied, config)
    rows, entry, scale = _read_scaled(weights, chosen, config)
    if rows.ndim != 2:
        raise TableError(
            f"{store.where}: {chosen} has shape {tuple(rows.shape)}; a table has shape (n, d)."
        )
    tokens = read_tokens(store)
    size = None if tokens is None else len(tokens)
    origin = f"{store.where}: {chosen}" + (f" times {scale}" if scale else "")
    return EmbeddingTable(name, rows, entry.dtype, tokens, size, side, tied, origin, notes)


def _read_config(store: Store) -> dict:
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


def _setting(config: dict, key: str) -> Any:
    """A setting of the model, or of its language part when it has several parts."""
    parts = [config, *(config.get(part) for part in NESTED)]
    return next((p[key] for p in parts if isinstance(p, Mapping) and p.get(key) is not None), None)


def _architectures(config: dict) -> list[str]:
    named = config.get("architectures")
    return [str(a) for a in named] if isinstance(named, list) else []


def _is_tied(config: dict, weights: Weights) -> tuple[bool | None, tuple[str, ...]]:
    """Whether the output matrix equals the input one, None when nothing says so; and a note.

    The configuration's flag is believed where the files can't contradict it. Without a flag, a
    whole language model without an output matrix must use its input one.
    """
    flag, where = _setting(config, "tie_word_embeddings"), weights.store.where
    head = find_table(weights.file_of, "output", where)
    if flag and head:
        table = find_table(weights.file_of, "input", where)
        says = f"the configuration says tied, yet the files hold {head}"
        if table is None or not isinstance(weights.store, Folder):
            return None, (f"{says}, which was not compared with the input table",)
        if torch.equal(weights.read(head)[0], weights.read(table)[0]):
            return True, ()
        return False, (f"{says}, which differs from {table}: not tied",)
    if flag is not None:
        return bool(flag), ()
    kinds = ("CausalLM", "LMHead", "MaskedLM", "ConditionalGeneration")
    speaks = any(kind in each for each in _architectures(config) for kind in kinds)
    return True if speaks and head is None and weights.whole else None, ()


def _choose(weights: Weights, side: str, tied: bool | None, config: dict) -> str:
    where = weights.store.where
    table = find_table(weights.file_of, side, where)
    if table is None and side == "output":
        if not tied:
            says = {False: "says tie_word_embeddings: false", None: "doesn't say that it is tied"}
            raise TableError(
                f"{where}: the configuration {says[tied]}, yet no tensor is an output matrix "
                f"(architectures: {', '.join(_architectures(config)) or 'not given'}). "
                "The output side can't be read; side='input' can."
            )
        table = find_table(weights.file_of, "input", where)
    if table is None and len(weights.file_of) == 1:
        table = next(iter(weights.file_of))  # a state dict that holds the table and nothing else
    if table is None:
        raise no_table(weights.file_of, where, side)
    return table


def _read_scaled(weights: Weights, name: str, config: dict) -> tuple[Tensor, Entry, str | None]:
    """A tensor and its entry; fp8 is multiplied by its scale, whose name is returned too.

    Raises TableError for fp8 that lost its scale: the configuration speaks of quantization, or
    other tensors have scales.
    """
    rows, entry = weights.read(name)
    if not entry.dtype.startswith("F8"):
        return rows, entry, None
    scale = next((name + end for end in SCALES if name + end in weights.file_of), None)
    found = _setting(config, "quantization_config")
    quantization = found if isinstance(found, Mapping) else {}
    if scale:
        block = quantization.get("weight_block_size")
        pair = (
            (int(block[0]), int(block[1])) if isinstance(block, list) and len(block) == 2 else None
        )
        return apply_scale(rows, weights.read(scale)[0], scale, pair), entry, scale
    others = sum(n.endswith(tuple("weight" + end for end in SCALES)) for n in weights.file_of)
    method = quantization.get("quant_method")
    signs = [f"quantization_config says {method}"] if method else []
    signs += [f"{others} other tensors have scales"] if others else []
    if signs:
        raise TableError(
            f"{name} is stored as {entry.dtype} and its scale is missing: no tensor "
            f"{' or '.join(name + end for end in SCALES)}, though {' and '.join(signs)}. "
            "Its numbers mean nothing without the scale; use the model's unquantized release."
        )
    return rows, entry, None


def apply_scale(
    rows: Float[Tensor, "n d"], scale: Tensor, name: str, block: tuple[int, int] | None = None
) -> Float[Tensor, "n d"]:
    """fp32 rows times their scale: one number, one per row, or one per block of the matrix.

    `block` is the configuration's block shape; without it blocks must divide the table evenly.
    Raises TableError when the scale's shape doesn't fit the table's.

    >>> apply_scale(torch.ones(2, 4), torch.tensor([[1.0, 2.0]]), "blocks of 2 x 2").tolist()
    [[1.0, 1.0, 2.0, 2.0], [1.0, 1.0, 2.0, 2.0]]
    """
    grid = scale.float().reshape(-1, 1) if scale.ndim < 2 else scale.float()  # (blocks, blocks)
    steps = [_step(*sizes) for sizes in zip(rows.shape, grid.shape, block or (0, 0), strict=False)]
    if grid.ndim != 2 or None in steps:
        raise TableError(
            f"The scale {name} has shape {tuple(scale.shape)}, which doesn't fit a table of shape "
            f"{tuple(rows.shape)}: expected one number, one per row, or one per block"
            + (f" of {block}." if block else ", and no block size is given.")
        )
    row_of, column_of = (
        torch.arange(size).div(step or size, rounding_mode="floor")
        for size, step in zip(rows.shape, steps, strict=True)
    )
    out = torch.empty(rows.shape, dtype=torch.float32)
    for at in range(0, len(rows), ROWS_AT_ONCE):
        here = slice(at, at + ROWS_AT_ONCE)
        out[here] = rows[here].float() * grid[row_of[here]][:, column_of]
    return out


def _step(size: int, parts: int, block: int) -> int | None:
    """How many rows (or columns) share one scale; None when the shapes don't fit."""
    if parts in (1, size):
        return size // parts
    if block:
        return block if -(-size // block) == parts else None
    return size // parts if 0 < parts < size and size % parts == 0 else None
