"""A sweep: one notebook at many values, on Dask on this machine or on any cluster with its files.

Dask gives a lost worker's run to another one (`allowed-failures` times, three unless its
configuration says otherwise). A notebook that fails is an answer, not an exception, and is not
tried again. What is done lies in the runs' own folders, so a sweep can be stopped and called again.
"""

import itertools
import logging
import math
import os
import platform
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import Any

from distributed import Client, Future, KilledWorker, LocalCluster, as_completed

from tokenspace.errors import ParameterError, RunError, TokenspaceError
from tokenspace.press.environment import cores
from tokenspace.press.layout import nearest
from tokenspace.press.plan import PROFILE, Plan, load_yaml, plans
from tokenspace.press.progress import Report
from tokenspace.press.results import read_claims
from tokenspace.press.runner import COLOUR, THREADS, clear, run_notebooks

FIELDS = ("title", "notebook", "profile", "parameters", "grid", "list", "limit")
LIMIT = 1000  # runs, unless the file says otherwise: a slip of a grid shouldn't fill a cluster
ANSWER_LIMIT = 30  # seconds a cluster's scheduler may take to answer


@dataclass(frozen=True)
class Sweep:
    """What is run: `points` holds what varies, one for each run, `fixed` what doesn't."""

    name: str
    title: str
    notebook: str
    profile: str
    fixed: dict[str, Any]
    points: list[dict[str, Any]]
    path: Path

    def folder(self, root: Path) -> Path:
        """Give the folder of the sweep's results."""
        return root / "build" / "sweeps" / self.name / self.profile

    def check_folder(self, root: Path) -> None:
        """Raise `ParameterError` where the folder holds the results of another file."""
        said, ours = self.folder(root).parent / "spec", str(self.path.resolve())
        owner = said.read_text("utf-8").strip() if said.is_file() else ours
        if owner != ours and Path(owner).is_file():
            raise ParameterError(
                f"sweep {self.name}: {said.parent} holds the results of {owner}: give {ours} "
                "another name"
            )

    def plans(self, root: Path, *, device: str | None = None) -> list[Plan]:
        """Work out every run; raises `ParameterError` for what can't be run, before anything is."""
        given = [self.fixed | point for point in self.points]
        first: dict[str, int] = {}
        try:
            found = plans(root, self.notebook, given, profile=self.profile, device=device)
            for number, plan in enumerate(found, 1):
                if first.setdefault(plan.key, number) != number:
                    same = label(self.points[number - 1])
                    raise ParameterError(
                        f"runs {first[plan.key]} and {number} are the same, {same}: keep one"
                    )
        except ParameterError as error:
            raise ParameterError(f"sweep {self.name}: {error}") from None
        return found


def sweeps(root: Path) -> dict[str, Path]:
    """List the sweeps that the repository ships."""
    return {path.stem: path for path in sorted((root / "notebooks" / "sweeps").glob("*.yaml"))}


def find(root: Path, word: str) -> Path:
    """Find a sweep's file by its path, or a shipped one by its name; raises `ParameterError`."""
    shipped = sweeps(root)
    if word in shipped:
        return shipped[word]
    if not Path(word).is_file():
        known = ", ".join(shipped) or "none"
        raise ParameterError(f"no sweep file {word!r}{nearest(word, shipped)} (shipped: {known})")
    return Path(word)


def read(path: Path, *, profile: str | None = None) -> Sweep:
    """Read a sweep's file; raises `ParameterError` when it isn't one.

    `grid` maps parameters to the values that are combined with one another, `list` holds points
    that are written out; with both, every point of the list is run at every point of the grid.
    """
    spec = load_yaml(path)
    try:
        if not isinstance(spec, dict):
            raise ParameterError(f"write `notebook: PART/NAME` and the rest of {', '.join(FIELDS)}")
        for field in spec:
            if field not in FIELDS:
                raise ParameterError(f"unknown field {field!r}{nearest(str(field), FIELDS)}")
        return Sweep(
            name=path.stem,
            title=_text(spec, "title", path.stem),
            notebook=_text(spec, "notebook", None),
            profile=profile or _text(spec, "profile", PROFILE),
            fixed=_mapping(spec.get("parameters") or {}, "parameters"),
            points=points(spec),
            path=path,
        )
    except ParameterError as error:
        raise ParameterError(f"{path}: {error}") from None


def _text(spec: Mapping[str, Any], field: str, default: str | None) -> str:
    value = spec.get(field, default)
    if not isinstance(value, str) or not value.strip():
        raise ParameterError(f"{field} is {value!r}; write a text")
    return value


def _mapping(value: Any, field: str) -> dict[str, Any]:
    if not isinstance(value, dict) or not all(isinstance(name, str) for name in value):
        raise ParameterError(f"{field} must map parameters to values, not {value!r}")
    return value


def points(spec: Mapping[str, Any]) -> list[dict[str, Any]]:
    """List what varies, run by run; raises `ParameterError` for none, too many, or a name twice.

    >>> points({"grid": {"a": [1, 2]}, "list": [{"b": 3}, {"b": 4, "c": 5}]})
    [{'b': 3, 'a': 1}, {'b': 3, 'a': 2}, {'b': 4, 'c': 5, 'a': 1}, {'b': 4, 'c': 5, 'a': 2}]
    """
    grid = _mapping(spec.get("grid") or {}, "grid")
    for name, values in grid.items():
        if not isinstance(values, list):
            raise ParameterError(f"grid: {name} is {values!r}; list its values, [{values!r}, ...]")
        if not values:
            raise ParameterError(f"grid: {name} has no values")
    entries = spec.get("list") or [{}]
    if not isinstance(entries, list):
        raise ParameterError(f"list must hold one mapping for each run, not {entries!r}")
    entries = [_mapping(entry, "an entry of list") for entry in entries]
    if not grid and entries == [{}]:
        raise ParameterError("nothing varies, so there is nothing to run: give a grid or a list")
    fixed = set(spec.get("parameters") or {})
    places = {"parameters": fixed, "list": set().union(*entries), "grid": set(grid)}
    for (one, first), (other, second) in itertools.combinations(places.items(), 2):
        if both := sorted(first & second):
            raise ParameterError(f"{', '.join(both)} in both {one} and {other}: keep one")
    count, limit = len(entries) * math.prod(map(len, grid.values())), spec.get("limit", LIMIT)
    if not isinstance(limit, int) or count > limit:
        sizes = " x ".join(f"{len(values)} {name}" for name, values in grid.items())
        raise ParameterError(
            f"{count:,} runs ({sizes or 'list'}) are more than the limit of {limit!r}: take values "
            f"away, or write `limit: {count}` if you mean it"
        )
    combined = itertools.product(entries, *grid.values())
    return [{**entry, **dict(zip(grid, values, strict=True))} for entry, *values in combined]


def label(point: Mapping[str, Any]) -> str:
    """Write a point as words.

    >>> label({"gamma": 0.3, "tables": ["minilm"]})
    "gamma=0.3 tables=['minilm']"
    """
    return " ".join(f"{name}={value}" for name, value in point.items())


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
