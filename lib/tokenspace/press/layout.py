"""Where things lie in the repository: notebooks, profiles, runs."""

import difflib
import errno
from collections.abc import Iterable
from pathlib import Path

from tokenspace.errors import ParameterError


def sources(root: Path) -> list[Path]:
    """List the notebooks' sources, in order."""
    return sorted(p for p in (root / "notebooks").glob("*/*.py") if not p.name.startswith("."))


def notebooks(root: Path) -> list[str]:
    """List the notebooks' names, `part/notebook`."""
    return [f"{p.parent.name}/{p.stem}" for p in sources(root)]


def source(root: Path, notebook: str) -> Path:
    """Give a notebook's source by its name or path; raises `ParameterError` when there is none."""
    path = (
        Path(notebook).with_suffix("") if notebook.endswith((".py", ".ipynb")) else Path(notebook)
    )
    name = "/".join(path.parts[-2:])
    known = notebooks(root)
    if name not in known:
        raise ParameterError(
            f"no notebook {notebook!r}{nearest(name, known)} (known: {', '.join(known) or 'none'})"
        )
    return root / "notebooks" / f"{name}.py"


def nearest(name: str, known: Iterable[str]) -> str:
    """Suggest the known name that a misspelt one is closest to, if any is close.

    >>> nearest("tabels", ["tables", "seed"]), nearest("x", ["tables"])
    ("; did you mean 'tables'?", '')
    """
    close = difflib.get_close_matches(name, list(known), n=1)
    return f"; did you mean {close[0]!r}?" if close else ""


def read_text(path: Path) -> str:
    """Read a file that a person wrote; raises `ParameterError` where it isn't UTF-8."""
    try:
        return path.read_text("utf-8-sig")  # some editors begin a file with a byte order mark
    except UnicodeDecodeError as error:
        raise ParameterError(f"{path} is not UTF-8 ({error}): save it as UTF-8") from None


def unwritable(place: Path, error: OSError) -> str:
    """Say why nothing can be written below a folder, and what to do."""
    hints = {
        errno.ENOSPC: "free some space; `make clean` empties build/",
        errno.EDQUOT: "free some space; `make clean` empties build/",
        errno.EROFS: "work in a clone on a disk that can be written",
        errno.EACCES: "make it writable, or work in a clone of your own",
    }
    hint = hints.get(error.errno or 0, "nothing of it was kept")
    return f"can't write below {place}: {error.strerror or error}; {hint}"


def runs(root: Path, notebook: str) -> Path:
    """Give the folder of a notebook's runs."""
    return root / "build" / "runs" / notebook


def chapters(root: Path) -> dict[str, str]:
    """Read the notebooks that the book's contents list, in order, each with its part's caption."""
    import yaml

    contents = root / "book" / "_toc.yml"
    if not contents.is_file():
        return {}
    found = {}
    for part in yaml.safe_load(contents.read_text("utf-8")).get("parts", []):
        for chapter in part["chapters"]:
            folders = Path(chapter.get("file", "")).parts
            if len(folders) == 3 and folders[0] == "notebooks":
                found["/".join(folders[1:])] = part["caption"]
    return found


def part_titles(root: Path) -> dict[str, str]:
    """Read the parts' captions from the book's contents."""
    return {name.split("/")[0]: caption for name, caption in chapters(root).items()}
