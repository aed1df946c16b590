"""What became of a notebook's claims from one run to another."""

import math
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

from tokenspace.errors import ParameterError
from tokenspace.press import results, runs

What = Literal["appeared", "vanished", "verdict", "number", "band"]

ROUNDING = 1e-6
"""Relative difference of two numbers that are the same but for rounding."""


@dataclass(frozen=True)
class Change:
    """A claim that isn't in both runs, or not the same in both; records as in `claims.json`."""

    id: str
    what: list[What]
    before: dict[str, Any] | None
    after: dict[str, Any] | None


@dataclass(frozen=True)
class Comparison:
    """What changed between two runs of a notebook, and how many claims they have in common."""

    notebook: str
    before: Path
    after: Path
    common: int
    changes: list[Change]

    @property
    def verdicts(self) -> int:
        """How many claims of both runs have another verdict."""
        return sum("verdict" in change.what for change in self.changes)

    def record(self) -> dict[str, Any]:
        """Give the comparison as plain JSON data."""
        folders = {"before": str(self.before), "after": str(self.after)}
        return {**asdict(self), **folders, "verdicts": self.verdicts}


def compare(root: Path, before: str, after: str) -> Comparison:
    """Compare two runs of one notebook, each named by its folder or the first digits of its key.

    Raises `ParameterError` for a run that is missing, failed or not whole, for one run given
    twice, and for runs of two notebooks: a claim's id is its notebook's own.
    """
    first, second = _folder(root, before), _folder(root, after)
    if first == second:
        raise ParameterError(f"{before} and {after} are the same run, {first}: name two")
    (old_name, old), (new_name, new) = _read(first), _read(second)
    if old_name != new_name:
        raise ParameterError(
            f"{before} is a run of {old_name}, {after} one of {new_name}: name two runs of one "
            "notebook; `tokenspace runs list` shows them all"
        )
    found = list(changes(old, new))
    return Comparison(old_name, first, second, len(old.keys() & new.keys()), found)


def changes(before: dict[str, Any], after: dict[str, Any]) -> Iterator[Change]:
    """Compare claims by id: those of `before` in their order, then what appeared.

    >>> one = {"verdict": "holds", "ours": 1.0, "uncertainty": 0.1, "band": [0.5, 1.5]}
    >>> two = {**one, "verdict": "does-not-hold", "ours": 1.6}
    >>> [change.what for change in changes({"a": one, "b": one}, {"a": two, "b": one})]
    [['verdict', 'number']]
    """
    for id in {**before, **after}:
        old, new = before.get(id), after.get(id)
        if old is None or new is None:
            yield Change(id, ["appeared" if old is None else "vanished"], old, new)
        elif what := _differences(old, new):
            yield Change(id, what, old, new)


def _differences(old: dict[str, Any], new: dict[str, Any]) -> list[What]:
    what: list[What] = []
    if old["verdict"] != new["verdict"]:
        what.append("verdict")
    if not _close(old["ours"], new["ours"], *(c["uncertainty"] or 0.0 for c in (old, new))):
        what.append("number")
    ends = zip(old["band"] or (None, None), new["band"] or (None, None), strict=True)
    if not all(_close(*pair) for pair in ends):
        what.append("band")
    return what


def _close(a: float | None, b: float | None, *uncertainties: float) -> bool:
    """Whether two numbers differ by no more than the larger uncertainty, or else by rounding."""
    if a is None or b is None:
        return a is b
    largest = max(uncertainties, default=0.0)
    return abs(a - b) <= largest if largest else math.isclose(a, b, rel_tol=ROUNDING)


def _folder(root: Path, name: str) -> Path:
    folder = Path(name)
    if folder.is_dir():
        return folder.resolve()
    if len(folder.parts) > 1:
        raise ParameterError(f"no folder {name}; `tokenspace runs list` shows the runs")
    return runs.find(root, name).folder.resolve()


def _read(folder: Path) -> tuple[str, dict[str, Any]]:
    """Give a run's notebook, and its claims by id."""
    if (folder / "error.txt").is_file():
        raise ParameterError(f"the run in {folder} failed: `tokenspace runs show {folder.name}`")
    try:
        claims = [{name: c[name] for name in results.FIELDS} for c in results.read_claims(folder)]
        return results.read_about(folder)["notebook"], {c["id"]: c for c in claims}
    except FileNotFoundError as error:
        problem = f"it has no {Path(error.filename).name}"
    except KeyError as error:
        problem = f"its files lack {error}"
    except (ValueError, TypeError) as error:
        problem = f"its files can't be read: {error}"
    raise ParameterError(f"no whole run in {folder}: {problem}; run its notebook again")
