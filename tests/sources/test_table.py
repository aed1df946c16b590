"""What a table knows of itself, and what is refused before a distance is computed."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from tokenspace.errors import TableError
from tokenspace.sources import EmbeddingTable, check_rows
from tokenspace.sources.table import ROWS_AT_ONCE


@pytest.mark.parametrize(("rows", "padded"), [(50304, 27), (50432, 155), (50688, 411)])
def test_rows_beyond_the_tokenizer_are_padding_and_have_no_token(rows: int, padded: int) -> None:
    tokens = [f"t{i}" for i in range(50277)]
    table = EmbeddingTable("pythia", torch.zeros(rows, 1), "F16", tokens, 50277)
    assert table.padded_rows == padded
    assert table.token(50276) == "t50276"
    assert table.token(50277) == "<row 50277: no token>"
    assert table.token(rows - 1) == f"<row {rows - 1}: no token>"
    with pytest.raises(TableError, match=f"pythia has rows 0 to {rows - 1}; there is no {rows}"):
        table.token(rows)


@pytest.mark.parametrize(
    ("tokens", "size", "last", "beyond"),
    [(None, None, "<row 3: no token>", 0), (list("abcdef"), 6, "d", 2)],
)
def test_a_table_without_or_with_a_longer_tokenizer_has_no_padding(
    tokens: list[str] | None, size: int | None, last: str, beyond: int
) -> None:
    table = EmbeddingTable("t", torch.zeros(4, 2), "F32", tokens, size)
    assert (table.padded_rows, table.token(3)) == (0, last)
    assert (table.unnamed_rows, table.entries_without_row) == (0, beyond)


def test_nan_and_infinite_rows_are_named_and_counted() -> None:
    rows = torch.randn(500, 5)
    rows[3] = torch.nan
    with pytest.raises(
        TableError, match=r"1 of 500 rows are not finite \(1 with NaN, 0 .*: rows 3"
    ):
        check_rows(rows)
    rows[7, 2] = -torch.inf
    with pytest.raises(TableError, match=r"2 of 500 .*1 with NaN, 1 with Inf only\): rows 3, 7\. "):
        check_rows(rows)
    with pytest.raises(TableError, match=r"500 of 500 .*rows 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, \.\.\."):
        check_rows(torch.full((500, 5), torch.inf))


@given(st.sets(st.integers(0, 2 * ROWS_AT_ONCE + 5), min_size=1, max_size=5))
def test_bad_rows_are_found_wherever_they_are(bad: set[int]) -> None:
    rows = torch.arange(2.0 * ROWS_AT_ONCE + 6)[:, None].clone()
    rows[list(bad)] = torch.nan
    ids = ", ".join(map(str, sorted(bad)))
    with pytest.raises(TableError, match=f"{len(bad)} of {len(rows)} .*: rows {ids}\\. "):
        check_rows(rows)


@pytest.mark.parametrize("shape", [(5,), (0, 4), (2, 4), (4, 0), (3, 3, 3), ()])
def test_a_wrong_shape_is_named(shape: tuple[int, ...]) -> None:
    with pytest.raises(TableError) as caught:
        check_rows(torch.ones(shape))
    assert f"this one has shape {shape}" in str(caught.value)


@pytest.mark.parametrize("dtype", [torch.int8, torch.int64, torch.bool, torch.complex64])
def test_a_type_without_distances_is_named(dtype: torch.dtype) -> None:
    with pytest.raises(TableError, match=f"shape \\(4, 4\\) holds {dtype}"):
        check_rows(torch.eye(4).to(dtype))


def test_fewer_than_three_distinct_rows_are_refused() -> None:
    rows = torch.ones(2 * ROWS_AT_ONCE, 3)
    with pytest.raises(TableError, match=f"Only 1 distinct rows among {len(rows)}"):
        check_rows(rows)
    rows[-1] = 2
    with pytest.raises(TableError, match=r"Only 2 distinct rows .*need at least 3"):
        check_rows(rows)
    rows[0] = 3
    assert check_rows(rows) is rows


@pytest.mark.parametrize("n", [3, 4096])
@pytest.mark.parametrize(
    "dtype", [torch.float16, torch.bfloat16, torch.float8_e4m3fn, torch.float8_e5m2]
)
def test_reduced_precision_becomes_fp32_at_every_size(n: int, dtype: torch.dtype) -> None:
    stored = torch.randn(n, 4, generator=torch.Generator().manual_seed(0)).to(dtype)
    checked = check_rows(stored)
    assert checked.dtype == torch.float32
    assert torch.equal(checked, stored.to(torch.float32))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_full_precision_is_not_copied(dtype: torch.dtype) -> None:
    rows = torch.eye(4, dtype=dtype)
    assert check_rows(rows).data_ptr() == rows.data_ptr()
    assert check_rows(rows.numpy()).dtype == dtype
