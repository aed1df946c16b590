"""The scoreboard shows every claim of every run, whatever became of it."""

import json
from html import escape
from pathlib import Path
from typing import Any

import matplotlib as mpl
import pytest

from tokenspace.press.figures import DARK
from tokenspace.press.inline import variable
from tokenspace.press.scoreboard import COLOURS, scoreboard, tally

CLAIM: dict[str, Any] = {
    "id": "hub-mild",
    "part": "hub",
    "statement": "The hub inflates <the> reading",
    "source": "stated",
    "paper": "27 to 122",
    "ours": 1.18,
    "uncertainty": 0.01,
    "band": [1.1, None],
    "control": "random rows: 1.00.",
    "profile": "classroom",
    "scale": "MiniLM, 30,522 rows",
    "verdict": "holds",
    "why": None,
    "notebook": "hub/models",
    "cell": "abc",
}


@pytest.fixture
def runs(tmp_path: Path) -> dict[str, Path]:
    untested = {
        "id": "b",
        "verdict": "not-testable",
        "ours": None,
        "band": None,
        "why": "needs 12B",
    }
    by_notebook = {
        "hub/models": [CLAIM, {**CLAIM, "id": "a", "verdict": "does-not-hold", "source": "ours"}],
        "flow/language": [{**CLAIM, "part": "flow", "notebook": "flow/language", **untested}],
    }
    for name, claims in by_notebook.items():
        folder = tmp_path / name
        folder.mkdir(parents=True)
        (folder / "claims.json").write_text(json.dumps(claims))
        about = {"profile": "smoke", "seconds": 61.7, "footer": {"peak memory": "1.71 GB"}}
        (folder / "environment.json").write_text(json.dumps(about))
    return {name: tmp_path / name for name in by_notebook}


def test_every_claim_is_there_with_its_verdict_and_place(runs: dict[str, Path]) -> None:
    page = scoreboard(runs, {"hub": "Part II · The hub"})
    assert page.startswith("# Scoreboard\n")
    assert "## Part II · The hub" in page
    assert "## Flow" in page
    assert (
        "Of 2 claims: holds 1, does not hold 1, not testable at this scale 0 (profile `classroom`)."
        in page
    )
    for verdict in ("holds", "does-not-hold", "not-testable"):
        assert f'<span class="ts-verdict" data-verdict="{verdict}">' in page
    assert 'href="notebooks/hub/models.html#claim-hub-mild"' in page
    assert 'href="notebooks/flow/language.html#claim-b"' in page


def test_a_row_has_both_numbers_the_band_the_scale_and_the_control(runs: dict[str, Path]) -> None:
    row = next(line for line in scoreboard(runs).splitlines() if "claim-hub-mild" in line)
    for part in (
        *("27 to 122", "1.180 ± 0.010", "holds if at least 1.1", "Scale: MiniLM, 30,522 rows."),
        *("Control: random rows: 1.00.", "The hub inflates &lt;the&gt; reading"),
        'title="stated by the paper">P</abbr>',
    ):
        assert part in row


def test_a_figure_counts_the_verdicts_of_each_part(runs: dict[str, Path]) -> None:
    page = scoreboard(runs, {"hub": "Part <II> · The hub"})
    figure = page[page.index("<figure>") : page.index("</figure>")]
    said = (
        "Part <II>: holds 1, does not hold 1, not testable at this scale 0; "
        "Flow: holds 0, does not hold 0, not testable at this scale 1."
    )
    assert f'role="img" aria-label="{escape(said)}"' in figure
    assert page.index("</figure>") < page.index("## Part <II>")
    assert page == scoreboard(runs, {"hub": "Part <II> · The hub"})
    assert not any(line.startswith("```") for line in figure.splitlines())


def test_the_figure_takes_its_colours_from_the_page_and_leaves_the_style_alone() -> None:
    before = dict(mpl.rcParams)
    figure = tally({"Flow": [{"verdict": verdict} for verdict in COLOURS]})
    assert dict(mpl.rcParams) == before
    assert not any(colour in figure.lower() for colour in DARK)
    for colour in COLOURS.values():
        assert f"var({variable(colour)})" in figure
    assert len(set(COLOURS.values())) == len(COLOURS)


def test_at_its_end_it_says_what_each_run_took(runs: dict[str, Path]) -> None:
    last = scoreboard(runs).rstrip().splitlines()[-2:]
    assert last == [
        f"| {name} | smoke | 62 | 1.71 GB |" for name in ("hub/models", "flow/language")
    ]


def test_without_runs_it_says_so() -> None:
    page = scoreboard({})
    assert "No page has stated a claim yet." in page
    assert "<figure>" not in page
