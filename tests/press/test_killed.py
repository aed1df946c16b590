"""What is killed at any moment leaves nothing that a later command takes for a result."""

import json
import multiprocessing
import random
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import nbformat
import pandas as pd
import pytest
import torch
from typer.testing import CliRunner

from tokenspace.cli import app
from tokenspace.curvature.chessmodel import ChessRecipe, load_chess, save_chess, untrained_chess
from tokenspace.errors import SourceError
from tokenspace.flow import state as flow_state
from tokenspace.press.book import stage
from tokenspace.press.runner import finished, run_notebooks
from tokenspace.press.scoreboard import scoreboard
from tokenspace.press.sync import write
from tokenspace.staircase.state import Checkpoint, State

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
fork.set_forkserver_preload(["tokenspace.press.runner", "torch"])


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
    """Whether hub/toy has a result; every command finds the same one, and it is whole."""

    def of_toy(*words: str) -> list[dict[str, Any]]:
        done = CliRunner().invoke(app, [*words, "--json"])
        assert done.exit_code == 0, done.stderr
        return [each for each in json.loads(done.stdout) if each["notebook"] == "hub/toy"]

    done, listed, claims = finished(root, "hub/toy"), of_toy("runs", "list"), of_toy("claims")
    assert [Path(each["folder"]) for each in listed] == ([done.folder] if done else [])
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
