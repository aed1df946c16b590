"""What is killed at any moment leaves nothing that a later command takes for a result."""

import ast
import json
import multiprocessing
import random
import re
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import nbformat
import pytest
from typer.testing import CliRunner

from tokenspace.cli import app
from tokenspace.files import placing
from tokenspace.press import keys
from tokenspace.press.runner import finished, run_notebooks
from tokenspace.press.scoreboard import scoreboard

Put = Callable[..., Path]

FILES = {"claims.json", "environment.json", "executed.ipynb", "params.yaml", "tables"}
LINES = 300_000  # to write them out takes about as long as to run the notebook
CELLS = (
    f"print('line\\n' * {LINES})",
    "import os, pathlib\n"
    "place = pathlib.Path(os.environ['TOKENSPACE_RUN']) / 'tables'\n"
    "place.mkdir()\n"
    "for i in range(50):\n"
    "    (place / f'{i}.parquet').write_bytes(b'x' * 100_000)",
)

fork = multiprocessing.get_context("forkserver")  # what the processes import is imported once
fork.set_forkserver_preload(["tokenspace.press.runner", "tokenspace.files"])


def start(target: Callable[..., Any], *words: Any, **options: Any) -> Any:
    """Begin something in a process of its own."""
    process = fork.Process(target=target, args=words, kwargs=options)
    process.start()
    return process


def run(root: Path, name: str, **options: Any) -> Any:
    return start(run_notebooks, [name], root=root, quiet=True, **options)


def partials(root: Path, name: str = "toy", inside: str = "") -> list[Path]:
    return list((root / "build" / "runs" / "hub" / name).glob(f".*{inside}"))


def until_written(process: Any, root: Path, name: str) -> None:
    """Wait until the notebook has run, and its results are being written."""
    while process.is_alive() and not partials(root, name, "/executed.ipynb"):
        time.sleep(0.002)


def durations(root: Path) -> tuple[float, float]:
    """Seconds of a whole run on this machine now, and of its writing."""
    begun = time.monotonic()
    process = run(root, "hub/measured")
    until_written(process, root, "measured")
    wrote = time.monotonic()
    process.join()
    return time.monotonic() - begun, time.monotonic() - wrote


def check(root: Path) -> bool:
    """Whether hub/toy has a result; its claims are found, and it is whole."""
    done = finished(root, "hub/toy")
    asked = CliRunner().invoke(app, ["claims", "--json"])
    assert asked.exit_code == 0, asked.stderr
    claims = [each for each in json.loads(asked.stdout) if each["notebook"] == "hub/toy"]
    runs = root / "build" / "runs" / "hub" / "toy"
    assert list(runs.glob("[!.]*")) == ([done.folder] if done else [])
    assert [claim["id"] for claim in claims] == (["toy"] if done else [])
    if done is None:
        return False
    assert {path.name for path in done.folder.iterdir()} == FILES
    assert [p.stat().st_size for p in (done.folder / "tables").iterdir()] == [100_000] * 50
    notebook = nbformat.read(done.folder / "executed.ipynb", as_version=4)
    assert notebook.cells[2].outputs[0].text == "line\n" * LINES + "\n"
    assert done.claims() == claims
    assert "one is one" in scoreboard({"hub/toy": done.folder})
    return True


def test_a_run_killed_at_ten_random_moments_is_never_half_read(
    root: Path, put: Put, claiming: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Half of the moments lie in the whole run, half in its writing; a finished run is forced."""
    monkeypatch.chdir(root)
    for name in ("toy", "measured"):
        put(f"hub/{name}", "k: int = 0", *CELLS, claiming)
    whole, writing = durations(root)
    draw, there, while_writing = random.Random(6), False, 0
    for moment in range(10):
        process = run(root, "hub/toy", force=there)
        if moment % 2:
            until_written(process, root, "toy")
        time.sleep(draw.uniform(0, writing if moment % 2 else whole))
        process.kill()
        process.join()
        while_writing += bool(partials(root, inside="/executed.ipynb"))
        there = check(root)
    assert while_writing
    run_notebooks(["hub/toy"], root=root, quiet=True, force=there)
    assert check(root)
    assert not partials(root)  # nothing that the killed ones left is left


def rewrite(path: Path, size: int) -> None:
    """Write a file of as, then of bs, for ever, in many small pieces."""
    while True:
        for letter in (b"a", b"b"):
            with placing(path) as part, part.open("wb", buffering=0) as file:
                for _ in range(size // 1000):
                    file.write(letter * 1000)


def test_a_file_that_was_being_written_is_the_one_before_or_the_one_after(tmp_path: Path) -> None:
    """All results, checkpoints, tables of sweeps and kept downloads are written so."""
    draw, path, left, size = random.Random(7), tmp_path / "state.pt", 0, 2_000_000
    for _ in range(10):
        process = start(rewrite, path, size)
        while not path.exists():
            time.sleep(0.002)
        time.sleep(draw.uniform(0, 0.2))
        process.kill()
        process.join()
        assert path.read_bytes() in (b"a" * size, b"b" * size)
        left += len([p for p in tmp_path.iterdir() if p != path])
        path.unlink()
    assert left  # some were killed while they wrote


WRITES = re.compile(r"(?:save_file|torch\.save|write_bytes|write_text|write_ipynb)\(")
ASIDE = {"files.py", "site.py", "job.py"}  # written in a folder not yet placed


def test_every_result_and_state_is_placed() -> None:
    """A function of the package that writes a file does it under `placing`."""
    found = {
        f"{path.name}: {function.name}"
        for path in keys.PACKAGE.rglob("*.py")
        if path.name not in ASIDE
        for function in ast.walk(ast.parse(path.read_text()))
        if isinstance(function, ast.FunctionDef)
        and WRITES.search(text := ast.unparse(function).partition('"""')[2])
        and "placing(" not in text
    }
    assert found == set()
