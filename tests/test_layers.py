"""Imports go one way: papers know sources and nn, never press nor one another."""

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import tokenspace

PACKAGE = Path(tokenspace.__file__).parent
PAPERS = {"staircase", "hub", "flow", "curvature"}
ROOMS = {path.parent.name for path in PACKAGE.glob("*/__init__.py")}
MODULES = sorted(PACKAGE.rglob("*.py"))
GROUND = {"errors", "files", "format", "devices"}
MAY = {
    "cli": {"cli", "press", "hub", "curvature", "sources"},
    "press": {"press"},
    "sources": {"sources"},
    "nn": {"nn"},
    **{paper: {paper, "sources", "nn"} for paper in PAPERS},
}
"""The rooms that a room's modules may import; everything may import the ground."""


def name_of(path: Path) -> str:
    """A module as `hub/capture.py`."""
    return path.relative_to(PACKAGE).as_posix()


def imported(path: Path) -> Iterator[str]:
    """Name what a module imports of ours: `hub` for `tokenspace.hub.capture`."""
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert not node.level, f"{path}: import by full name"
            names = [node.module or ""]
            if node.module == "tokenspace":
                names = [f"tokenspace.{alias.name}" for alias in node.names]
        else:
            continue
        yield from (name.split(".")[1] for name in names if name.startswith("tokenspace."))


def test_every_room_has_its_rule() -> None:
    assert set(MAY) == ROOMS
    assert {path.stem for path in PACKAGE.glob("*.py")} == GROUND | {"__init__"}


@pytest.mark.parametrize("path", MODULES, ids=name_of)
def test_imports_go_one_way(path: Path) -> None:
    room = path.relative_to(PACKAGE).parts[0]
    assert set(imported(path)) <= GROUND | MAY.get(room, set())


@pytest.mark.parametrize("path", [m for m in MODULES if m.parent.name != "press"], ids=name_of)
def test_only_pages_know_jupyter(path: Path) -> None:
    assert "IPython" not in path.read_text("utf-8") or "press" in path.parts


@pytest.mark.parametrize("path", MODULES, ids=name_of)
def test_a_module_is_read_in_one_sitting(path: Path) -> None:
    assert len(path.read_text("utf-8").splitlines()) <= 300


@pytest.mark.parametrize("path", MODULES, ids=name_of)
def test_a_function_fits_a_screen_and_takes_few_arguments(path: Path) -> None:
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            assert (node.end_lineno or 0) - node.lineno < 60, node.name
            given = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]
            names = [arg.arg for arg in given if arg.arg not in ("self", "cls")]
            assert node.name.startswith("_") or len(names) <= 9, node.name


@pytest.mark.parametrize("words", [["--help"], ["dimension", "--help"], ["tables"]])
def test_reading_commands_load_no_page_tools(words: list[str]) -> None:
    """Help loads no torch, and nothing that reads a table loads what only pages need."""
    heavy = ["IPython", "matplotlib", "jupytext", "pandas"] + ["torch"] * ("--help" in words)
    code = (
        f"import sys; sys.argv = ['tokenspace', *{words!r}]\n"
        "from tokenspace.cli import app\n"
        "try: app()\n"
        "except SystemExit: pass\n"
        f"print([name for name in {heavy!r} if name in sys.modules], file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stderr.strip().splitlines()[-1] == "[]"


def test_reading_a_table_loads_no_page_tools(tmp_path: Path) -> None:
    """As above, with a dimension read to its end."""
    code = (
        "import sys, torch\n"
        "import numpy as np\n"
        f"np.save({str(tmp_path / 'a.npy')!r}, np.random.default_rng(0).normal(size=(50, 5)))\n"
        f"sys.argv = ['tokenspace', 'dimension', {str(tmp_path / 'a.npy')!r}]\n"
        "from tokenspace.cli import app\n"
        "try: app()\n"
        "except SystemExit: pass\n"
        "names = ['IPython', 'matplotlib', 'jupytext', 'pandas']\n"
        "print([name for name in names if name in sys.modules], file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stderr.strip().splitlines()[-1] == "[]"
