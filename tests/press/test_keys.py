"""A run's key moves with what the notebook depends on, and with nothing else."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tokenspace.press import keys
from tokenspace.press.keys import modules, run_key, source_digest
from tokenspace.press.sync import twin

SOURCE = '# %% tags=["parameters"]\nk: int = 1\n\n# %%\nfrom tokenspace.hub import a\n'


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """hub.a -> hub.b (relative), sources.c; nothing -> hub.d."""
    files = {
        "__init__.py": "",
        "hub/__init__.py": "",
        "hub/a.py": "def f():\n    from . import b\n    import tokenspace.sources.c",
        "hub/b.py": "from .a import f",
        "hub/d.py": "",
        "hub/ids.yaml": "a: 1",
        "hub/__pycache__/a.pyc": "",
        "sources/__init__.py": "",
        "sources/c.py": "import torch",
        "press/__init__.py": "",
    }
    for name, text in files.items():
        path = tmp_path / "tokenspace" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    monkeypatch.setattr(keys, "PACKAGE", tmp_path / "tokenspace")
    return tmp_path / "tokenspace"


@pytest.fixture
def key(root: Path, package: Path) -> Callable[..., str]:
    path = root / "notebooks" / "hub" / "toy.py"
    path.parent.mkdir()
    path.write_text(SOURCE)

    def compute(**values: Any) -> str:
        return run_key(source_digest(root, path, twin(path.read_text())), {"k": 1, **values})

    return compute


def test_imports_are_followed_through_functions_packages_and_cycles(package: Path) -> None:
    found = {str(path.relative_to(package)) for path in modules("from tokenspace.hub import a")}
    assert found == {
        *("__init__.py", "hub/__init__.py", "hub/a.py", "hub/b.py", "hub/ids.yaml"),
        *("sources/__init__.py", "sources/c.py"),
    }


@pytest.mark.parametrize(
    ("file", "moves"),
    [
        ("hub/a.py", True),
        ("hub/b.py", True),
        ("hub/ids.yaml", True),
        ("sources/c.py", True),
        ("__init__.py", True),
        ("hub/d.py", False),
        ("press/__init__.py", False),
    ],
)
def test_only_what_a_notebook_imports_moves_its_key(
    key: Callable[..., str], package: Path, file: str, moves: bool
) -> None:
    before = key()
    assert key() == before
    (package / file).write_text("# changed")
    assert (key() != before) == moves


@pytest.mark.parametrize("file", ["notebooks/hub/toy.py", "notebooks/hub/ids.yaml", "a.lock"])
def test_source_data_beside_it_and_locks_move_the_key(
    key: Callable[..., str], root: Path, file: str
) -> None:
    before = key()
    for name in ("other.py", "toy.ipynb"):  # another notebook, and its own twin
        (root / "notebooks" / "hub" / name).touch()
    assert key() == before
    path = root / file
    path.write_text((path.read_text() if path.exists() else "") + "# more\n")
    assert key() != before


def test_parameters_move_the_key(key: Callable[..., str]) -> None:
    assert len({key(), key(k=2), key(k="1"), key(k=[1])}) == 4


def test_a_readers_own_file_moves_the_key_when_it_changes(
    key: Callable[..., str], tmp_path: Path
) -> None:
    table = tmp_path / "mine.npy"
    before = key(tables=[str(table)])
    table.write_bytes(b"1")
    first = key(tables=[str(table)])
    table.write_bytes(b"12")
    assert len({before, first, key(tables=[str(table)])}) == 3


def test_the_readers_home_is_followed(
    key: Callable[..., str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    before = key(tables=["~/mine.npy"])
    (tmp_path / "mine.npy").write_bytes(b"1")
    assert key(tables=["~/mine.npy"]) != before


def test_code_that_python_cannot_read_depends_on_everything(
    key: Callable[..., str], root: Path, package: Path
) -> None:
    (root / "notebooks" / "hub" / "toy.py").write_text(SOURCE + "\n# %%\n1 +\n")
    before = key()
    (package / "hub" / "d.py").write_text("# changed")
    assert key() != before
