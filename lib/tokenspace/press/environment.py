"""What a page ran on: the facts of its footer."""

import os
import platform
import resource
import subprocess
import sys
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "not installed"


def processor() -> str:
    """Name the CPU, as exactly as the system says."""
    try:
        for line in Path("/proc/cpuinfo").read_text("utf-8", errors="replace").splitlines():
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    except OSError:
        pass
    return platform.processor() or platform.machine()


def cores() -> int:
    """Count the cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def peak_memory() -> float:
    """Peak resident memory of this process so far, in GB (10⁹ bytes).

    Linux hands the parent's peak on to a new program through `getrusage`; `VmHWM` starts anew.
    """
    try:
        for line in Path("/proc/self/status").read_text("utf-8", errors="replace").splitlines():
            if line.startswith("VmHWM"):
                return int(line.split()[1]) * 1024 / 1e9
    except OSError:
        pass
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak * (1 if sys.platform == "darwin" else 1024) / 1e9


def threads() -> int:
    """Count the threads that torch computes with, or would."""
    torch = sys.modules.get("torch")
    return torch.get_num_threads() if torch else int(os.environ.get("OMP_NUM_THREADS", cores()))


def dtype() -> str:
    """Name torch's default floating type."""
    torch = sys.modules.get("torch")
    return str(torch.get_default_dtype()).removeprefix("torch.") if torch else "float32"


def device_name(device: str) -> str:
    """Name a device by its hardware: `cpu` or `cuda`.

    >>> device_name("cpu").startswith("cpu (")
    True
    """
    if device.startswith("cuda"):
        import torch

        return f"{device} ({torch.cuda.get_device_name(device)})"
    return f"{device} ({processor()})"


def versions() -> dict[str, str]:
    """Versions of what a page's numbers depend on most."""
    return {
        "python": platform.python_version(),
        **{name: _version(name) for name in ("tokenspace", "torch", "numpy")},
    }


def commit(root: Path) -> str:
    """Name the commit that a repository stands at, `-dirty` where files differ from it.

    >>> commit(Path("/nowhere"))
    'unknown'
    """
    command = ["git", "-C", str(root), "describe", "--always", "--dirty", "--abbrev=40"]
    try:
        done = subprocess.run([*command, "--exclude=*"], capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):  # no git, or a copy without history
        return "unknown"
    return done.stdout.strip()
