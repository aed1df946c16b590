"""Measures every row and curve in processes of their own, and writes the page: `make bench`."""

import json
import statistics
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any

import typer
from tests.bench.curves import CURVES, SERIES, record
from tests.bench.measure import in_process
from tests.bench.rows import ROWS, Row
from tqdm import tqdm

from tokenspace.press.benches import bench as page
from tokenspace.press.environment import commit, cores, processor, versions
from tokenspace.press.layout import find_root
from tokenspace.press.sync import write

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)
LONG = 30  # seconds of a row after which two pairs are enough
NAMES = "Rows or curves to measure alone, by the beginning of a name: neighbours, chess, ..."


@app.command()
def bench(
    names: Annotated[list[str] | None, typer.Argument(help=NAMES, show_default="all")] = None,
    runs: Annotated[int, typer.Option(min=1, help="Pairs a row; a curve's sizes: 2 at most.")] = 3,
    threads: Annotated[
        list[int] | None,
        typer.Option(help="Threads of every row; default: all cores, and 1 where that teaches."),
    ] = None,
    slow: Annotated[bool, typer.Option(help="Also the rows of more than five minutes.")] = False,
    out: Annotated[Path | None, typer.Option(help="Folder, instead of build/bench.")] = None,
) -> None:
    """Time each row against its peer, and each curve at growing sizes.

    Writes bench.json (rows), curves.json and index.html, a page of both, which the next
    `tokenspace book` takes into the book. A measurement is a process of its own; ours and the
    peer's take turns, and the ratio is the median over pairs. Nothing is asserted. Run it on a
    machine that does nothing else.
    """
    rows = {n: row for n, row in ROWS.items() if _chosen(n, names) and (slow or not row.slow)}
    curves = {n: curve for n, curve in CURVES.items() if _chosen(n, names)}
    if not rows and not curves:
        raise typer.BadParameter(f"nothing begins so; there is: {', '.join([*ROWS, *CURVES])}")
    most = max(threads or [cores()])
    todo = [(name, count) for name, row in rows.items() for count in _threads(row, threads)]
    folder = out or find_root() / "build" / "bench"
    _save(
        folder / "bench.json",
        [compare(n, ROWS[n], runs, count) for n, count in tqdm(todo, desc="rows", unit="row")],
    )
    _save(folder / "curves.json", grown(list(curves), min(2, runs), most))
    write(folder / "index.html", page.standalone(page.page(*page.measured(folder))))


def _save(path: Path, found: list[dict[str, Any]]) -> None:
    """Write measurements with where they come from; none leave an older file as it is."""
    about = {
        "machine": f"{processor()}, {cores()} cores",
        "versions": versions(),
        "commit": commit(find_root()),
        "measured": datetime.now(UTC).isoformat(timespec="minutes"),
    }
    if found:
        path.parent.mkdir(parents=True, exist_ok=True)
        records = [{**record, **about} for record in found]
        write(path, json.dumps(records, indent=1, ensure_ascii=False))


def _chosen(name: str, names: list[str] | None) -> bool:
    return not names or any(name.startswith(begin) for begin in names)


def _threads(row: Row, threads: list[int] | None) -> list[int]:
    return threads or sorted({1, cores()} if row.single else {cores()})


def compare(name: str, row: Row, runs: int, threads: int) -> dict[str, Any]:
    """Measure ours and theirs in turn; the ratio is the median over pairs.

    Pairs that take long vary little: two are enough.
    """
    ours, theirs, start = [], [], time.perf_counter()
    for _ in range(runs if row.theirs else 1):
        if len(ours) > 1 and time.perf_counter() - start > LONG:
            break
        ours.append(in_process("row", name, "ours", threads))
        if row.theirs:
            theirs.append(in_process("row", name, "theirs", threads))
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


def grown(names: list[str], runs: int, threads: int) -> list[dict[str, Any]]:
    """Measure the series that some curves need, sizes in turn, and fit the curves."""
    series = dict.fromkeys(CURVES[name].series for name in names)
    todo = [(s, size) for s in series for _ in range(runs) for size in SERIES[s].sizes]
    times: dict[tuple[str, int], list[dict[str, float]]] = {}
    for s, size in tqdm(todo, desc="curves", unit="process"):
        times.setdefault((s, size), []).append(in_process("curve", s, str(size), threads))
    done = []
    for name in names:
        curve = CURVES[name]
        of = {"s": "seconds", "MB": "grown_mb"}[curve.unit]
        points = []
        for size in SERIES[curve.series].sizes:
            y = [each[of] for each in times[curve.series, size]]
            point = {"median": statistics.median(y), "least": min(y), "greatest": max(y)}
            points.append({"size": size, **point})
        done.append({**record(name, curve, points), "threads": threads, "runs": runs})
    return done


if __name__ == "__main__":
    app()
