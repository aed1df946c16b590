"""What the guides and refreshers tell a reader to type: it runs, it parses, it is there."""

import contextlib
import io
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.main import get_command

from tokenspace.cli import app
from tokenspace.press import layout, parameters
from tokenspace.press.sync import twin

REPOSITORY = Path(__file__).resolve().parents[2]
BOOK = REPOSITORY / "book"
REFRESHERS = sorted((BOOK / "refresher").glob("*.md"))
TAUGHT = BOOK / "guide" / "teaching.md"
GUIDES = [REPOSITORY / "README.md", *sorted((BOOK / "guide").glob("*.md"))]


def blocks(path: Path, language: str) -> list[str]:
    """The fenced blocks of one language on a page."""
    return re.findall(rf"^```{language}\n(.*?)^```", path.read_text(), re.MULTILINE | re.DOTALL)


def typed(path: Path) -> Iterator[list[str]]:
    """The words of every `tokenspace` command in a page's shell blocks."""
    for block in blocks(path, "bash"):
        for line in block.replace("\\\n", " ").splitlines():
            for part in re.split(r" && ", line):
                words = shlex.split(part, comments=True)
                if words[:1] == ["tokenspace"]:
                    yield words[1:]


COMMANDS = [
    pytest.param(words, id=f"{path.name}: {' '.join(words)}")
    for path in GUIDES
    for words in typed(path)
]


@pytest.mark.parametrize("path", REFRESHERS, ids=lambda path: path.stem)
def test_a_refreshers_program_runs_and_is_short(path: Path) -> None:
    (program,) = blocks(path, "python")
    assert 6 <= len(program.strip().splitlines()) <= 13
    assert "assert " in program  # it checks what the page works out by hand
    with contextlib.redirect_stdout(io.StringIO()) as said:
        exec(compile(program, path.name, "exec"), {})
    assert said.getvalue().strip()


@pytest.mark.parametrize("path", REFRESHERS, ids=lambda path: path.stem)
def test_a_refresher_is_one_page(path: Path) -> None:
    text = path.read_text()
    words = re.sub(r"^```python.*?^```", "", text, flags=re.MULTILINE | re.DOTALL).split()
    assert 450 <= len(words) <= 750
    labels = re.findall(r"^\$\$ \((\S+)\)$", text, re.MULTILINE)
    assert 2 <= len(labels) <= 4
    assert all(label.startswith("eq-refresh-") for label in labels)
    assert text.count("```{admonition} Answer\n:class: dropdown\n") == 2
    for part in ("## By hand", "## Check yourself", "## Where it is used"):
        assert part in text


def test_the_live_programs_show_what_the_audience_is_told() -> None:
    """In a process of their own, as they would be pasted, one after the other."""
    programs = blocks(TAUGHT, "python")
    assert len(programs) == 4
    done = subprocess.run(
        [sys.executable, "-c", "\n".join(programs)],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )
    said = done.stdout.splitlines()
    stairs = [line.split() for line in said if re.fullmatch(r"\d+ -?\d -?\d", line)]
    small, large = ([row[i] for row in stairs if row[i] != "-1"] for i in (1, 2))
    assert list(dict.fromkeys(small)) == ["0", "1", "2"]
    assert "0" not in large
    none, one, two, *_ = (float(line.split()[-1]) for line in said if "reading" in line)
    assert one < none < two / 2
    ends = {
        line.split(" [")[0]: [abs(float(x)) for x in line.split("[")[1][:-1].split(", ")]
        for line in said
        if line.endswith("]")
    }
    assert ends["exact"] == pytest.approx([1] * 4, abs=0.01)
    assert ends["blunt"] == pytest.approx([0.762] * 4, abs=0.01)  # tanh 1
    assert ends["to the middle"] == pytest.approx([0] * 4, abs=0.01)
    apart, within = (float(line.split()[-1]) for line in said[-2:])
    assert apart < 0.05 < 0.6 < within < 0.68


def parse(words: list[str]) -> None:
    """Refuse a command, an option or a value that the program doesn't have; nothing is run."""
    command: Any = get_command(app)
    context, left = None, list(words)
    while hasattr(command, "resolve_command"):
        context = command.context_class(command, parent=context)
        _, command, left = command.resolve_command(context, left)
    command.make_context(words[0], left, parent=context)


@pytest.mark.parametrize("words", COMMANDS)
def test_a_command_in_a_guide_parses(words: list[str]) -> None:
    parse(words)


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("dimension minilm --jsno", "No such option"),
        ("dimensoin minilm", "No such command"),
        ("runs shwo 4ae0", "No such command"),
        ("curvature hello --more -2", "greater than or equal to 0"),
        ("curvature two words", "unexpected extra argument"),
    ],
)
def test_a_command_that_is_none_would_be_found(line: str, said: str) -> None:
    with pytest.raises(Exception, match=said):
        parse(line.split())


@pytest.mark.parametrize(
    "words", [p for p in COMMANDS if p.values[0][0] in ("run", "plan") and "-p" in p.values[0]]
)
def test_a_run_in_a_guide_names_parameters_of_its_notebook(words: list[str]) -> None:
    (name,) = {word for word in words if re.fullmatch(r"[a-z]+/[a-z]+", word)} & set(
        layout.notebooks(REPOSITORY)
    )
    declared = parameters.read(twin(layout.source(REPOSITORY, name).read_text()), name)
    given = [words[i + 1] for i, word in enumerate(words) if word == "-p"]
    assert {assignment.split("=")[0] for assignment in given} <= set(declared)


def test_make_targets_that_the_guides_name_exist() -> None:
    targets = set(re.findall(r"^([a-z]+):", (REPOSITORY / "Makefile").read_text(), re.MULTILINE))
    told = "\n".join(path.read_text() for path in GUIDES)
    named = set(re.findall(r"(?:`|^)make ([a-z]+)", told, re.MULTILINE))
    assert {"setup", "handout", "slides", "pdf", "lab"} <= named
    assert named <= targets
