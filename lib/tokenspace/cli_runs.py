"""The commands for many runs: `tokenspace sweep`, `tokenspace runs` and `claims --diff`."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tokenspace.errors import ParameterError, RunError
from tokenspace.options import Json, Place, Timeout, echo_json

if TYPE_CHECKING:
    from tokenspace.press.runs import Stored

Notebooks = Annotated[
    list[str] | None, typer.Argument(metavar="[PART/NOTEBOOK...]", show_default=False)
]

runs = typer.Typer(no_args_is_help=True, help="List, show and remove the runs in build/runs.")


def sweep(
    spec: Annotated[str, typer.Argument(metavar="SPEC.yaml", show_default=False)],
    profile: Annotated[
        str | None, typer.Option(help="Another profile than the file's.", show_default=False)
    ] = None,
    workers: Annotated[
        int | None, typer.Option(min=1, help="Runs at once here; default: one a core.")
    ] = None,
    scheduler: Annotated[
        str | None,
        typer.Option(metavar="ADDRESS", help="An existing Dask cluster, such as tcp://host:8786."),
    ] = None,
    device: Place = None,
    timeout: Timeout = None,
) -> None:
    """Run a notebook at many values; prints the table of all results as the last line.

    SPEC.yaml is a file, or the name of one in notebooks/sweeps. What is done isn't repeated: call
    it again to go on. Exits with 2 for a refused parameter, 1 when a run failed.
    """
    from tokenspace.press.costs import forecast
    from tokenspace.press.layout import find_root
    from tokenspace.press.sweeps import sweep_results, sweep_spec
    from tokenspace.press.sweeps.sweep import run_sweep
    from tokenspace.sources.sizes import Sizes

    root = find_root()
    wanted = sweep_spec.read(sweep_spec.find(root, spec), profile=profile)
    plans = wanted.plans(root, device=device)
    if total := forecast.sweep_total(root, plans, workers, Sizes(network=False)):
        typer.echo(f"planned: {total}", err=True)
    outcomes = run_sweep(
        wanted, plans, device=device, timeout=timeout, workers=workers, scheduler=scheduler
    )
    path = sweep_results.save(root, wanted, outcomes)
    typer.echo(path.with_name("summary.md"))
    typer.echo(path)
    failed = [o for o in outcomes if o.error is not None]
    if failed:
        lines = [f"{sweep_spec.label(o.point)}: {sweep_results.last_line(o.error)}" for o in failed]
        count = f"{len(failed)} of {len(outcomes)} runs failed"
        raise RunError("\n  ".join([f"{count}; call it again to retry them:", *lines]))


@runs.command("list")
def list_runs(notebooks: Notebooks = None, as_json: Json = False) -> None:
    """List runs, with whether they are current: what they were made from hasn't changed since."""
    from tokenspace.console import show_runs
    from tokenspace.press.layout import find_root
    from tokenspace.press.runs import stored

    found = _of(notebooks, stored(find_root()))
    if as_json:
        echo_json([run.record() for run in found])
    else:
        show_runs(found)


@runs.command()
def show(
    key: Annotated[str, typer.Argument(help="The first digits of the run's key.")],
    as_json: Json = False,
) -> None:
    """Show a run's parameters, what it ran on, and its claims."""
    from tokenspace.console import show_run
    from tokenspace.press.layout import find_root
    from tokenspace.press.runs import find
    from tokenspace.press.runs import show as describe

    about = describe(find(find_root(), key))
    if as_json:
        echo_json(about)
    else:
        show_run(about)


@runs.command()
def prune(
    notebooks: Notebooks = None,
    everything: Annotated[
        bool, typer.Option("--all", help="Current runs too, except those the book uses.")
    ] = False,
    yes: Annotated[bool, typer.Option("--yes", help="Don't ask.")] = False,
) -> None:
    """Remove stale and failed runs, never one that the book uses at any profile."""
    from tokenspace.console import show_runs
    from tokenspace.press.layout import find_root
    from tokenspace.press.runs import removable, remove

    found = _of(notebooks, removable(find_root(), current=everything))
    if not found:
        typer.echo("nothing to remove")
        return
    show_runs(found)
    size = sum(run.megabytes for run in found)
    if not yes and not typer.confirm(f"Remove {len(found)} runs, {size:.1f} MB?"):
        raise RunError("nothing was removed")
    count = sum(1 for _ in remove(found))
    typer.echo(f"{count} runs removed, {size:.1f} MB")


def compare(root: Path, before: str, after: str, *, as_json: bool) -> int:
    """Show what became of a notebook's claims between two runs; 1 where a verdict differs."""
    from tokenspace.console import show_comparison
    from tokenspace.press import changes

    found = changes.compare(root, before, after)
    if as_json:
        echo_json(found.record())
    else:
        show_comparison(found)
    return int(found.verdicts > 0)


def _of(notebooks: list[str] | None, found: "list[Stored]") -> "list[Stored]":
    known = {run.notebook for run in found}
    for name in notebooks or []:
        if name not in known:
            names = ", ".join(sorted(known)) or "none"
            raise ParameterError(f"no such runs of {name!r} (there are of: {names})")
    return [run for run in found if not notebooks or run.notebook in notebooks]
