"""Writing a file whole or not at all, whatever happens meanwhile."""

import os
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


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
