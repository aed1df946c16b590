"""Two editions of a notebook: everyone's, with its solutions, and a student's, to be filled in.

A solution is what stands between `{solution-start} LABEL` and `{solution-end}`. In its code, the
lines between `# BEGIN SOLUTION` (or `# BEGIN SOLUTION: a hint`) and `# END SOLUTION` are the
answer. What stands before, and the rest of a function with an answer, is what a student starts
from; what stands after the last answer of a cell checks it, and is left out like it. So is a cell
without an answer, unless it has the tag `starter`. The classes are nbconvert's preprocessors, so
its command line takes them too.
"""

import json
import re
from typing import Any

import jupytext
from nbconvert.preprocessors import Preprocessor
from nbformat.v4 import new_code_cell, new_markdown_cell

from tokenspace.errors import PageError
from tokenspace.press.sync import HEADER

Notebook = Any  # nbformat.NotebookNode: a dict with attribute access

EXERCISE = re.compile(r"^[`:]{3,} *\{exercise\} *(.*?) *\n:label: *(\S+)", re.MULTILINE)
GATE = re.compile(
    r"^([`:]{3,}) *\{solution-(?P<gate>start|end)\} *(?P<label>.*?) *\n(?:.*\n)*?\1 *$",
    re.MULTILINE,
)
MARK = re.compile(r"^[ \t]*# (?:BEGIN|END) SOLUTION.*\n?", re.MULTILINE)
ANSWER = re.compile(
    r"^(?P<indent>[ \t]*)# BEGIN SOLUTION(?:: *(?P<hint>.*\S))?[ \t]*\n"
    r"(?P<answer>(?:.*\n)*?)[ \t]*# END SOLUTION[ \t]*$\n?",
    re.MULTILINE,
)
HINT = "put your answer in place of this error and run the cell again"
CHECKED = "# The teacher's edition checks this answer."


class Whole(Preprocessor):
    """Keep the solutions, and leave out the lines that mark answers in their code."""

    note = ""
    """What the title of a book of this edition ends with."""

    def preprocess_cell(self, cell: Notebook, resources: Any, index: int) -> tuple[Notebook, Any]:
        """Do it for one cell."""
        if cell.cell_type == "code":
            cell.source = MARK.sub("", cell.source).rstrip("\n")
        return cell, resources


class Student(Preprocessor):
    """Leave out the solutions; each exercise gets a cell that says what is missing until filled.

    Raises `PageError` where a solution or an answer isn't closed.
    """

    note = ", student edition"

    def preprocess(self, nb: Notebook, resources: Any) -> tuple[Notebook, Any]:
        """Do it for a notebook."""
        titles = exercises(nb)
        cells: list[Notebook] = []
        label, starters = "", []  # of the solution that is being left out
        for cell in nb.cells:
            if cell.cell_type == "code" and label:
                source = cell.source
                if MARK.search(source):
                    source = starter(source, label, titles[label])
                elif "starter" not in cell.metadata.get("tags", []):
                    continue
                starters.append(new_code_cell(source, id=cell.id))
                continue
            if cell.cell_type != "markdown":
                cells.append(cell)
                continue
            pieces = iter(["", "", "", *GATE.split(cell.source)])  # what a gate says, what follows
            gates = zip(pieces, pieces, pieces, pieces, strict=True)
            for number, (_, gate, name, text) in enumerate(gates):
                if gate == "start":
                    if name not in titles or label:
                        raise PageError(f"solution {name!r}: no such exercise, or inside another")
                    label, starters = name, []
                elif gate and label:
                    cells += starters or [_blank(label, titles[label])]
                    label = ""
                if not label and text.strip():
                    kept = new_markdown_cell(text.strip("\n"), metadata=cell.metadata)
                    kept.id = f"{cell.id}-{number}" if number else cell.id
                    cells.append(kept)
        if label:
            raise PageError(f"solution {label!r} has no {{solution-end}}")
        nb.cells = cells
        return nb, resources


def starter(source: str, label: str, title: str) -> str:
    """A solution's code as a student gets it: answers are to be filled in, checks are gone."""
    answers = list(ANSWER.finditer(source))
    if MARK.search(ANSWER.sub("", source) + "".join(found["answer"] for found in answers)):
        raise PageError(f"{label}: BEGIN and END SOLUTION don't pair in {source[:40]!r}")
    last = answers[-1].end()
    begun = ANSWER.sub(lambda m: _missing(m["indent"], m["hint"], label, title), source[:last])
    rest = source[last:]
    if re.findall(r"^\S.*", begun, re.MULTILINE)[-1].startswith(("def ", "class ")):
        of_function = re.match(r"(?:[ \t].*\n?|\n)*", rest)
        begun, rest = begun + of_function[0], rest[of_function.end() :]  # type: ignore[index, union-attr]
    if "expect(" in begun:
        raise PageError(f"{label}: a check stands before the cell's last answer, in sight")
    return begun.rstrip("\n") + (f"\n\n{CHECKED}" if rest.strip() else "")


def _missing(indent: str, hint: str | None, label: str, title: str) -> str:
    texts = [
        json.dumps(text, ensure_ascii=False) for text in (f"{title} ({label}): ", hint or HINT)
    ]
    lines = ["raise NotImplementedError(", *(f"    {text}" for text in texts), ")"]
    return "".join(f"{indent}{line}\n" for line in lines)


def _blank(label: str, title: str) -> Notebook:
    source = f"# {title}\n{_missing('', None, label, title)}".rstrip("\n")
    return new_code_cell(source, id=f"starter-{label}"[:64])


def exercises(notebook: Notebook) -> dict[str, str]:
    """Give the titles of a notebook's exercises by label, in order."""
    prose = [cell.source for cell in notebook.cells if cell.cell_type == "markdown"]
    return {label: title for title, label in EXERCISE.findall("\n".join(prose))}


def edit_source(text: str, edition: Preprocessor) -> str:
    """Make the edition of a notebook's percent-format source; the same text where none differs.

    >>> edit_source("# %%\\n# BEGIN SOLUTION\\nx = 1\\n# END SOLUTION\\n", Whole())
    '# %%\\nx = 1\\n'
    """
    notebook = jupytext.reads(text, fmt="py:percent")
    notebook.metadata = {"jupytext": {"notebook_metadata_filter": "-all"}}
    edited, _ = edition.preprocess(notebook, {})
    header = HEADER.match(text)  # jupytext would write one of its own
    return (header[0] if header else "") + str(jupytext.writes(edited, fmt="py:percent"))
