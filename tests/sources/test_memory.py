"""Large tables stay on disk until they are used, and are never read whole as another type.

Each measurement runs in its own process; files are sparse, so they cost no disk.
"""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from tests.sources.checkpoints import EMBED

MEASURE = """
import resource, sys, torch
from tokenspace.sources import load_table
def peak(): return 1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
table = load_table({spec!r})  # the libraries and their first use
before = peak()
table = load_table({path!r})
loaded = peak() - before
total = sum(float(table.rows[i : i + 4096].float().sum()) for i in range(0, len(table.rows), 4096))
print(loaded, peak() - before, table.rows.nbytes, table.rows.dtype, total)
"""


def measure(path: Path, warm: Path) -> tuple[int, int, int, str]:
    code = MEASURE.format(path=str(path), spec=str(warm))
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded, used, size, dtype, total = done.stdout.split()
    assert float(total) == 0
    return int(loaded), int(used), int(size), dtype


def sparse_safetensors(path: Path, rows: int, dims: int, beside: int) -> Path:
    table = 2 * rows * dims
    header = {
        "a": {"dtype": "F32", "shape": [beside // 4], "data_offsets": [0, beside]},
        EMBED: {"dtype": "BF16", "shape": [rows, dims], "data_offsets": [beside, beside + table]},
    }
    raw = json.dumps(header).encode()
    raw += b" " * (-len(raw) % 8)
    with path.open("wb") as file:
        file.write(len(raw).to_bytes(8, "little") + raw)
        file.truncate(8 + len(raw) + beside + table)
    return path


def test_a_bf16_table_is_read_alone_and_at_its_own_size(tmp_path: Path) -> None:
    warm = sparse_safetensors(tmp_path / "warm.safetensors", 8, 8, 8)
    path = sparse_safetensors(tmp_path / "m.safetensors", 2**17, 1024, 2**29)
    loaded, used, size, dtype = measure(path, warm)
    assert (size, dtype) == (2**28, "torch.bfloat16")
    assert loaded < 0.05 * size
    assert used < 1.3 * size


def test_an_array_is_mapped(tmp_path: Path) -> None:
    np.save(tmp_path / "warm.npy", np.zeros((4, 4), np.float32))
    path = tmp_path / "t.npy"
    array = np.lib.format.open_memmap(path, "w+", np.float32, (256_000, 256))
    array.flush()
    loaded, used, size, _ = measure(path, tmp_path / "warm.npy")
    assert loaded < 0.05 * size
    assert used < 1.3 * size


@pytest.mark.parametrize("kind", ["F16", "Q8_0"])
def test_a_gguf_table_is_mapped_or_dequantized_in_blocks(kind: str, tmp_path: Path) -> None:
    from gguf import GGMLQuantizationType
    from tests.sources.test_gguf import write_gguf

    def file(name: str, rows: int) -> Path:
        data = np.zeros((rows, 1024), np.float16 if kind == "F16" else np.float32)
        return write_gguf(tmp_path / name, token_embd__weight=(data, GGMLQuantizationType[kind]))

    loaded, used, size, _ = measure(file("m.gguf", 2**15), file("warm.gguf", 4))
    if kind == "F16":
        assert loaded < 0.05 * size
    assert used < 1.8 * size  # fp32 rows, the mapped quarter of them, and one block's copies
