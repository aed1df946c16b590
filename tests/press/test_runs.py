"""`tokenspace runs`: what is there, what still counts, and what may go."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import Result
from typer.testing import CliRunner

from tokenspace.cli import app
from tokenspace.errors import RunError
from tokenspace.press.plan import plan
from tokenspace.press.runner import run_notebooks

Put = Callable[..., Path]
Command = Callable[..., Result]


@pytest.fixture
def runs(root: Path, monkeypatch: pytest.MonkeyPatch) -> Command:
    """Call `tokenspace runs` inside the repository."""
    monkeypatch.chdir(root)
    return lambda *words, **more: CliRunner().invoke(app, ["runs", *words], **more)


def lay(root: Path, put: Put, notebook: str, **given: int) -> Path:
    """Lay down a run as the runner does, without running it."""
    p = plan(root, notebook, given=given)
    p.folder.mkdir(parents=True)
    about = {"profile": "classroom", "finished": "2026-01-01T00:00:00+00:00", "seconds": 1.5}
    (p.folder / "environment.json").write_text(json.dumps(about))
    (p.folder / "params.yaml").write_text(json.dumps(p.parameters))
    (p.folder / "claims.json").write_text("[]")
    return p.folder


@pytest.fixture
def laid(root: Path, put: Put) -> dict[str, Path]:
    """A page of the book and another notebook: each with a stale run, a current one, a failure."""
    (root / "book").mkdir()
    (root / "book" / "_toc.yml").write_text(
        "parts: [{caption: I, chapters: [{file: notebooks/hub/page}]}]"
    )
    found = {}
    for name in ("page", "other"):
        put(f"hub/{name}", "k: int = 0", "print(k)")
        found[f"{name} stale"] = lay(root, put, f"hub/{name}")
        put(f"hub/{name}", "k: int = 0", "print(-k)")
        found[f"{name} current"] = lay(root, put, f"hub/{name}")
        found[f"{name} swept"] = lay(root, put, f"hub/{name}", k=1)
        failed = found[f"{name} current"].parent / "failed" / ("f" * 16)
        failed.mkdir(parents=True)
        (failed / "error.txt").write_text("ZeroDivisionError\n")
        found[f"{name} failed"] = failed
    return found


def left(laid: dict[str, Path]) -> set[str]:
    return {name for name, folder in laid.items() if folder.exists()}


def test_a_run_is_current_until_its_key_moves(runs: Command, laid: dict[str, Path]) -> None:
    states = {Path(r["folder"]): r["state"] for r in json.loads(runs("list", "--json").stdout)}
    for name, folder in laid.items():
        assert states.pop(folder) == name.split()[1].replace("swept", "current")
    assert not states
    only = json.loads(runs("list", "hub/other", "--json").stdout)
    assert {run["notebook"] for run in only} == {"hub/other"}
    assert laid["page stale"].name in runs("list").stdout
    assert "no such runs of 'hub/x'" in runs("list", "hub/x").stderr


def test_real_runs_are_listed_and_shown(root: Path, put: Put, runs: Command, claiming: str) -> None:
    put("hub/toy", "k: int = 0", claiming, "1 / k")
    (run,) = run_notebooks(["hub/toy"], root=root, given={"k": 2})
    with pytest.raises(RunError):
        run_notebooks(["hub/toy"], root=root)
    states = {r["key"]: r["state"] for r in json.loads(runs("list", "--json").stdout)}
    assert states.pop(run.folder.name) == "current"
    ((failure, state),) = states.items()
    assert state == "failed"
    about = json.loads(runs("show", run.folder.name[:10], "--json").stdout)
    assert about["parameters"] == {"k": 2}
    assert about["command"] == "tokenspace run hub/toy --profile classroom -p k=2"
    assert about["claims"][0]["id"] == "toy"
    assert "one is one" in runs("show", run.folder.name).stdout
    assert "ZeroDivisionError" in runs("show", failure).stdout
    assert runs("show", "x").exit_code == 2


def test_prune_asks_and_takes_only_what_nothing_needs(runs: Command, laid: dict[str, Path]) -> None:
    refused = runs("prune", input="n\n")
    assert refused.exit_code == 1
    assert "Remove 4 runs" in refused.stdout
    assert left(laid) == set(laid)
    assert runs("prune", "hub/other", "--yes").exit_code == 0
    assert left(laid) == set(laid) - {"other stale", "other failed"}
    assert runs("prune", input="y\n").exit_code == 0
    assert left(laid) == {f"{n} {s}" for n in ("page", "other") for s in ("current", "swept")}
    assert runs("prune", "--yes").stdout == "nothing to remove\n"


def test_not_even_prune_all_takes_what_the_book_uses(
    root: Path, put: Put, runs: Command, laid: dict[str, Path]
) -> None:
    (root / "notebooks" / "profiles" / "paper.yaml").write_text("hub/page: {k: 7}")
    lent = lay(root, put, "hub/page", k=7)  # the same run as at the profile
    assert runs("prune", "--all", "--yes").exit_code == 0
    assert left(laid) == {"page current"}
    assert lent.exists()
    assert not [p for p in lent.parent.iterdir() if p.name.startswith(".")]
