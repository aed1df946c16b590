"""Run notebooks: several at once, none twice."""

from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dask.system import cpu_count
from rich.console import Console

from tokenspace.errors import RunError, TokenspaceError
from tokenspace.press.job import Job
from tokenspace.press.plan import PROFILE, plans
from tokenspace.press.progress import Report
from tokenspace.press.results import read_claims


@dataclass(frozen=True)
class Run:
    """A finished run: its folder holds `executed.ipynb`, `claims.json`, tables and the rest."""

    notebook: str
    folder: Path
    cached: bool

    def claims(self) -> list[dict[str, Any]]:
        """Read the run's claims."""
        return read_claims(self.folder)


def run_notebooks(
    names: Sequence[str],
    *,
    root: Path,
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
    once = [given or {}]
    found = [plans(root, n, once, profile=profile, device=device)[0] for n in names]
    new = {plan.folder: plan for plan in found if force or not plan.is_done}
    with Report(len(new), Console(quiet=True) if quiet else None) as report:
        for plan in found:
            if plan.folder not in new:
                report.line(f"{plan.notebook}: unchanged since it was last run")
        _run_all([Job(plan, report, timeout) for plan in new.values()], jobs or cpu_count(), force)
    return [Run(plan.notebook, plan.folder, cached=plan.folder not in new) for plan in found]


def finished(root: Path, notebook: str, profile: str = PROFILE) -> Run | None:
    """Give a notebook's run at a profile if it was run as everything stands now."""
    (plan,) = plans(root, notebook, [{}], profile=profile)
    return Run(plan.notebook, plan.folder, cached=True) if plan.is_done else None


def _run_all(jobs: list[Job], most: int, force: bool) -> None:
    """Run jobs, `most` at once; when all are done, raise one error for those that failed."""
    workers = max(1, min(len(jobs), most))
    threads = max(1, cpu_count() // workers)
    with ThreadPoolExecutor(workers) as pool:
        try:
            futures = [pool.submit(job.run, threads, force=force) for job in jobs]
            wait(futures)
        except BaseException:
            for job in jobs:
                job.kill()
            pool.shutdown(cancel_futures=True)
            raise
    errors = [error for future in futures if (error := future.exception())]
    if unexpected := [error for error in errors if not isinstance(error, TokenspaceError)]:
        raise unexpected[0]
    if errors:
        codes = {getattr(error, "exit_code", 1) for error in errors}
        raise RunError("\n\n".join(map(str, errors)), codes.pop() if len(codes) == 1 else 1)
