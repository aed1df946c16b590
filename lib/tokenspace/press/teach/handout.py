"""Handouts: the notebooks and the site without their solutions, and the notebooks with them."""

import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import nbformat
import yaml

from tokenspace.files import write
from tokenspace.press.book import build_book
from tokenspace.press.download import citation_names, plain_notebook
from tokenspace.press.sync import dumps
from tokenspace.press.teach.editions import Student, Whole, edit_source


def build_handout(
    source: Path,
    runs: Mapping[str, Path],
    scoreboard: str,
    out: Path,
    *,
    pages: Mapping[str, str] | None = None,
    quiet: bool = False,
) -> Path:
    """Write `student/` and `teacher/` below `out`, and return it.

    Both hold every notebook, executed; the student's has no solution in its cells, and cells to be
    filled in, and `student/site` is the whole book without solutions: its pages, its downloads and
    its search. Arguments are those of `build_book`.
    Raises `PageError` for a solution that isn't closed, `RunError` when the site doesn't build.
    """
    work = out / ".work"  # what the student's site is made of: no solution in it either
    shutil.rmtree(work / "source", ignore_errors=True)
    shutil.copytree(source / "book", work / "source" / "book")
    config = work / "source" / "book" / "_config.yml"
    config.write_text(yaml.safe_dump(_closed(yaml.safe_load(config.read_text()))))
    citations = citation_names(source / "book" / "references.bib")
    for name, run in runs.items():
        student, _ = Student().preprocess(_read(run), {})
        teacher, _ = Whole().preprocess(_read(run), {})
        for edition, made in (("student", student), ("teacher", teacher)):
            _write(out / edition / f"{name}.ipynb", dumps(plain_notebook(made, citations)))
        _write(work / "source" / "runs" / name / "executed.ipynb", dumps(student))
        text = (source / "notebooks" / f"{name}.py").read_text()
        _write(work / "source" / "notebooks" / f"{name}.py", edit_source(text, Student()))
    folders = {name: work / "source" / "runs" / name for name in runs}
    index = build_book(
        work / "source", folders, scoreboard, work / "site", pages=pages, quiet=quiet
    )
    shutil.rmtree(out / "student" / "site", ignore_errors=True)
    shutil.copytree(index.parent, out / "student" / "site")
    return out


def _closed(config: dict[str, Any]) -> dict[str, Any]:
    return {**config, "title": f"{config['title']}, student edition"}


def _read(run: Path) -> Any:
    return nbformat.read(run / "executed.ipynb", as_version=4)


def _write(path: Path, content: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    write(path, content)
