"""The scoreboard: every claim, what was found, and what would have refuted it."""

from collections import Counter
from collections.abc import Mapping
from html import escape
from pathlib import Path
from typing import Any

from tokenspace.format import interval, number
from tokenspace.press.claims import SOURCES, VERDICTS
from tokenspace.press.results import read_claims
from tokenspace.press.tally import tally_figure

MARKS = {"stated": "P", "reconstructed": "R", "ours": "+"}
INTRO = """\
# Scoreboard

Every claim that a page tests, its paper's number beside ours, and the band that ours had to fall
in. A claim that does not hold is a result like any other. The mark says whose claim it is:
{marks}. Each claim links to the place on its page where it was measured.
"""


def scoreboard(runs: Mapping[str, Path], titles: Mapping[str, str] | None = None) -> str:
    """Write the scoreboard of `{"hub/models": run folder}` as a page of MyST.

    `titles` names the parts. In each, the paper's own claims come first; a row is a verdict, a
    claim, the paper's number, ours.
    """
    claims = [claim for folder in runs.values() for claim in read_claims(folder)]
    marks = ", ".join(f"{_mark(source)} {text}" for source, text in SOURCES.items())
    lines = [INTRO.format(marks=marks)]
    parts: dict[str, list[dict[str, Any]]] = {}
    for claim in claims:
        title = (titles or {}).get(claim["part"], claim["part"].capitalize())
        parts.setdefault(title, []).append(claim)
    if parts:
        counts = {
            title.split(" · ")[0]: Counter(claim["verdict"] for claim in mine)
            for title, mine in parts.items()
        }
        lines += ["```{raw} html", tally_figure(counts), "```", ""]
    for title, mine in parts.items():
        lines += [f"## {title}", "", tally(mine), ""]
        for source, text in SOURCES.items():
            if of_source := [claim for claim in mine if claim["source"] == source]:
                heading = f"{text[0].upper()}{text[1:]}"
                lines += [f"### {heading}", "", *_table(of_source), ""]
    if not claims:
        lines += ["No page has stated a claim yet.", ""]
    return "\n".join(lines)


def tally(claims: list[dict[str, Any]]) -> str:
    """Count verdicts in words.

    >>> tally([{"verdict": "holds", "profile": "smoke"}, {"verdict": "holds", "profile": "smoke"}])
    'Of 2 claims, 2 hold, 0 do not hold and 0 are not testable at this scale (profile `smoke`).'
    """
    held, failed, untested = (sum(c["verdict"] == v for c in claims) for v in VERDICTS)
    profiles = ", ".join(f"`{p}`" for p in dict.fromkeys(c["profile"] for c in claims))
    noun = "claim" if len(claims) == 1 else "claims"
    return (
        f"Of {len(claims)} {noun}, {held} {'holds' if held == 1 else 'hold'}, "
        f"{failed} {'does' if failed == 1 else 'do'} not hold and "
        f"{untested} {'is' if untested == 1 else 'are'} not testable at this scale "
        f"(profile {profiles})."
    )


def _table(claims: list[dict[str, Any]]) -> list[str]:
    rows = [
        '<table class="ts-scoreboard">',
        "<thead><tr><th>Verdict</th><th>Claim</th><th>Paper</th><th>Ours</th></tr></thead>",
        "<tbody>",
        *map(_row, claims),
        "</tbody></table>",
    ]
    return ["```{raw} html", *rows, "```"]


def _row(claim: dict[str, Any]) -> str:
    verdict = claim["verdict"]
    link = f"notebooks/{claim['notebook']}.html#claim-{claim['id']}"
    notes = {"Scale": claim["scale"], "Control": claim["control"], "Why": claim["why"]}
    small = " ".join(f"{name}: {escape(text).rstrip('.')}." for name, text in notes.items() if text)
    ours = escape(number(claim["ours"], claim["uncertainty"]))
    return (
        f'<tr data-verdict="{verdict}">'
        f'<td><span class="ts-verdict" data-verdict="{verdict}">{VERDICTS[verdict]}</span></td>'
        f'<td>{_mark(claim["source"])} <a href="{link}">{escape(claim["statement"])}</a>'
        f"<br><small>{small.replace('..', '.')}</small></td>"
        f"<td>{escape(claim['paper'] or '–')}</td>"
        f"<td>{ours}<br><small>holds if {escape(interval(claim['band']))}</small></td></tr>"
    )


def _mark(source: str) -> str:
    about = f'data-source="{source}" title="{SOURCES[source]}"'
    return f'<abbr class="ts-mark" {about}>{MARKS[source]}</abbr>'
