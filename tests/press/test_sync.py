"""The twin is a function of the source: no outputs, no drift, no needless writes."""

import os
from collections.abc import Callable
from pathlib import Path

import jupytext
import nbformat
import pytest
from jupytext.compare import compare_notebooks

from tokenspace.errors import ParameterError, RunError
from tokenspace.press.sync import sync, twin

SOURCE = """\
# ---
# jupyter:
#   kernelspec:
#     display_name: My own
#     name: my-env
# ---

# %% [markdown]
# # Title

# %% tags=["parameters"]
k: int = 2

# %% tags=["hide-input"]
print(k)

# %%
print(k)
"""


def test_twin_is_pinned_to_python3_whatever_the_author_used() -> None:
    """jupytext#714, papermill#352: a header without language, a kernel of the author's own."""
    made = twin(SOURCE)
    assert (made.metadata.kernelspec.name, made.metadata.kernelspec.language) == (
        *("python3", "python"),
    )
    tags = [c.metadata.get("tags") for c in made.cells]
    assert tags == [None, ["parameters"], ["hide-input"], None]


def test_twin_reads_back_as_its_source() -> None:
    """`jupytext --test` passes on a drifted pair; comparing notebooks does not."""
    back = jupytext.reads(jupytext.writes(twin(SOURCE), fmt="py:percent"), fmt="py:percent")
    source = jupytext.reads(SOURCE, fmt="py:percent")
    source.metadata.kernelspec = back.metadata.kernelspec  # the one thing that is not the author's
    compare_notebooks(back, source, fmt="py:percent")


def test_ids_are_the_same_every_time_and_follow_the_cell() -> None:
    first, again = twin(SOURCE), twin(SOURCE)
    assert [c.id for c in first.cells] == [c.id for c in again.cells]
    assert len({c.id for c in first.cells}) == len(first.cells)  # two cells have the same text
    longer = twin(SOURCE.replace("k: int = 2", "k: int = 3"))
    same = [a.id == b.id for a, b in zip(first.cells, longer.cells, strict=True)]
    assert same == [True, False, True, True]


@pytest.fixture
def pair(root: Path, put: Callable[..., Path]) -> tuple[Path, Path]:
    source = put("hub/toy", "k: int = 2", "print(k)")
    return source, source.with_suffix(".ipynb")


def test_sync_writes_the_twin_and_check_only_says(root: Path, pair: tuple[Path, Path]) -> None:
    target = pair[1]
    assert sync(root, check=True) == ["notebooks/hub/toy.ipynb differs"]
    assert not target.exists()
    assert sync(root) == ["notebooks/hub/toy.ipynb written"]
    assert sync(root, check=True) == []
    before = [path.stat().st_mtime_ns for path in pair]
    assert sync(root) == []  # jupytext#767: a sync that changes times makes `make` rebuild
    assert [path.stat().st_mtime_ns for path in pair] == before


def test_outputs_never_survive_beside_edited_code(root: Path, pair: tuple[Path, Path]) -> None:
    """jupytext#551: `--sync` keeps the old output, or reverts a source older than its twin."""
    source, target = pair
    sync(root)
    executed = nbformat.read(target, as_version=4)
    executed.cells[-1].outputs = [nbformat.v4.new_output("stream", text="2\n")]
    nbformat.write(executed, target)
    source.write_text(text := source.read_text().replace("print(k)", "print(k + 1)"))
    os.utime(source, (1, 1))
    sync(root)
    assert source.read_text() == text
    cell = nbformat.read(target, as_version=4).cells[-1]
    assert (cell.source, cell.outputs, cell.execution_count) == ("print(k + 1)", [], None)


def test_a_twin_without_a_source_is_reported_and_left(root: Path, pair: tuple[Path, Path]) -> None:
    lone = pair[1].with_name("lone.ipynb")
    lone.write_text("{}")
    sync(root)
    assert sync(root, check=True) == [
        "notebooks/hub/lone.ipynb has no .py source: delete it, or make its source"
    ]
    assert lone.read_text() == "{}"


def test_work_in_a_twin_is_kept_beside_it(root: Path, pair: tuple[Path, Path]) -> None:
    _, target = pair
    sync(root)
    for text, name in (("print('mine')", "toy.edited"), ("print('more')", "toy.edited2")):
        target.write_text(target.read_text("utf-8").replace("print(k)", text), "utf-8")
        (said,) = sync(root)
        assert said.endswith(f"written; it was edited, and that is kept as {name}.ipynb")
        assert text in target.with_name(f"{name}.ipynb").read_text("utf-8")
        assert "print(k)" in target.read_text("utf-8")
    assert sync(root, check=True) == []  # the copies are nobody's twins


def test_a_page_that_is_not_utf_8_is_named_and_a_byte_order_mark_is_none_of_it(
    root: Path, pair: tuple[Path, Path]
) -> None:
    source, target = pair
    text = source.read_text("utf-8").replace("A page", "Größe")
    source.write_text(text, "utf-8-sig")
    sync(root)
    assert "# Größe" in target.read_text("utf-8")
    source.write_text(text, "latin1")
    with pytest.raises(ParameterError, match=r"toy\.py is not UTF-8"):
        sync(root)


def test_a_folder_that_cannot_be_written_is_said(root: Path, put: Callable[..., Path]) -> None:
    put("hub/" + "n" * 240, "k: int = 2")  # its twin's name is too long to be written
    with pytest.raises(RunError, match=r"can't write below .*notebooks/hub: File name too long"):
        sync(root)
