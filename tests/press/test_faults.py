"""Faults that people have met with notebooks in public: each with its smallest input."""

import json
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import Result
from typer.testing import CliRunner

from tokenspace.cli import app
from tokenspace.files import find_root
from tokenspace.press.runner import run_notebooks

Put = Callable[..., Path]

ROOT = find_root(Path(__file__).parent)


@pytest.fixture
def tokenspace(root: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Result]:
    """Call the command inside the repository."""
    monkeypatch.chdir(root)
    return lambda *words: CliRunner().invoke(app, list(words))


def test_a_value_for_a_page_without_a_parameters_cell(
    root: Path, tokenspace: Callable[..., Result]
) -> None:
    """papermill#245: the value is put on top, and the page's own k = 2 stands below it."""
    (root / "notebooks" / "hub").mkdir()
    (root / "notebooks" / "hub" / "toy.py").write_text("# %%\nk: int = 2\n\n# %%\nprint(k)\n")
    done = tokenspace("run", "hub/toy", "-p", "k=7")
    assert done.exit_code == 2
    assert "parameters" in done.stderr
    assert not (root / "build").exists()


def test_a_misspelt_value_and_one_of_another_type(put: Put, tokenspace: Callable) -> None:
    """papermill#701 and its guess that 1e-3 is a number: one error names everything."""
    put("hub/toy", "k: int = 1\nname: str = 'x'", "print(k, repr(name))")
    done = tokenspace("run", "hub/toy", "-p", "kk=5", "-p", "k=1.5", "-p", "name=1e-3")
    assert done.exit_code == 2
    assert "unknown parameter 'kk'; did you mean 'k'" in done.stderr
    assert "k = '1.5' is not int" in done.stderr
    assert "name = " not in done.stderr
    assert "  name: str = 'x'" in done.stderr  # what is known


@pytest.mark.parametrize(
    "header",
    [
        "jupyter:\n#   kernelspec:\n#     name: my-env",  # no language either: jupytext#714
        "jupyter:\n#   jupytext:\n#     cell_metadata_filter: -all",  # would drop the tag
    ],
)
def test_a_header_of_the_authors_own(root: Path, put: Put, header: str) -> None:
    """papermill#352: the notebook names a kernel that only its author has."""
    path = put("hub/toy", "k: int = 1", "print(k)")
    path.write_text(f"# ---\n# {header}\n# ---\n\n{path.read_text()}")
    (run,) = run_notebooks(["hub/toy"], root=root, given={"k": 2}, quiet=True)
    notebook = json.loads((run.folder / "executed.ipynb").read_text())
    kernel = notebook["metadata"]["kernelspec"]
    assert (kernel["name"], kernel["language"]) == ("python3", "python")
    assert notebook["cells"][-1]["outputs"][0]["text"] == ["2\n"]


@pytest.mark.skipif(shutil.which("make") is None, reason="needs make")
@pytest.mark.parametrize("target", ["book", "run"])
def test_the_time_a_notebook_may_take_is_makes_to_set(target: str) -> None:
    words = ["make", "-n", "-o", ".venv/.ready", target, "NOTEBOOK=hub/models", "TIMEOUT=7"]
    done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=True)
    assert "--timeout 7" in done.stdout


def test_a_book_with_a_failing_page(
    root: Path, put: Put, tokenspace: Callable[..., Result]
) -> None:
    """jupyter-book#781: it is built all the same, with exit 0."""
    put("hub/toy", "k: int = 1", "print('fine')", "1 / 0")
    (root / "book").mkdir()
    (root / "book" / "_toc.yml").write_text(
        "parts: [{caption: I, chapters: [{file: notebooks/hub/toy}]}]"
    )
    done = tokenspace("book")
    assert done.exit_code == 1
    assert "hub/toy, cell 4 ('1 / 0') failed" in done.stderr
    assert "ZeroDivisionError" in done.stderr
    assert not (root / "build" / "book").exists()
