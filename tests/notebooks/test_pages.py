"""Every page is made of the same parts, and its committed twin is the page."""

import ast
import re
from copy import deepcopy
from functools import cache
from pathlib import Path
from typing import Any

import jupytext
import nbformat
import pytest
from jupytext.compare import compare_notebooks

from tokenspace.files import find_root
from tokenspace.press import layout, parameters
from tokenspace.press.editions import Student
from tokenspace.press.keys import code
from tokenspace.press.plan import plans, profiles
from tokenspace.press.sync import dumps, twin, with_check

ROOT = find_root(Path(__file__).parent)
NAMES = layout.notebooks(ROOT)
PAPERS = {"staircase", "hub", "flow", "curvature"}
LONGEST = 40  # lines of code in a cell; what is longer belongs in lib/

pytestmark = pytest.mark.parametrize("name", NAMES)


@cache
def read(name: str) -> Any:
    return twin(layout.source(ROOT, name).read_text())


def page(name: str) -> Any:
    return deepcopy(read(name))  # some tests change it


def prose(name: str) -> str:
    return "\n\n".join(c.source for c in page(name).cells if c.cell_type == "markdown")


def test_the_committed_twin_is_the_page(name: str) -> None:
    path = layout.source(ROOT, name)
    target = path.with_suffix(".ipynb")
    assert target.is_file(), "run `make sync`"
    committed = nbformat.read(target, as_version=4)
    assert target.read_text() == dumps(with_check(page(name))), "run `make sync`"
    source = jupytext.read(path)
    source.metadata = committed.metadata  # the kernel is pinned, whatever the source says
    del committed.cells[1]  # what is more in it: the check of the installation
    compare_notebooks(committed, source, fmt="py:percent")


def test_its_first_cell_says_how_to_install(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Opened alone, on Colab, a notebook can't import the package that it is about."""
    committed = nbformat.read(layout.source(ROOT, name).with_suffix(".ipynb"), as_version=4)
    check = next(c.source for c in committed.cells if c.cell_type == "code")
    exec(check, {})  # where it is installed nothing is said
    monkeypatch.setattr("importlib.util.find_spec", lambda _: None)
    with pytest.raises(SystemExit) as caught:
        exec(check, {})
    assert "`make setup`" in str(caught.value)
    assert "http" not in check  # an address that isn't ours would install a stranger's code


def test_the_twin_runs_anywhere_and_shows_nothing_yet(name: str) -> None:
    committed = nbformat.read(layout.source(ROOT, name).with_suffix(".ipynb"), as_version=4)
    nbformat.validate(committed)
    kernel = committed.metadata.kernelspec
    assert (kernel.name, kernel.language) == ("python3", "python")
    assert not any(c.get("outputs") or c.get("execution_count") for c in committed.cells)


def test_the_page_opens_with_its_title_parameters_and_page(name: str) -> None:
    cells = page(name).cells
    assert cells[0].cell_type == "markdown"
    assert cells[0].source.startswith("# ")
    declared = parameters.read(page(name), name)
    assert {"seed", "device"} <= set(declared)
    codes = [c.source for c in cells if c.cell_type == "code"]
    place = next(i for i, c in enumerate(cells) if "parameters" in c.metadata.get("tags", []))
    assert codes[0] == cells[place].source
    assert re.search(rf'Page\(\s*"{name}"', codes[1])
    assert codes[-1].strip().startswith("page.footer(")


def test_every_profile_can_run_it(name: str) -> None:
    for profile in profiles(ROOT):
        assert plans(ROOT, name, [{}], profile=profile)[0].parameters


def test_the_page_has_sections(name: str) -> None:
    """A page with margin content but no `##` heading crashes the theme's script."""
    assert len(re.findall(r"^## ", prose(name), flags=re.MULTILINE)) >= 3


def test_a_reader_knows_who_speaks(name: str) -> None:
    for voice in ("paper", "differs"):
        assert re.search(rf"^:class: {voice}\b", prose(name), flags=re.MULTILINE), voice


def test_exercises_are_graded_and_have_solutions(name: str) -> None:
    text = prose(name)
    posed = re.findall(r"\{exercise\} (.*)\n:label: (\S+)", text)
    solved = re.findall(r"\{solution(?:-start)?\} (\S+)", text)
    assert 4 <= len(posed) <= 6
    assert sorted(label for _, label in posed) == sorted(solved)
    assert text.count("{solution-start}") == text.count("{solution-end}")
    titles = [re.fullmatch(r"(★{1,3}) \S.*", title) for title, _ in posed]
    assert all(titles), posed
    grades = [len(title[1]) for title in titles if title]
    assert grades == sorted(grades)
    assert {1, 2, 3} == set(grades)


def test_exercises_are_referred_to_where_the_page_raises_them(name: str) -> None:
    before, exercises = re.split(r"^## Exercises$", prose(name), flags=re.MULTILINE)
    posed = set(re.findall(r"^:label: (ex-\S+)", exercises, flags=re.MULTILINE))
    referred = set(re.findall(r"\{ref\}`[^`<]*<(ex-[\w-]+)>`", before))
    assert referred == posed


def test_solutions_can_be_left_out_and_are_checked(name: str) -> None:
    """Every solution has answers to leave out, and a check behind its last one."""
    label, solved = "", {}
    for cell in page(name).cells:
        found = re.search(r"\{solution-start\} (\S+)", cell.source)
        if cell.cell_type == "markdown":
            label = found[1] if found else "" if "{solution-end}" in cell.source else label
            continue
        marks = re.findall(r"^ *# (BEGIN|END) SOLUTION(: \S.*)?$", cell.source, flags=re.MULTILINE)
        assert label or not marks, cell.source
        assert [mark for mark, _ in marks] == ["BEGIN", "END"] * (len(marks) // 2), label
        assert all(bool(hint) == (mark == "BEGIN") for mark, hint in marks), label
        if label:
            solved[label] = solved.get(label, "") + cell.source
    for label, source in solved.items():
        assert "# END SOLUTION" in source, label
        assert re.search(rf'expect\(\s*"{label}"', source.rsplit("# END SOLUTION", 1)[1]), label


def test_a_solution_left_out_says_what_is_missing(name: str) -> None:
    """A student's cell fails with the exercise's title, label and hint."""
    student, _ = Student().preprocess(page(name), {})
    whole = {cell.id: cell.source for cell in page(name).cells}
    starters = [c for c in student.cells if c.cell_type == "code" and c.source != whole.get(c.id)]
    said = []
    for cell in starters:
        missing = [n for n in ast.walk(ast.parse(cell.source)) if isinstance(n, ast.Raise)]
        for line in (n for n in map(ast.unparse, missing) if "NotImplementedError" in n):
            with pytest.raises(NotImplementedError, match=r"★ .+ \(ex-[\w-]+\): .") as error:
                exec(line, {})
            said.append(str(error.value))
    posed = re.findall(r"^:label: (ex-\S+)", prose(name), flags=re.MULTILINE)
    assert {label for label in posed if any(f"({label})" in each for each in said)} == set(posed)


def test_cells_are_short_and_import_the_installed_package(name: str) -> None:
    for cell in page(name).cells:
        if cell.cell_type == "code":
            assert len(cell.source.splitlines()) <= LONGEST, cell.source.splitlines()[0]
    text = code(page(name))
    assert not re.search(r"sys\.path|%run\b", "\n".join(c.source for c in page(name).cells))
    used = {
        (node.module or "").split(".")[1]
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("tokenspace.")
    }
    assert not used & (PAPERS - {name.split("/")[0]})
