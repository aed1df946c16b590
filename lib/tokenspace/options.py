"""Options that several commands share."""

from typing import Annotated, Literal

import typer

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
Place = Annotated[Device | None, typer.Option(help="Where to compute.")]
