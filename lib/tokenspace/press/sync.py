"""The committed `.ipynb` twin of each `.py` notebook: written one way, without outputs.

`jupytext --sync` keeps old outputs beside edited code and can revert a source that is older than
its twin. Here the `.py` is the truth, and the twin a function of it: the same bytes every time.
The committed file has one cell more, which looks whether the package is there.
"""

import hashlib
import re
from itertools import chain, count
from pathlib import Path
from typing import Any

import jupytext
import nbformat

from tokenspace.errors import RunError
from tokenspace.files import read_text, unwritable, write
from tokenspace.press.layout import sources

KERNEL = "python3"
CHECK_ID = "installation"
EDITED = ".edited"
HEADER = re.compile(r"\A# ---\n(?:#.*\n)*?# ---\n+")
METADATA = {
    "kernelspec": {"display_name": "Python 3", "language": "python", "name": KERNEL},
    "language_info": {"name": "python"},
}


def twin(text: str) -> Any:
    """Turn a percent-format source into a notebook with deterministic ids and the `python3` kernel.

    >>> notebook = twin("# %% [markdown]\\n# # Title\\n\\n# %%\\n1 + 1\\n")
    >>> [(cell.cell_type, cell.source) for cell in notebook.cells]
    [('markdown', '# Title'), ('code', '1 + 1')]
    """
    read = jupytext.reads(HEADER.sub("", text), fmt="py:percent")  # kernels and filters are ours
    for cell, name in zip(read.cells, _ids(read.cells), strict=True):
        cell.id = name
        if cell.cell_type == "code":
            cell.outputs, cell.execution_count = [], None
    notebook = nbformat.v4.new_notebook(cells=read.cells, metadata=METADATA, nbformat_minor=5)
    nbformat.validate(notebook)
    return notebook


def _ids(cells: list[Any]) -> list[str]:
    """Name each cell by its content, and by how many cells before it have the same."""
    contents = [f"{cell['cell_type']}\n{cell['source']}" for cell in cells]
    counted = [f"{text}\n{contents[: i + 1].count(text)}" for i, text in enumerate(contents)]
    return [hashlib.sha256(text.encode()).hexdigest()[:12] for text in counted]


CHECK = """\
# Opened alone, this says what to install.
import importlib.util

if importlib.util.find_spec("tokenspace") is None:
    raise SystemExit(
        "This notebook needs the package tokenspace: in a clone of its repository run "
        "`make setup`, or `pip install -e .`, then open the notebook with `make lab`."
    )"""


def with_check(notebook: Any) -> Any:
    """Put a first code cell into a twin that says what to do where the package isn't installed."""
    check = nbformat.v4.new_code_cell(CHECK, id=CHECK_ID)
    check.metadata["tags"] = ["remove-cell"]
    notebook.cells.insert(1, check)
    return notebook


def dumps(notebook: Any) -> str:
    """Write a notebook as text, the same for the same cells."""
    text: str = nbformat.writes(notebook, version=nbformat.NO_CONVERT)
    return text.rstrip("\n") + "\n"


def is_edited(path: Path) -> bool:
    """Whether somebody's work is in a twin: a cell whose id is not the one of its content."""
    try:
        cells = nbformat.reads(path.read_text("utf-8"), as_version=4).cells
    except (ValueError, KeyError, AttributeError):  # no notebook, so nothing that we made
        return True
    cells = [cell for cell in cells if cell.get("id") != CHECK_ID]
    return [cell.get("id") for cell in cells] != _ids(cells)


def sync(root: Path, *, check: bool = False) -> list[str]:
    """Bring every twin up to date and say what was done; `check` only says what would be.

    Twins that are right aren't touched. One that was edited is kept as `NAME.edited.ipynb` before
    it is written; one without a source is reported, never deleted. Raises `RunError` where nothing
    can be written.
    """
    done = []
    for path in sources(root):
        target = path.with_suffix(".ipynb")
        wanted = dumps(with_check(twin(read_text(path)))).encode()
        if target.is_file() and target.read_bytes() == wanted:
            continue
        try:
            kept = "" if check else _write(target, wanted)
        except OSError as error:
            name = target.relative_to(root)
            raise RunError(f"{name}: {unwritable(target.parent, error)}") from None
        done.append(f"{target.relative_to(root)} {'differs' if check else 'written'}{kept}")
    for path in sorted((root / "notebooks").glob("*/*.ipynb")):
        if not path.with_suffix(".py").is_file() and EDITED not in path.name:
            name = path.relative_to(root)
            done.append(f"{name} has no .py source: delete it, or make its source")
    return done


def _write(target: Path, wanted: bytes) -> str:
    """Write a twin; an edited one is kept beside it first, and said to be."""
    kept = ""
    if target.is_file() and is_edited(target):
        names = (target.with_suffix(f"{EDITED}{n}.ipynb") for n in chain([""], count(2)))
        copy = next(path for path in names if not path.exists())
        write(copy, target.read_bytes())
        kept = f"; it was edited, and that is kept as {copy.name}"
    write(target, wanted)
    return kept
