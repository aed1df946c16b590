"""An embedding table, and the check that every table passes before a distance is computed."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from tokenspace.errors import TableError

ROWS_AT_ONCE = 8192  # bounds the memory of every pass over a table


def no_token(row: int) -> str:
    """The label of a row that no entry of the tokenizer names."""
    return f"<row {row}: no token>"


@dataclass(frozen=True)
class EmbeddingTable:
    """Rows (n, d) as stored, memory-mapped where possible; `notes` are for a table's readers.

    >>> table = EmbeddingTable("t", torch.eye(4), "F32", ["a", "b", "c"], 3)
    >>> table.padded_rows, table.token(1), table.token(3)
    (1, 'b', '<row 3: no token>')
    """

    name: str
    rows: Tensor
    stored: str
    tokens: Sequence[str] | None = None
    tokenizer_size: int | None = None
    side: str = "input"
    tied: bool | None = None
    origin: str = ""
    notes: tuple[str, ...] = ()

    @property
    def padded_rows(self) -> int:
        """Rows beyond the tokenizer's last entry; 0 when the tokenizer isn't known."""
        known = len(self.rows) if self.tokenizer_size is None else self.tokenizer_size
        return max(0, len(self.rows) - known)

    @property
    def unnamed_rows(self) -> int:
        """Rows before the tokenizer's last entry that no entry names; 0 when it isn't known."""
        inside = len(self.rows) - self.padded_rows
        return sum(t == no_token(i) for i, t in enumerate((self.tokens or ())[:inside]))

    @property
    def entries_without_row(self) -> int:
        """Entries of the tokenizer beyond the table's last row; 0 when it isn't known."""
        return max(0, (self.tokenizer_size or 0) - len(self.rows))

    def token(self, row: int) -> str:
        """The row's label, never decoded beyond the tokenizer; TableError beyond the table."""
        if not 0 <= row < len(self.rows):
            raise TableError(f"{self.name} has rows 0 to {len(self.rows) - 1}; there is no {row}.")
        size = len(self.tokens or ()) if self.tokenizer_size is None else self.tokenizer_size
        if self.tokens is None or row >= min(size, len(self.tokens)):
            return no_token(row)
        return self.tokens[row]


def check_rows(rows: Tensor | np.ndarray) -> Float[Tensor, "n d"]:
    """Rows fit for distances: 2-D, at least 3 distinct, finite; fp16, bf16 and fp8 become fp32.

    At every size, so that small and large tables are read alike; fp32 and fp64 aren't copied.
    Raises TableError naming the shape, the type, or the ids and count of the bad rows.

    >>> check_rows(torch.eye(3, dtype=torch.bfloat16)).dtype
    torch.float32
    """
    table = torch.as_tensor(rows)
    if table.ndim != 2 or table.shape[0] < 3 or table.shape[1] < 1:
        raise TableError(
            f"A table has shape (n, d) with n >= 3 rows and d >= 1; this one has shape "
            f"{tuple(table.shape)}. Two nearest neighbours need three rows."
        )
    if not table.is_floating_point():
        raise TableError(
            f"A table holds floating-point numbers; this one of shape {tuple(table.shape)} holds "
            f"{table.dtype}. Dequantize or convert it first: rows.float()."
        )
    if table.dtype not in (torch.float32, torch.float64):
        table = table.float()
    _refuse_non_finite(table)
    _refuse_too_few_distinct(table)
    return table


def _refuse_non_finite(table: Float[Tensor, "n d"]) -> None:
    blocks = [(~torch.isfinite(block)).any(1) for block in table.split(ROWS_AT_ONCE)]
    bad = torch.cat(blocks).nonzero().squeeze(1)  # (n,) -> (k,) ids
    if not len(bad):
        return
    nan = int(torch.isnan(table[bad]).any(1).sum())
    listed = ", ".join(str(i) for i in bad[:10].tolist()) + (", ..." if len(bad) > 10 else "")
    raise TableError(
        f"{len(bad)} of {len(table)} rows are not finite ({nan} with NaN, {len(bad) - nan} with "
        f"Inf only): rows {listed}. Remove or repair them; no distance was computed."
    )


def _refuse_too_few_distinct(table: Float[Tensor, "n d"]) -> None:
    found = table[:1]
    for block in table.split(ROWS_AT_ONCE):
        for _ in range(2):
            new = (block[:, None, :] != found[None]).any(2).all(1).nonzero()  # (b, found, d) -> b
            if len(new) == 0:
                break
            found = torch.cat([found, block[new[0]]])
            if len(found) == 3:
                return
    raise TableError(
        f"Only {len(found)} distinct rows among {len(table)} (shape {tuple(table.shape)}): "
        "two nearest neighbours need at least 3."
    )
