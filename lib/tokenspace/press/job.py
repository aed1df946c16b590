"""One run: a notebook in a kernel of its own, in a folder that gets its name when it is whole.

papermill's engine passes the kernel no environment, calls a cell that shows an error on purpose a
failure, and says "Kernel died" whatever happened. Here nbclient runs the cells; the threads, a
limit for the whole notebook and what the kernel's process had to say are added.
"""

import copy
import logging
import os
import platform
import re
import shutil
import signal
import subprocess
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import nbformat
import psutil
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError, CellTimeoutError, DeadKernelError
from papermill.translators import translate_parameters
from traitlets.config import Config

from tokenspace.errors import RunError, TokenspaceError
from tokenspace.files import unwritable, write
from tokenspace.press import results
from tokenspace.press.environment import commit, versions
from tokenspace.press.parameters import TAG
from tokenspace.press.plan import UNREACHED, Plan
from tokenspace.press.progress import Report
from tokenspace.press.sync import KERNEL, dumps

START_LIMIT = 120  # seconds a kernel may take to answer on a busy machine
OUTPUT_LIMIT = 120  # seconds its last output may take to arrive
LOG_LINES = 15  # of a dead kernel's last words; a traceback of C++ is about as long
COLOUR = re.compile(r"\x1b\[[0-9;]*m")
THREADS = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMEXPR_NUM_THREADS")
WAITING = {"OMP_WAIT_POLICY": "PASSIVE"}  # threads that spin meanwhile slow the other notebooks
QUIET = {
    "TQDM_DISABLE": "1",  # a bar per tick would end up in the page,
    "PYTHONWARNINGS": "ignore:IProgress not found",  # and so would its wish for widgets
    "PYTHONHASHSEED": "0",
    "PYDEVD_DISABLE_FILE_VALIDATION": "1",
}
MEMORY = (
    "; most often the machine ran out of memory: ask for less (--profile smoke, fewer queries or "
    "tables), or run one notebook at a time (--jobs 1)"
)


