"""GGUF files, written by the gguf library and read back."""

from pathlib import Path

import numpy as np
import pytest
import torch
from gguf import GGMLQuantizationType, GGUFWriter, quantize

from tokenspace.errors import SourceError, TableError
from tokenspace.sources import check_rows, load_table

TOKENS = ["<s>", "a", "b", "c"]


def finish(writer: GGUFWriter) -> None:
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def write_gguf(path: Path, **tensors: tuple[np.ndarray, GGMLQuantizationType]) -> Path:
    writer = GGUFWriter(path, "llama")
    writer.add_token_list(TOKENS)
    for name, (data, kind) in tensors.items():
        stored = data if kind.name in ("F32", "F16") else quantize(data, kind)
        writer.add_tensor(name.replace("__", "."), stored, raw_dtype=kind)
    finish(writer)
    return path


@pytest.fixture
def rows() -> np.ndarray:
    return np.random.default_rng(0).standard_normal((6, 64)).astype(np.float32)


@pytest.fixture
def plain(rows: np.ndarray, tmp_path: Path) -> Path:
    """A model of one fp32 table."""
    return write_gguf(tmp_path / "m.gguf", token_embd__weight=(rows, GGMLQuantizationType.F32))


def test_full_precision_is_mapped_as_stored(rows: np.ndarray, tmp_path: Path) -> None:
    kinds = GGMLQuantizationType.F32, GGMLQuantizationType.F16, GGMLQuantizationType.BF16
    for kind, dtype in zip(kinds, (torch.float32, torch.float16, torch.bfloat16), strict=True):
        data = rows.astype(np.float16) if kind.name == "F16" else rows
        path = write_gguf(tmp_path / f"{kind.name}.gguf", token_embd__weight=(data, kind))
        table = load_table(path)
        assert (table.stored, table.rows.dtype) == (kind.name, dtype)
        assert torch.equal(table.rows, torch.from_numpy(rows).to(dtype))


def test_q8_0_is_a_scale_times_a_byte(rows: np.ndarray, tmp_path: Path) -> None:
    """Blocks of 32: an fp16 scale d = max|x|/127 and round(x/d), worked out here by hand."""
    q8 = GGMLQuantizationType.Q8_0
    table = load_table(write_gguf(tmp_path / "m.gguf", token_embd__weight=(rows, q8)))
    blocks = rows.reshape(-1, 32)
    scale = np.abs(blocks).max(1, keepdims=True) / 127
    expected = np.round(blocks / scale) * scale.astype(np.float16).astype(np.float32)
    assert table.stored == "Q8_0"
    assert check_rows(table.rows).dtype == torch.float32
    np.testing.assert_allclose(table.rows.numpy(), expected.reshape(rows.shape), rtol=1e-6)


def test_tokens_and_candidates_come_from_the_file(plain: Path) -> None:
    table = load_table(plain)
    assert (table.tokens, table.tokenizer_size, table.padded_rows) == (TOKENS, 4, 2)
    assert table.token(4) == "<row 4: no token>"
    with pytest.raises(TableError, match=r"no tensor token_embed\. Candidates: token_embd\.weight"):
        load_table(plain, tensor="token_embed")


def test_without_an_output_matrix_the_output_is_the_input(rows: np.ndarray, tmp_path: Path) -> None:
    kind = GGMLQuantizationType.F32
    path = write_gguf(tmp_path / "m.gguf", token_embd__weight=(rows, kind))
    table = load_table(path, side="output")
    assert table.tied is True
    assert torch.equal(table.rows, torch.from_numpy(rows))
    path = write_gguf(
        tmp_path / "u.gguf", token_embd__weight=(rows, kind), output__weight=(-rows, kind)
    )
    table = load_table(path, side="output")
    assert table.tied is False
    assert torch.equal(table.rows, -torch.from_numpy(rows))
    assert torch.equal(load_table(path).rows, torch.from_numpy(rows))


