"""Running a sweep, on Dask on this machine or on any cluster that shares its files.

Dask gives a lost worker's run to another one (`allowed-failures` times, three unless its
configuration says otherwise). A notebook that fails is an answer, not an exception, and is not
tried again. What is done lies in the runs' own folders, so a sweep can be stopped and called again.
"""

import logging
import os
import platform
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from distributed import Client, Future, KilledWorker, LocalCluster, as_completed

from tokenspace.errors import RunError, TokenspaceError
from tokenspace.press.environment import cores
from tokenspace.press.plan import Plan
from tokenspace.press.progress import Report
from tokenspace.press.runner import COLOUR, THREADS, clear, run_notebooks
from tokenspace.press.sweep import Outcome, Sweep, label

ANSWER_LIMIT = 30  # seconds a cluster's scheduler may take to answer


def run_sweep(
    sweep: Sweep,
    plans: list[Plan],
    *,
    device: str | None = None,
    timeout: float | None = None,
    workers: int | None = None,
    scheduler: str | None = None,
) -> list[Outcome]:
    """Run what isn't there yet and return every run's outcome, in the sweep's order.

    `plans` are the sweep's own, for the same `device`. `workers` run at once on this machine
    (default: one a core), or the cluster behind `scheduler` does. Raises `ParameterError` before
    anything starts, `RunError` when no cluster answers.
    """
    sweep.check_folder(plans[0].root)
    pairs = list(zip(plans, sweep.points, strict=True))
    new = [(plan, point) for plan, point in pairs if not plan.is_done]
    errors: dict[str, str] = {}
    with Report(len(new)) as report:
        if len(new) < len(plans):
            there = f"{len(plans) - len(new)} of {len(plans)} were already there"
            report.line(f"{sweep.name}: {there}{'' if new else '; nothing to do'}")
        if new:
            options = {"profile": sweep.profile, "device": device, "timeout": timeout}
            task = partial(work, plans[0].root, plans[0].notebook, sweep.fixed, options)
            try:
                with _client(scheduler, min(workers or cores(), len(new)), report) as client:
                    errors = _run(client, task, new, report)
            except KeyboardInterrupt:
                report.line(f"{sweep.name}: stopped; what is done is kept, call it again to go on")
                raise
            finally:  # what a stopped sweep's workers left half done
                clear(plans[0].folder.parent)
    return [Outcome(point, plan, errors.get(plan.key)) for plan, point in pairs]


@contextmanager
def _client(scheduler: str | None, workers: int, report: Report) -> Iterator[Client]:
    """Connect to a cluster, or start workers on this machine that share its cores' threads."""
    logging.getLogger("distributed.client").setLevel(logging.CRITICAL)  # we say it in our words
    if scheduler is not None:
        try:
            client = Client(scheduler, timeout=ANSWER_LIMIT)
        except (OSError, ValueError) as error:
            raise RunError(f"no Dask scheduler answers at {scheduler}: {error}") from None
        with client:
            count = len(client.scheduler_info(n_workers=-1)["workers"])
            waiting = "" if count else "; runs start when the first joins"
            report.line(f"{scheduler}: {count} {'worker' if count == 1 else 'workers'}{waiting}")
            yield client
        return
    threads = str(max(1, cores() // workers))
    with (
        LocalCluster(
            n_workers=workers,
            threads_per_worker=1,  # a run at a time each
            memory_limit=None,  # the memory is in the kernels, which Dask doesn't see
            dashboard_address=None,
            silence_logs=logging.CRITICAL,
            env={name: os.environ.get(name, threads) for name in THREADS},
        ) as cluster,
        Client(cluster) as client,
    ):
        yield client


def _run(
    client: Client, task: Any, new: list[tuple[Plan, dict[str, Any]]], report: Report
) -> dict[str, str]:
    """Run points as they find workers; returns the errors of those that failed."""
    keys = [f"tokenspace-{plan.key}" for plan, _ in new]  # two sweeps of a cluster share a run
    futures = client.map(task, [point for _, point in new], key=keys, pure=False)
    of = dict(zip(futures, new, strict=True))
    errors: dict[str, str] = {}
    for future in as_completed(futures):
        plan, point = of[future]
        error = _error(future)
        if error is None and not plan.folder.is_dir():
            error = f"done, but not in {plan.folder}: its worker's checkout, disk or cwd isn't ours"
        if error is not None:
            errors[plan.key] = error
        report.end(label(point), "done" if error is None else f"failed\n{error}")
    return errors


def _error(future: Future) -> str | None:
    if future.status == "finished":
        answer: str | None = future.result()
        return answer
    if future.status == "error":
        return explained(future.exception())
    return "the scheduler went away before it was done"


def explained(error: BaseException) -> str:
    """Say what kept Dask from running a notebook.

    >>> explained(OSError("no disk"))
    'OSError: no disk'
    """
    if isinstance(error, KilledWorker):
        return (
            f"{error.allowed_failures + 1} workers were lost while running it, the last of them "
            f"{error.last_worker.address}: most often their memory or a job's time ran out"
        )
    return f"{type(error).__name__}: {error}"


def work(
    root: Path,
    notebook: str,
    fixed: dict[str, Any],
    options: dict[str, Any],
    point: dict[str, Any],
) -> str | None:
    """Run one notebook on a worker and return its error, if it failed.

    >>> work(Path("/nowhere"), "hub/toy", {}, {}, {}).endswith("a disk that its machines share")
    True
    """
    if not root.is_dir():
        return f"{platform.node()} has no {root}: a cluster needs a disk that its machines share"
    try:
        run_notebooks([notebook], root=root, given=fixed | point, quiet=True, **options)
    except TokenspaceError as error:
        return COLOUR.sub("", str(error))
    return None