class Job:
    """A plan being carried out by `run`; another thread may `kill` it."""

    def __init__(self, plan: Plan, report: Report, timeout: float | None) -> None:
        self.plan, self.report, self.timeout = plan, report, timeout
        mine = f".{plan.key}.{platform.node()}.{os.getpid()}"  # among all that share the disk
        self.folder = plan.folder.with_name(mine)
        self.failed = plan.folder.parent / "failed" / plan.key
        self.log = self.folder / "kernel.log"
        self._stopped, self._cell = False, -1
        self._process: subprocess.Popen | None = None

    def kill(self) -> None:
        """End the kernel at once, or as soon as it has started."""
        self._stopped = True
        if self._process is not None and self._process.poll() is None:
            self._process.kill()

    def run(self, threads: int, *, force: bool) -> None:
        """Run the notebook and place its results; what a failed one has got done is kept apart.

        A cell tagged `raises-exception` may fail. Raises `RunError`, which names notebook and cell
        and shows the traceback, with exit code 124 when the time was up.
        """
        name, end = self.plan.notebook, "failed"
        try:
            clear(self.folder.parent)
            shutil.rmtree(self.folder, ignore_errors=True)  # of a process of the same number
            self.folder.mkdir(parents=True)
            seconds = self._execute(threads)
            self._place(force=force or not self.plan.is_done)
            end = f"done in {seconds:.0f} s"
            if (self.plan.folder / UNREACHED).exists():
                end += "; a source was out of reach, so this run is made again next time"
        except TokenspaceError as error:
            if self._stopped:
                raise
            code = getattr(error, "exit_code", 1)
            raise RunError(f"{error}\n{self._keep(error)}", code) from None
        except OSError as error:
            raise RunError(f"{name}: {unwritable(self.plan.folder.parent, error)}") from error
        finally:
            shutil.rmtree(self.folder, ignore_errors=True)
            self.report.end(name, end)
        shutil.rmtree(self.failed, ignore_errors=True)

    def _execute(self, threads: int) -> float:
        """Execute the notebook and write its results; returns the seconds that it took."""
        p, page, now = self.plan, _injected(self.plan), commit(self.plan.root)
        wanted = os.environ.get("OMP_NUM_THREADS", str(threads))  # a reader who sets it means it
        environment = dict.fromkeys(THREADS, wanted) | WAITING | os.environ | QUIET
        environment |= {
            "TOKENSPACE_RUN": str(self.folder),
            "TOKENSPACE_PROFILE": p.profile,
            "TOKENSPACE_COMMAND": p.command,
            "TOKENSPACE_COMMIT": now,
        }
        self.report.begin(p.notebook, len(page.cells))
        start = time.monotonic()
        try:
            self._run_cells(page, environment)
        except Exception as error:
            raise self._explained(error, page) from None
        finally:
            (self.folder / "executed.ipynb").write_text(dumps(page), "utf-8")
        seconds = time.monotonic() - start
        about = {
            "notebook": p.notebook,
            "profile": p.profile,
            "command": p.command,
            "key": p.key,
            "finished": datetime.now(UTC).isoformat(timespec="seconds"),
            "seconds": round(seconds, 1),
            "commit": now,
            "versions": versions(),
        }
        results.record(self.folder, page, p, about)
        self.log.unlink()
        return seconds

    def _run_cells(self, page: Any, environment: dict[str, str]) -> None:
        end = time.monotonic() + (self.timeout or 0)

        def left(_cell: Any = None) -> float | None:
            """Give the seconds left, never nothing: nbclient takes 0 for "no limit"."""
            return None if self.timeout is None else max(0.1, end - time.monotonic())

        def started(notebook: Any) -> None:
            provisioner = client.km.provisioner if client.km else None
            self._process = getattr(provisioner, "process", None)  # this machine's kernels have one
            if self._stopped:
                self.kill()

        def cell_started(cell: Any, cell_index: int) -> None:
            self._cell = cell_index
            self.report.cell(self.plan.notebook, cell_index)

        logging.getLogger("asyncio").setLevel("CRITICAL")  # what it would say is said below
        client = NotebookClient(
            page,
            kernel_name=KERNEL,
            config=Config({"KernelManager": {"transport_encryption": "auto"}}),
            timeout_func=left,
            startup_timeout=START_LIMIT,
            iopub_timeout=OUTPUT_LIMIT,
            shutdown_kernel="immediate",
            record_timing=False,
            on_notebook_start=started,
            on_cell_start=cell_started,
        )
        client.log.setLevel("CRITICAL")
        with self.log.open("wb") as log:
            client.execute(env=environment, stdout=log, stderr=log)

    def _explained(self, error: Exception, page: Any) -> Exception:
        """Say what ended the notebook, where, and what to do."""
        name, where = self.plan.notebook, f"{self.plan.notebook}, cell {self._cell + 1}"
        match error:
            case CellExecutionError():
                cell = page.cells[self._cell]
                traces = ["\n".join(x.traceback) for x in cell.outputs if "traceback" in x]
                trace = "".join(traces) or f"{error.ename}: {error.evalue}"
                first = next(line.strip() for line in cell.source.splitlines() if line.strip())
                return RunError(f"{where} ({first!r}) failed\n{trace}")
            case CellTimeoutError():
                hint = "allow more with --timeout, or ask for less: --profile smoke"
                return RunError(f"{where}: time is up after {self.timeout:g} s; {hint}", 124)
            case DeadKernelError():
                return RunError(f"{where}: the kernel died, {self._death()}{self._last_words()}")
            case RuntimeError() if self._cell < 0:
                return RunError(f"{name}: the kernel did not start: {error}{self._last_words()}")
        return error

    def _death(self) -> str:
        code = self._process.poll() if self._process else None
        if code is None or code >= 0:
            return "its process ended" + ("" if code is None else f" with code {code}")
        return f"killed by {signal.Signals(-code).name}{MEMORY if code == -signal.SIGKILL else ''}"

    def _last_words(self) -> str:
        lines = self.log.read_text("utf-8", errors="replace").strip().splitlines()[-LOG_LINES:]
        return "\n  ".join(["\nits last words:", *lines]) if lines else ""

    def _place(self, *, force: bool) -> None:
        """Give the finished folder its name; another process may have been first."""
        target, old = self.plan.folder, self.folder.with_name(f"{self.folder.name}.old")
        if force and target.exists():
            os.rename(target, old)
        try:
            os.rename(self.folder, target)
        except OSError:
            if not target.is_dir():
                raise
        shutil.rmtree(old, ignore_errors=True)

    def _keep(self, error: TokenspaceError) -> str:
        """Keep a failed run's notebook as far as it got, beside the runs; say where."""
        try:
            write(self.folder / "error.txt", COLOUR.sub("", str(error)) + "\n")
            shutil.rmtree(self.failed, ignore_errors=True)
            self.failed.parent.mkdir(exist_ok=True)
            os.rename(self.folder, self.failed)
        except OSError as full:
            return f"what had run could not be kept: {full.strerror}"
        return f"kept as far as it got: {self.failed / 'executed.ipynb'}"


def _injected(p: Plan) -> Any:
    """Put the values that differ from the defaults into a cell below the parameters cell."""
    page = copy.deepcopy(p.twin)
    if p.changed:
        name = "injected-parameters"
        text = translate_parameters(KERNEL, "python", p.changed, "Parameters of this run")
        cell = nbformat.v4.new_code_cell(text, id=name, metadata={"tags": [name]})
        place = next(i for i, c in enumerate(page.cells) if TAG in c.metadata.get("tags", []))
        page.cells.insert(place + 1, cell)
    return page


def clear(parent: Path) -> None:
    """Remove what this machine's processes that no longer live left half done."""
    for folder in parent.glob(f".*.{platform.node()}.*"):
        pid = folder.name.removesuffix(".old").rsplit(".", 1)[-1]
        if pid.isdigit() and not psutil.pid_exists(int(pid)):
            shutil.rmtree(folder, ignore_errors=True)
