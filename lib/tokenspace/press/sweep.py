"""A sweep's file: one notebook at many values, and which runs they make."""

import itertools
import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from tokenspace.errors import ParameterError
from tokenspace.press.layout import nearest
from tokenspace.press.plan import PROFILE, Plan, load_yaml, plans
from tokenspace.press.results import read_claims

FIELDS = ("title", "notebook", "profile", "parameters", "grid", "list", "limit")
LIMIT = 1000  # runs, unless the file says otherwise: a slip of a grid shouldn't fill a cluster


@dataclass(frozen=True)
class Sweep:
    """What is run: `points` holds what varies, one for each run, `fixed` what doesn't."""

    name: str
    title: str
    notebook: str
    profile: str
    fixed: dict[str, Any]
    points: list[dict[str, Any]]
    path: Path

    def folder(self, root: Path) -> Path:
        """Give the folder of the sweep's results."""
        return root / "build" / "sweeps" / self.name / self.profile

    def check_folder(self, root: Path) -> None:
        """Raise `ParameterError` where the folder holds the results of another file."""
        said, ours = self.folder(root).parent / "spec", str(self.path.resolve())
        owner = said.read_text("utf-8").strip() if said.is_file() else ours
        if owner != ours and Path(owner).is_file():
            raise ParameterError(
                f"sweep {self.name}: {said.parent} holds the results of {owner}: give {ours} "
                "another name"
            )

    def plans(self, root: Path, *, device: str | None = None) -> list[Plan]:
        """Work out every run; raises `ParameterError` for what can't be run, before anything is."""
        given = [self.fixed | point for point in self.points]
        first: dict[str, int] = {}
        try:
            found = plans(root, self.notebook, given, profile=self.profile, device=device)
            for number, plan in enumerate(found, 1):
                if first.setdefault(plan.key, number) != number:
                    same = label(self.points[number - 1])
                    raise ParameterError(
                        f"runs {first[plan.key]} and {number} are the same, {same}: keep one"
                    )
        except ParameterError as error:
            raise ParameterError(f"sweep {self.name}: {error}") from None
        return found


def sweeps(root: Path) -> dict[str, Path]:
    """List the sweeps that the repository ships."""
    return {path.stem: path for path in sorted((root / "notebooks" / "sweeps").glob("*.yaml"))}


def find(root: Path, word: str) -> Path:
    """Find a sweep's file by its path, or a shipped one by its name; raises `ParameterError`."""
    shipped = sweeps(root)
    if word in shipped:
        return shipped[word]
    if not Path(word).is_file():
        known = ", ".join(shipped) or "none"
        raise ParameterError(f"no sweep file {word!r}{nearest(word, shipped)} (shipped: {known})")
    return Path(word)


def read(path: Path, *, profile: str | None = None) -> Sweep:
    """Read a sweep's file; raises `ParameterError` when it isn't one.

    `grid` maps parameters to the values that are combined with one another, `list` holds points
    that are written out; with both, every point of the list is run at every point of the grid.
    """
    spec = load_yaml(path)
    try:
        if not isinstance(spec, dict):
            raise ParameterError(f"write `notebook: PART/NAME` and the rest of {', '.join(FIELDS)}")
        for field in spec:
            if field not in FIELDS:
                raise ParameterError(f"unknown field {field!r}{nearest(str(field), FIELDS)}")
        return Sweep(
            name=path.stem,
            title=_text(spec, "title", path.stem),
            notebook=_text(spec, "notebook", None),
            profile=profile or _text(spec, "profile", PROFILE),
            fixed=_mapping(spec.get("parameters") or {}, "parameters"),
            points=points(spec),
            path=path,
        )
    except ParameterError as error:
        raise ParameterError(f"{path}: {error}") from None


def _text(spec: Mapping[str, Any], field: str, default: str | None) -> str:
    value = spec.get(field, default)
    if not isinstance(value, str) or not value.strip():
        raise ParameterError(f"{field} is {value!r}; write a text")
    return value


def _mapping(value: Any, field: str) -> dict[str, Any]:
    if not isinstance(value, dict) or not all(isinstance(name, str) for name in value):
        raise ParameterError(f"{field} must map parameters to values, not {value!r}")
    return value


def points(spec: Mapping[str, Any]) -> list[dict[str, Any]]:
    """List what varies, run by run; raises `ParameterError` for none, too many, or a name twice.

    >>> points({"grid": {"a": [1, 2]}, "list": [{"b": 3}, {"b": 4, "c": 5}]})
    [{'b': 3, 'a': 1}, {'b': 3, 'a': 2}, {'b': 4, 'c': 5, 'a': 1}, {'b': 4, 'c': 5, 'a': 2}]
    """
    grid = _mapping(spec.get("grid") or {}, "grid")
    for name, values in grid.items():
        if not isinstance(values, list):
            raise ParameterError(f"grid: {name} is {values!r}; list its values, [{values!r}, ...]")
        if not values:
            raise ParameterError(f"grid: {name} has no values")
    entries = spec.get("list") or [{}]
    if not isinstance(entries, list):
        raise ParameterError(f"list must hold one mapping for each run, not {entries!r}")
    entries = [_mapping(entry, "an entry of list") for entry in entries]
    if not grid and entries == [{}]:
        raise ParameterError("nothing varies, so there is nothing to run: give a grid or a list")
    fixed = set(spec.get("parameters") or {})
    places = {"parameters": fixed, "list": set().union(*entries), "grid": set(grid)}
    for (one, first), (other, second) in itertools.combinations(places.items(), 2):
        if both := sorted(first & second):
            raise ParameterError(f"{', '.join(both)} in both {one} and {other}: keep one")
    count, limit = len(entries) * math.prod(map(len, grid.values())), spec.get("limit", LIMIT)
    if not isinstance(limit, int) or count > limit:
        sizes = " x ".join(f"{len(values)} {name}" for name, values in grid.items())
        raise ParameterError(
            f"{count:,} runs ({sizes or 'list'}) are more than the limit of {limit!r}: take values "
            f"away, or write `limit: {count}` if you mean it"
        )
    combined = itertools.product(entries, *grid.values())
    return [{**entry, **dict(zip(grid, values, strict=True))} for entry, *values in combined]


def label(point: Mapping[str, Any]) -> str:
    """Write a point as words.

    >>> label({"gamma": 0.3, "tables": ["minilm"]})
    "gamma=0.3 tables=['minilm']"
    """
    return " ".join(f"{name}={value}" for name, value in point.items())


@dataclass(frozen=True)
class Outcome:
    """One run of a sweep: what varied, the run, and its error if it failed."""

    point: dict[str, Any]
    plan: Plan
    error: str | None

    @cached_property
    def claims(self) -> list[dict[str, Any]]:
        """Read the run's claims, once; a failed run has none."""
        return [] if self.error is not None else read_claims(self.plan.folder)
