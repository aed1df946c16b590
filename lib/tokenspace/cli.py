"""The `tokenspace` command. What a command needs is imported inside it, so that help is quick."""

import os
import signal
import sys
from types import FrameType
from typing import Annotated, Any, Literal, NoReturn

import typer
from typer.core import TyperGroup

from tokenspace import cli_book, cli_plan, cli_read, cli_runs, options
from tokenspace.errors import ParameterError, RunError, TokenspaceError
from tokenspace.options import (
    Device,
    Difference,
    Force,
    Jobs,
    Json,
    Notebooks,
    Parameters,
    Place,
    Profile,
    Timeout,
)


class Group(TyperGroup):
    """Commands whose errors for people come without a traceback, unless --debug asks for it."""

    def invoke(self, ctx: Any) -> Any:
        """Run the command; an error becomes a line and an exit code."""
        try:
            return super().invoke(ctx)
        except TokenspaceError as error:
            if ctx.params.get("debug"):
                raise
            typer.echo(f"error: {error}", err=True)
            raise typer.Exit(exit_code(error)) from None


def exit_code(error: TokenspaceError) -> int:
    """Give a command's exit code: 2 for a refused parameter, a run's own, 1 for the rest.

    >>> exit_code(ParameterError("x")), exit_code(RunError("x", 124)), exit_code(TokenspaceError())
    (2, 124, 1)
    """
    if isinstance(error, ParameterError):
        return 2
    return error.exit_code if isinstance(error, RunError) else 1


app = typer.Typer(
    cls=Group, no_args_is_help=True, add_completion=False, pretty_exceptions_enable=False
)
app.command()(cli_read.curvature)
app.command()(cli_plan.plan)
app.command()(cli_runs.sweep)
app.add_typer(cli_runs.runs, name="runs")
for command in cli_book.COMMANDS:
    app.command()(command)


@app.callback()
def main(
    debug: Annotated[bool, typer.Option("--debug", help="Show tracebacks of errors.")] = False,
) -> None:
    """Token embeddings: where they come from, what shape they have, what that does."""
    signal.signal(signal.SIGTERM, _terminated)
    # Threads that spin while they wait slow everything on a busy machine; torch reads this once.
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")


def _terminated(_number: int, _frame: FrameType | None) -> NoReturn:
    raise SystemExit(128 + signal.SIGTERM)  # unwinds, so that kernels end and folders are removed


@app.command()
def run(
    notebooks: Notebooks = None,
    parameter: Parameters = None,
    profile: Profile = "classroom",
    device: Place = None,
    everything: Annotated[bool, typer.Option("--all", help="Run every notebook.")] = False,
    timeout: Timeout = None,
    force: Force = False,
    jobs: Jobs = None,
) -> None:
    """Run notebooks; prints each run's folder, the last one's as the last line.

    Exits with 2 for a refused parameter, 1 for a failed cell, 124 for a timeout.
    """
    from tokenspace.press import layout
    from tokenspace.press.parameters import split
    from tokenspace.press.runner import run_notebooks

    root = layout.find_root()
    names = options.chosen(notebooks, everything, layout.notebooks(root), "run")
    runs = run_notebooks(
        names,
        root=root,
        profile=profile,
        given=split(parameter or []),
        device=device,
        timeout=timeout,
        force=force,
        jobs=jobs,
    )
    for finished in runs:
        typer.echo(finished.folder)


@app.command()
def sync(
    check: Annotated[bool, typer.Option("--check", help="Only say what differs.")] = False,
) -> None:
    """Write the .ipynb twin of every .py notebook, without outputs."""
    from tokenspace.press.layout import find_root
    from tokenspace.press.sync import sync as synchronize

    done = synchronize(find_root(), check=check)
    if check and done:
        raise RunError("\n".join([*done, "run `make sync`"]))
    for line in done or ["every .ipynb is in step with its .py"]:
        typer.echo(line)


@app.command()
def claims(
    profile: Profile = "classroom",
    diff: Difference = None,
    as_json: Json = False,
) -> None:
    """List the claims of the notebooks' runs at a profile, with verdicts; or compare two runs.

    With --diff it exits with 1 where a claim of both runs has another verdict, else with 0.
    """
    from tokenspace.press import layout
    from tokenspace.press.runner import finished

    root = layout.find_root()
    if diff:
        raise typer.Exit(cli_runs.compare(root, *diff, as_json=as_json))
    found: list[dict[str, Any]] = []
    for name in layout.notebooks(root):
        done = finished(root, name, profile)
        if done is None:
            typer.echo(
                f"{name} has no run as it stands: tokenspace run {name} --profile {profile}",
                err=True,
            )
        else:
            found += done.claims()
    if as_json:
        options.echo_json(found)
    else:
        from tokenspace.console import show_claims

        show_claims(found)


@app.command()
def dimension(
    tables: Annotated[list[str], typer.Argument(metavar="TABLE...", show_default=False)],
    as_json: Json = False,
    side: Annotated[Literal["input", "output"], typer.Option(help="Which matrix.")] = "input",
    queries: Annotated[
        int | None,
        typer.Option(min=2, help="Rows to read at, drawn by --seed; the table stays whole."),
    ] = None,
    tensor: Annotated[str | None, typer.Option(help="The tensor's name in the file.")] = None,
    revision: Annotated[str | None, typer.Option(help="A Hub model's commit or tag.")] = None,
    controls: Annotated[bool, typer.Option("--controls", help="Also remove random rows.")] = False,
    device: Annotated[Device, typer.Option(help="Where to compute.")] = "auto",
    seed: Annotated[int, typer.Option(help="Draws the queries.")] = 0,
) -> None:
    """Read a table's intrinsic dimension: full, without its hub of short rows, and normalized.

    TABLE is a packaged table's name (`tokenspace tables`), a .gguf, .safetensors or .npy file, or
    the id of a public model on the Hugging Face Hub. JSON is an object for one TABLE, else a list.
    """
    from tokenspace.console import show_reading
    from tokenspace.hub import read_dimension
    from tokenspace.sources import load_table

    where = options.place(device)
    found, errors = [], []
    for name in tables:
        try:
            table = load_table(name, side=side, tensor=tensor, revision=revision)
            reading = read_dimension(
                table,
                queries=queries,
                seed=seed,
                controls=controls,
                device=where,
                progress=sys.stderr.isatty() and not as_json,
            )
        except TokenspaceError as error:
            if len(tables) == 1:
                raise
            errors.append(str(error))
            continue
        found.append(reading.as_dict())
        if not as_json:
            show_reading(reading, table.origin)
    if as_json:
        options.echo_json(found[0] if len(tables) == 1 else found)
    if errors:
        raise RunError("\n".join(errors))


@app.command()
def tables(as_json: Json = False) -> None:
    """List the tables that need no network."""
    from dataclasses import asdict

    from tokenspace.console import show_tables
    from tokenspace.sources import packaged_tables

    found = packaged_tables()
    if as_json:
        options.echo_json([{**asdict(t), "installed": t.installed} for t in found])
    else:
        show_tables(found)
