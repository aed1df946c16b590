"""A claim says what would refute it, and its verdict follows from that alone."""

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tokenspace.errors import ClaimError
from tokenspace.files import find_root
from tokenspace.press import layout
from tokenspace.press.claims import Claim

GOOD: dict[str, Any] = {
    "id": "hub-mild",
    "statement": "The hub inflates the reading",
    "source": "stated",
    "paper": "27 to 122",
    "ours": 1.18,
    "uncertainty": 0.01,
    "band": (1.1, 1.3),
    "control": "random rows removed: 1.00",
    "scale": "MiniLM, 30,522 rows",
}


def claim(**changes: Any) -> Claim:
    return Claim(**{**GOOD, **changes})


@pytest.mark.parametrize(
    ("band", "verdict"),
    [
        ((1.1, 1.3), "holds"),
        ((1.18, 1.18), "holds"),
        ((1.2, None), "does-not-hold"),
        ((None, 1.2), "holds"),
        ((None, 1.1), "does-not-hold"),
        ((float("-inf"), 1.2), "holds"),
    ],
)
def test_inside_the_band_holds_and_outside_does_not(band: Any, verdict: str) -> None:
    assert claim(band=band).record()["verdict"] == verdict


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"band": None}, "no band"),
        ({"control": None}, "no control"),
        ({"control": " "}, "no control"),
        ({"band": (2.0, 1.0)}, "it is empty"),
        ({"band": (None, None)}, "nothing would refute"),
        ({"band": (float("nan"), 1.0)}, "must be numbers"),
        ({"ours": float("nan")}, "ours is nan"),
        ({"uncertainty": float("inf")}, "uncertainty is inf"),
        ({"ours": None}, "why="),
        ({"ours": None, "why": ""}, "why="),
        ({"statement": ""}, "no statement"),
        ({"scale": ""}, "no scale"),
        ({"id": "Hub mild"}, "claim 'Hub mild': an id has"),
    ],
)
def test_a_claim_that_cannot_be_judged_is_refused_by_name(changes: Any, message: str) -> None:
    with pytest.raises(ClaimError, match=message):
        claim(**changes)


def test_without_a_number_it_is_not_testable_and_says_why() -> None:
    untested = claim(ours=None, uncertainty=None, band=None, control=None, why="needs 12B weights")
    assert (untested.verdict, untested.why) == ("not-testable", "needs 12B weights")


ROOT = find_root(Path(__file__).parent)


def stated(text: str) -> Iterator[tuple[str, dict[str, ast.expr]]]:
    """Yield the claims that a notebook's source states: their id and what it says of them."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Call) and ast.unparse(node.func).endswith("claim") and node.args:
            said = {word.arg: word.value for word in node.keywords if word.arg}
            if said:  # `claim(id, **about)` hands on what its callers say
                yield ast.unparse(node.args[0]).strip("'\""), said


def lacking(text: str) -> dict[str, set[str]]:
    """Find claims whose number could come without a band or a control, whatever the run."""
    found = {}
    for id, said in stated(text):
        given = {word for word, value in said.items() if ast.unparse(value) != "None"}
        if "ours" in given and (missing := {"band", "control"} - given):
            found[id] = missing
    return found


@pytest.mark.parametrize("name", layout.notebooks(ROOT))
def test_every_claim_that_a_page_measures_has_a_band_and_a_control(name: str) -> None:
    """Also where this run can't test it and `Claim` would let it pass."""
    text = layout.source(ROOT, name).read_text()
    assert len(list(stated(text))) >= 5
    assert not lacking(text)


def test_a_page_that_leaves_out_band_or_control_is_found() -> None:
    page = """
page.claim("whole", ours=1, band=(0, 1), control="none: 2")
page.claim("open", ours=None, why="no weights")
state_claim("bare", ours=found, control="none: 2")
for part in parts:
    page.claim("blind", ours=found, band=(0, None), control=None)
def state_claim(id, **about):
    page.claim(id, **about)
"""
    assert lacking(page) == {"bare": {"band"}, "blind": {"control"}}
