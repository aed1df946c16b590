"""Run a sweep on Dask: on this machine, or on any cluster that shares its files with it.

Dask gives a lost worker's run to another one (`allowed-failures` times, three unless its
configuration says otherwise). A notebook that fails is an answer, not an exception, and is not
tried again. What is done lies in the runs' own folders, so that a sweep can be stopped and called
again.
"""

import logging
import os
import platform
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from distributed import Client, Future, KilledWorker, LocalCluster, as_completed

from tokenspace.errors import RunError, TokenspaceError
from tokenspace.press.environment import cores
from tokenspace.press.plan import Plan
from tokenspace.press.progress import Report
from tokenspace.press.results import read_claims
from tokenspace.press.runner import COLOUR, THREADS, clear, run_notebooks
from tokenspace.press.sweeps.sweep_spec import Sweep, label


@dataclass(frozen=True)
class Outcome:
    """One run of a sweep: what varied, the run, and its error if it failed."""

    point: dict[str, Any]
    plan: Plan
    error: str | None

    @cached_property
    def claims(self) -> list[dict[str, Any]]:
        """Read the run's claims, once; a failed run has none."""
        return [] if self.error is not None else read_claims(self.plan.folder)


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
    new = [p for p in plans if not p.folder.is_dir()]
    labels = {p.key: label(point) for p, point in zip(plans, sweep.points, strict=True)}
    errors: dict[str, str] = {}
    with Report(len(new)) as report:
        if len(new) < len(plans):
            there = f"{len(plans) - len(new)} of {len(plans)} were already there"
            report.line(f"{sweep.name}: {there}{'' if new else '; nothing to do'}")
        if new:
            try:
                with _client(scheduler, min(workers or cores(), len(new)), report) as client:
                    errors = _run(client, new, sweep, device, timeout, labels, report)
            except KeyboardInterrupt:
                report.line(f"{sweep.name}: stopped; what is done is kept, call it again to go on")
                raise
            finally:  # what a stopped sweep's workers left half done
                clear(new[0].folder.parent)
    return [
        Outcome(point, p, errors.get(p.key)) for p, point in zip(plans, sweep.points, strict=True)
    ]


@contextmanager
def _client(scheduler: str | None, workers: int, report: Report) -> Iterator[Client]:
    """Connect to a cluster, or start workers on this machine that share its cores' threads."""
    logging.getLogger("distributed.client").setLevel(logging.CRITICAL)  # we say it in our words
    if scheduler is not None:
        try:
            client = Client(scheduler, timeout=30)
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
    client: Client,
    new: list[Plan],
    sweep: Sweep,
    device: str | None,
    timeout: float | None,
    labels: dict[str, str],
    report: Report,
) -> dict[str, str]:
    """Run plans as they find workers; returns the errors of those that failed."""
    points = dict(zip(labels, sweep.points, strict=True))
    futures = {}
    for p in new:
        given = sweep.fixed | points[p.key]
        options = {"profile": p.profile, "given": given, "device": device, "timeout": timeout}
        key = f"tokenspace-{p.key}"  # two sweeps on one cluster share a run that both want
        futures[client.submit(work, p.root, p.notebook, options, key=key, pure=False)] = p
    errors: dict[str, str] = {}
    for future in as_completed(futures):
        p = futures[future]
        error = _error(future)
        if error is None and not p.folder.is_dir():
            error = f"done, but not in {p.folder}: its worker's checkout, disk or cwd isn't ours"
        if error is not None:
            errors[p.key] = error
        report.end(labels[p.key], "done" if error is None else f"failed\n{error}")
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


def work(root: Path, notebook: str, options: dict[str, Any]) -> str | None:
    """Run one notebook on a worker and return its error, if it failed.

    >>> work(Path("/nowhere"), "hub/toy", {}).endswith("needs a disk that its machines share")
    True
    """
    if not root.is_dir():
        return f"{platform.node()} has no {root}: a cluster needs a disk that its machines share"
    try:
        run_notebooks([notebook], root=root, quiet=True, **options)
    except TokenspaceError as error:
        return COLOUR.sub("", str(error))
    return None
