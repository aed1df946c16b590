"""The command line: what it prints, what it exits with, what it never imports."""

import json
import os
import shutil
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path

import numpy as np
import psutil
import pytest
from click.testing import Result
from tests.press.command import start, wait_for
from typer.testing import CliRunner

from tokenspace.cli import app
from tokenspace.files import find_root

Put = Callable[..., Path]

ROOT = find_root(Path(__file__).parent)


@pytest.fixture
def tokenspace(root: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Result]:
    """Call the command inside the repository."""
    monkeypatch.chdir(root)
    return lambda *words: CliRunner().invoke(app, list(words))


def test_run_prints_the_folder_last_and_claims_reads_it(
    tokenspace: Callable[..., Result], put: Put, claiming: str
) -> None:
    put("hub/toy", "seed: int = 0", claiming)
    before = tokenspace("claims", "--json")
    assert json.loads(before.stdout) == []
    assert "hub/toy has no run as it stands" in before.stderr
    done = tokenspace("run", "hub/toy")
    assert done.exit_code == 0
    folder = Path(done.stdout.splitlines()[-1])
    assert (folder / "claims.json").is_file()
    (claim,) = json.loads(tokenspace("claims", "--json").stdout)
    assert (claim["id"], claim["notebook"], claim["ours"]) == ("toy", "hub/toy", 1.0)
    assert "one is one" in tokenspace("claims").stdout


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["run", "hub/toy", "-p", "sede=1", "-p", "seed=x"], 2, "seed = 'x' is not int"),
        (["run", "hub/toy", "-p", "sede=1"], 2, "unknown parameter 'sede'; did you mean 'seed'?"),
        (["run", "hub/toy", "-p", "seed"], 2, "write NAME=VALUE"),
        (["run", "hub/toy", "--profile", "x"], 2, "no profile 'x' (known: classroom)"),
        (["run", "hub/toy", "--device", "tpu"], 2, "tpu"),
        (["run", "hub/tyo"], 2, "did you mean 'hub/toy'?"),
        (["run"], 2, "name the notebooks to run, or --all. Known: hub/toy"),
        (["run", "hub/toy"], 1, "ZeroDivisionError"),
        (["run", "hub/toy", "-p", "seed=9", "--timeout", "2"], 124, "time is up after 2 s"),
        (["sync", "--check"], 1, "notebooks/hub/toy.ipynb differs"),
        (["dimension", "nowhere.npy"], 1, "nowhere.npy"),
        (["sweep", "nowhere.yaml"], 2, "no sweep file 'nowhere.yaml' (shipped: none)"),
        (["curvature", " "], 2, "the text is blank"),
    ],
)
def test_errors_are_told_without_a_traceback(
    tokenspace: Callable[..., Result], put: Put, words: list[str], code: int, said: str
) -> None:
    put("hub/toy", "seed: int = 0", "import time; time.sleep(seed)", "1 / seed")
    done = tokenspace(*words)
    assert done.exit_code == code
    assert said in done.stderr
    assert 'File "' not in done.stderr


def test_debug_shows_the_traceback(tokenspace: Callable[..., Result]) -> None:
    done = tokenspace("--debug", "run", "hub/toy")
    assert type(done.exception).__name__ == "ParameterError"


def test_dimension_reads_a_file_as_the_contract_says(
    tokenspace: Callable[..., Result], root: Path
) -> None:
    rows = np.random.default_rng(0).normal(size=(150, 3)).astype(np.float32)
    np.save(root / "mine.npy", rows)
    done = tokenspace("dimension", "mine.npy", "--json")
    assert done.exit_code == 0
    reading = json.loads(done.stdout)
    assert set(reading) >= {
        *("table", "n", "d", "dtype", "duplicates", "zero_rows", "padded_rows", "hub_rows"),
        *("hub_inert", "full", "hub_removed", "normalized", "seconds"),
    }
    for version in ("full", "hub_removed", "normalized"):
        assert set(reading[version]) >= {"mle", "se", "median", "lid20"}
    distances = np.linalg.norm(rows[:, None].astype(float) - rows[None], axis=2)
    distances.sort(axis=1)
    expected = (len(rows) - 1) / np.log(distances[:, 2] / distances[:, 1]).sum()
    assert reading["full"]["mle"] == pytest.approx(expected, rel=1e-9)
    shown = tokenspace("dimension", "mine.npy").stdout
    for word in ("full", "hub removed", "normalized", "duplicate", "time"):
        assert word in shown


