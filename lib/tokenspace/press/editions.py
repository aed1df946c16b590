"""Two editions of a notebook: everyone's, with its solutions, and a student's, to be filled in.

A solution is what stands between `{solution-start} LABEL` and `{solution-end}`, or in one
`{solution} LABEL` box. In its code, the lines between `# BEGIN SOLUTION` (or
`# BEGIN SOLUTION: a hint`) and `# END SOLUTION` are the answer. What stands before, and the rest
of a function with an answer, is what a student starts from; what stands after the last answer of a
cell checks it, and is left out like it. So is a cell without an answer, unless it has the tag
`starter`. The classes are nbconvert's preprocessors, so its command line takes them too.
"""

import ast
import json
import re
from collections.abc import Iterator
from typing import Any

import jupytext
from nbconvert.preprocessors import Preprocessor
from nbformat.v4 import new_code_cell, new_markdown_cell

from tokenspace.errors import PageError
from tokenspace.press.sync import HEADER

Notebook = Any  # nbformat.NotebookNode: a dict with attribute access

BEGIN = re.compile(r"^(?P<indent>[ \t]*)# BEGIN SOLUTION(?:: *(?P<hint>.*\S))?\s*$")
END = re.compile(r"^[ \t]*# END SOLUTION\s*$")
BOX = re.compile(
    r"^(?P<fence>`{3,}|:{3,}) *\{(?P<name>exercise|solution[\w-]*)\} *(?P<title>.*?)\s*$"
)
LABEL = re.compile(r"^:label: *(?P<label>\S+)", re.MULTILINE)
HINT = "put your answer in place of this error and run the cell again"
CHECKED = "# The teacher's edition checks this answer."


class Whole(Preprocessor):
    """Keep the solutions, and leave out the lines that mark answers in their code."""

    def preprocess_cell(self, cell: Notebook, resources: Any, index: int) -> tuple[Notebook, Any]:
        """Do it for one cell."""
        if cell.cell_type == "code":
            lines = cell.source.split("\n")
            cell.source = "\n".join(x for x in lines if not BEGIN.match(x) and not END.match(x))
        return cell, resources


class Student(Preprocessor):
    """Leave out the solutions; each exercise gets a cell that says what is missing until filled.

    Raises `PageError` where a solution or an answer isn't closed.
    """

    def preprocess(self, nb: Notebook, resources: Any) -> tuple[Notebook, Any]:
        """Do it for a notebook."""
        titles = exercises(nb)
        cells: list[Notebook] = []
        label, starters = "", []  # of the solution that is being left out
        for cell in nb.cells:
            if cell.cell_type == "code" and label:
                source = cell.source
                if any(map(BEGIN.match, source.split("\n"))):
                    source = starter(source, label, titles[label])
                    starters.append(new_code_cell(source, id=cell.id))
                elif "starter" in cell.metadata.get("tags", []):
                    starters.append(new_code_cell(source, id=cell.id))
                continue
            if cell.cell_type != "markdown":
                cells.append(cell)
                continue
            for number, (box, name, text) in enumerate(_boxes(cell.source)):
                if box in ("solution", "solution-start"):
                    if name not in titles or label:
                        raise PageError(f"solution {name!r}: no such exercise, or inside another")
                    label, starters = name, []
                if box in ("solution", "solution-end") and label:
                    cells += starters or [_blank(label, titles[label])]
                    label = ""
                elif box == "" and not label and text.strip():
                    kept = new_markdown_cell(text.strip("\n"), metadata=cell.metadata)
                    kept.id = f"{cell.id}-{number}" if number else cell.id
                    cells.append(kept)
        if label:
            raise PageError(f"solution {label!r} has no {{solution-end}}")
        nb.cells = cells
        return nb, resources


