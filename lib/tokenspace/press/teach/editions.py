"""Two editions of a notebook: everyone's, with its solutions, and a student's, to be filled in.

A solution is what stands between `{solution-start} LABEL` and `{solution-end}`, or in one
`{solution} LABEL` box. In its code, the lines between `# BEGIN SOLUTION` (or
`# BEGIN SOLUTION: a hint`) and `# END SOLUTION` are the answer, and the rest is what a student
starts from. The classes are nbconvert's preprocessors, so its command line takes them too.
"""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
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
        titles, solving, cells = exercises(nb), None, []
        for cell in nb.cells:
            if cell.cell_type != "markdown":
                if solving is None:
                    cells.append(cell)
                elif cell.cell_type == "code":
                    solving.add(cell)
                continue
            for number, (box, label, text) in enumerate(_boxes(cell.source)):
                if box in ("solution", "solution-start"):
                    if label not in titles or solving is not None:
                        raise PageError(f"solution {label!r}: no such exercise, or inside another")
                    solving = Solving(label, titles[label])
                if box in ("solution", "solution-end") and solving is not None:
                    cells += solving.cells()
                    solving = None
                elif box == "" and solving is None and text.strip():
                    kept = new_markdown_cell(text.strip("\n"), metadata=cell.metadata)
                    kept.id = f"{cell.id}-{number}" if number else cell.id
                    cells.append(kept)
        if solving is not None:
            raise PageError(f"solution {solving.label!r} has no {{solution-end}}")
        nb.cells = cells
        return nb, resources


@dataclass
class Solving:
    """The solution that is being left out, and what a student keeps of its code."""

    label: str
    title: str
    starters: list[Notebook] = field(default_factory=list)

    def add(self, cell: Notebook) -> None:
        """Keep a code cell's scaffold, if it holds an answer at all."""
        if not any(map(BEGIN.match, cell.source.split("\n"))):
            return
        starter = new_code_cell("\n".join(self._without_answers(cell.source)), id=cell.id)
        self.starters.append(starter)

    def cells(self) -> list[Notebook]:
        """Give the exercise's starter cells."""
        blank = f"# {self.title}\n{self._missing('', HINT)}"
        return self.starters or [new_code_cell(blank, id=f"starter-{self.label}"[:64])]

    def _missing(self, indent: str, hint: str) -> str:
        lines = [f"{self.title} ({self.label}): ", hint]
        texts = [f"    {json.dumps(line, ensure_ascii=False)}" for line in lines]
        return "\n".join(indent + line for line in ("raise NotImplementedError(", *texts, ")"))

    def _without_answers(self, source: str) -> Iterator[str]:
        inside = False
        for line in source.split("\n"):
            begin = BEGIN.match(line)
            if bool(begin) if inside else bool(END.match(line)):
                raise PageError(f"{self.label}: BEGIN and END SOLUTION don't pair at {line!r}")
            if begin:
                yield self._missing(begin["indent"], begin["hint"] or HINT)
            elif not inside:
                yield line
            inside = (inside or bool(begin)) and not END.match(line)
        if inside:
            raise PageError(f"{self.label}: BEGIN SOLUTION has no END SOLUTION in its cell")


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
