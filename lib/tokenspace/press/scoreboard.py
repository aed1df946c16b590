"""The scoreboard: every claim, what was found, and what would have refuted it."""

from collections import Counter
from collections.abc import Mapping
from html import escape
from pathlib import Path
from typing import Any

import pandas as pd
from matplotlib.figure import Figure

from tokenspace.format import interval, number
from tokenspace.press.claims import SOURCES, VERDICTS
from tokenspace.press.figures import MUTED, RED, TEAL
from tokenspace.press.inline import captioned
from tokenspace.press.results import read_about, read_claims
from tokenspace.press.tables import markdown

COLOURS = {"holds": TEAL, "does-not-hold": RED, "not-testable": MUTED}
MARKS = {"stated": "P", "reconstructed": "R", "ours": "+"}
INTRO = """\
# Scoreboard

Every claim that a page tests, its paper's number beside ours, and the band that ours had to fall
in. A claim that does not hold is a result like any other. The mark says whose claim it is:
{marks}. Each claim links to the place on its page where it was measured.
"""
COSTS = """\
## What these runs took

Measured: the wall time of each page's run in seconds, and the peak memory of its process."""


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
        short = {title.split(" · ")[0]: mine for title, mine in parts.items()}
        lines += ["```{raw} html", tally_figure(short), "```", ""]
    for title, mine in parts.items():
        lines += [f"## {title}", "", tally(mine), ""]
        for source, text in SOURCES.items():
            if of_source := [claim for claim in mine if claim["source"] == source]:
                heading = f"{text[0].upper()}{text[1:]}"
                lines += [f"### {heading}", "", *_table(of_source), ""]
    if not claims:
        lines += ["No page has stated a claim yet.", ""]
    if runs:
        lines += [COSTS, "", markdown(costs(runs)), ""]
    return "\n".join(lines)


def costs(runs: Mapping[str, Path]) -> pd.DataFrame:
    """Measured wall time and peak memory of each run; the footer of its page has the latter."""
    abouts = {name: read_about(folder) for name, folder in runs.items()}
    return pd.DataFrame(
        {
            "page": list(abouts),
            "profile": [about["profile"] for about in abouts.values()],
            "seconds": [round(about["seconds"]) for about in abouts.values()],
            "peak memory": [about["footer"].get("peak memory") for about in abouts.values()],
        }
    )


def tally_figure(claims: Mapping[str, list[dict[str, Any]]]) -> str:
    """Draw how many of each part's claims got which verdict as a figure of HTML, a row a part.

    >>> page = tally_figure({"The hub": [{"verdict": "holds"}, {"verdict": "does-not-hold"}]})
    >>> 'aria-label="The hub: holds 1, does not hold 1, not testable at this scale 0."' in page
    True
    """
    counts = {part: Counter(claim["verdict"] for claim in mine) for part, mine in claims.items()}
    said = "; ".join(
        f"{part}: " + ", ".join(f"{text} {count[verdict]}" for verdict, text in VERDICTS.items())
        for part, count in counts.items()
    )

    def draw() -> Figure:
        """Draw a column of bars a verdict, so that place tells it as well as colour."""
        figure = Figure(figsize=(4.8, 0.7 + 0.32 * len(counts)))  # inches: fits a phone
        columns = figure.subplots(1, len(VERDICTS), sharex=True, sharey=True)
        for axes, (verdict, text) in zip(columns, VERDICTS.items(), strict=True):
            numbers = [count[verdict] for count in counts.values()]
            bars = axes.barh(list(counts), numbers, 0.7, color=COLOURS[verdict], lw=0)
            axes.bar_label(bars, padding=3)
            axes.set_title(text.replace(" at ", "\nat "), loc="left")
            axes.set(xticks=[], frame_on=False, xmargin=0.25)
            axes.grid(visible=False)
        columns[0].invert_yaxis()
        return figure

    caption = "How many claims of each part got which verdict in these runs."
    return captioned(draw, "fig-scoreboard", said, caption)


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
