"""The command that reads a text of one's own: `tokenspace curvature`."""

import time
from typing import Annotated

import typer

from tokenspace.options import Device, Json, echo_json, place


def curvature(
    text: Annotated[str, typer.Argument(metavar="TEXT", show_default=False)],
    model: Annotated[
        str, typer.Option(help="A packaged model, a model folder, or an id on the Hub.")
    ] = "smollm2",
    more: Annotated[int, typer.Option(min=0, help="Likeliest tokens to add to the text.")] = 0,
    as_json: Json = False,
    device: Annotated[Device, typer.Option(help="Where to compute.")] = "auto",
) -> None:
    """Read a text's sampling curvature: after each token the two candidates, and what they span.

    TEXT is a sentence in quotes. Exits with 2 for a blank or too long text.
    """
    from tokenspace.console import show_sentence
    from tokenspace.curvature import load_reader, read_sentence

    began = time.perf_counter()
    reader = load_reader(model, device=place(device))
    told = {
        "model": model,
        "text": text,
        **read_sentence(reader, text, more=more),
        "norm_module": reader.norm,
        "tied": reader.tied,
        "seconds": round(time.perf_counter() - began, 2),
    }
    if as_json:
        echo_json(told)
    else:
        show_sentence(told)
