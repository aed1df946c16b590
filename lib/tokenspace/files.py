"""Finding the repository, reading what people wrote, and writing a file whole or not at all."""

import errno
import os
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tokenspace.errors import ParameterError, RunError

HINTS = {
    errno.ENOSPC: "free some space; `make clean` empties build/",
    errno.EDQUOT: "free some space; `make clean` empties build/",
    errno.EROFS: "work in a clone on a disk that can be written",
    errno.EACCES: "make it writable, or work in a clone of your own",
}


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


def unwritable(place: Path, error: OSError) -> str:
    """Say why nothing can be written below a folder, and what to do."""
    hint = HINTS.get(error.errno or 0, "nothing of it was kept")
    return f"can't write below {place}: {error.strerror or error}; {hint}"


def read_text(path: Path) -> str:
    """Read a file that a person wrote; raises `ParameterError` where it isn't UTF-8."""
    try:
        return path.read_text("utf-8-sig")  # some editors begin a file with a byte order mark
    except UnicodeDecodeError as error:
        raise ParameterError(f"{path} is not UTF-8 ({error}): save it as UTF-8") from None


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