def write_split(folder: Path, *parts: dict[str, np.ndarray]) -> list[Path]:
    """A model in several files, as llama.cpp splits it; only the first holds the tokenizer."""
    paths = []
    for number, tensors in enumerate(parts):
        paths.append(folder / f"m-{number + 1:05d}-of-{len(parts):05d}.gguf")
        writer = GGUFWriter(paths[-1], "llama")
        writer.add_uint16("split.count", len(parts))
        if number == 0:
            writer.add_token_list(TOKENS)
        for name, data in tensors.items():
            writer.add_tensor(name, data)
        finish(writer)
    return paths


def test_a_split_model_is_read_from_whichever_file_holds_the_table(
    rows: np.ndarray, tmp_path: Path
) -> None:
    paths = write_split(tmp_path, {"token_embd.weight": rows}, {"output.weight": -rows})
    for spec in (*paths, tmp_path):
        table = load_table(spec, side="output")
        assert torch.equal(table.rows, -torch.from_numpy(rows))
        assert (table.tied, table.tokens) == (False, TOKENS)
        assert table.origin == f"{paths[1].name}: output.weight"
    paths[1].unlink()
    assert load_table(paths[0]).tied is None
    with pytest.raises(SourceError, match=f"one of 2 files of a split .* Missing.*{paths[1].name}"):
        load_table(paths[0], side="output")


def test_a_whole_split_model_without_an_output_matrix_is_tied(
    rows: np.ndarray, tmp_path: Path
) -> None:
    paths = write_split(tmp_path, {"token_embd.weight": rows}, {"blk.0.w": rows})
    table = load_table(paths[1], side="output")
    assert table.tied is True
    assert torch.equal(table.rows, torch.from_numpy(rows))


def with_unknown_type(path: Path, name: str, code: int) -> None:
    """Overwrite a tensor's type code in the header: name, 4-byte rank, 8-byte sizes, type."""
    raw = bytearray(path.read_bytes())
    at = raw.index(name.encode()) + len(name)
    rank = int.from_bytes(raw[at : at + 4], "little")
    at += 4 + 8 * rank
    raw[at : at + 4] = code.to_bytes(4, "little")
    path.write_bytes(raw)


def test_an_unknown_quantization_beside_the_table_does_not_hide_it(
    rows: np.ndarray, tmp_path: Path
) -> None:
    kind = GGMLQuantizationType.Q8_0
    path = write_gguf(tmp_path / "m.gguf", token_embd__weight=(rows, kind), blk__w=(rows, kind))
    before = load_table(path).rows
    with_unknown_type(path, "blk.w", 999)
    assert torch.equal(load_table(path).rows, before)
    with pytest.raises(
        TableError, match=r"blk\.w is stored as quantization type 999, which the gguf lib"
    ):
        load_table(path, tensor="blk.w")


def test_a_quantization_without_dequantizer_is_named(plain: Path) -> None:
    with_unknown_type(plain, "token_embd.weight", GGMLQuantizationType.Q8_1.value)
    with pytest.raises(TableError, match=r"token_embd\.weight is stored as Q8_1, .*dequantize"):
        load_table(plain)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", r"not a GGUF file \(first bytes b'', size 0 bytes\).*Download it again"),
        (b"<html>no</html>", r"first bytes b'<html>no', size 15 bytes\).*web page.*Download it"),
        (b"GGUF\x03\0\0\0", r"begins as a GGUF file but can't be read.*size 8 bytes"),
    ],
)
def test_what_is_not_a_gguf_file_says_so(data: bytes, message: str, tmp_path: Path) -> None:
    (tmp_path / "m.gguf").write_bytes(data)
    with pytest.raises(SourceError, match=message):
        load_table(tmp_path / "m.gguf")


@pytest.mark.parametrize("kind", [GGMLQuantizationType.F32, GGMLQuantizationType.Q8_0])
def test_a_truncated_file_is_refused_wherever_it_ends(
    kind: GGMLQuantizationType, rows: np.ndarray, tmp_path: Path
) -> None:
    path = write_gguf(tmp_path / "m.gguf", token_embd__weight=(rows, kind))
    whole = path.read_bytes()
    data_bytes = rows.size * 4 if kind.name == "F32" else rows.size // 32 * 34
    for end in [*range(8, len(whole) - data_bytes, 37), len(whole) - data_bytes]:
        path.write_bytes(whole[:end])
        with pytest.raises(SourceError, match="truncated"):
            load_table(path)
