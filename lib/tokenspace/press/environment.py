"""What a page ran on: the facts of its footer."""

import platform
import resource
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path


def _system(path: str, field: str) -> str | None:
    """Read one `field: value` line of a file of Linux's; None elsewhere."""
    if not Path(path).is_file():
        return None
    lines = Path(path).read_text("utf-8", errors="replace").splitlines()
    return next((line.split(":", 1)[1].strip() for line in lines if line.startswith(field)), None)


def processor() -> str:
    """Name the CPU, as exactly as the system says."""
    return _system("/proc/cpuinfo", "model name") or platform.processor() or platform.machine()


def peak_memory() -> float:
    """Peak resident memory of this process so far, in GB (10⁹ bytes)."""
    # Linux hands the parent's peak on to a new program through `getrusage`; `VmHWM` starts anew
    if peak := _system("/proc/self/status", "VmHWM"):
        return int(peak.split()[0]) * 1024 / 1e9
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit / 1e9


def versions() -> dict[str, str]:
    """Versions of what a page's numbers depend on most."""
    packages = {name: version(name) for name in ("tokenspace", "torch", "numpy")}
    return {"python": platform.python_version(), **packages}


def facts(device: str) -> dict[str, str]:
    """Describe what this process computes on, a device by its hardware.

    >>> list(facts("cpu"))
    ['device', 'dtype', 'python', 'tokenspace', 'torch', 'numpy', 'threads']
    """
    import torch

    name = torch.cuda.get_device_name(device) if device.startswith("cuda") else processor()
    return {
        "device": f"{device} ({name})",
        "dtype": str(torch.get_default_dtype()).removeprefix("torch."),
        **versions(),
        "threads": str(torch.get_num_threads()),
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
