"""The committed `.ipynb` twin of each `.py` notebook: written one way, without outputs.

`jupytext --sync` keeps old outputs beside edited code and can revert a source that is older than
its twin. Here the `.py` is the truth, and the twin a function of it: the same bytes every time.
Runs are made from the source itself. The committed file is for those who open it elsewhere, so it
has one cell more, which looks whether the package is there.
"""

import hashlib
import re
from pathlib import Path
from typing import Any

import jupytext
import nbformat

from tokenspace.files import write
from tokenspace.press.layout import sources

KERNEL = "python3"
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
    seen: dict[str, int] = {}
    cells = []
    for cell in read.cells:
        content = f"{cell.cell_type}\n{cell.source}"
        seen[content] = seen.get(content, 0) + 1
        cell.id = hashlib.sha256(f"{content}\n{seen[content]}".encode()).hexdigest()[:12]
        if cell.cell_type == "code":
            cell.outputs, cell.execution_count = [], None
        cells.append(cell)
    notebook = nbformat.v4.new_notebook(cells=cells, metadata=METADATA, nbformat_minor=5)
    nbformat.validate(notebook)
    return notebook


CHECK = """\
# Opened alone, this says what to install.
import importlib.util

if importlib.util.find_spec("tokenspace") is None:
    raise SystemExit(
        "This notebook needs the package tokenspace: in a clone of its repository run "
        "`make setup`, then open the notebook with `make lab`."
    )"""


def with_check(notebook: Any) -> Any:
    """Put a first code cell into a twin that says what to do where the package isn't installed.

    >>> page = twin("# %% [markdown]\\n# # Title\\n\\n# %%\\n1 + 1\\n")
    >>> [cell.source.splitlines()[0] for cell in with_check(page).cells]
    ['# Title', '# Opened alone, this says what to install.', '1 + 1']
    """
    check = nbformat.v4.new_code_cell(CHECK, id="installation")
    check.metadata["tags"] = ["remove-cell"]
    notebook.cells.insert(1, check)
    return notebook


def dumps(notebook: Any) -> str:
    """Write a notebook as text, the same for the same cells."""
    text: str = nbformat.writes(notebook, version=nbformat.NO_CONVERT)
    return text.rstrip("\n") + "\n"


def sync(root: Path, *, check: bool = False) -> list[str]:
    """Bring every twin up to date and say what was done; `check` only says what would be.

    Twins that are right aren't touched, so nothing is rebuilt for them. A twin without a source is
    reported, never deleted.
    """
    done = []
    for path in sources(root):
        target = path.with_suffix(".ipynb")
        wanted = dumps(with_check(twin(path.read_text())))
        if target.is_file() and target.read_text() == wanted:
            continue
        done.append(f"{target.relative_to(root)} {'differs' if check else 'written'}")
        if not check:
            write(target, wanted)
    for path in sorted((root / "notebooks").glob("*/*.ipynb")):
        if not path.with_suffix(".py").is_file():
            done.append(
                f"{path.relative_to(root)} has no .py source: delete it, or make its source"
            )
    return done
