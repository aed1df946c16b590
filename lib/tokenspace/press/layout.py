"""Where the notebooks' sources lie, and which of them are the book's chapters."""

from pathlib import Path

import yaml

from tokenspace.errors import ParameterError, nearest


def sources(root: Path) -> list[Path]:
    """List the notebooks' sources, in order."""
    return sorted(p for p in (root / "notebooks").glob("*/*.py") if not p.name.startswith("."))


def notebooks(root: Path) -> list[str]:
    """List the notebooks' names, `part/notebook`."""
    return [f"{p.parent.name}/{p.stem}" for p in sources(root)]


def source(root: Path, notebook: str) -> Path:
    """Give a notebook's source by its name or path; raises `ParameterError` when there is none."""
    name = "/".join(Path(notebook.removesuffix(".ipynb").removesuffix(".py")).parts[-2:])
    known = notebooks(root)
    if name not in known:
        raise ParameterError(
            f"no notebook {notebook!r}{nearest(name, known)} (known: {', '.join(known) or 'none'})"
        )
    return root / "notebooks" / f"{name}.py"


def chapters(root: Path) -> dict[str, str]:
    """Read the notebooks that the book's contents list, in order, each with its part's caption."""
    contents = root / "book" / "_toc.yml"
    if not contents.is_file():
        return {}
    return {
        chapter["file"].removeprefix("notebooks/"): part["caption"]
        for part in yaml.safe_load(contents.read_text("utf-8")).get("parts", [])
        for chapter in part["chapters"]
        if chapter.get("file", "").startswith("notebooks/")
    }


def part_titles(root: Path) -> dict[str, str]:
    """Read the parts' captions from the book's contents."""
    return {name.split("/")[0]: caption for name, caption in chapters(root).items()}
