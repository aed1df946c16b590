"""The commands that run notebooks: `tokenspace run`, `sweep`, `sync` and `claims`."""

from collections.abc import Iterable
from typing import Annotated, Any

import typer

from tokenspace.cli.options import Force, Jobs, Json, Place, Profile, Timeout, echo, echo_json
from tokenspace.errors import ParameterError, RunError
from tokenspace.files import find_root


def run(
    notebooks: Annotated[
        list[str] | None, typer.Argument(metavar="PART/NOTEBOOK...", show_default=False)
    ] = None,
    parameter: Annotated[
        list[str] | None,
        typer.Option("-p", "--parameter", metavar="NAME=VALUE", help="Set a parameter."),
    ] = None,
    profile: Profile = "classroom",
    device: Place = None,
    everything: Annotated[bool, typer.Option("--all", help="Run every notebook.")] = False,
    timeout: Timeout = None,
    force: Force = False,
    jobs: Jobs = None,
) -> None:
    """Run notebooks; prints their claims, and each run's folder, the last one's as the last line.

    Exits with 2 for a refused parameter, 1 for a failed cell, 124 for a timeout.
    """
    from tokenspace.press.layout import notebooks as every
    from tokenspace.press.parameters import split
    from tokenspace.press.runner import run_notebooks

    root = find_root()
    known = every(root)
    if everything == bool(notebooks):
        listed = ", ".join(known) or "none"
        raise ParameterError(f"name the notebooks to run, or --all. Known: {listed}")
    done = run_notebooks(
        notebooks or known,
        root=root,
        profile=profile,
        given=split(parameter or []),
        device=device,
        timeout=timeout,
        force=force,
        jobs=jobs,
    )
    for finished in done:
        echo(*_claims(finished.claims()))
        typer.echo(finished.folder)


def sync(
    check: Annotated[bool, typer.Option("--check", help="Only say what differs.")] = False,
) -> None:
    """Write the .ipynb twin of every .py notebook, without outputs."""
    from tokenspace.press.sync import sync as synchronize

    done = synchronize(find_root(), check=check)
    if check and done:
        raise RunError("\n".join([*done, "run `make sync`"]))
    for line in done or ["every .ipynb is in step with its .py"]:
        typer.echo(line)


def claims(profile: Profile = "classroom", as_json: Json = False) -> None:
    """List the claims of the notebooks' runs at a profile, with verdicts."""
    from tokenspace.press.layout import notebooks
    from tokenspace.press.runner import finished

    root = find_root()
    found: list[dict[str, Any]] = []
    for name in notebooks(root):
        if done := finished(root, name, profile):
            found += done.claims()
        else:
            again = f"tokenspace run {name} --profile {profile}"
            typer.echo(f"{name} has no run as it stands: {again}", err=True)
    if as_json:
        echo_json(found)
    else:
        echo(*_claims(found))


def _claims(claims: Iterable[dict[str, Any]]) -> Iterable[str]:
    """Write claims, one a line: verdict, id, what is claimed, our number, the band, the paper's."""
    from tokenspace.format import interval, number
    from tokenspace.press.claims import VERDICTS

    for claim in claims:
        ours = number(claim["ours"], claim["uncertainty"])
        facts = f"{ours}, holds if {interval(claim['band'])}"
        paper = f"; paper: {claim['paper']}" if claim["paper"] else ""
        verdict = VERDICTS[claim["verdict"]].removesuffix(" at this scale")
        statement = claim["statement"].rstrip(".")
        yield f"{verdict:<14}  {claim['id']}: {statement}. Ours {facts}{paper}"


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
    from tokenspace.press.sweep import read, run_sweep
    from tokenspace.press.sweep_page import last_line, save

    root = find_root()
    wanted = read(root, spec, profile)
    runs = run_sweep(
        root, wanted, device=device, timeout=timeout, workers=workers, scheduler=scheduler
    )
    path = save(root, wanted, runs)
    typer.echo(path.with_name("summary.md"))
    typer.echo(path)
    if failed := [f"{run}: {last_line(run.error)}" for run in runs if run.error is not None]:
        count = f"{len(failed)} of {len(runs)} runs failed"
        raise RunError("\n  ".join([f"{count}; call it again to retry them:", *failed]))
