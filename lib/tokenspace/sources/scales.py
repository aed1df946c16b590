"""Tables stored in 8-bit floating point, whose numbers mean nothing without their scales."""

from collections.abc import Iterable

import torch
from jaxtyping import Float
from torch import Tensor

from tokenspace.errors import TableError
from tokenspace.sources.table import ROWS_AT_ONCE

ENDINGS = ("_scale_inv", "_scale")  # both multiply: DeepSeek's blocks, compressed-tensors


def scale_of(table: str, names: Iterable[str]) -> str | None:
    """The name of a table's scale tensor, if the checkpoint has one."""
    every = set(names)
    return next((table + e for e in ENDINGS if table + e in every), None)


def refuse_if_scaled(table: str, stored: str, names: Iterable[str], quantization: dict) -> None:
    """Raise TableError for an fp8 table that lost its scale.

    It is taken to have had one when the configuration speaks of quantization or when other
    tensors of the checkpoint carry scales.
    """
    others = [n for n in names if n.endswith(tuple("weight" + e for e in ENDINGS))]
    method = quantization.get("quant_method")
    if not others and method is None:
        return
    signs = [f"quantization_config says {method}"] if method else []
    signs += [f"{len(others)} other tensors have scales"] if others else []
    raise TableError(
        f"{table} is stored as {stored} and its scale is missing: no tensor "
        f"{' or '.join(table + e for e in ENDINGS)}, though {' and '.join(signs)}. "
        "Its numbers mean nothing without the scale; use the model's unquantized release."
    )


def apply_scale(
    rows: Float[Tensor, "n d"],
    scale: Tensor,
    name: str,
    block: tuple[int, int] | None = None,
) -> Float[Tensor, "n d"]:
    """fp32 rows times their scale: one number, one per row, or one per block of the matrix.

    `block` is the configuration's block shape; without it blocks must divide the table evenly.
    Raises TableError when the scale's shape doesn't fit the table's.

    >>> apply_scale(torch.ones(2, 4), torch.tensor([[1.0, 2.0]]), "blocks of 2 x 2")
    tensor([[1., 1., 2., 2.],
            [1., 1., 2., 2.]])
    """
    grid = scale.float().reshape(-1, 1) if scale.ndim < 2 else scale.float()
    steps = [_step(*sizes) for sizes in zip(rows.shape, grid.shape, block or (0, 0), strict=False)]
    if grid.ndim != 2 or None in steps:
        raise TableError(
            f"The scale {name} has shape {tuple(scale.shape)}, which doesn't fit a table of shape "
            f"{tuple(rows.shape)}: expected one number, one per row, or one per block"
            + (f" of {block}." if block else ", and no block size is given.")
        )
    n, d = rows.shape
    row_of, column_of = (
        torch.arange(size).div(step or size, rounding_mode="floor")
        for size, step in zip((n, d), steps, strict=True)
    )
    out = torch.empty(n, d, dtype=torch.float32)
    for at in range(0, n, ROWS_AT_ONCE):
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
