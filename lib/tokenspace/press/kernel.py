"""Run one notebook in a kernel of its own.

papermill's engine passes the kernel no environment, calls a cell that shows an error on purpose a
failure, and says "Kernel died" whatever happened. Here nbclient runs the cells; the threads, a
limit for the whole notebook and what the kernel's process had to say are added.
"""

import logging
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from jupyter_client.kernelspec import NoSuchKernel
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError, CellTimeoutError, DeadKernelError
from traitlets.config import Config

from tokenspace.errors import RunError
from tokenspace.press.sync import KERNEL, dumps

START_LIMIT = 120  # seconds a kernel may take to answer on a busy machine
OUTPUT_LIMIT = 120  # seconds its last output may take to arrive
LOG_LINES = 15  # of a dead kernel's last words; a traceback of C++ is about as long


@dataclass
class Session:
    """A notebook being run: what its kernel gets, and what is known of it while it runs."""

    notebook: str
    environment: dict[str, str]
    target: Path
    log: Path
    timeout: float | None = None
    on_cell: Callable[[int], None] = lambda index: None
    cell: int = -1
    process: subprocess.Popen | None = None
    stopped: bool = False
    started: float = field(default_factory=time.monotonic)

    def left(self, _cell: Any = None) -> float | None:
        """Give the seconds left, never nothing: nbclient takes 0 for "no limit"."""
        if self.timeout is None:
            return None
        return max(0.1, self.started + self.timeout - time.monotonic())

    def kill(self) -> None:
        """End the kernel at once, or as soon as it has started."""
        self.stopped = True
        if self.process is not None and self.process.poll() is None:
            self.process.kill()


def execute(notebook: Any, session: Session) -> None:
    """Execute a notebook and write it to the session's `target`, as far as it got.

    A cell tagged `raises-exception` may fail. Raises `RunError`, which names notebook and cell and
    shows the traceback, with exit code 124 when the time was up.
    """
    logging.getLogger("asyncio").setLevel("CRITICAL")  # what it would say is said below
    try:
        _execute(notebook, session)
    except CellExecutionError as error:
        outputs = notebook.cells[session.cell].outputs
        traces = ["\n".join(each.traceback) for each in outputs if each.output_type == "error"]
        trace = "".join(traces) or f"{error.ename}: {error.evalue}"
        raise RunError(f"{_where(session, notebook)} failed\n{trace}") from None
    except CellTimeoutError:
        raise RunError(
            f"{_where(session)}: time is up after {session.timeout:g} s; allow more with "
            "--timeout, or ask for less: --profile smoke",
            124,
        ) from None
    except DeadKernelError:
        raise RunError(_death(session)) from None
    except NoSuchKernel:
        raise RunError(f"no kernel {KERNEL!r}: pip install ipykernel into {sys.prefix}") from None
    except RuntimeError as error:
        if "died before" not in str(error) and "respond in" not in str(error):
            raise
        raise RunError(
            f"{session.notebook}: the kernel did not start: {error}{_tail(session.log)}"
        ) from None


def _execute(notebook: Any, session: Session) -> None:
    """Run the cells; whatever happens, what there is by then is written."""

    def started(notebook: Any) -> None:
        provisioner = client.km.provisioner if client.km else None
        session.process = getattr(provisioner, "process", None)  # this machine's kernels have one
        if session.stopped:
            session.kill()

    def cell_started(cell: Any, cell_index: int) -> None:
        session.cell = cell_index
        session.on_cell(cell_index)

    client = NotebookClient(
        notebook,
        kernel_name=KERNEL,
        config=Config({"KernelManager": {"transport_encryption": "auto"}}),
        timeout_func=session.left,
        startup_timeout=START_LIMIT,
        iopub_timeout=OUTPUT_LIMIT,
        shutdown_kernel="immediate",
        record_timing=False,
        on_notebook_start=started,
        on_cell_start=cell_started,
    )
    client.log.setLevel("CRITICAL")
    with session.log.open("wb") as log:
        try:
            client.execute(env=session.environment, stdout=log, stderr=log)
        finally:
            session.target.write_text(dumps(notebook), "utf-8")


def _where(session: Session, notebook: Any = None) -> str:
    source = notebook.cells[session.cell].source if notebook else ""
    first = next((line for line in source.splitlines() if line.strip()), "")
    return f"{session.notebook}, cell {session.cell + 1}" + (
        f" ({first.strip()!r})" if first else ""
    )


def _death(session: Session) -> str:
    """Say what ended a kernel, and what to do."""
    code = session.process.poll() if session.process else None
    how, hint = "its process ended", ""
    if code is not None and code < 0:
        how = f"killed by {signal.Signals(-code).name}"
    elif code is not None:
        how = f"its process ended with code {code}"
    if code == -signal.SIGKILL:
        hint = (
            "; most often the machine ran out of memory: ask for less (--profile smoke, fewer "
            "queries or tables), or run one notebook at a time (--jobs 1)"
        )
    return f"{_where(session)}: the kernel died, {how}{hint}{_tail(session.log)}"


def _tail(log: Path) -> str:
    try:
        text = log.read_text("utf-8", errors="replace").strip().splitlines()[-LOG_LINES:]
    except OSError:
        return ""
    return "\nits last words:\n  " + "\n  ".join(text) if text else ""
