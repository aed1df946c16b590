"""Measures every row in processes of their own, and writes one table: `make bench`."""

import json
import statistics
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any

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
    rows = {n: row for n, row in ROWS.items() if _chosen(n, names) and (slow or not row.slow)}
    if not rows:
        raise typer.BadParameter(f"nothing begins so; there is: {', '.join(ROWS)}")
    todo = [(name, count) for name, row in rows.items() for count in _threads(row, threads)]
    folder = out or find_root() / "build" / "bench"
    found = [compare(n, ROWS[n], runs, count) for n, count in tqdm(todo, desc="rows", unit="row")]
    about = {
        "machine": f"{processor()}, {cpu_count()} cores",
        "versions": versions(),
        "commit": commit(find_root()),
        "measured": datetime.now(UTC).isoformat(timespec="minutes"),
    }
    records = [{**record, **about} for record in found]
    folder.mkdir(parents=True, exist_ok=True)
    write(folder / "bench.json", json.dumps(records, indent=1, ensure_ascii=False))
    write(folder / "bench.md", page(records))
    write(folder / "index.html", MarkdownIt("commonmark").enable("table").render(page(records)))


def page(records: list[dict[str, Any]]) -> str:
    """Write the measurements as a page: where they come from, a table, the missed targets."""
    about = records[0]
    versions = ", ".join(f"{name} {version}" for name, version in about["versions"].items())
    lines = [
        "# Bench",
        "",
        "Each row times a call of ours and one of a peer that does the same, in turn, in processes "
        "of their own with the same number of threads. Below 1 we are faster, or hold less. Where "
        "a row has no peer it is memory against a limit.",
        "",
        f"{about['machine']}; {versions}; commit {about['commit'][:12]}; {about['measured']}.",
        "",
        "| row | peer | threads | ours, s | peer, s | ratio | target | our peak, MB |",
        "|:--|:--|--:|--:|--:|--:|--:|--:|",
    ]
    missed = []
    for row in records:
        low, high = row["spread"]
        theirs = "–" if row["peer_s"] is None else f"{row['peer_s']:.3g}"
        lines.append(
            f"| {row['name']} | {row['peer']} | {row['threads']} | {row['ours_s']:.3g} | {theirs} "
            f"| {row['ratio']:.2g} ({low:.2g} to {high:.2g}) | {row['target']:g} "
            f"| {row['peak_mb']:.0f} |"
        )
        if row["ratio"] > row["target"]:
            over = row["ratio"] / row["target"] - 1
            missed.append(f"- {row['name']}: {over:.0%} above {row['target']:g}. {row['why']}")
    return "\n".join([*lines, "", "## Missed targets", "", *(missed or ["None."]), ""])


def _chosen(name: str, names: list[str] | None) -> bool:
    return not names or any(name.startswith(begin) for begin in names)


def _threads(row: Row, threads: list[int] | None) -> list[int]:
    return threads or sorted({1, cpu_count()} if row.single else {cpu_count()})


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
    if row.theirs:
        of = "held_mb" if row.unit == "memory" else "seconds"
        pairs = [a[of] / b[of] / share for a, b in zip(ours, theirs, strict=True)]
    else:
        pairs = [peak / row.target]
    return {
        "name": name,
        "part": row.part,
        "unit": row.unit,
        "ours_s": statistics.median(each["seconds"] for each in ours),
        "peer": row.peer,
        "peer_s": share * statistics.median(each["seconds"] for each in theirs) if theirs else None,
        "ratio": statistics.median(pairs),
        "target": row.target if row.theirs else 1.0,
        "lower_is_better": True,
        "threads": threads,
        "runs": len(ours),
        "spread": [min(pairs), max(pairs)],
        "peak_mb": peak,
        "why": row.why,
    }


if __name__ == "__main__":
    app()
