"""The `tokenspace` command. What a command needs is imported inside it, so that help is quick."""

import io
import os
import signal
import sys
from collections.abc import Callable
from types import FrameType
from typing import Annotated, Any, NoReturn

import typer
from typer.core import TyperGroup

from tokenspace.cli import editions, read, runs
from tokenspace.errors import ParameterError, TokenspaceError


class Group(TyperGroup):
    """Commands whose errors for people come without a traceback, unless --debug asks for it."""

    def main(self, *args: Any, **options: Any) -> Any:
        """Print what a terminal's encoding lacks as `?`, in helps too, rather than fail at it."""
        for stream in (sys.stdout, sys.stderr):
            if isinstance(stream, io.TextIOWrapper):
                stream.reconfigure(errors="replace")
        return super().main(*args, **options)

    def invoke(self, ctx: Any) -> Any:
        """Run the command; an error becomes a line and an exit code."""
        try:
            return super().invoke(ctx)
        except TokenspaceError as error:
            if ctx.params.get("debug"):
                raise
            typer.echo(f"error: {error}", err=True)
            code = 2 if isinstance(error, ParameterError) else getattr(error, "exit_code", 1)
            raise typer.Exit(code) from None


app = typer.Typer(
    cls=Group, no_args_is_help=True, add_completion=False, pretty_exceptions_enable=False
)
READ = (read.dimension, read.tables, read.curvature)
RUN = (runs.run, runs.sync, runs.claims, runs.sweep)
COMMANDS: tuple[Callable[..., None], ...] = (*READ, *RUN, *editions.COMMANDS)
for command in COMMANDS:
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
