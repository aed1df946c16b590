"""A sweep: one notebook at many values, on Dask on this machine or on any cluster.

Dask gives a lost worker's run to another one (`allowed-failures` times, three unless its
configuration says otherwise). A notebook that fails is an answer, not an exception, and is not
tried again. What is done lies in the runs' own folders, so a sweep can be stopped and called again.
"""

import hashlib
import itertools
import logging
import math
import os
import platform
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from dask.system import cpu_count
from distributed import Client, KilledWorker, as_completed
from pydantic import BaseModel, Field, ValidationError

from tokenspace.errors import ParameterError, RunError, TokenspaceError, nearest
from tokenspace.press.job import COLOUR, THREADS, clear
from tokenspace.press.plan import PROFILE, Plan, load_yaml, plans
from tokenspace.press.progress import Report
from tokenspace.press.runner import run_notebooks

LIMIT = 1000  # runs, unless the file says otherwise: a slip of a grid shouldn't fill a cluster
ANSWER_LIMIT = 30  # seconds a cluster's scheduler may take to answer


class Sweep(BaseModel, extra="forbid", strict=True):
    """A sweep's file. `grid` maps parameters to the values that are combined with one another,
    `list` holds points that are written out; with both, every point is run at all of the grid."""

    name: str
    notebook: str
    title: str = ""
    profile: str = PROFILE
    parameters: dict[str, Any] = {}
    grid: dict[str, list[Any]] = {}
    points: list[dict[str, Any]] = Field([{}], alias="list")
    limit: int = LIMIT

    def varied(self) -> list[dict[str, Any]]:
        """List what varies, run by run; `ParameterError` for none, too many, or a name twice."""
        listed = set().union(*self.points)
        if not self.grid and not listed:
            raise ParameterError("nothing varies: give a grid or a list of values")
        places = {"parameters": set(self.parameters), "list": listed, "grid": set(self.grid)}
        for (one, first), (other, second) in itertools.combinations(places.items(), 2):
            if both := sorted(first & second):
                raise ParameterError(f"{', '.join(both)} in both {one} and {other}: keep one")
        count = len(self.points) * math.prod(map(len, self.grid.values()))
        if not 0 < count <= self.limit:
            sizes = " x ".join(f"{len(values)} {name}" for name, values in self.grid.items())
            raise ParameterError(
                f"{count:,} runs ({sizes or 'list'}), where 1 to {self.limit:,} may be: change the "
                f"values, or write `limit: {count}` if you mean it"
            )
        combined = itertools.product(self.points, *self.grid.values())
        return [point | dict(zip(self.grid, values, strict=True)) for point, *values in combined]


@dataclass
class SweepRun:
    """One run of a sweep: what varies, the plan, and the run's error if it failed."""

    point: dict[str, Any]
    plan: Plan
    error: str | None = None

    def __str__(self) -> str:
        return " ".join(f"{name}={value}" for name, value in self.point.items())


def sweeps(root: Path) -> dict[str, Path]:
    """List the sweeps that the repository ships."""
    return {path.stem: path for path in sorted((root / "notebooks" / "sweeps").glob("*.yaml"))}


def read(root: Path, word: str, profile: str | None = None) -> Sweep:
    """Read a sweep's file by its path, or a shipped one by its name; raises `ParameterError`.

    Another file's name has a hash of its place, so that two of one name don't share their results.
    """
    shipped = sweeps(root)
    path = shipped.get(word, Path(word))
    if not path.is_file():
        known = ", ".join(shipped) or "none"
        raise ParameterError(f"no sweep file {word!r}{nearest(word, shipped)} (shipped: {known})")
    mark = hashlib.sha256(str(path.resolve()).encode()).hexdigest()[:6]
    ours = {"name": path.stem if word in shipped else f"{path.stem}-{mark}"}
    if profile is not None:
        ours["profile"] = profile
    spec = load_yaml(path)
    try:
        return Sweep.model_validate(spec | ours if isinstance(spec, dict) else spec)
    except ValidationError as error:
        raise ParameterError(f"{path}: {'; '.join(map(_wrong, error.errors()))}") from None


def _wrong(error: Mapping[str, Any]) -> str:
    """Say what pydantic found in a sweep's file."""
    field = ".".join(map(str, error["loc"]))
    if error["type"] == "extra_forbidden":
        return f"unknown field {field!r}{nearest(field, (*Sweep.model_fields, 'list'))}"
    return f"{field or 'a sweep'}: {error['msg']}, not {error['input']!r}"


