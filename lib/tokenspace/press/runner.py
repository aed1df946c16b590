"""Run notebooks: each in its own kernel, several at once, none twice, nothing half-written."""

import copy
import os
import platform
import re
import shutil
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import nbformat
import psutil
from papermill.translators import translate_parameters
from rich.console import Console

from tokenspace.errors import RunError, TokenspaceError
from tokenspace.files import find_root, write
from tokenspace.press import results
from tokenspace.press.environment import commit, cores, versions
from tokenspace.press.kernel import Session, execute
from tokenspace.press.layout import unwritable
from tokenspace.press.parameters import TAG
from tokenspace.press.plan import PROFILE, UNREACHED, Plan, plan
from tokenspace.press.progress import Report
from tokenspace.press.sync import KERNEL

THREADS = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMEXPR_NUM_THREADS")
COLOUR = re.compile(r"\x1b\[[0-9;]*m")


@dataclass(frozen=True)
class Run:
    """A finished run: its folder holds `executed.ipynb`, `claims.json`, tables and the rest."""

    notebook: str
    profile: str
    folder: Path
    cached: bool
    seconds: float

    def claims(self) -> list[dict[str, Any]]:
        """Read the run's claims."""
        return results.read_claims(self.folder)


def run_notebooks(
    names: Sequence[str],
    *,
    root: Path | None = None,
    profile: str = PROFILE,
    given: Mapping[str, Any] | None = None,
    device: str | None = None,
    timeout: float | None = None,
    force: bool = False,
    jobs: int | None = None,
    quiet: bool = False,
) -> list[Run]:
    """Run notebooks by name and return their runs in that order; what was run before is not again.

    `timeout` is in seconds for each notebook; `jobs` how many run at once (default: one a core),
    sharing the cores' threads; `quiet` shows no progress. Raises `ParameterError` before anything
    starts, and `RunError` when all are done if any failed, keeping what it did get done under
    `failed/`.
    """
    root = root or find_root()
    plans = [plan(root, n, profile=profile, given=given, device=device) for n in names]
    new = {p.folder: p for p in plans if force or not p.is_done}
    with Report(len(new), Console(quiet=True) if quiet else None) as report:
        for p in plans:
            if p.folder not in new:
                report.line(f"{p.notebook}: unchanged since it was last run")
        done = _run_all(list(new.values()), timeout, force, jobs, report)
    return [done.get(p.folder) or Run(p.notebook, p.profile, p.folder, True, 0.0) for p in plans]


def finished(root: Path, notebook: str, profile: str = PROFILE) -> Run | None:
    """Give a notebook's run at a profile if it was run as everything stands now."""
    p = plan(root, notebook, profile=profile)
    return Run(p.notebook, profile, p.folder, True, 0.0) if p.is_done else None


