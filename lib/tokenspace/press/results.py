"""What a finished run leaves in its folder, read off the executed notebook."""

import json
import platform
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import yaml

from tokenspace.errors import ClaimError
from tokenspace.files import write
from tokenspace.press.plan import Plan


def record(folder: Path, notebook: Any, plan: Plan, about: Mapping[str, Any]) -> None:
    """Write a run's files beside its notebook; `ClaimError` when two claims share an id."""
    part = plan.notebook.split("/")[0]
    where = {"part": part, "profile": plan.profile, "notebook": plan.notebook}
    claims: dict[str, dict[str, Any]] = {}
    for cell, claim in _shown(notebook, "claim"):
        if claim["id"] in claims:
            raise ClaimError(f"{plan.notebook}: two claims have the id {claim['id']!r}")
        claims[claim["id"]] = {**claim, **where, "cell": cell}
    footer = next((dict(facts) for _, facts in _shown(notebook, "footer")), {})
    values = yaml.safe_dump(plan.parameters, sort_keys=False, allow_unicode=True)
    write(folder / "params.yaml", values)
    write(folder / "claims.json", _json(list(claims.values())))
    ran_on = {"platform": platform.platform(), "footer": footer}
    write(folder / "environment.json", _json({**about, **ran_on}))


def _shown(notebook: Any, what: str) -> Iterator[tuple[str, Any]]:
    """Yield what `Page` put into outputs' metadata, with the cell's id."""
    for cell in notebook.cells:
        for output in cell.get("outputs", []):
            about = output.get("metadata", {}).get("tokenspace", {})
            if what in about:
                yield cell.id, about[what]


def _json(value: Any) -> str:
    return json.dumps(value, indent=1, ensure_ascii=False, allow_nan=False) + "\n"


def read_claims(folder: Path) -> list[dict[str, Any]]:
    """Read the claims of a run."""
    found: list[dict[str, Any]] = json.loads((folder / "claims.json").read_text("utf-8"))
    return found


def read_about(folder: Path) -> dict[str, Any]:
    """Read what a run was and ran on."""
    about: dict[str, Any] = json.loads((folder / "environment.json").read_text("utf-8"))
    return about
