"""What is to be run: a notebook, its parameters by profile and by hand, and the folder it gets."""

import shlex
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

import tokenspace
from tokenspace.devices import check_device
from tokenspace.errors import ParameterError, RunError
from tokenspace.press import layout, parameters
from tokenspace.press.keys import run_key, source_digest
from tokenspace.press.sync import twin

PROFILE = "classroom"
UNREACHED = "unreached.txt"  # in a run's folder: what it had to do without


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

    @property
    def is_done(self) -> bool:
        """Whether there is a result that still counts: nothing it asked for was out of reach."""
        return self.folder.is_dir() and not (self.folder / UNREACHED).exists()


class _Loader(yaml.SafeLoader):  # type: ignore[misc]  # yaml has no types
    """YAML that says what it means: a key that is written twice is an error, not the last one."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        lines: dict[str, int] = {}
        for name, _ in node.value:
            key, line = str(self.construct_object(name, deep=True)), name.start_mark.line + 1
            if key in lines:
                raise yaml.YAMLError(f"{key} is in line {lines[key]} and in line {line}: keep one")
            lines[key] = line
        found: dict[Any, Any] = super().construct_mapping(node, deep)
        return found


def load_yaml(path: Path) -> Any:
    """Read a file of YAML; raises `ParameterError` where it is none, or names something twice."""
    try:
        return yaml.load(layout.read_text(path), _Loader)
    except (OSError, yaml.YAMLError) as error:
        raise ParameterError(f"{path}: {error}") from None


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
    values, names = load_yaml(path) or {}, layout.notebooks(root)
    if not isinstance(values, dict):
        raise ParameterError(f"{path}: must map notebooks to their parameters, not {values!r}")
    for name, given in values.items():
        if name not in names:
            raise ParameterError(f"{path}: no notebook {name!r}{layout.nearest(str(name), names)}")
        if not isinstance(given or {}, dict):
            raise ParameterError(f"{path}: {name} must map parameters to values")
    return {name: given or {} for name, given in values.items()}


def check_library(root: Path) -> None:
    """Raise `RunError` where the clone has a library of its own and another one is imported."""
    own, used = root / "lib" / "tokenspace", Path(tokenspace.__file__).parent
    if own.is_dir() and own.resolve() != used.resolve():
        raise RunError(
            f"the notebooks of {root} would run on the library in {used}, not on that clone's own "
            f"in {own}: use the .venv that `make setup` makes in {root}",
            2,
        )


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
    check_library(root)
    source = layout.source(root, notebook)
    name = f"{source.parent.name}/{source.stem}"
    page = twin(layout.read_text(source))
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
