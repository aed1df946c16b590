"""Runs every row in processes of their own, ours and the peer's in turn, and writes the page."""

import json
import os
import platform
import resource
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import Annotated, Any

import typer
from tests.bench.page import write_page
from tests.bench.rows import ROWS, Row
from tqdm import tqdm

OUT = Path("build/bench")
THREADS = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS")
app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)


@app.command()
def bench(
    names: Annotated[list[str] | None, typer.Argument(help="Rows; default: all.")] = None,
    runs: Annotated[int, typer.Option(min=1, help="Counted runs of each side.")] = 3,
    threads: Annotated[list[int] | None, typer.Option(help="Threads of both sides.")] = None,
    slow: Annotated[bool, typer.Option(help="Also the rows of more than five minutes.")] = False,
) -> None:
    """Time each row against its peer and write build/bench/{bench.json,index.html}."""
    chosen = names or [name for name, row in ROWS.items() if slow or not row.slow]
    if unknown := set(chosen) - set(ROWS):
        raise typer.BadParameter(f"no row {sorted(unknown)}; rows: {sorted(ROWS)}")
    counts = threads or sorted({1, os.cpu_count() or 1})
    todo = [(name, count) for name in chosen for count in counts]
    done = [compare(name, ROWS[name], runs, count) for name, count in tqdm(todo, unit="row")]
    OUT.mkdir(parents=True, exist_ok=True)
    text = json.dumps(done, indent=1, ensure_ascii=False)
    for path, content in ((OUT / "bench.json", text), (OUT / "index.html", write_page(done))):
        temporary = path.with_suffix(".new")
        temporary.write_text(content)
        temporary.replace(path)


def compare(name: str, row: Row, runs: int, threads: int) -> dict[str, Any]:
    """Time ours and theirs in turn; the ratio is the median over pairs."""
    ours, theirs = [], []
    for _ in range(runs if row.theirs else 1):
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
        "machine": f"{platform.machine()}, {os.cpu_count()} cores",
    }


def in_process(name: str, side: str, threads: int) -> dict[str, float]:
    """One measurement in a process of its own, with its own memory and thread pools."""
    environment = {**os.environ, **dict.fromkeys(THREADS, str(threads)), "TQDM_DISABLE": "1"}
    command = [sys.executable, "-m", "tests.bench", "--measure", name, side]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"{name}, {side}: {done.stderr[-2000:]}")
    result: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return result


def measure(name: str, side: str) -> None:
    """Load outside the clock, call once inside it."""
    call = getattr(ROWS[name], side)()
    start = time.perf_counter()
    result = call()
    seconds = time.perf_counter() - start
    unit = 1024 if sys.platform != "darwin" else 1024**2
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / unit
    held_mb = held(result) if ROWS[name].unit == "memory" else 0.0
    print(json.dumps({"seconds": seconds, "peak_mb": peak, "held_mb": held_mb}))


def held(result: Any) -> float:
    """MB of the tensors that a result is made of."""
    tensors = result if isinstance(result, list) else vars(result).values()
    return sum(tensor.nbytes for tensor in tensors) / 1e6


if __name__ == "__main__":
    if sys.argv[1:2] == ["--measure"]:
        measure(*sys.argv[2:])
    else:
        app()
