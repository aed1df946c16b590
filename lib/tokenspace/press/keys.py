"""What a run's result depends on, as one hash: where it is known, the run needn't be repeated."""

import ast
import hashlib
import json
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import tokenspace

PACKAGE = Path(tokenspace.__file__).parent
ROOT = PACKAGE.name


def _file(name: str) -> Path | None:
    """Find the file of a module of the package, if it is one."""
    parts = name.split(".")
    if parts[0] != ROOT:
        return None
    path = PACKAGE.joinpath(*parts[1:])
    if (path / "__init__.py").is_file():
        return path / "__init__.py"
    return path.with_suffix(".py") if len(parts) > 1 and path.with_suffix(".py").is_file() else None


@cache
def _imported(text: str, module: str, is_package: bool) -> frozenset[str]:
    """Name every module that a source may import, wherever in it; `a.b` brings `a` too."""
    return frozenset(_imports(text, module, is_package))


def _imports(text: str, module: str, is_package: bool) -> Iterator[str]:
    for node in ast.walk(ast.parse(text)):
        names: list[str] = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                above = module.split(".")
                above = above[: len(above) - node.level + is_package]
                base = ".".join([*above, *filter(None, [base])])
            names = [base, *(f"{base}.{alias.name}" for alias in node.names)]
        for name in names:
            parts = name.split(".")
            yield from (".".join(parts[: i + 1]) for i in range(len(parts)))


def modules(text: str) -> list[Path]:
    """List the package's files that a source imports, directly or through one another.

    A data file counts where it lies beside one of them, or in `data/` there and one names it.

    >>> [path.name for path in modules("from tokenspace.errors import TableError")]
    ['__init__.py', 'errors.py']
    """
    found: dict[Path, str] = {}
    waiting = [("", False, text)]
    while waiting:
        module, is_package, source = waiting.pop()
        for name in _imported(source, module, is_package):
            path = _file(name)
            if path is not None and path not in found:
                found[path] = path.read_text()
                waiting.append((name, path.name == "__init__.py", found[path]))
    folders, texts = {path.parent for path in found}, "\n".join(found.values())
    beside = {file for folder in folders for file in folder.iterdir() if file.is_file()}
    named = {file for folder in folders for file in folder.glob("data/*") if file.name in texts}
    return sorted({*found, *filter(_is_data, beside), *named})


def _is_data(path: Path) -> bool:
    return path.suffix not in (".py", ".ipynb", ".typed") and not path.name.startswith(".")


def code(notebook: Any) -> str:
    """Join a notebook's code, IPython's `%` and `!` lines left out."""
    lines = [
        line
        for cell in notebook.cells
        if cell.cell_type == "code"
        for line in cell.source.splitlines()
        if not line.lstrip().startswith(("%", "!"))
    ]
    return "\n".join(lines)


def _outside(values: Any) -> Iterator[tuple[str, int, int]]:
    """Describe the files that parameters name: a table of the reader's own may change."""
    if isinstance(values, str) and values:
        try:
            path = Path(values)
            for file in sorted(path.iterdir()) if path.is_dir() else [path]:
                if file.is_file():
                    status = file.stat()
                    yield str(file.resolve()), status.st_size, status.st_mtime_ns
        except OSError:  # too long for a name, or not ours to look at
            return
    elif isinstance(values, Mapping):
        yield from _outside(list(values.values()))
    elif isinstance(values, list):
        for value in values:
            yield from _outside(value)


def source_digest(root: Path, source: Path, notebook: Any) -> str:
    """Hash what all runs of a notebook share: it, the modules it imports, data beside it, locks."""
    digest = hashlib.sha256()

    def add(label: str, content: bytes) -> None:
        digest.update(f"{label} {len(content)}\n".encode() + content)

    add("notebook", source.read_bytes())
    try:
        used = modules(code(notebook))
    except SyntaxError:  # a page that won't run, or a cell that isn't Python: depend on everything
        used = sorted(PACKAGE.rglob("*.py"))
    for path in used:
        add(str(path.relative_to(PACKAGE)), path.read_bytes())
    for path in sorted(source.parent.iterdir()):
        if path.is_file() and _is_data(path):
            add(path.name, path.read_bytes())
    for path in sorted(root.glob("*.lock")):
        add(path.name, path.read_bytes())
    return digest.hexdigest()


def run_key(digest: str, parameters: Mapping[str, Any]) -> str:
    """Hash a run: its `source_digest`, its parameters and the files that they name."""
    about = [digest, dict(parameters), list(_outside(dict(parameters)))]
    return hashlib.sha256(json.dumps(about, sort_keys=True).encode()).hexdigest()[:16]
