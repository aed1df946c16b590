"""Options that several commands share, and what they do alike with them."""

import json
from typing import Annotated, Any, Literal

import typer

Device = Literal["auto", "cpu", "cuda"]
Profile = Annotated[str, typer.Option(help="Values from notebooks/profiles/PROFILE.yaml.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]
Jobs = Annotated[int | None, typer.Option(min=1, help="Notebooks at once; default: one a core.")]
Force = Annotated[bool, typer.Option("--force", help="Run again what was run before.")]
Timeout = Annotated[float | None, typer.Option(min=0.1, help="Seconds each notebook may take.")]
Place = Annotated[Device | None, typer.Option(help="Where to compute.")]
PRINTED: dict[str, Any] = {"highlight": False, "markup": False, "soft_wrap": True}
"""How rich prints a line of text as it is."""


def echo_json(value: Any) -> None:
    """Print JSON; a number that JSON can't hold is an error."""
    typer.echo(json.dumps(value, indent=1, ensure_ascii=False, allow_nan=False))
