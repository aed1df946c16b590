"""What this machine has, and how fast one of its cores is."""

import os
import time
from dataclasses import dataclass
from pathlib import Path

import psutil

from tokenspace.press.environment import cores, processor

PROBE = 0.3  # seconds that the speed is measured for
SIDE = 512  # of the square matrices that are multiplied meanwhile


@dataclass(frozen=True)
class Machine:
    """Cores, speed of one in GFLOP/s; memory, free memory and free disk in GB (10⁹ bytes).

    `gpu_memory` is that of all GPUs together, 0 where there is none.
    """

    name: str
    cores: int
    gflops: float
    memory: float
    free: float
    disk: float
    gpu_memory: float = 0.0


def this_machine(folder: Path, *, device: str | None = None) -> Machine:
    """Look at this machine; `folder` says which disk. With `device="cpu"` its GPUs don't count."""
    memory = psutil.virtual_memory()
    limit = _container_limit()
    return Machine(
        name=processor(),
        cores=cores(),
        gflops=speed(),
        memory=min(memory.total, limit) / 1e9,
        free=min(memory.available, limit) / 1e9,
        disk=psutil.disk_usage(str(_existing(folder))).free / 1e9,
        gpu_memory=0.0 if device == "cpu" else _gpu_memory(),
    )


def speed(seconds: float = PROBE) -> float:
    """Measure one core: products of 512 × 512 matrices in single precision, GFLOP/s.

    The best product counts, so that what else runs on the machine matters little.
    """
    import torch

    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        a = torch.ones(SIDE, SIDE)
        best, end = float("inf"), time.perf_counter() + seconds
        while (start := time.perf_counter()) < end:
            torch.mm(a, a)
            best = min(best, time.perf_counter() - start)
    finally:
        torch.set_num_threads(threads)
    return 2 * SIDE**3 / best / 1e9


def _gpu_memory() -> float:
    import torch

    count = torch.cuda.device_count()
    return sum(torch.cuda.get_device_properties(i).total_memory for i in range(count)) / 1e9


def _container_limit() -> float:
    """Give what a container's group may use, in bytes."""
    for name in ("memory.max", "memory/memory.limit_in_bytes"):
        try:
            return float(Path("/sys/fs/cgroup", name).read_text())
        except (OSError, ValueError):  # no such group, or "max"
            continue
    return float("inf")


def _existing(folder: Path) -> Path:
    return next((p for p in (folder, *folder.parents) if p.exists()), Path(os.sep))
