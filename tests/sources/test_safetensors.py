"""Safetensors files, sound and damaged."""

import json
from pathlib import Path

import pytest
import torch
from safetensors.torch import save
from tests.sources.checkpoints import EMBED, random_rows, write

from tokenspace.errors import SourceError, TableError
from tokenspace.sources import check_rows, load_table

DTYPES = {
    "F64": torch.float64,
    "F32": torch.float32,
    "F16": torch.float16,
    "BF16": torch.bfloat16,
    "F8_E4M3": torch.float8_e4m3fn,
    "F8_E5M2": torch.float8_e5m2,
}


@pytest.mark.parametrize("stored", DTYPES)
def test_every_readable_type_comes_back_as_stored(stored: str, tmp_path: Path) -> None:
    rows = random_rows(5, 3, DTYPES[stored])
    path = tmp_path / "t.safetensors"
    path.write_bytes(save({"x": torch.ones(7), EMBED: rows}))
    table = load_table(path)
    assert (table.stored, table.rows.dtype, table.name) == (stored, rows.dtype, str(path))
    assert torch.equal(table.rows.double(), rows.double())
    assert torch.equal(check_rows(table.rows).double(), rows.double())


def with_header(header: dict, data: bytes, pad: int = 0) -> bytes:
    raw = json.dumps(header).encode() + b" " * pad
    return len(raw).to_bytes(8, "little") + raw + data


def entry(dtype: str, shape: list[int], start: int, end: int) -> dict:
    return {"dtype": dtype, "shape": shape, "data_offsets": [start, end]}


@pytest.mark.parametrize("pad", range(8))
def test_bytes_at_odd_places_are_read(pad: int, tmp_path: Path) -> None:
    rows = torch.arange(12.0).view(4, 3)
    file = with_header({EMBED: entry("F32", [4, 3], 0, 48)}, rows.numpy().tobytes(), pad)
    (tmp_path / "t.safetensors").write_bytes(file)
    assert torch.equal(load_table(tmp_path / "t.safetensors").rows, rows)


def test_an_unknown_type_beside_the_table_does_not_hide_it(tmp_path: Path) -> None:
    rows = torch.arange(12.0).view(4, 3)
    header = {EMBED: entry("F32", [4, 3], 0, 48), "other": entry("F4_X", [2, 3], 48, 51)}
    file = with_header(header, rows.numpy().tobytes() + b"abc")
    (tmp_path / "t.safetensors").write_bytes(file)
    assert torch.equal(load_table(tmp_path / "t.safetensors").rows, rows)
    with pytest.raises(TableError, match=r"other is stored as F4_X, which can't be read.*BF16"):
        load_table(tmp_path / "t.safetensors", tensor="other")


SOUND = save({EMBED: torch.ones(4, 3)})
DAMAGED = {
    "empty": (b"", r"t\.safetensors is truncated: bytes 0 to 8 were needed, it has 0"),
    "a web page": (b"<html><body>log in</body></html>", r"first bytes b'<html><b'\): it is a web"),
    "a Git LFS pointer": (b"version https://git-lfs.github.com/spec/v1\noid", "git lfs pull"),
    "too short": (b"\x10\0\0", "truncated: bytes 0 to 8 were needed, it has 3.*Download it again"),
    "an endless header": (b"\xff" * 16, "not a safetensors file"),
    "cut in the header": (SOUND[:20], r"truncated: bytes 8 to \d+ were needed, it has 20"),
    "cut in the data": (SOUND[:-5], rf"truncated: bytes 0 to {len(SOUND)} were needed, it has"),
    "a header that isn't JSON": (b"\x04\0\0\0\0\0\0\0{{{{", "header can't be read"),
    "a header that isn't a table": (b"\x02\0\0\0\0\0\0\0[]", "header can't be read"),
    "too few bytes for the shape": (
        with_header({EMBED: entry("F32", [4, 3], 0, 40)}, bytes(48)),
        r"of shape \(4, 3\) in F32 needs 48 bytes, the header gives it 40",
    ),
    "backward offsets": (
        with_header({EMBED: entry("F32", [4, 3], 48, 0)}, bytes(48)),
        "impossible offsets",
    ),
    "a table that isn't one": (save({EMBED: torch.ones(12)}), r"has shape \(12,\); a table has"),
}


@pytest.mark.parametrize("kind", DAMAGED)
def test_a_damaged_file_says_what_is_wrong(kind: str, tmp_path: Path) -> None:
    data, message = DAMAGED[kind]
    (tmp_path / "t.safetensors").write_bytes(data)
    with pytest.raises((SourceError, TableError), match=message):
        load_table(tmp_path / "t.safetensors")


@pytest.mark.parametrize(
    "state",
    [{"E": torch.eye(3)}, {"_orig_mod.transformer.wte.weight": torch.eye(3), "ln": torch.ones(3)}],
)
def test_a_lone_tensor_and_a_wrapped_module_s_are_found(state: dict, tmp_path: Path) -> None:
    write(tmp_path, {"t.safetensors": save(state)})
    assert torch.equal(load_table(tmp_path / "t.safetensors").rows, torch.eye(3))


def test_no_known_name_among_several_asks_for_one(tmp_path: Path) -> None:
    write(tmp_path, {"t.safetensors": save({"E": torch.ones(4, 3), "W": torch.ones(2, 2)})})
    with pytest.raises(TableError, match=r"none of its 2 tensors .*E, W\. Name one with tensor="):
        load_table(tmp_path / "t.safetensors")
    assert load_table(tmp_path / "t.safetensors", tensor="W").rows.shape == (2, 2)


@pytest.mark.parametrize("name", ["m.bin", "m.pt", "m.pth", "m.ckpt", "m.pkl"])
def test_pickles_are_never_opened(name: str, tmp_path: Path) -> None:
    (tmp_path / name).write_bytes(b"anything")
    with pytest.raises(SourceError, match=r"is a pickle.*safetensors\.torch\.save_file"):
        load_table(tmp_path / name)
