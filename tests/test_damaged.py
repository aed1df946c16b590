"""Damaged files: 500 of each kind that is read; each is read rightly or refused in words."""

import gzip
import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest
from gguf import GGMLQuantizationType, GGUFReader, GGUFWriter, dequantize
from safetensors.numpy import save as save_safetensors

from tokenspace.errors import TokenspaceError
from tokenspace.sources import load_corpus, load_table

TRIES = 500
HEADER = 400  # bytes in which most of the damage is done: there it changes what the rest means
ROWS = np.random.default_rng(0).standard_normal((6, 32)).astype(np.float32)
TEXT = "To be, or not to be: ünter 北京 и 🙂\r\nthat is the question.\n" * 9

Damage = Callable[[bytearray, int, int, np.random.Generator], None]


def flip(data: bytearray, at: int, length: int, rng: np.random.Generator) -> None:
    data[at] ^= 1 << rng.integers(8)


def overwrite(data: bytearray, at: int, length: int, rng: np.random.Generator) -> None:
    data[at : at + length] = rng.bytes(length)


def fill(data: bytearray, at: int, length: int, rng: np.random.Generator) -> None:
    data[at : at + length] = bytes([rng.choice([0, 32, 48, 57, 255])]) * length


def remove(data: bytearray, at: int, length: int, rng: np.random.Generator) -> None:
    del data[at : at + length]


def repeat(data: bytearray, at: int, length: int, rng: np.random.Generator) -> None:
    data[at:at] = data[at : at + length]


def cut_off(data: bytearray, at: int, length: int, rng: np.random.Generator) -> None:
    del data[at:]


def damaged(good: bytes, seed: int) -> bytes:
    """One to three damages at places drawn by `seed`, most of them near the beginning."""
    rng, data = np.random.default_rng(seed), bytearray(good)
    for _ in range(rng.integers(1, 4)):
        if data:
            room = min(len(data), HEADER) if rng.random() < 0.7 else len(data)
            length = int(min(2 ** rng.integers(0, 6), len(data)))
            damage: Damage = rng.choice([flip, flip, overwrite, fill, remove, repeat, cut_off])
            damage(data, int(rng.integers(room)), length, rng)
    return bytes(data)


def outcome(read: Callable[[Path], Any], path: Path) -> Any:
    """What a reader of ours says: the content, or an error in words; nothing else is caught."""
    try:
        return read(path)
    except TokenspaceError as error:
        return error


def rows_of(path: Path) -> np.ndarray:
    return load_table(path).rows.float().numpy()


def safetensors_by_hand(path: Path) -> np.ndarray:
    raw = path.read_bytes()
    start = 8 + int.from_bytes(raw[:8], "little")
    (about,) = (v for k, v in json.loads(raw[8:start]).items() if k != "__metadata__")
    first, last = about["data_offsets"]
    kinds = {"F32": "<f4", "F16": "<f2", "F64": "<f8"}
    array = np.frombuffer(raw[start + first : start + last], kinds[about["dtype"]])
    return array.reshape(about["shape"]).astype(np.float32)


def gguf_by_library(path: Path) -> np.ndarray:
    (tensor,) = GGUFReader(path).tensors
    return np.asarray(dequantize(tensor.data, tensor.tensor_type), np.float32)


def npy_by_library(path: Path) -> np.ndarray:
    return np.load(io.BytesIO(path.read_bytes()), allow_pickle=False).astype(np.float32)


def good_gguf(kind: GGMLQuantizationType, folder: Path) -> bytes:
    path = folder / "good.gguf"
    writer = GGUFWriter(path, "llama")
    writer.add_token_list([f"t{i}" for i in range(len(ROWS))])
    writer.add_tensor("token_embd.weight", ROWS.astype(np.float16), raw_dtype=kind)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path.read_bytes()


def good_npy() -> bytes:
    file = io.BytesIO()
    np.save(file, ROWS)
    return file.getvalue()


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    ("ending", "independently"),
    [
        (".safetensors", safetensors_by_hand),
        (".gguf", gguf_by_library),
        (".npy", npy_by_library),
    ],
)
def test_a_damaged_table_is_read_as_it_stands_or_refused(
    ending: str, independently: Callable[[Path], np.ndarray], tmp_path: Path
) -> None:
    good = {
        ".safetensors": lambda: save_safetensors({"model.embed_tokens.weight": ROWS}),
        ".gguf": lambda: good_gguf(GGMLQuantizationType.F16, tmp_path),
        ".npy": good_npy,
    }[ending]()
    read = 0
    for seed in range(TRIES):
        path = tmp_path / f"m{ending}"
        path.write_bytes(damaged(good, seed))
        found = outcome(rows_of, path)
        if not isinstance(found, TokenspaceError):
            read += 1
            np.testing.assert_array_equal(found, independently(path), err_msg=f"seed {seed}")
        path.unlink()
    assert 20 < read < TRIES - 20  # some damage leaves a table, and some does not


@pytest.mark.parametrize("packed", [False, True], ids=["txt", "txt.gz"])
def test_a_damaged_text_is_read_as_it_stands_or_refused(packed: bool, tmp_path: Path) -> None:
    good = TEXT.encode()
    good, unpack = (gzip.compress(good), gzip.decompress) if packed else (good, bytes)
    path = tmp_path / ("t.txt.gz" if packed else "t.txt")
    read = 0
    for seed in range(TRIES):
        path.write_bytes(damaged(good, seed))
        found = outcome(lambda path: load_corpus(path).text, path)
        if not isinstance(found, TokenspaceError):
            read += 1
            right = unpack(path.read_bytes()).decode("utf-8-sig")
            assert found == right.replace("\r\n", "\n"), f"seed {seed}"
    assert read < TRIES - 20


@pytest.mark.parametrize("ending", [".jsonl", ".parquet"])
def test_a_damaged_data_set_is_read_as_it_stands_or_refused(ending: str, tmp_path: Path) -> None:
    lines = pd.DataFrame({"text": TEXT.splitlines(), "n": range(TEXT.count("\n"))})
    path = tmp_path / f"t{ending}"
    if ending == ".jsonl":
        lines.to_json(path, orient="records", lines=True)
    else:
        lines.to_parquet(path)
    good = path.read_bytes()
    for seed in range(TRIES):
        path.write_bytes(damaged(good, seed))
        found = outcome(lambda path: load_corpus(path).text, path)
        if not isinstance(found, TokenspaceError) and ending == ".parquet":
            table = pq.read_table(path, columns=["text"])  # pandas would read its own notes too
            right = [text for text in table["text"].to_pylist() if text is not None]
            assert found == "\n".join(right), f"seed {seed}"
