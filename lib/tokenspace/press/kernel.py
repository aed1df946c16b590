"""Run one notebook in a kernel of its own, through papermill.

papermill's own engine passes the kernel no environment, waits for a stopped kernel, and says
"Kernel died" whatever happened; this one sets the threads, a limit for the whole notebook, and
keeps what the kernel's process had to say.
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

import papermill
from jupyter_client.kernelspec import NoSuchKernel
from nbclient.exceptions import CellTimeoutError, DeadKernelError
from papermill.clientwrap import PapermillNotebookClient
from papermill.engines import NBClientEngine, papermill_engines
from papermill.exceptions import PapermillExecutionError
from papermill.iorw import write_ipynb
from papermill.log import logger
from traitlets.config import Config

from tokenspace.errors import RunError
from tokenspace.press.sync import KERNEL

ENGINE = "tokenspace"
START_LIMIT = 120  # seconds a kernel may take to answer on a busy machine
OUTPUT_LIMIT = 120  # seconds its last output may take to arrive


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


class Engine(NBClientEngine):  # type: ignore[misc]
    """papermill's engine with a `Session`."""

    @classmethod
    def execute_managed_notebook(
        cls, nb_man: Any, kernel_name: str, *, session: Session, **_: Any
    ) -> Any:
        """Execute the notebook that `nb_man` holds."""

        def started(notebook: Any) -> None:
            session.process = client.km.provisioner.process
            if session.stopped:
                session.kill()

        def cell_started(cell: Any, cell_index: int) -> None:
            session.cell = cell_index
            session.on_cell(cell_index)

        client = PapermillNotebookClient(
            nb_man,
            kernel_name=kernel_name,
            log=logger,
            config=Config({"KernelManager": {"transport_encryption": "auto"}}),
            timeout_func=session.left,
            startup_timeout=START_LIMIT,
            iopub_timeout=OUTPUT_LIMIT,
            shutdown_kernel="immediate",
            record_timing=False,
            on_notebook_start=started,
            on_cell_start=cell_started,
        )
        with session.log.open("w") as log:
            try:
                return client.execute(env=session.environment, stdout=log, stderr=log)
            except Exception:  # as far as it got; papermill writes it only when a cell raised
                write_ipynb(nb_man.nb, str(session.target))
                raise


papermill_engines.register(ENGINE, Engine)


def execute(source: Path, session: Session) -> None:
    """Execute the notebook at `source` into the session's `target`, as far as it gets.

    Raises `RunError`, which names notebook and cell and shows the traceback, with exit code 124
    when the time was up.
    """
    for talker in (logger, logging.getLogger("asyncio")):  # what they would say is said below
        talker.setLevel("CRITICAL")
    try:
        papermill.execute_notebook(
            str(source),
            str(session.target),
            engine_name=ENGINE,
            request_save_on_cell_execute=False,  # twice a cell, a quarter of a page's time
            kernel_name=KERNEL,
            progress_bar=False,
            session=session,
        )
    except PapermillExecutionError as error:
        trace = "\n".join(error.traceback) or f"{error.ename}: {error.evalue}"
        raise RunError(f"{_where(session, error.source)} failed\n{trace}") from None
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


def _where(session: Session, source: str = "") -> str:
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


def _tail(log: Path, lines: int = 15) -> str:
    try:
        text = log.read_text(errors="replace").strip().splitlines()[-lines:]
    except OSError:
        return ""
    return "\nits last words:\n  " + "\n  ".join(text) if text else ""
