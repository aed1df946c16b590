"""Finding the repository, and writing a file whole or not at all, whatever happens meanwhile."""

import os
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tokenspace.errors import RunError


@contextmanager
def placing(path: Path) -> Iterator[Path]:
    """Give a name beside `path` to write under; in one move it becomes `path`, or is removed.

    A process that is killed leaves the file that was there before, and its own beside it.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     with placing(Path(folder) / "a.txt") as part:
    ...         _ = part.write_text("all of it")
    ...     [(p.name, p.read_text()) for p in Path(folder).iterdir()]
    [('a.txt', 'all of it')]
    """
    part = path.with_name(f"{path.name}.part-{uuid.uuid4().hex}")
    try:
        yield part
        os.replace(part, path)
    finally:
        part.unlink(missing_ok=True)


def write(path: Path, content: str | bytes) -> None:
    """Write a file whole or not at all; a text as UTF-8."""
    with placing(path) as part:
        part.write_bytes(content.encode() if isinstance(content, str) else content)


def find_root(start: Path | None = None) -> Path:
    """Find the repository: above the working folder, else where the package is installed from.

    Raises `RunError` when neither holds a `notebooks/` folder beside a `pyproject.toml`.
    """
    here = (start or Path.cwd()).resolve()
    package = Path(__file__).resolve().parents[2]
    for folder in (here, *here.parents, package):
        if (folder / "notebooks").is_dir() and (folder / "pyproject.toml").is_file():
            return folder
    raise RunError(f"no notebooks/ above {here}: run this inside a clone of the repository", 2)