def starter(source: str, label: str, title: str) -> str:
    """A solution's code as a student gets it: answers are to be filled in, checks are gone."""
    kept: list[str] = []
    inside, end = False, 0
    unchecked = _without_checks(source)
    for line in unchecked.split("\n"):
        begin = BEGIN.match(line)
        if bool(begin) if inside else bool(END.match(line)):
            raise PageError(f"{label}: BEGIN and END SOLUTION don't pair at {line!r}")
        if begin:
            kept += _missing(begin["indent"], begin["hint"] or HINT, label, title)
            end = len(kept)
        elif not inside:
            kept.append(line)
        inside = (inside or bool(begin)) and not END.match(line)
    if inside:
        raise PageError(f"{label}: BEGIN SOLUTION has no END SOLUTION in its cell")
    top = [line for line in kept[:end] if line[:1].strip()]
    if top and top[-1].startswith(("def ", "class ")):
        while end < len(kept) and (kept[end][:1] == " " or not kept[end]):
            end += 1
    checked = unchecked != source or any(line.strip() for line in kept[end:])
    begun = "\n".join(kept[:end]).rstrip("\n")
    return f"{begun}\n\n{CHECKED}" if checked else begun


def _without_checks(source: str) -> str:
    """Leave out each call of `expect`: it says what a wrong answer comes from."""
    try:
        statements = ast.parse(source).body
    except SyntaxError:  # it has a magic, or isn't finished
        return source
    lines = source.split("\n")
    for node in reversed(statements):
        if isinstance(node, ast.Expr) and ast.unparse(node).startswith("expect("):
            del lines[node.lineno - 1 : node.end_lineno]
    return "\n".join(lines)


def _missing(indent: str, hint: str, label: str, title: str) -> list[str]:
    texts = [
        f"    {json.dumps(line, ensure_ascii=False)}" for line in (f"{title} ({label}): ", hint)
    ]
    return [indent + line for line in ("raise NotImplementedError(", *texts, ")")]


def _blank(label: str, title: str) -> Notebook:
    lines = [f"# {title}", *_missing("", HINT, label, title)]
    return new_code_cell("\n".join(lines), id=f"starter-{label}"[:64])


def exercises(notebook: Notebook) -> dict[str, str]:
    """Give the titles of a notebook's exercises by label, in order."""
    prose = [cell.source for cell in notebook.cells if cell.cell_type == "markdown"]
    boxes = [box for source in prose for box in _boxes(source)]
    return {
        found["label"]: title
        for name, title, text in boxes
        if name == "exercise" and (found := LABEL.search(text))
    }


def edit_source(text: str, edition: Preprocessor) -> str:
    """Make the edition of a notebook's percent-format source; the same text where none differs.

    >>> source = "# %%\\n# BEGIN SOLUTION\\nx = 1\\n# END SOLUTION\\n"
    >>> edit_source(source, Whole())
    '# %%\\nx = 1\\n'
    """
    notebook = jupytext.reads(text, fmt="py:percent")
    notebook.metadata = {"jupytext": {"notebook_metadata_filter": "-all"}}
    edited, _ = edition.preprocess(notebook, {})
    header = HEADER.match(text)  # jupytext would write one of its own
    return (header[0] if header else "") + str(jupytext.writes(edited, fmt="py:percent"))


def _boxes(source: str) -> Iterator[tuple[str, str, str]]:
    """Split Markdown into `(name, title, text)`: exercise and solution boxes, and "" between.

    A solution's title is its exercise's label. Exercises are part of the text between, too.
    """
    text: list[str] = []
    lines = iter(source.split("\n"))
    for line in lines:
        match = BOX.match(line)
        if match is None:
            text.append(line)
            continue
        body = [line]
        for inner in lines:
            body.append(inner)
            if inner.strip() == match["fence"]:
                break
        if match["name"] == "exercise":
            text += body
            yield "exercise", match["title"], "\n".join(body)
            continue
        yield "", "", "\n".join(text)
        text = []
        yield match["name"], match["title"], "\n".join(body)
    yield "", "", "\n".join(text)
