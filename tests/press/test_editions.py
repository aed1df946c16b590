"""What a student's edition leaves out, and what it keeps to start from."""

import ast
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import nbformat
import pytest
from nbconvert import NotebookExporter
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output

from tokenspace.errors import PageError
from tokenspace.files import find_root
from tokenspace.press import layout
from tokenspace.press.editions import (
    CHECKED,
    Student,
    Whole,
    edit_source,
    exercises,
    starter,
)
from tokenspace.press.sync import twin

ROOT = find_root(Path(__file__).parent)
NAMES = layout.notebooks(ROOT)

ASK = """Before.

```{exercise} ★ Halve it
:label: ex-halve

Halve $x$.
```

```{solution-start} ex-halve
:class: dropdown
```

The answer is a shift."""
ANSWER = '''def half(x):
    """Half of x."""
    # BEGIN SOLUTION: say "shift"
    return x >> 1
    # END SOLUTION


assert half(4) == 2'''
MORE = """```{solution-end}
```

Between.

```{exercise} ★★ Why
:label: ex-why
Why?
```

```{solution-start} ex-why
```
Because it is.

```{solution-end}
```

After."""


def page(*cells: Any) -> Any:
    return new_notebook(cells=list(cells))


def small() -> Any:
    shown = [new_output("stream", text="half is 2\n")]
    return page(
        new_markdown_cell(ASK, id="ask"),
        new_code_cell(ANSWER, id="answer", outputs=shown, metadata={"tags": ["hide-input"]}),
        new_markdown_cell("Aside on the answer.", id="aside"),
        new_code_cell("print('a plot of the answer')", id="plot"),
        new_markdown_cell(MORE, id="more"),
        new_code_cell("1 + 1", id="end"),
    )


def student(notebook: Any) -> Any:
    made, _ = Student().preprocess(notebook, {})
    nbformat.validate(made)
    return made


def test_a_student_gets_the_exercise_and_its_scaffold() -> None:
    cells = student(small()).cells
    kinds = "markdown code markdown code markdown code"
    assert [c.cell_type for c in cells] == kinds.split()
    text = json.dumps(cells)
    told = ("shift.", "x >> 1", "Aside", "a plot", "Because", "half is 2", "half(4)")
    assert [gone for gone in (*told, "{solution", "BEGIN") if gone in text] == []
    starter = cells[1].source.splitlines()
    assert starter[:2] == ["def half(x):", '    """Half of x."""']
    assert starter[2:6] == [
        "    raise NotImplementedError(",
        '        "★ Halve it (ex-halve): "',
        '        "say \\"shift\\""',
        "    )",
    ]
    assert starter[-2:] == ["", CHECKED], "what checks the answer is not in sight"
    assert not cells[1].metadata.get("tags"), "a starter is seen"
    assert cells[2].source.startswith("Between.")
    assert cells[4].source == "After."


def test_an_exercise_without_a_marked_answer_gets_a_cell_that_says_so() -> None:
    starter = student(small()).cells[3].source
    with pytest.raises(NotImplementedError, match=r"^★★ Why \(ex-why\): put your answer"):
        exec(starter)


@pytest.mark.parametrize(
    ("cells", "message"),
    [
        ([ASK], r"'ex-halve' has no \{solution-end\}"),
        ([ASK.replace("start} ex-halve", "start} ex-double"), MORE], "'ex-double': no such"),
        ([ASK, "# BEGIN SOLUTION\n1", MORE], "ex-halve: BEGIN and END .* pair"),
        ([ASK, "# BEGIN SOLUTION\n# BEGIN SOLUTION\n# END SOLUTION", MORE], "BEGIN .* pair"),
        ([ASK, "# BEGIN SOLUTION\n# END SOLUTION\n# END SOLUTION", MORE], "END .* pair"),
        (
            [ASK, "# BEGIN SOLUTION\nx = 1\n# END SOLUTION\nexpect('ex-halve', x, 1)\n" * 2, MORE],
            "ex-halve: a check stands before",
        ),
    ],
)
def test_what_is_not_closed_or_in_sight_is_refused(cells: list[str], message: str) -> None:
    made = [new_code_cell(c) if c.startswith("#") else new_markdown_cell(c) for c in cells]
    with pytest.raises(PageError, match=message):
        student(page(*made))


