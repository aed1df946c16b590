"""Where things lie in the repository: notebooks, profiles, runs."""

import difflib
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
    for part in yaml.safe_load(contents.read_text()).get("parts", []):
        for chapter in part["chapters"]:
            folders = Path(chapter.get("file", "")).parts
            if len(folders) == 3 and folders[0] == "notebooks":
                found["/".join(folders[1:])] = part["caption"]
    return found


def part_titles(root: Path) -> dict[str, str]:
    """Read the parts' captions from the book's contents."""
    return {name.split("/")[0]: caption for name, caption in chapters(root).items()}
