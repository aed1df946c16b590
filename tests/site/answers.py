"""What would give a solution away, and where it is found: for editions that hold none."""

import re
from collections.abc import Iterator
from functools import cache
from html import unescape
from pathlib import Path

from tokenspace.files import find_root
from tokenspace.press import layout
from tokenspace.press.editions import ANSWER, Student, edit_source

ROOT = find_root(Path(__file__).parent)
SOLUTION = re.compile(r"\{solution(?:-start)?\} \S+(?P<body>.*?)(?:\{solution-end\}|\Z)", re.DOTALL)


def words(text: str) -> str:
    """A text's letters and digits, with one space between words."""
    return " ".join(re.findall(r"\w+", text.lower()))


def solutions(name: str) -> Iterator[str]:
    """The bodies of a notebook's solutions, from its source: prose and code."""
    source = re.sub(r"^# ?(?!BEGIN|END)", "", layout.source(ROOT, name).read_text(), flags=re.M)
    for match in SOLUTION.finditer(source):
        yield match["body"]


def answers(name: str) -> set[str]:
    """The pieces of a notebook's solutions that would give them away.

    Each run of plain words of the prose, and each line of an answer's code, unless the students'
    own text has the same.
    """
    found = set()
    for body in solutions(name):
        prose, *code = re.split(r"^%%.*$", body, flags=re.MULTILINE)
        found |= {words(piece) for piece in re.split(r"[^\w\s,;'’-]+", prose)}
        inside = [mark["answer"] for mark in ANSWER.finditer("\n".join(code))]
        found |= {words(line) for answer in inside for line in answer.split("\n")}
    kept = words(edit_source(layout.source(ROOT, name).read_text(), Student()))
    return {piece for piece in found if len(piece) >= 25 and piece not in kept}


@cache
def text(path: Path) -> str:
    """The words of a file as a reader or a search would meet them: without tags and drawings."""
    return words(unescape(re.sub(r"<[^<>]*>", " ", path.read_text())))


def readable(folder: Path) -> list[Path]:
    """Every file of words below a folder, whatever its name."""
    kinds = (".html", ".ipynb", ".py", ".js", ".json", ".txt", ".md")
    found = [p for p in sorted(folder.rglob("*")) if p.suffix in kinds]
    return [p for p in found if "mathjax" not in p.parts]


def leaks(folder: Path) -> list[tuple[str, str]]:
    """The files below a folder that hold a piece of a solution, each with the piece."""
    pieces = set().union(*map(answers, layout.notebooks(ROOT)))
    texts = {path: text(path) for path in readable(folder)}
    found = [(path, piece) for path, t in texts.items() for piece in pieces if piece in t]
    return [(str(path.relative_to(folder)), piece) for path, piece in found]
