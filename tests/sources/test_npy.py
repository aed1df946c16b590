"""Plain arrays."""

from pathlib import Path

import numpy as np
import pytest

from tokenspace.errors import SourceError, TableError
from tokenspace.sources import load_table


@pytest.mark.parametrize("kind", ["<f2", "<f4", "<f8", ">f4", ">f8"])
@pytest.mark.parametrize("order", ["C", "F"])
def test_every_float_and_order_is_read(kind: str, order: str, tmp_path: Path) -> None:
    rows = np.random.default_rng(0).standard_normal((5, 3)).astype(kind)
    np.save(tmp_path / "t.npy", np.asarray(rows, order=order))
    table = load_table(tmp_path / "t.npy")
    assert table.stored == f"F{8 * rows.itemsize}"
    assert (table.tokens, table.tokenizer_size, table.tied) == (None, None, None)
    np.testing.assert_array_equal(table.rows.numpy(), rows)


@pytest.mark.parametrize(
    ("array", "message"),
    [
        (np.ones(5, np.float32), r"shape \(5,\) and type float32; a table has shape \(n, d\)"),
        (np.ones((2, 2, 2)), r"shape \(2, 2, 2\)"),
        (np.ones((4, 4), np.int32), r"type int32; .*float16, float32 or float64"),
        (np.ones((4, 4), "V2"), r"type \|V2"),
    ],
)
def test_an_array_that_is_no_table(array: np.ndarray, message: str, tmp_path: Path) -> None:
    np.save(tmp_path / "t.npy", array)
    with pytest.raises(TableError, match=message):
        load_table(tmp_path / "t.npy")


def test_pickled_objects_are_never_loaded(tmp_path: Path) -> None:
    np.save(tmp_path / "t.npy", np.array([{}, []], object), allow_pickle=True)
    with pytest.raises(SourceError, match=r"can't be read as a plain array .*numpy\.save"):
        load_table(tmp_path / "t.npy")


def test_damaged_files(tmp_path: Path) -> None:
    path = tmp_path / "t.npy"
    np.save(path, np.ones((100, 10), np.float32))
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(SourceError, match=r"can't be read as a plain array .*size 4127 bytes"):
        load_table(path)
    for content in (b"", b"<html>", b"PK"):
        path.write_bytes(content)
        with pytest.raises(SourceError, match=rf"not a \.npy file .*size {len(content)} bytes"):
            load_table(path)


def test_names_and_kinds_that_do_not_exist(tmp_path: Path) -> None:
    np.save(tmp_path / "t.npy", np.eye(3))
    with pytest.raises(TableError, match="one unnamed array; there is no tensor E"):
        load_table(tmp_path / "t.npy", tensor="E")
    with pytest.raises(SourceError, match=r"no\.npy: no such file, folder or packaged table"):
        load_table(tmp_path / "no.npy")
    (tmp_path / "t.csv").write_text("1,2")
    with pytest.raises(SourceError, match=r"unknown kind of file\. Readable: \.gguf, \.safetens"):
        load_table(str(tmp_path / "t.csv"))