def test_a_starter_is_cut_where_the_answer_is_checked() -> None:
    hole = """raise NotImplementedError(
    "Ask (ex-a): "
    "put your answer in place of this error and run the cell again"
)"""
    answer = "# BEGIN SOLUTION\nx = 7\n# END SOLUTION\n"
    assert starter(answer, "ex-a", "Ask") == hole
    checked = f"a = 1\n{answer}b = 2\n{answer}\n\nexpect(x, 7)\n"
    assert starter(checked, "ex-a", "Ask") == f"a = 1\n{hole}\nb = 2\n{hole}\n\n{CHECKED}"
    inner = (
        "def f():\n    # BEGIN SOLUTION\n    x = 7\n    # END SOLUTION\n\n    return x\n\n\ny = 8"
    )
    made = starter(inner, "ex-a", "Ask")
    assert made.endswith(f"    return x\n\n{CHECKED}")
    looped = inner.replace("def f()", "for i in range(3)").replace("return x", "expect(x, 7)")
    assert starter(looped, "ex-a", "Ask").endswith(f"    )\n\n{CHECKED}")


def test_a_cell_with_the_tag_starter_is_a_students_too() -> None:
    asked = [new_markdown_cell(ASK), new_code_cell(ANSWER)]
    kept = new_code_cell("y = half(8)", metadata={"tags": ["starter"]})
    cells = student(page(*asked, kept, new_code_cell("z = half(9)"), new_markdown_cell(MORE))).cells
    sources = [cell.source for cell in cells]
    assert "y = half(8)" in sources
    assert "z = half(9)" not in sources


def calls_of_expect(source: str) -> list[ast.Call]:
    found = [node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Call)]
    return [call for call in found if ast.unparse(call.func) == "expect"]


def secrets(source: str) -> Iterator[str]:
    """What a check says of its answer, and the statements that follow the last answer."""
    for call in calls_of_expect(source):
        given = [word.value for word in call.keywords if word.arg in ("hint", "mistakes")]
        for part in (part for value in given for part in ast.walk(value)):
            if isinstance(part, ast.Constant) and isinstance(part.value, str):
                yield part.value
    if marks := [i for i, line in enumerate(source.split("\n"), 1) if "# END SOLUTION" in line]:
        after = [node for node in ast.parse(source).body if node.lineno > marks[-1]]
        yield from (ast.get_source_segment(source, node) or "" for node in after)


@pytest.mark.parametrize("name", NAMES)
def test_nothing_that_checks_an_answer_is_in_a_students_sight(name: str) -> None:
    whole = twin(layout.source(ROOT, name).read_text("utf-8"))
    code = [cell.source for cell in whole.cells if cell.cell_type == "code"]
    secret = {text for source in code for text in secrets(source) if len(text) > 12}
    assert len(secret) > 10
    seen = [cell.source for cell in student(whole).cells]
    assert [text for text in secret if any(text in one for one in seen)] == []
    code = [cell.source for cell in whole.cells if cell.cell_type == "code"]
    assert [source for source in code if calls_of_expect(source)] == []
    asked = sum("raise NotImplementedError" in source for source in code)
    assert sum(source.endswith(CHECKED) for source in code) >= asked / 2 > 0


def test_nbconvert_takes_the_edition_by_name() -> None:
    name = "tokenspace.press.editions.Student"
    text, _ = NotebookExporter(preprocessors=[name]).from_notebook_node(small())
    assert "NotImplementedError" in text
    assert "x >> 1" not in text


@pytest.mark.parametrize("name", NAMES)
def test_every_notebook_has_both_editions(name: str) -> None:
    text = layout.source(ROOT, name).read_text()
    posed = exercises(twin(text))
    starters = [c for c in student(twin(text)).cells if "raise NotImplementedError" in c.source]
    asked = re.findall(r"\((ex-[\w-]+)\): ", "\n".join(c.source for c in starters))
    assert list(dict.fromkeys(asked)) == list(posed)
    stripped = edit_source(text, Student())
    assert [c.source for c in twin(stripped).cells] == [c.source for c in student(twin(text)).cells]
    whole = edit_source(text, Whole())
    assert whole == re.sub(r"^ *# (BEGIN|END) SOLUTION.*\n", "", text, flags=re.MULTILINE)
