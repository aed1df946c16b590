"""What a run's result depends on, as one hash: where it is known, the run needn't be repeated."""

import hashlib
import json
from collections.abc import Iterator, Mapping
from modulefinder import ModuleFinder
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import Any

import tokenspace

PACKAGE = Path(tokenspace.__file__).parent


def modules(text: str) -> list[Path]:
    """List the package's files that a source imports, in functions too, and those they import.

    A data file counts where it lies beside one of them, or in `data/` there and one names it.

    >>> [path.name for path in modules("from tokenspace.errors import TableError")]
    ['__init__.py', 'errors.py']
    """
    finder = ModuleFinder(path=[str(PACKAGE.parent)])
    with NamedTemporaryFile("w", suffix=".py", encoding="utf-8") as script:
        script.write(text)
        script.flush()
        finder.run_script(script.name)
    files = [Path(m.__file__) for m in finder.modules.values() if m.__file__]  # type: ignore[attr-defined]
    found = [path for path in files if path.is_relative_to(PACKAGE)]
    texts = "\n".join(path.read_text("utf-8") for path in found)
    folders = {path.parent for path in found}
    named = (file for folder in folders for file in folder.glob("data/*") if file.name in texts)
    return sorted({*found, *named, *(file for folder in folders for file in _data(folder))})


def _data(folder: Path) -> list[Path]:
    """List a folder's own files that are neither code nor hidden."""
    files = (path for path in sorted(folder.glob("[!.]*")) if path.is_file())
    return [path for path in files if path.suffix not in (".py", ".ipynb", ".typed")]


def code(notebook: Any) -> str:
    """Join a notebook's code, IPython's `%` and `!` lines left out."""
    cells = [cell.source for cell in notebook.cells if cell.cell_type == "code"]
    lines = "\n".join(cells).splitlines()
    return "\n".join(line for line in lines if not line.lstrip().startswith(("%", "!")))


def _outside(values: Any) -> Iterator[tuple[str, int, int]]:
    """Describe the files that parameters name: a table of the reader's own may change."""
    if isinstance(values, Mapping):
        values = list(values.values())
    if isinstance(values, list):
        for value in values:
            yield from _outside(value)
    elif isinstance(values, str) and values:
        try:
            path = Path(values).expanduser()
            for file in sorted(path.iterdir()) if path.is_dir() else [path]:
                if file.is_file():
                    status = file.stat()
                    yield str(file.resolve()), status.st_size, status.st_mtime_ns
        except (OSError, ValueError, RuntimeError):  # no name of a file, not ours, or no such home
            return


def source_digest(root: Path, source: Path, notebook: Any) -> str:
    """Hash what all runs of a notebook share: it, the modules it imports, data beside it, locks."""
    digest = hashlib.sha256()
    try:
        used = modules(code(notebook))
    except SyntaxError:  # a page that won't run, or a cell that isn't Python: depend on everything
        used = sorted(PACKAGE.rglob("*.py"))
    labels = {source: "notebook", **{path: str(path.relative_to(PACKAGE)) for path in used}}
    for path in [*labels, *_data(source.parent), *sorted(root.glob("*.lock"))]:
        content = path.read_bytes()
        digest.update(f"{labels.get(path, path.name)} {len(content)}\n".encode() + content)
    return digest.hexdigest()


def run_key(digest: str, parameters: Mapping[str, Any]) -> str:
    """Hash a run: its `source_digest`, its parameters and the files that they name."""
    about = [digest, dict(parameters), list(_outside(parameters))]
    return hashlib.sha256(json.dumps(about, sort_keys=True).encode()).hexdigest()[:16]
