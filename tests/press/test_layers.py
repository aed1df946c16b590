"""Imports go one way: papers know sources, never press nor one another; press knows no paper."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from tokenspace.press.keys import PACKAGE

PAPERS = {"staircase", "hub", "flow", "curvature"}
FORBIDDEN = {
    "press": PAPERS | {"sources", "tensors"},
    "sources": PAPERS | {"press", "IPython"},
    **{paper: (PAPERS - {paper}) | {"press", "IPython"} for paper in PAPERS},
}
MODULES = sorted(path for room in FORBIDDEN for path in (PACKAGE / room).rglob("*.py"))


def name_of(path: Path) -> str:
    """A module as `hub/capture.py`."""
    return path.relative_to(PACKAGE).as_posix()


def imported(path: Path) -> Iterator[str]:
    """Name the packages that a module imports: `hub` for `tokenspace.hub.capture`."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert not node.level, f"{path}: import by full name"
            names = [node.module or "", *(f"{node.module}.{alias.name}" for alias in node.names)]
        else:
            continue
        yield from (name.removeprefix("tokenspace.").split(".")[0] for name in names)


@pytest.mark.parametrize("path", MODULES, ids=name_of)
def test_imports_go_one_way(path: Path) -> None:
    assert not set(imported(path)) & FORBIDDEN[path.relative_to(PACKAGE).parts[0]]


@pytest.mark.parametrize("name", ["errors", "placing", "tensors"])
def test_what_everything_may_import_imports_nothing_of_ours(name: str) -> None:
    assert not set(imported(PACKAGE / f"{name}.py")) & (PAPERS | {"press", "sources", "tokenspace"})


@pytest.mark.parametrize("path", MODULES, ids=name_of)
def test_a_module_can_be_read_in_one_sitting(path: Path) -> None:
    assert len(path.read_text().splitlines()) <= 260  # about 250
