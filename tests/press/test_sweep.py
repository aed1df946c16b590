"""Sweeps: what is refused, what a lost worker or a failed run does, what is left to read."""

import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pandas as pd
import psutil
import pytest
from distributed import KilledWorker
from tests.press.command import start, wait_for

from tokenspace.errors import ParameterError
from tokenspace.files import find_root
from tokenspace.press.plan import profiles
from tokenspace.press.sweep import SweepRun, explained, read, runs_of, sweeps
from tokenspace.press.sweep_page import pages, save
from tokenspace.sources import hf_models

Put = Callable[..., Path]

REPOSITORY = find_root(Path(__file__).parent)
SHIPPED = sweeps(REPOSITORY)


@pytest.fixture
def spec(root: Path) -> Callable[[str], Path]:
    """Write a sweep's file."""

    def add(text: str) -> Path:
        path = root / "mine.yaml"
        path.write_text(text)
        return path

    return add


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[1]", "a sweep: Input should be a valid dictionary"),
        ("notebok: hub/toy", "unknown field 'notebok'; did you mean 'notebook'?"),
        ("grid: {k: [1]}", "notebook: Field required"),
        ("{notebook: hub/toy}", "nothing varies: give a grid"),
        ("{notebook: hub/toy, grid: {}}", "nothing varies: give a grid"),
        ("{notebook: hub/toy, list: []}", "nothing varies: give a grid"),
        ("{notebook: hub/toy, grid: {k: []}}", "0 runs (0 k), where 1 to 1,000 may be"),
        ("{notebook: hub/toy, grid: {k: 3}}", "grid.k: Input should be a valid list, not 3"),
        ("{notebook: hub/toy, list: [3]}", "list.0: Input should be a valid dictionary, not 3"),
        ("{notebook: hub/toy, parameters: {k: 1}, grid: {k: [1]}}", "k in both parameters and gr"),
        ("{notebook: hub/toy, list: [{k: 1}], grid: {k: [1]}}", "k in both list and grid"),
        ("{notebook: hub/toy, grid: {k: [1, 2, 1]}}", "runs 1 and 3 are the same, k=1"),
        ("{notebook: hub/toy, list: [{}, {k: 0}]}", "runs 1 and 2 are the same, k=0"),
        (
            "{notebook: hub/toy, limit: 3, grid: {k: [1, 2], x: [1, 2]}}",
            "4 runs (2 k x 2 x), where 1 to 3",
        ),
        ("{notebook: hub/toy, grid: {kk: [1]}}", "unknown parameter 'kk'; did you mean 'k'?"),
        ("{notebook: hub/toy, grid: {k: [1, x]}}", "k = 'x' is not int"),
        ("{notebook: hub/toy, parameters: {x: one}, grid: {k: [1]}}", "x = 'one' is not float"),
        ("{notebook: hub/tyo, grid: {k: [1]}}", "no notebook 'hub/tyo'; did you mean 'hub/toy'?"),
        ("{notebook: hub/toy, profile: paper, grid: {k: [1]}}", "no profile 'paper'"),
        ("notebook: [", "mine.yaml: while parsing"),
        ("notebook: hub/toy\ngrid:\n  k: [1]\n  k: [2]", "line 4 has k again: keep one"),
    ],
)
def test_a_sweep_that_cannot_run_is_refused_before_anything_starts(
    root: Path, put: Put, spec: Callable[[str], Path], text: str, said: str
) -> None:
    put("hub/toy", "k: int = 0\nx: float = 1.0", "print(k)")
    with pytest.raises(ParameterError) as error:
        runs_of(root, read(root, str(spec(text))))
    assert said in str(error.value)
    assert "mine" in str(error.value)
    assert not (root / "build").exists()


def test_two_sweeps_of_one_file_name_do_not_share_their_results(
    root: Path, spec: Callable[[str], Path]
) -> None:
    text = "{notebook: hub/toy, grid: {k: [1]}}"
    other = root / "elsewhere" / spec(text).name
    other.parent.mkdir()
    other.write_text(text)
    names = {read(root, str(path)).name for path in (spec(text), other)}
    assert len(names) == 2
    assert all(name.startswith("mine-") for name in names)


def test_values_are_read_as_the_notebook_declares_them(
    root: Path, put: Put, spec: Callable[[str], Path]
) -> None:
    """YAML 1.1 reads 1e-3 as a text."""
    put("hub/toy", "k: int = 0\nx: float = 1.0\nnames: list[str] = []")
    text = "{notebook: hub/toy, parameters: {k: 2}, grid: {x: [1e-3, 1], names: [[], [a]]}}"
    runs = runs_of(root, read(root, str(spec(text))))
    assert [run.plan.parameters for run in runs] == [
        {"k": 2, "x": x, "names": names} for x in (0.001, 1.0) for names in ([], ["a"])
    ]


