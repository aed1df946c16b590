"""What a finished run leaves in its folder, read off the executed notebook."""

import json
import platform
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import nbformat
import yaml

from tokenspace.errors import ClaimError
from tokenspace.files import write

FIELDS = (
    *("id", "part", "statement", "source", "paper", "ours", "uncertainty", "band", "control"),
    *("profile", "scale", "verdict", "why", "notebook", "cell"),
)


def _shown(notebook: Any, what: str) -> Iterator[tuple[str, Any]]:
    """Yield what `Page` put into outputs' metadata, with the cell's id."""
    for cell in notebook.cells:
        for output in cell.get("outputs", []):
            about = output.get("metadata", {}).get("tokenspace", {})
            if what in about:
                yield cell.id, about[what]


def claims(notebook: Any, name: str, profile: str) -> list[dict[str, Any]]:
    """Collect a notebook's claims; raises `ClaimError` when two share an id."""
    found: list[dict[str, Any]] = []
    for cell, claim in _shown(notebook, "claim"):
        record = {
            **claim,
            "part": name.split("/")[0],
            "profile": profile,
            "notebook": name,
            "cell": cell,
        }
        if any(other["id"] == record["id"] for other in found):
            raise ClaimError(f"{name}: two claims have the id {record['id']!r}")
        found.append({field: record[field] for field in FIELDS})
    return found


def environment(notebook: Any, about: Mapping[str, Any]) -> dict[str, Any]:
    """Describe what a run was and ran on; the page's footer is part of it."""
    footer = next((dict(facts) for _, facts in _shown(notebook, "footer")), {})
    return {**about, "platform": platform.platform(), "footer": footer}


def record(
    folder: Path, name: str, profile: str, parameters: Mapping[str, Any], about: Mapping[str, Any]
) -> None:
    """Write a run's files beside its `executed.ipynb`."""
    notebook = nbformat.reads((folder / "executed.ipynb").read_text("utf-8"), as_version=4)
    found = claims(notebook, name, profile)
    write(
        folder / "params.yaml",
        yaml.safe_dump(dict(parameters), sort_keys=False, allow_unicode=True),
    )
    write(folder / "claims.json", _json(found))
    write(folder / "environment.json", _json(environment(notebook, about)))


def _json(value: Any) -> str:
    return json.dumps(value, indent=1, ensure_ascii=False, allow_nan=False) + "\n"


def read_parameters(folder: Path) -> dict[str, Any]:
    """Read what a run was given."""
    found: dict[str, Any] = yaml.safe_load((folder / "params.yaml").read_text("utf-8"))
    return found


def read_claims(folder: Path) -> list[dict[str, Any]]:
    """Read the claims of a run."""
    found: list[dict[str, Any]] = json.loads((folder / "claims.json").read_text("utf-8"))
    return found


def read_about(folder: Path) -> dict[str, Any]:
    """Read what a run was and ran on."""
    about: dict[str, Any] = json.loads((folder / "environment.json").read_text("utf-8"))
    return about
