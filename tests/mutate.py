"""Put each fault of `mutations.yaml` into a copy of the repository and see that its tests fail.

`python -m tests.mutate` runs all of them, `python -m tests.mutate ID...` those. A fault whose tests
pass has survived: the exit code is 1, and the fault is named.
"""

import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import yaml

ROOT = Path(__file__).resolve().parents[1]
FIELDS = {"id", "file", "old", "new", "why", "tests"}
LIMIT = 600  # seconds that the tests of one fault may take on a busy machine


def read() -> list[dict[str, Any]]:
    """Read the faults; raises `ValueError` for one that is incomplete or does not apply."""
    faults = yaml.safe_load((ROOT / "tests" / "mutations.yaml").read_text("utf-8")) or []
    ids = [fault.get("id") for fault in faults]
    for fault in faults:
        if set(fault) != FIELDS:
            raise ValueError(f"{fault.get('id')}: fields {sorted(fault)}, not {sorted(FIELDS)}")
        found = (ROOT / fault["file"]).read_text("utf-8").count(fault["old"])
        if found != 1:
            raise ValueError(f"{fault['id']}: {fault['old']!r} is {found} times in {fault['file']}")
        if ids.count(fault["id"]) != 1:
            raise ValueError(f"{fault['id']}: two faults of this name")
    return faults


def survives(fault: dict[str, Any], copy: Path) -> bool:
    """Say whether the fault's tests pass in a copy that has it."""
    path = copy / fault["file"]
    right = path.read_text("utf-8")
    path.write_text(right.replace(fault["old"], fault["new"]), "utf-8")
    try:
        done = subprocess.run(
            [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", *fault["tests"]],
            cwd=copy,
            env={**os.environ, "PYTHONPATH": str(copy / "lib"), "OMP_NUM_THREADS": "1"},
            capture_output=True,
            text=True,
            timeout=LIMIT,
        )
    finally:
        path.write_text(right, "utf-8")
    if done.returncode not in (0, 1):  # no test was found, or pytest itself failed
        raise RuntimeError(f"{fault['id']}: pytest ended with {done.returncode}\n{done.stdout}")
    return done.returncode == 0


def run(faults: Sequence[dict[str, Any]], jobs: int) -> list[str]:
    """Try faults, `jobs` at once, each worker in a copy of its own; give the survivors' ids."""

    def work(mine: Sequence[dict[str, Any]]) -> list[str]:
        with TemporaryDirectory() as folder:
            copy = Path(folder) / "copy"
            ignored = shutil.ignore_patterns(".git", ".venv", "build", "__pycache__", ".*_cache")
            shutil.copytree(ROOT, copy, ignore=ignored)
            found = []
            for fault in mine:
                alive = survives(fault, copy)
                print(f"{'SURVIVED' if alive else 'killed':<9}{fault['id']}", flush=True)
                found += [fault["id"]] * alive
            return found

    with ThreadPoolExecutor(jobs) as pool:
        shares = [faults[start::jobs] for start in range(jobs)]
        return [name for names in pool.map(work, shares) for name in names]


def main(names: Sequence[str]) -> int:
    """Run the faults that are named, or all."""
    faults = read()
    unknown = set(names) - {fault["id"] for fault in faults}
    if unknown:
        print(f"no fault {', '.join(sorted(unknown))}", file=sys.stderr)
        return 2
    chosen = [fault for fault in faults if not names or fault["id"] in names]
    survivors = run(chosen, jobs=min(len(chosen), os.cpu_count() or 1) or 1)
    print(f"{len(chosen) - len(survivors)} of {len(chosen)} faults killed")
    return int(bool(survivors))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
