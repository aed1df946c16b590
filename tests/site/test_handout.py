"""The student edition holds no solution, wherever one looks; the teacher's runs."""

import re
from pathlib import Path
from typing import Any

import nbformat
import pytest
from filelock import FileLock
from nbclient import NotebookClient
from sphinx.search.en import SearchEnglish
from tests.site.answers import ROOT, leaks, readable, solutions, text, words

from tokenspace.press import layout
from tokenspace.press.site import Book, build_handout

pytestmark = pytest.mark.site

QUICK = "curvature/connection"  # the page that runs in the least time


@pytest.fixture(scope="session")
def handout(shared: Path, runs: dict[str, Path]) -> Path:
    """Both editions, made from the smoke profile's runs."""
    with FileLock(shared / "handout.lock"):
        return build_handout(Book.of(ROOT, runs), shared / "handout", quiet=True)


def test_the_student_edition_holds_no_solution(handout: Path, site: Path) -> None:
    assert leaks(handout / "student") == []
    everywhere = {Path(path).name for path, _ in leaks(site)}
    for name in (path.stem for path in layout.sources(ROOT)):  # the same eye sees them elsewhere
        assert {f"{name}.html", f"{name}.ipynb", f"{name}.py"} <= everywhere
    assert "search-pages.js" in everywhere


def test_a_students_search_does_not_know_the_words_of_solutions(handout: Path, site: Path) -> None:
    stem = SearchEnglish({}).stem
    hidden = set(
        words(" ".join(body for n in layout.notebooks(ROOT) for body in solutions(n))).split()
    )
    open_pages = [p for p in readable(handout / "student" / "site") if p.suffix == ".html"]
    seen = set(" ".join(map(text, open_pages)).split())
    only = {stem(word) for word in hidden if word.isalpha()} - set(map(stem, seen))
    indexed = {
        folder: set(re.findall(r'"(\w+)":', (folder / "searchindex.js").read_text())) & only
        for folder in (handout / "student" / "site", site)
    }
    assert indexed[handout / "student" / "site"] == set()
    assert len(indexed[site]) > 10


def test_a_student_keeps_what_stands_outside_of_exercises(handout: Path, site: Path) -> None:
    for path in layout.sources(ROOT):
        page = f"notebooks/{path.parent.name}/{path.stem}.html"
        sites = (handout / "student" / "site", site)
        made, whole = [(folder / page).read_text().split("<article", 1)[1] for folder in sites]
        for kept in ('class="ts-claim"', 'class="exercise', "<h2"):
            assert made.count(kept) == whole.count(kept) > 0, (page, kept)
        assert 0 < made.count("<figure") <= whole.count("<figure")
        assert 'class="solution' not in made
        assert made.count("NotImplementedError") >= made.count('class="exercise') > 0


def test_the_teachers_edition_runs_and_a_students_stops_at_its_exercises_only(
    handout: Path,
) -> None:
    for edition in ("teacher", "student"):
        made: Any = nbformat.read(handout / edition / f"{QUICK}.ipynb", as_version=4)
        NotebookClient(made, timeout=120, allow_errors=edition == "student").execute()
        for cell in made.cells if edition == "student" else []:
            raised = [o for o in cell.get("outputs", []) if o.output_type == "error"]
            starter = "raise NotImplementedError" in cell.source
            names = [e.ename for e in raised]  # an unfinished function fails where it is called
            unfinished = starter and "\n    raise NotImplementedError" in cell.source
            assert names == ["NotImplementedError"] * starter or (unfinished and not names), names
            assert all(re.search(r"\(ex-[\w-]+\): ", e.evalue) for e in raised)
