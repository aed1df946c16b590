"""Large tables stay on disk until they are used, and are never read whole as another type.

Each measurement runs in its own process; files are sparse, so they cost no disk.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from gguf import GGMLQuantizationType
from tests.sources.checkpoints import EMBED, save
from tests.sources.hub_server import HubServer
from tests.sources.test_gguf import write_gguf

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="reads the peak from /proc")

MEASURE = """
import re, sys, torch
from pathlib import Path
from tokenspace.sources import load_table
def kib(name):
    return int(re.search(name + r":\\s*(\\d+)", Path("/proc/self/status").read_text())[1])
load_table(sys.argv[1])  # the libraries, and what they keep from their first use
Path("/proc/self/clear_refs").write_text("5")  # the peak starts again from here
before = kib("VmRSS")
table = load_table(sys.argv[2])
loaded = kib("VmHWM") - before
assert table.rows.view(torch.uint8).max() == 0  # reads every byte, copies none
print(1024 * loaded, 1024 * (kib("VmHWM") - before), table.rows.nbytes, table.rows.dtype)
"""


def measure(
    warm: Path | str, table: Path | str, environment: dict[str, str] | None = None
) -> tuple[float, float, str]:
    """Peak memory after loading and after reading all of a table, as parts of its size."""
    command = [sys.executable, "-c", MEASURE, str(warm), str(table)]
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
    loaded, used, size, dtype = done.stdout.split()
    return int(loaded) / int(size), int(used) / int(size), dtype


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
    path = sparse_safetensors(tmp_path / "m.safetensors", 2**16, 1024, 2**29)
    loaded, used, dtype = measure(warm, path)
    assert dtype == "torch.bfloat16"
    assert loaded < 0.1
    assert 0.9 < used < 1.3


def test_an_array_is_mapped(tmp_path: Path) -> None:
    for name, n in (("warm", 4), ("t", 2**17)):
        np.lib.format.open_memmap(tmp_path / f"{name}.npy", "w+", np.float32, (n, 256)).flush()
    loaded, used, _ = measure(tmp_path / "warm.npy", tmp_path / "t.npy")
    assert loaded < 0.1
    assert 0.9 < used < 1.3


def test_a_remote_table_is_written_as_it_comes(tmp_path: Path) -> None:
    with HubServer() as hub:
        for name, n in (("org/warm", 8), ("org/model", 2**16)):
            rows = torch.zeros(n, 1024, dtype=torch.bfloat16)
            hub.add(name, {"model.safetensors": save({EMBED: rows})})
        environment = os.environ | hub.environment(tmp_path / "cache")
        loaded, used, _ = measure("org/warm", "org/model", environment)
    assert loaded < 0.1
    assert 0.9 < used < 1.3


@pytest.mark.parametrize(("kind", "least", "most"), [("F16", 0.9, 1.3), ("Q8_0", 1.0, 1.4)])
def test_a_gguf_table_is_mapped_or_dequantized_in_blocks(
    kind: str, least: float, most: float, tmp_path: Path
) -> None:
    """Dequantized, it is fp32 rows, the mapped quarter of them, and one block's copies."""
    for name, n in (("warm", 4), ("m", 2**16)):
        data = np.zeros((n, 512), np.float16 if kind == "F16" else np.float32)
        stored = (data, GGMLQuantizationType[kind])
        write_gguf(tmp_path / f"{name}.gguf", token_embd__weight=stored)
    loaded, used, _ = measure(tmp_path / "warm.gguf", tmp_path / "m.gguf")
    assert least < used < most
    assert kind == "Q8_0" or loaded < 0.1
