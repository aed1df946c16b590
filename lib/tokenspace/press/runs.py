"""The runs that lie in `build/runs`: what they are, whether they still count, which may go."""

import os
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Literal

from tokenspace.errors import ParameterError
from tokenspace.press import layout, parameters, results
from tokenspace.press.keys import run_key, source_digest
from tokenspace.press.plan import plans, profiles
from tokenspace.press.runner import clear, this_process
from tokenspace.press.sync import twin

State = Literal["current", "stale", "failed"]


@dataclass(frozen=True)
class Stored:
    """A run on disk: `current` if it would be found again, `stale` once something moved its key."""

    notebook: str
    key: str
    state: State
    folder: Path
    about: dict[str, Any]

    @property
    def megabytes(self) -> float:
        """Size on disk, in 10⁶ bytes."""
        return sum(p.stat().st_size for p in self.folder.rglob("*") if p.is_file()) / 1e6

    def parameters(self) -> dict[str, Any]:
        """Read what the run was given."""
        return results.read_parameters(self.folder)

    def record(self) -> dict[str, Any]:
        """Give the run as plain JSON data."""
        return {
            **self.about,
            "notebook": self.notebook,
            "key": self.key,
            "state": self.state,
            "folder": str(self.folder),
            "megabytes": round(self.megabytes, 3),
        }


def stored(root: Path) -> list[Stored]:
    """List the runs below `build/runs`, by notebook and time.

    >>> stored(Path("/nowhere"))
    []
    """

    @cache
    def digest(notebook: str) -> str:
        source = layout.source(root, notebook)
        return source_digest(root, source, twin(source.read_text()))

    def state(notebook: str, folder: Path) -> State:
        if notebook not in layout.notebooks(root):
            return "stale"
        given = results.read_parameters(folder)
        return "current" if run_key(digest(notebook), given) == folder.name else "stale"

    found = []
    for home in sorted((root / "build" / "runs").glob("*/*/")):
        name = "/".join(home.parts[-2:])
        for folder in sorted(home.glob("[!.]*/")):
            if (folder / "environment.json").is_file():
                about = results.read_about(folder)
                found.append(Stored(name, folder.name, state(name, folder), folder, about))
        for folder in sorted(home.glob("failed/[!.]*/")):
            found.append(Stored(name, folder.name, "failed", folder, {}))
    return sorted(found, key=lambda run: (run.notebook, run.about.get("finished", "")))


def find(root: Path, key: str) -> Stored:
    """Find a run by the first digits of its key; raises `ParameterError` for none or several."""
    known = stored(root)
    fitting = [run for run in known if run.key.startswith(key)]
    if len(fitting) != 1:
        names = ", ".join(run.key for run in fitting) or "none"
        raise ParameterError(
            f"{len(fitting)} of {len(known)} runs have a key that begins with {key!r} ({names}); "
            "`tokenspace runs list` shows them all"
        )
    return fitting[0]


def show(run: Stored) -> dict[str, Any]:
    """Give everything that is known of a run, as plain JSON data."""
    if run.state == "failed":
        return {**run.record(), "error": (run.folder / "error.txt").read_text()}
    claims = results.read_claims(run.folder)
    return {**run.record(), "parameters": run.parameters(), "claims": claims}


def used_by_book(root: Path) -> set[Path]:
    """Give the folders that the book would read as everything stands, at any profile or device."""
    found = set()
    for name in layout.chapters(root):
        declared = parameters.read(twin(layout.source(root, name).read_text()), name)
        devices = ("auto", "cpu", "cuda") if "device" in declared else ()
        given = [{}, *({"device": device} for device in devices)]
        for profile in profiles(root):
            found |= {p.folder for p in plans(root, name, given, profile=profile)}
    return found


def removable(root: Path, *, current: bool = False) -> list[Stored]:
    """List the runs that nothing needs: stale and failed ones; `current` too, but the book's."""
    needed = used_by_book(root)
    states = ("stale", "failed", "current") if current else ("stale", "failed")
    return [run for run in stored(root) if run.state in states and run.folder not in needed]


def remove(runs: list[Stored]) -> Iterator[Stored]:
    """Remove runs one by one: hidden first, so that no half of one is ever read."""
    for run in runs:
        gone = run.folder.with_name(f".{run.key}.gone.{this_process()}")
        os.rename(run.folder, gone)
        shutil.rmtree(gone, ignore_errors=True)
        clear(gone.parent)
        yield run
