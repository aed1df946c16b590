"""What is to be run: a notebook, its parameters by profile and by hand, and the folder it gets."""

import shlex
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from tokenspace.devices import check_device
from tokenspace.errors import ParameterError, RunError, nearest
from tokenspace.files import read_text
from tokenspace.press import layout, parameters
from tokenspace.press.keys import PACKAGE, run_key, source_digest
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
    folder: Path
    command: str

    @property
    def key(self) -> str:
        """The run's hash, by which its folder is named."""
        return self.folder.name

    @property
    def is_done(self) -> bool:
        """Whether there is a result that still counts: nothing it asked for was out of reach."""
        return self.folder.is_dir() and not (self.folder / UNREACHED).exists()


class _Loader(yaml.SafeLoader):  # type: ignore[misc]  # yaml has no types
    """YAML that says what it means: a key that is written twice is an error, not the last one."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        seen = set()
        for name, _ in node.value:
            key = str(self.construct_object(name, deep=True))
            if key in seen:
                raise yaml.YAMLError(f"line {name.start_mark.line + 1} has {key} again: keep one")
            seen.add(key)
        found: dict[Any, Any] = super().construct_mapping(node, deep)
        return found


def load_yaml(path: Path) -> Any:
    """Read a file of YAML; raises `ParameterError` where it is none, or names something twice."""
    try:
        return yaml.load(read_text(path), _Loader)
    except (OSError, yaml.YAMLError) as error:
        raise ParameterError(f"{path}: {error}") from None


def profiles(root: Path) -> list[str]:
    """List the profiles."""
    return sorted(path.stem for path in (root / "notebooks" / "profiles").glob("*.yaml"))


def profile_values(root: Path, profile: str) -> dict[str, dict[str, Any]]:
    """Read a profile, `{notebook: {parameter: value}}`; raises `ParameterError` for what's unknown.

    A notebook that a profile doesn't name runs with its own defaults.
    """
    known, names = profiles(root), layout.notebooks(root)
    if profile not in known:
        hint = nearest(profile, known)
        raise ParameterError(f"no profile {profile!r}{hint} (known: {', '.join(known) or 'none'})")
    path = root / "notebooks" / "profiles" / f"{profile}.yaml"
    values = load_yaml(path) or {}
    if not isinstance(values, dict) or not all(isinstance(v, dict) for v in values.values()):
        raise ParameterError(f"{path}: must map notebooks to parameters with values, not {values}")
    for name in values:
        if name not in names:
            raise ParameterError(f"{path}: no notebook {name!r}{nearest(name, names)}")
    return values


def plans(
    root: Path,
    notebook: str,
    points: Iterable[Mapping[str, Any]],
    *,
    profile: str = PROFILE,
    device: str | None = None,
) -> list[Plan]:
    """Work out a run of one notebook for each of many givens, checking every name and value.

    `given` overrides the profile, which overrides the notebook. Raises `ParameterError`, and
    `RunError` where the clone has a library of its own and another one is imported.
    """
    own = root / "lib" / "tokenspace"
    if own.is_dir() and own.resolve() != PACKAGE.resolve():
        raise RunError(
            f"the notebooks of {root} would run on the library in {PACKAGE}, not on that clone's "
            f"own in {own}: use the .venv that `make setup` makes in {root}",
            2,
        )
    source = layout.source(root, notebook)
    name = f"{source.parent.name}/{source.stem}"
    page = twin(read_text(source))
    declared = parameters.read(page, name)
    by_profile = profile_values(root, profile).get(name, {})
    by_profile = parameters.resolve(declared, by_profile, name, origin=f"profile {profile}")
    by_device = {} if device is None else {"device": check_device(device)}
    digest = source_digest(root, source, page)
    found = []
    for point in points:
        given = parameters.resolve(declared, {**point, **by_device}, name, origin="given")
        changed = by_profile | given
        values = {p.name: changed.get(p.name, p.default) for p in declared.values()}
        options = [word for key, value in given.items() for word in ("-p", f"{key}={value}")]
        found.append(
            Plan(
                root=root,
                notebook=name,
                profile=profile,
                twin=page,
                changed={key: values[key] for key in changed},
                parameters=values,
                folder=root / "build" / "runs" / name / run_key(digest, values),
                command=shlex.join(["tokenspace", "run", name, "--profile", profile, *options]),
            )
        )
    return found
