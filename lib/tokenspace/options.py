"""Options that several commands share, and what they do alike with them."""

import json
from typing import Annotated, Any, Literal

import typer

from tokenspace.errors import ParameterError

Device = Literal["auto", "cpu", "cuda"]
Profile = Annotated[str, typer.Option(help="Values from notebooks/profiles/PROFILE.yaml.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]
Difference = Annotated[
    tuple[str, str] | None,
    typer.Option(
        "--diff",
        metavar="RUN_A RUN_B",
        help="Compare two runs of one notebook, each its folder or its key's first digits.",
        show_default=False,
    ),
]
Jobs = Annotated[int | None, typer.Option(min=1, help="Notebooks at once; default: one a core.")]
Force = Annotated[bool, typer.Option("--force", help="Run again what was run before.")]
Timeout = Annotated[float | None, typer.Option(min=0.1, help="Seconds each notebook may take.")]
Notebooks = Annotated[
    list[str] | None, typer.Argument(metavar="PART/NOTEBOOK...", show_default=False)
]
Parameters = Annotated[
    list[str] | None,
    typer.Option("-p", "--parameter", metavar="NAME=VALUE", help="Set a parameter."),
]
Place = Annotated[Device | None, typer.Option(help="Where to compute.")]


def chosen(notebooks: list[str] | None, everything: bool, known: list[str], verb: str) -> list[str]:
    """Give the notebooks that were named, or with --all every one; `ParameterError` for neither."""
    if everything == bool(notebooks):
        listed = ", ".join(known) or "none"
        raise ParameterError(f"name the notebooks to {verb}, or --all. Known: {listed}")
    return notebooks or known


def place(device: str) -> str:
    """Choose where to compute, a GPU for `auto` if there is one; `ParameterError` without it."""
    import torch

    from tokenspace.press.plan import check_device

    check_device(device)
    if device != "auto":
        return device
    return "cuda" if torch.cuda.is_available() else "cpu"


def echo_json(value: Any) -> None:
    """Print JSON; a number that JSON can't hold is an error."""
    typer.echo(json.dumps(value, indent=1, ensure_ascii=False, allow_nan=False))