def runs_of(root: Path, sweep: Sweep, device: str | None = None) -> list[SweepRun]:
    """Work out every run; raises `ParameterError` for what can't be run, before anything is."""
    try:
        points = sweep.varied()
        given = [sweep.parameters | point for point in points]
        found = plans(root, sweep.notebook, given, profile=sweep.profile, device=device)
        runs = [SweepRun(point, plan) for point, plan in zip(points, found, strict=True)]
        first: dict[str, int] = {}
        for number, run in enumerate(runs, 1):
            if (other := first.setdefault(run.plan.key, number)) != number:
                raise ParameterError(f"runs {other} and {number} are the same, {run}: keep one")
    except ParameterError as error:
        raise ParameterError(f"sweep {sweep.name}: {error}") from None
    return runs


def run_sweep(
    root: Path,
    sweep: Sweep,
    *,
    device: str | None = None,
    timeout: float | None = None,
    workers: int | None = None,
    scheduler: str | None = None,
) -> list[SweepRun]:
    """Run what isn't there yet and return every run, in the sweep's order.

    `workers` run at once on this machine (default: one a core), or the cluster behind `scheduler`
    does. Raises `ParameterError` before anything starts, `RunError` when no cluster answers.
    """
    runs = runs_of(root, sweep, device)
    new = [run for run in runs if not run.plan.is_done]
    options = {"profile": sweep.profile, "device": device, "timeout": timeout}
    task = partial(work, root, sweep.notebook, sweep.parameters, options)
    with Report(len(new)) as report:
        if len(new) < len(runs):
            there = f"{len(runs) - len(new)} of {len(runs)} were already there"
            report.line(f"{sweep.name}: {there}{'' if new else '; nothing to do'}")
        try:
            if new:
                with _client(scheduler, min(workers or cpu_count(), len(new))) as client:
                    _run(client, task, new, report)
        except KeyboardInterrupt:
            report.line(f"{sweep.name}: stopped; what is done is kept, call it again to go on")
            raise
        finally:  # what a stopped sweep's workers left half done
            clear(runs[0].plan.folder.parent)
    return runs


def _client(scheduler: str | None, workers: int) -> Client:
    """Connect to a cluster, or start workers on this machine that share its cores' threads."""
    logging.getLogger("distributed.client").setLevel(logging.CRITICAL)  # we say it in our words
    if scheduler is not None:
        try:
            return Client(scheduler, timeout=ANSWER_LIMIT)
        except (OSError, ValueError) as error:
            raise RunError(f"no Dask scheduler answers at {scheduler}: {error}") from None
    threads = str(max(1, cpu_count() // workers))
    return Client(
        n_workers=workers,
        threads_per_worker=1,  # a run at a time each
        memory_limit=None,  # the memory is in the kernels, which Dask doesn't see
        dashboard_address=None,
        silence_logs=logging.CRITICAL,
        env={name: os.environ.get(name, threads) for name in THREADS},
    )


def _run(client: Client, task: Any, runs: list[SweepRun], report: Report) -> None:
    """Run points as they find workers, and note the errors of those that fail."""
    if not client.scheduler_info(n_workers=-1)["workers"]:
        report.line("no worker is there yet; runs start when the first joins")
    keys = [f"tokenspace-{run.plan.key}" for run in runs]  # two sweeps of a cluster share a run
    futures = client.map(task, [run.point for run in runs], key=keys, pure=False)
    of = dict(zip(futures, runs, strict=True))
    for future in as_completed(futures):
        run, folder = of[future], of[future].plan.folder
        if future.status == "finished":
            run.error = future.result()
        else:
            run.error = explained(future.exception() if future.status == "error" else None)
        if run.error is None and not folder.is_dir():
            run.error = f"done, but not in {folder}: its worker's checkout, disk or cwd isn't ours"
        report.end(str(run), f"failed\n{run.error}" if run.error else "done")


def explained(error: BaseException | None) -> str:
    """Say what kept Dask from running a notebook."""
    if isinstance(error, KilledWorker):
        return (
            f"{error.allowed_failures + 1} workers were lost while running it, the last of them "
            f"{error.last_worker.address}: most often their memory or a job's time ran out"
        )
    return f"{type(error).__name__}: {error}" if error else "the scheduler went away meanwhile"


def work(
    root: Path, notebook: str, fixed: dict[str, Any], options: dict[str, Any], point: dict[str, Any]
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