@pytest.mark.parametrize("name", SHIPPED)
def test_shipped_sweeps_fit_their_notebooks(name: str) -> None:
    sweep = read(REPOSITORY, name)
    assert sweep.title
    assert sweep.name == name
    if name == "dimension":  # of every model of the catalogue
        assert [point["tables"] for point in sweep.varied()] == [[model] for model in hf_models()]
    for profile in profiles(REPOSITORY):
        again = read(REPOSITORY, name, profile)
        assert len(runs_of(REPOSITORY, again)) == len(sweep.varied())


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[tuple[Path, list[subprocess.Popen]]]:
    """A scheduler and two workers, each a process of its own; the file that says where."""
    place = tmp_path / "scheduler.json"
    alone = ["--scheduler-file", str(place), "--no-dashboard"]
    commands = [
        ["scheduler", "--host", "127.0.0.1", "--port", "0", *alone],
        *[["worker", "--no-nanny", "--nthreads", "1", *alone]] * 2,
    ]
    started: list[subprocess.Popen] = []
    try:
        with (tmp_path / "cluster.log").open("w") as log:
            for words in commands:
                command = [sys.executable, "-m", "dask", *words]
                started.append(subprocess.Popen(command, cwd=tmp_path, stdout=log, stderr=log))
                wait_for(place, started[0])
        yield place, started[1:]
    finally:
        for process in started:
            process.kill()
            process.wait()


def test_twelve_runs_survive_a_killed_worker_and_a_broken_one_and_are_not_repeated(
    root: Path,
    put: Put,
    spec: Callable[[str], Path],
    claiming: str,
    cluster: tuple[Path, list[subprocess.Popen]],
) -> None:
    """The third run waits until its worker was killed; another worker takes it over."""
    wait = (
        "import os, time\n"
        "with open('started', 'a') as file: file.write(f'{k}{x}\\n')\n"
        "if (k, x) == (1, 'a') and not os.path.exists('killed'):\n"
        "    open('victim', 'w').write(str(os.getppid())); time.sleep(300)\n"
        "if (k, x) == (4, 'b') and not os.path.exists('mended'): raise OSError(f'no {x}')"
    )
    put("hub/toy", "k: int = 0\nx: str = ''", wait, claiming)
    spec("notebook: hub/toy\ngrid: {k: [0, 1, 2, 3, 4, 5], x: [a, b]}")
    place, workers = cluster
    address = json.loads(place.read_text())["address"]
    done = start(root, "sweep", "mine.yaml", "--scheduler", address)
    victim = int(wait_for(root / "victim", done))
    assert victim in [worker.pid for worker in workers]
    (root / "killed").touch()
    os.kill(victim, signal.SIGKILL)
    out, errors = done.communicate(timeout=600)
    assert done.returncode == 1, errors
    (listed,) = errors.split("1 of 12 runs failed")[1].splitlines()[1:]
    assert listed.strip() == "k=4 x=b: OSError: no b"
    table = Path(out.splitlines()[-1])
    frame = pd.read_parquet(table)
    points = list(zip(frame["parameter.k"], frame["parameter.x"], strict=True))
    assert points == [(k, x) for k in range(6) for x in "ab"]
    assert frame["run"].is_unique
    broken = frame["parameter.k"].eq(4) & frame["parameter.x"].eq("b")
    assert list(frame["status"]) == ["failed" if each else "done" for each in broken]
    assert set(frame["verdict"][~broken]) == {"holds"}
    assert "hub/toy, cell 4" in frame["error"][broken].item()
    starts = Counter((root / "started").read_text().split())
    assert starts["1a"] == 2  # what the killed worker had begun
    assert set(starts) == {f"{k}{x}" for k, x in points}
    runs = root / "build" / "runs" / "hub" / "toy"
    there = {p.name for p in runs.iterdir() if not p.name.startswith(".")}
    assert there == {"failed", *frame["run"][~broken]}

    (root / "mended").touch()
    mended = start(root, "sweep", "mine.yaml", "--scheduler", address)
    out, errors = mended.communicate(timeout=600)
    assert mended.returncode == 0, errors
    assert "11 of 12 were already there" in errors
    assert set(pd.read_parquet(table)["status"]) == {"done"}
    before = {p: p.stat().st_mtime_ns for p in (root / "build").rglob("*")}
    again = start(root, "sweep", "mine.yaml", "--scheduler", address)
    out, errors = again.communicate(timeout=600)
    assert again.returncode == 0
    assert "12 of 12 were already there; nothing to do" in errors
    assert Path(out.splitlines()[-1]) == table
    assert {p: p.stat().st_mtime_ns for p in (root / "build").rglob("*")} == before


def test_a_run_that_takes_its_workers_along_is_explained() -> None:
    lost = KilledWorker("task", SimpleNamespace(address="tcp://there:1"), 3)
    assert explained(lost).startswith("4 workers were lost while running it, the last of them tcp:")


