"""One measurement in a process of its own: what is prepared outside the clock, what inside it."""

import json
import os
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

THREADS = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS")
ENOUGH = 0.4  # seconds: a shorter call is repeated, and its first time is a warm-up

Call = Callable[[], Any]


def in_process(name: str, which: str, threads: int) -> dict[str, float]:
    """Measure a row's side with its own memory and thread pools."""
    environment = {**os.environ, **dict.fromkeys(THREADS, str(threads)), "TQDM_DISABLE": "1"}
    command = [sys.executable, "-m", "tests.bench.measure", name, which]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"{name}, {which}: {done.stderr[-2000:]}")
    result: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return result


def measure(prepare: Callable[[], Call]) -> dict[str, float]:
    """Seconds of a call, MB of its result, and the process's peak."""
    call = prepare()
    start = time.perf_counter()
    result = call()
    took = [time.perf_counter() - start]
    peak, held_mb = peak_memory(), held(result)
    del result
    while sum(took) < ENOUGH:
        start = time.perf_counter()
        call()
        took.append(time.perf_counter() - start)
    return {"seconds": statistics.median(took[1:] or took), "peak_mb": peak, "held_mb": held_mb}


def peak_memory() -> float:
    """Peak of this process in MB, without `tokenspace.press`, which would be part of it.

    `VmHWM` starts anew in a new program; `getrusage` hands the parent's peak on.
    """
    status = Path("/proc/self/status")
    if status.is_file():
        (line,) = (v for v in status.read_text().splitlines() if v.startswith("VmHWM"))
        return int(line.split()[1]) * 1024 / 1e6
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6  # bytes on macOS


def held(result: Any) -> float:
    """MB of the tensors that a result is made of."""
    parts = result if isinstance(result, list) else getattr(result, "__dict__", {}).values()
    return sum(part.nbytes for part in parts if isinstance(part, torch.Tensor)) / 1e6


if __name__ == "__main__":
    from tests.bench.rows import ROWS

    print(json.dumps(measure(getattr(ROWS[sys.argv[1]], sys.argv[2]))))
