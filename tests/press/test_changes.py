"""`tokenspace claims --diff`: what became of a notebook's claims between two runs."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

from tokenspace.cli import app
from tokenspace.press.changes import changes

Diff = Callable[..., Result]


@pytest.fixture
def diff(root: Path, monkeypatch: pytest.MonkeyPatch) -> Diff:
    """Compare two runs inside the repository."""
    monkeypatch.chdir(root)
    return lambda *words: CliRunner().invoke(app, ["claims", "--diff", *words])


@pytest.fixture
def lay(root: Path, claim: dict[str, Any]) -> Callable[..., Path]:
    """Lay down a run: `lay("1a", one={}, two={"ours": 2.0})`, each claim by its id and changes."""
    more = {"part": "hub", "profile": "smoke", "notebook": "hub/toy", "cell": "c"}

    def lay(key: str, notebook: str = "hub/toy", **claims: dict[str, Any]) -> Path:
        folder = root / "build" / "runs" / notebook / key
        folder.mkdir(parents=True)
        found = [{**claim, **more, "id": id, **changed} for id, changed in claims.items()]
        (folder / "claims.json").write_text(json.dumps(found))
        about = {"notebook": notebook, "profile": "smoke"}
        (folder / "environment.json").write_text(json.dumps(about))
        (folder / "params.yaml").write_text("{}")
        return folder

    return lay


@pytest.fixture
def pair(lay: Callable[..., Path]) -> tuple[str, str]:
    """Two runs that differ in every way."""
    near = {"uncertainty": 0.1}
    failed = {"ours": 2.0, "verdict": "does-not-hold"}
    old = lay("1a", same={}, near=near, gone={}, turned={}, moved={}, banded={})
    new = lay(
        "2b",
        banded={"band": [0.0, None]},
        new={},
        same={},
        near={"ours": 1.09},
        turned=failed,
        moved={"ours": 1.01},
    )
    return str(old), str(new)


def test_every_kind_of_change_is_found_and_nothing_else(diff: Diff, pair: tuple[str, str]) -> None:
    done = diff(*pair, "--json")
    assert done.exit_code == 1
    found = json.loads(done.stdout)
    assert {change["id"]: change["what"] for change in found["changes"]} == {
        "gone": ["vanished"],
        "turned": ["verdict", "number"],
        "moved": ["number"],
        "banded": ["band"],
        "new": ["appeared"],
    }
    assert (found["notebook"], found["common"], found["verdicts"]) == ("hub/toy", 5, 1)
    assert (found["before"], found["after"]) == pair
    sides = {c["id"]: (c["before"], c["after"]) for c in found["changes"]}
    assert sides["new"][0] is None
    assert sides["gone"][1] is None
    assert [side["ours"] for side in sides["turned"]] == [1.0, 2.0]


def test_people_read_a_table_and_a_count(diff: Diff, pair: tuple[str, str]) -> None:
    shown = diff("1a", "2b")
    assert shown.exit_code == 1
    words = " ".join(shown.stdout.split())
    assert "5 claims in both runs, 3 changed (1 in verdict), 1 appeared, 1 vanished" in words
    for word in ("turned", "does not hold", "at least 0"):
        assert word in words


def test_without_another_verdict_it_exits_with_0(diff: Diff, lay: Callable[..., Path]) -> None:
    lay("1a", one={}, two={})
    lay("2b", one={"ours": 1.01}, three={})
    assert diff("1a", "2b").exit_code == 0
    lay("3c", one={}, two={})
    same = diff("1a", "3c", "--json")
    assert (same.exit_code, json.loads(same.stdout)["changes"]) == (0, [])


def sided(ours: float | None, uncertainty: float | None) -> dict[str, Any]:
    return {"verdict": "holds", "ours": ours, "uncertainty": uncertainty, "band": None}


numbers = st.floats(-1e6, 1e6)
spreads = st.none() | st.floats(1e-3, 1e3)


@given(numbers, spreads, numbers, spreads)
def test_a_number_changes_beyond_the_larger_uncertainty(
    a: float, da: float | None, b: float, db: float | None
) -> None:
    there = [c.what for c in changes({"x": sided(a, da)}, {"x": sided(b, db)})]
    back = [c.what for c in changes({"x": sided(b, db)}, {"x": sided(a, da)})]
    known = [spread for spread in (da, db) if spread is not None]
    limit = max(known) if known else 1e-6 * max(abs(a), abs(b))
    assert there == back == ([["number"]] if abs(a - b) > limit else [])


@pytest.mark.parametrize(
    ("before", "after", "what"),
    [
        (1.0, 1.0 + 1e-9, []),
        (1.0, 1.0 + 1e-5, [["number"]]),
        (None, 1.0, [["number"]]),
        (None, None, []),
    ],
)
def test_without_an_uncertainty_only_rounding_is_forgiven(
    before: float | None, after: float | None, what: list[list[str]]
) -> None:
    found = changes({"x": sided(before, None)}, {"x": sided(after, None)})
    assert [change.what for change in found] == what


def test_what_cannot_be_compared_is_said(diff: Diff, lay: Callable[..., Path]) -> None:
    good = lay("1a", one={})
    lay("2b", "hub/other", one={})
    half, torn, old = lay("3c", one={}), lay("4d", one={}), lay("5e", one={})
    (half / "claims.json").unlink()
    (torn / "claims.json").write_text('[{"id": "on')
    (old / "claims.json").write_text('[{"id": "one"}]')
    failed = good.parent / "failed" / "6f"
    failed.mkdir(parents=True)
    (failed / "error.txt").write_text("ZeroDivisionError")
    for words, said in {
        ("1a", str(good)): "are the same run",
        ("1a", "2b"): "1a is a run of hub/toy, 2b one of hub/other",
        ("1a", "3c"): "it has no claims.json",
        ("1a", "4d"): "its files can't be read",
        ("1a", "5e"): "its files lack 'part'",
        ("1a", "6f"): "failed: `tokenspace runs show 6f`",
        ("1a", "9"): "0 of 6 runs have a key that begins with '9'",
        ("1a", "runs/nowhere"): "no folder runs/nowhere",
    }.items():
        done = diff(*words)
        assert done.exit_code == 2, words
        assert said in done.stderr