def test_a_stopped_sweep_leaves_nothing_half_written_and_goes_on(
    root: Path, put: Put, spec: Callable[[str], Path]
) -> None:
    wait = (
        "import os, pathlib, time\n"
        "if k and not os.path.exists('stopped'):\n"
        "    pathlib.Path('waiting').write_text(str(os.getpid())); time.sleep(300)"
    )
    put("hub/toy", "k: int = 0", wait)
    spec("notebook: hub/toy\ngrid: {k: [0, 1]}")
    done = start(root, "sweep", "mine.yaml", "--workers", "1")
    kernel = int(wait_for(root / "waiting", done))
    (root / "stopped").touch()
    done.send_signal(signal.SIGINT)
    _, errors = done.communicate(timeout=600)
    assert done.returncode == 130, errors
    assert "stopped; what is done is kept, call it again to go on" in errors
    assert "Traceback" not in errors
    for _ in range(100):  # a kernel looks once a second whether its worker lives
        if not psutil.pid_exists(kernel):
            break
        time.sleep(0.1)
    assert not psutil.pid_exists(kernel)
    (kept,) = (root / "build" / "runs" / "hub" / "toy").iterdir()
    assert (kept / "executed.ipynb").is_file()
    assert not (root / "build" / "sweeps").exists()
    again = start(root, "sweep", "mine.yaml", "--workers", "1")
    out, errors = again.communicate(timeout=600)
    assert "1 of 2 were already there" in errors
    assert list(pd.read_parquet(out.splitlines()[-1])["status"]) == ["done", "done"]


def laid_down(runs: list[SweepRun], claim: dict[str, Any]) -> list[SweepRun]:
    """Runs as the runner leaves them; the last one failed."""
    runs[-1].error = "hub/toy, cell 2 failed\nValueError: a_b\nkept as far as"
    about = {"seconds": 2.5, "finished": "now", "versions": {"torch": "2"}}
    about |= {"commit": "c0ffee" * 6 + "-dirty", "footer": {"device": "cpu (a CPU)"}}
    found = [claim, {**claim, "id": "other", "ours": None, "verdict": "not-testable"}]
    for run, value in zip(runs, [3, "many"], strict=False):
        tables = run.plan.folder / "tables"
        tables.mkdir(parents=True)
        (run.plan.folder / "environment.json").write_text(json.dumps(about))
        (run.plan.folder / "claims.json").write_text(json.dumps(found))
        page = pd.DataFrame({"reading": [value], "run": "a"})
        page.to_parquet(tables / "readings.parquet")
    return runs


def test_the_table_is_tidy_and_says_where_every_number_comes_from(
    root: Path, put: Put, spec: Callable[[str], Path], claim: dict[str, Any]
) -> None:
    put("hub/toy", "names: list[str] = []\nk: int = 0\nx: float | None = None")
    path = spec("{notebook: hub/toy, title: A toy, grid: {k: [1, 2, 3]}, parameters: {names: [a]}}")
    sweep = read(root, str(path))
    table = save(root, sweep, laid_down(runs_of(root, sweep), claim))
    assert table == root / "build" / "sweeps" / sweep.name / "classroom" / "results.parquet"
    frame = pd.read_parquet(table)
    assert list(zip(frame["parameter.k"], frame["claim"].fillna("-"), strict=True)) == [
        (1, "toy"), (1, "other"), (2, "toy"), (2, "other"), (3, "-"),
    ]  # fmt: skip
    first, last = frame.iloc[0], frame.iloc[-1]
    assert (first["ours"], first["band_low"], first["verdict"]) == (1.0, 1.0, "holds")
    assert (first["commit"], first["versions"], first["device"]) == (
        *("c0ffee" * 6 + "-dirty", "torch 2", "cpu (a CPU)"),
    )
    assert first["parameter.names"] == '["a"]'
    assert pd.isna(frame["ours"][1])
    assert (last["status"], last["error"].splitlines()[1]) == ("failed", "ValueError: a_b")
    joined = pd.read_parquet(table.parent / "tables" / "readings.parquet")
    assert list(joined["reading"]) == ["3", "many"]
    assert list(joined["parameter.k"]) == [1, 2]
    assert list(joined["run"]) == list(frame["run"].unique())[:2]
    text = (table.parent / "summary.md").read_text()
    assert text.startswith("# A toy (classroom)\n")
    assert "Commit: `c0ffeec0ffee-dirty`." in text  # a page is too narrow for all of it
    assert "2 of 3 runs of `hub/toy` at profile `classroom` are done" in text
    assert "| toy | 2 | 0 | 0 | 1 | 1 |" in text
    assert "| other | 0 | 0 | 2 | – | – |" in text
    assert "| 1 | 1 | – | holds |" in text
    assert r"| 3 | ValueError: a\_b |" in text
    assert pages(root) == {f"sweeps/{sweep.name}-classroom": text}
