"""Options that several commands take, and how they print."""

import json
from collections.abc import Iterable
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

if TYPE_CHECKING:
    from rich.table import Table

Device = Annotated[Literal["auto", "cpu", "cuda"], typer.Option(help="Where to compute.")]
Place = Annotated[Literal["auto", "cpu", "cuda"] | None, typer.Option(help="Where to compute.")]
Profile = Annotated[str, typer.Option(help="Values from notebooks/profiles/PROFILE.yaml.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]
Jobs = Annotated[int | None, typer.Option(min=1, help="Notebooks at once; default: one a core.")]
Force = Annotated[bool, typer.Option("--force", help="Run again what was run before.")]
Timeout = Annotated[float | None, typer.Option(min=0.1, help="Seconds each notebook may take.")]


def echo_json(value: Any) -> None:
    """Print JSON; a number that JSON can't hold is an error."""
    typer.echo(json.dumps(value, indent=1, ensure_ascii=False, allow_nan=False))


def table(title: str | None, texts: Iterable[str], numbers: Iterable[str]) -> "Table":
    """Begin a table: columns of text, then columns of numbers."""
    from rich.table import Table

    begun = Table(*texts, title=title)
    for name in numbers:
        begun.add_column(name, justify="right", no_wrap=True)
    return begun


def echo(*shown: Any) -> None:
    """Print tables, and lines of text as they are."""
    from rich.console import Console

    out = Console()
    for each in shown:
        out.print(each, highlight=False, markup=False, soft_wrap=isinstance(each, str))
