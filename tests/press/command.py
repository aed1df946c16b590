"""The command as a process of its own."""

import os
import resource
import signal
import subprocess
import sys
import time
from pathlib import Path


def start(
    root: Path, *words: str, limit: int | None = None, environment: dict[str, str] | None = None
) -> subprocess.Popen:
    """Start the command as a process, no file longer than `limit` bytes."""

    def lower() -> None:
        signal.signal(signal.SIGINT, signal.SIG_DFL)  # a background job would ignore it
        if limit is not None:
            resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))

    return subprocess.Popen(
        [sys.executable, "-c", "from tokenspace.cli import app; app()", *words],
        cwd=root,
        env=os.environ | (environment or {}),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=lower,
    )


def wait_for(path: Path, done: subprocess.Popen) -> str:
    """Wait until a file has a text, and return it; not beyond the process's end."""
    for _ in range(3000):  # a busy machine takes minutes to start a kernel
        if path.exists() and (text := path.read_text()):
            return text
        assert done.poll() is None, done.communicate()[1]
        time.sleep(0.1)
    raise TimeoutError(path)