def _run_all(
    plans: list[Plan], timeout: float | None, force: bool, jobs: int | None, report: Report
) -> dict[Path, Run]:
    workers = max(1, min(len(plans), jobs or cores()))
    threads = max(1, cores() // workers)
    sessions: list[Session] = []
    futures: dict[Path, Future[Run]] = {}
    with ThreadPoolExecutor(workers) as pool:
        try:
            for p in plans:
                sessions.append(_session(p, threads, timeout, report))
                futures[p.folder] = pool.submit(_run, p, sessions[-1], force, report)
            wait(futures.values())
        except BaseException:
            for session in sessions:
                session.kill()
            pool.shutdown(cancel_futures=True)
            raise
    errors = [e for f in futures.values() if (e := f.exception())]
    unexpected = next((e for e in errors if not isinstance(e, TokenspaceError)), None)
    if unexpected:
        raise unexpected
    if errors:
        codes = {getattr(e, "exit_code", 1) for e in errors}
        raise RunError("\n\n".join(map(str, errors)), codes.pop() if len(codes) == 1 else 1)
    return {folder: future.result() for folder, future in futures.items()}


def _session(p: Plan, threads: int, timeout: float | None, report: Report) -> Session:
    partial = _partial(p)
    wanted = os.environ.get("OMP_NUM_THREADS", str(threads))  # a reader who sets it means it
    environment = {
        **dict.fromkeys(THREADS, wanted),
        "OMP_WAIT_POLICY": "PASSIVE",  # threads that spin while they wait slow the other notebooks
        **os.environ,
        "TOKENSPACE_RUN": str(partial),
        "TOKENSPACE_PROFILE": p.profile,
        "TOKENSPACE_COMMAND": p.command,
        "TOKENSPACE_COMMIT": commit(p.root),
        "TQDM_DISABLE": "1",  # a bar per tick would end up in the page,
        "PYTHONWARNINGS": "ignore:IProgress not found",  # and so would its wish for widgets
        "PYTHONHASHSEED": "0",
        "PYDEVD_DISABLE_FILE_VALIDATION": "1",
    }
    return Session(
        p.notebook,
        environment,
        partial / "executed.ipynb",
        partial / "kernel.log",
        timeout,
        on_cell=lambda index: report.cell(p.notebook, index),
    )


def _run(p: Plan, session: Session, force: bool, report: Report) -> Run:
    """Run one notebook in a folder that gets its name only when everything is in it."""
    partial, start = _partial(p), time.monotonic()
    session.started = start
    try:
        clear(partial.parent)
        shutil.rmtree(partial, ignore_errors=True)  # an earlier process of the same number
        partial.mkdir(parents=True)
        page = _injected(p)
        report.start(p.notebook, len(page.cells))
        execute(page, session)
        seconds = time.monotonic() - start
        about = {
            "notebook": p.notebook,
            "profile": p.profile,
            "command": p.command,
            "key": p.key,
            "finished": datetime.now(UTC).isoformat(timespec="seconds"),
            "seconds": round(seconds, 1),
            "commit": session.environment["TOKENSPACE_COMMIT"],
            "versions": versions(),
        }
        results.record(partial, p.notebook, p.profile, p.parameters, about)
        (partial / "kernel.log").unlink()
        _place(partial, p.folder, force or not p.is_done)
    except TokenspaceError as error:
        report.end(p.notebook, "failed")
        if session.stopped:
            raise
        kept = _keep(partial, p.folder, str(error))
        raise RunError(f"{error}\n{kept}", getattr(error, "exit_code", 1)) from None
    except OSError as error:
        report.end(p.notebook, "failed")
        raise RunError(f"{p.notebook}: {unwritable(p.folder.parent, error)}") from error
    finally:
        shutil.rmtree(partial, ignore_errors=True)
    shutil.rmtree(_failed(p.folder), ignore_errors=True)
    if (p.folder / UNREACHED).exists():
        report.line(f"{p.notebook}: a source was out of reach, so this run is made again next time")
    report.end(p.notebook, f"done in {seconds:.0f} s")
    return Run(p.notebook, p.profile, p.folder, False, seconds)


def _injected(p: Plan) -> Any:
    """Put the values that differ from the defaults into a cell below the parameters cell."""
    page = copy.deepcopy(p.twin)
    if not p.changed:
        return page
    cell = nbformat.v4.new_code_cell(
        translate_parameters(KERNEL, "python", p.changed, "Parameters of this run"),
        id="injected-parameters",
        metadata={"tags": ["injected-parameters"]},
    )
    place = next(i for i, c in enumerate(page.cells) if TAG in c.metadata.get("tags", []))
    page.cells.insert(place + 1, cell)
    return page


def _partial(p: Plan) -> Path:
    return p.folder.with_name(f".{p.key}.{this_process()}")


def this_process() -> str:
    """Name this process among all that may share the folder, on this machine or another."""
    return f"{platform.node()}.{os.getpid()}"


def _failed(folder: Path) -> Path:
    return folder.parent / "failed" / folder.name


def clear(parent: Path) -> None:
    """Remove what this machine's processes that no longer live left half done."""
    for folder in parent.glob(f".*.{platform.node()}.*"):
        pid = folder.name.rsplit(".", 1)[-1]
        if pid.isdigit() and not psutil.pid_exists(int(pid)):
            shutil.rmtree(folder, ignore_errors=True)


def _place(partial: Path, folder: Path, force: bool) -> None:
    """Give a finished folder its name; another process may have been first."""
    if force and folder.exists():
        old = folder.with_name(f".{folder.name}.old.{this_process()}")
        os.rename(folder, old)
        os.rename(partial, folder)
        shutil.rmtree(old, ignore_errors=True)
        return
    try:
        os.rename(partial, folder)
    except OSError:
        if not folder.is_dir():
            raise


def _keep(partial: Path, folder: Path, message: str) -> str:
    """Keep a failed run's notebook as far as it got, beside the runs; say where."""
    target = _failed(folder)
    try:
        write(partial / "error.txt", COLOUR.sub("", message) + "\n")
        shutil.rmtree(target, ignore_errors=True)
        target.parent.mkdir(exist_ok=True)
        os.rename(partial, target)
    except OSError as error:
        return f"what had run could not be kept: {error.strerror}"
    return f"kept as far as it got: {target / 'executed.ipynb'}"
