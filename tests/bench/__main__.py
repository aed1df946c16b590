"""Measures every row in processes of their own, and writes one table: `make bench`."""

import json
import statistics
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any

import pandas as pd
import typer
from dask.system import cpu_count
from markdown_it import MarkdownIt
from tests.bench.measure import in_process
from tests.bench.rows import ROWS, Row
from tqdm import tqdm

from tokenspace.files import find_root, write
from tokenspace.press.environment import commit, processor, versions

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)
LONG = 30  # seconds of a row after which two pairs are enough
NAMES = "Rows to measure alone, by the beginning of a name: neighbours, chess, ..."


@app.command()
def bench(
    names: Annotated[list[str] | None, typer.Argument(help=NAMES, show_default="all")] = None,
    runs: Annotated[int, typer.Option(min=1, help="Pairs a row.")] = 3,
    threads: Annotated[
        list[int] | None,
        typer.Option(help="Threads of every row; default: all cores, and 1 where that teaches."),
    ] = None,
    slow: Annotated[bool, typer.Option(help="Also the rows of more than five minutes.")] = False,
    out: Annotated[Path | None, typer.Option(help="Folder, instead of build/bench.")] = None,
) -> None:
    """Time each row against its peer.

    Writes bench.json and its table as bench.md, which the next `tokenspace book` takes into the
    book, and index.html, which opens alone. A measurement is a process of its own; ours and the
    peer's take turns, and the ratio is the median over pairs. Nothing is asserted. Run it on a
    machine that does nothing else.
    """
    chosen = [n for n in ROWS if n.startswith(tuple(names or [""])) and (slow or not ROWS[n].slow)]
    if not chosen:
        raise typer.BadParameter(f"nothing begins so; there is: {', '.join(ROWS)}")
    all_cores = [cpu_count()]
    todo = [
        (name, count)
        for name in chosen
        for count in threads or sorted({1, *all_cores} if ROWS[name].single else all_cores)
    ]
    found = [compare(n, ROWS[n], runs, count) for n, count in tqdm(todo, desc="rows", unit="row")]
    of = ", ".join(f"{name} {version}" for name, version in versions().items())
    when = datetime.now(UTC).isoformat(timespec="minutes")
    about = f"{processor()}, {cpu_count()} cores; {of}; commit {commit(find_root())[:12]}; {when}."
    folder = out or find_root() / "build" / "bench"
    folder.mkdir(parents=True, exist_ok=True)
    records = [{**record, "about": about} for record in found]
    write(folder / "bench.json", json.dumps(records, indent=1, ensure_ascii=False))
    text = page(found, about)
    write(folder / "bench.md", text)
    write(folder / "index.html", MarkdownIt("commonmark").enable("table").render(text))


def page(records: list[dict[str, Any]], about: str) -> str:
    """Write the measurements as a page: where they come from, a table, the missed targets."""
    table = pd.DataFrame(
        {
            "row": row["name"],
            "peer": row["peer"],
            "threads": row["threads"],
            "ours, s": f"{row['ours_s']:.3g}",
            "peer, s": "–" if row["peer_s"] is None else f"{row['peer_s']:.3g}",
            "ratio": "{:.2g} ({:.2g} to {:.2g})".format(row["ratio"], *row["spread"]),
            "target": f"{row['target']:g}",
            "our peak, MB": f"{row['peak_mb']:.0f}",
        }
        for row in records
    )
    missed = [
        f"- {row['name']}: {row['ratio'] / row['target'] - 1:.0%} above {row['target']:g}. "
        f"{row['why']}"
        for row in records
        if row["ratio"] > row["target"]
    ]
    lines = [
        "# Bench",
        "Each row times a call of ours and one of a peer that does the same, in turn, in processes "
        "of their own with the same number of threads. Below 1 we are faster, or hold less. Where "
        "a row has no peer it is memory against a limit.",
        about,
        table.to_markdown(index=False, disable_numparse=True),
        "## Missed targets",
        "\n".join(missed or ["None."]),
    ]
    return "\n\n".join(lines) + "\n"


def compare(name: str, row: Row, runs: int, threads: int) -> dict[str, Any]:
    """Measure ours and theirs in turn; the ratio is the median over pairs.

    Pairs that take long vary little: two are enough.
    """
    ours, theirs, start = [], [], time.perf_counter()
    for _ in range(runs if row.theirs else 1):
        if len(ours) > 1 and time.perf_counter() - start > LONG:
            break
        ours.append(in_process(name, "ours", threads))
        if row.theirs:
            theirs.append(in_process(name, "theirs", threads))
    peak = max(each["peak_mb"] for each in ours)
    share = row.work[0] / row.work[1]
    of = "held_mb" if row.unit == "memory" else "seconds"
    pairs = [a[of] / b[of] / share for a, b in zip(ours, theirs, strict=False)]
    pairs = pairs or [peak / row.target]
    return {
        "name": name,
        "peer": row.peer,
        "threads": threads,
        "ours_s": statistics.median(each["seconds"] for each in ours),
        "peer_s": share * statistics.median(each["seconds"] for each in theirs) if theirs else None,
        "ratio": statistics.median(pairs),
        "spread": [min(pairs), max(pairs)],
        "target": row.target if row.theirs else 1.0,
        "peak_mb": peak,
        "why": row.why,
    }


if __name__ == "__main__":
    app()
