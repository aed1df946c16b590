"""Handouts: the notebooks and the site without their solutions, and the notebooks with them."""

import re
import shutil
from collections.abc import Mapping
from pathlib import Path

import nbformat

from tokenspace.press.download import citation_names, plain_notebook
from tokenspace.press.editions import Student, Whole, edit_source
from tokenspace.press.site import build_book, write_changed
from tokenspace.press.sync import dumps, with_check


def build_handout(
    source: Path,
    runs: Mapping[str, Path],
    scoreboard: str,
    out: Path,
    *,
    pages: Mapping[str, str] | None = None,
    quiet: bool = False,
) -> Path:
    """Write `student/` and `teacher/` below `out`, and return it; arguments as of `build_book`.

    Both hold every notebook, executed; the student's has no solution in its cells, and cells to be
    filled in, and `student/site` is the whole book without solutions: its pages, its downloads and
    its search.
    Raises `PageError` for a solution that isn't closed, `RunError` when the site doesn't build.
    """
    work = out / ".work"  # what the student's site is made of: no solution in it either
    shutil.rmtree(work / "source", ignore_errors=True)
    shutil.copytree(source / "book", work / "source" / "book")
    config = work / "source" / "book" / "_config.yml"
    text = config.read_text("utf-8")
    config.write_text(re.sub(r"^title: .*", r"\g<0>, student edition", text, flags=re.M), "utf-8")
    citations = citation_names(source / "book" / "references.bib")
    for name, run in runs.items():
        executed = run / "executed.ipynb"
        student, _ = Student().preprocess(nbformat.read(executed, as_version=4), {})
        teacher, _ = Whole().preprocess(nbformat.read(executed, as_version=4), {})
        for edition, made in (("student", student), ("teacher", teacher)):
            plain = with_check(plain_notebook(made, citations))
            write_changed(out / edition / f"{name}.ipynb", dumps(plain))
        write_changed(work / "source" / "runs" / name / "executed.ipynb", dumps(student))
        text = (source / "notebooks" / f"{name}.py").read_text("utf-8")
        write_changed(work / "source" / "notebooks" / f"{name}.py", edit_source(text, Student()))
    folders = {name: work / "source" / "runs" / name for name in runs}
    index = build_book(
        work / "source", folders, scoreboard, work / "site", pages=pages, quiet=quiet
    )
    shutil.rmtree(out / "student" / "site", ignore_errors=True)
    shutil.copytree(index.parent, out / "student" / "site")
    return out
