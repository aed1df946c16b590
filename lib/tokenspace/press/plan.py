"""What is to be run: a notebook, its parameters by profile and by hand, and the folder it gets."""

import shlex
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from tokenspace.devices import check_device
from tokenspace.errors import ParameterError
from tokenspace.press import layout, parameters, strict
from tokenspace.press.keys import run_key, source_digest
from tokenspace.press.sync import twin

PROFILE = "classroom"


@dataclass(frozen=True)
class Plan:
    """A run that is ready to start; `changed` is what differs from the notebook's own defaults."""

    root: Path
    notebook: str
    profile: str
    twin: Any
    changed: dict[str, Any]
    parameters: dict[str, Any]
    key: str
    folder: Path
    command: str


def profiles(root: Path) -> list[str]:
    """List the profiles."""
    return sorted(path.stem for path in (root / "notebooks" / "profiles").glob("*.yaml"))


def profile_values(root: Path, profile: str) -> dict[str, dict[str, Any]]:
    """Read a profile, `{notebook: {parameter: value}}`; raises `ParameterError` for what's unknown.

    A notebook that a profile doesn't name runs with its own defaults.
    """
    known = profiles(root)
    if profile not in known:
        hint = layout.nearest(profile, known)
        raise ParameterError(f"no profile {profile!r}{hint} (known: {', '.join(known) or 'none'})")
    path = root / "notebooks" / "profiles" / f"{profile}.yaml"
    try:
        values = strict.load(path.read_text()) or {}
    except yaml.YAMLError as error:
        raise ParameterError(f"{path.relative_to(root)}: {error}") from None
    names = layout.notebooks(root)
    for name, given in values.items():
        if name not in names:
            hint = layout.nearest(name, names)
            raise ParameterError(f"{path.relative_to(root)}: no notebook {name!r}{hint}")
        if not isinstance(given or {}, dict):
            raise ParameterError(f"{path.relative_to(root)}: {name} must map parameters to values")
    return {name: given or {} for name, given in values.items()}


def plan(
    root: Path,
    notebook: str,
    *,
    profile: str = PROFILE,
    given: Mapping[str, Any] | None = None,
    device: str | None = None,
) -> Plan:
    """Work out a run, checking every name and value before anything starts.

    `given` overrides the profile, which overrides the notebook. Raises `ParameterError`.
    """
    return plans(root, notebook, [given or {}], profile=profile, device=device)[0]


def plans(
    root: Path,
    notebook: str,
    points: Iterable[Mapping[str, Any]],
    *,
    profile: str = PROFILE,
    device: str | None = None,
) -> list[Plan]:
    """Work out a run of one notebook for each of many givens; the source is read once."""
    source = layout.source(root, notebook)
    name = f"{source.parent.name}/{source.stem}"
    page = twin(source.read_text())
    declared = parameters.read(page, name)
    by_profile = profile_values(root, profile).get(name, {})
    by_profile = parameters.resolve(declared, by_profile, name, origin=f"profile {profile}")
    by_device = {}
    if device is not None:
        check_device(device)
        by_device["device"] = device
    digest = source_digest(root, source, page)
    found = []
    for given in points:
        chosen = parameters.resolve(declared, {**given, **by_device}, name, origin="given")
        changed = by_profile | chosen
        values = {p.name: changed.get(p.name, p.default) for p in declared.values()}
        key = run_key(digest, values)
        found.append(
            Plan(
                root=root,
                notebook=name,
                profile=profile,
                twin=page,
                changed={name: values[name] for name in changed},
                parameters=values,
                key=key,
                folder=layout.runs(root, name) / key,
                command=_command(name, profile, chosen),
            )
        )
    return found


def _command(name: str, profile: str, chosen: Mapping[str, Any]) -> str:
    words = ["tokenspace", "run", name, "--profile", profile]
    for parameter, value in chosen.items():
        words += ["-p", f"{parameter}={value}"]
    return shlex.join(words)