def test_one_bad_table_does_not_hide_the_others(
    tokenspace: Callable[..., Result], root: Path
) -> None:
    np.save(root / "mine.npy", np.random.default_rng(0).normal(size=(50, 3)))
    done = tokenspace("dimension", "nowhere.npy", "mine.npy", "--json")
    assert done.exit_code == 1
    assert [reading["n"] for reading in json.loads(done.stdout)] == [50]
    assert "nowhere.npy" in done.stderr


def test_tables_lists_the_packaged_ones(tokenspace: Callable[..., Result]) -> None:
    names = [table["name"] for table in json.loads(tokenspace("tables", "--json").stdout)]
    assert names[:3] == ["minilm", "smollm2", "glove"]
    assert "minilm" in tokenspace("tables").stdout


def test_a_full_disk_is_said_and_nothing_is_half_written(root: Path, put: Put) -> None:
    put("hub/toy", "k: int = 0", "print('x' * 300_000)")
    done = start(root, "run", "hub/toy", limit=100_000)
    _, errors = done.communicate(timeout=600)
    assert done.returncode == 1
    assert "hub/toy: can't write below" in errors
    assert "File too large" in errors
    assert "Traceback" not in errors
    assert not list((root / "build" / "runs" / "hub" / "toy").iterdir())


@pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGTERM, 128 + signal.SIGTERM), (signal.SIGINT, 130)]
)
def test_stopping_the_command_ends_its_kernels(
    root: Path, put: Put, number: int, code: int
) -> None:
    put(
        "hub/slow",
        "k: int = 0",
        "import os, time; open('pid', 'w').write(str(os.getpid()))",
        "time.sleep(300)",
    )
    done = start(root, "run", "hub/slow")
    kernel = int(wait_for(root / "pid", done))
    done.send_signal(number)
    _, errors = done.communicate(timeout=600)
    assert done.returncode == code, errors
    assert not _alive(kernel)
    assert not list((root / "build" / "runs" / "hub" / "slow").iterdir())


def _alive(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def test_the_working_folder_is_the_readers(
    tokenspace: Callable[..., Result], put: Put, root: Path
) -> None:
    """A relative path in `-p tables=…` means what it means in the shell."""
    put("hub/toy", "k: int = 0", "import os; print(os.getcwd())")
    folder = Path(tokenspace("run", "hub/toy").stdout.splitlines()[-1])
    assert os.path.realpath(root) in (folder / "executed.ipynb").read_text()


@pytest.mark.skipif(shutil.which("make") is None, reason="needs make")
@pytest.mark.parametrize("target", ["book", "run"])
def test_the_time_a_notebook_may_take_is_makes_to_set(target: str) -> None:
    words = ["make", "-n", "-o", ".venv/.ready", target, "NOTEBOOK=hub/models", "TIMEOUT=7"]
    done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=True)
    assert "--timeout 7" in done.stdout


def test_a_book_with_a_failing_page(
    root: Path, put: Put, tokenspace: Callable[..., Result]
) -> None:
    """jupyter-book#781: it is built all the same, with exit 0."""
    put("hub/toy", "k: int = 1", "print('fine')", "1 / 0")
    (root / "book").mkdir()
    (root / "book" / "_toc.yml").write_text(
        "parts: [{caption: I, chapters: [{file: notebooks/hub/toy}]}]"
    )
    done = tokenspace("book")
    assert done.exit_code == 1
    assert "hub/toy, cell 4 ('1 / 0') failed" in done.stderr
    assert "ZeroDivisionError" in done.stderr
    assert not (root / "build" / "book").exists()
