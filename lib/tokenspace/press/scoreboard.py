"""The scoreboard: every claim, what was found, and what would have refuted it."""

from collections import Counter
from collections.abc import Mapping
from html import escape
from itertools import groupby
from pathlib import Path
from typing import Any

import matplotlib as mpl
import pandas as pd
from matplotlib.figure import Figure

from tokenspace.format import interval, number
from tokenspace.press import figures
from tokenspace.press.claims import SOURCES, VERDICTS
from tokenspace.press.figures import MUTED, RED, TEAL
from tokenspace.press.inline import inline
from tokenspace.press.results import read_about, read_claims
from tokenspace.press.tables import markdown

Claims = list[dict[str, Any]]

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

Measured: the wall time of each page's run in seconds, and the peak memory of its process.
"""
FIGURE = """\
```{{raw}} html
<figure>{}<figcaption>How many claims of each part got which verdict in these runs.</figcaption>
</figure>
```
"""
TABLE = """\
```{{raw}} html
<table class="ts-scoreboard">
<thead><tr><th>Verdict</th><th>Claim</th><th>Paper</th><th>Ours</th></tr></thead>
<tbody>
{}
</tbody></table>
```
"""
ROW = """\
<tr data-verdict="{verdict}">\
<td><span class="ts-verdict" data-verdict="{verdict}">{found}</span></td>\
<td>{mark} <a href="notebooks/{notebook}.html#claim-{id}">{statement}</a>\
<br><small>{notes}</small></td>\
<td>{paper}</td><td>{ours}<br><small>holds if {band}</small></td></tr>"""


def scoreboard(runs: Mapping[str, Path], titles: Mapping[str, str] | None = None) -> str:
    """Write the scoreboard of `{"hub/models": run folder}` as a page of MyST.

    `titles` names the parts. In each, the paper's own claims come first; a row is a verdict, a
    claim, the paper's number, ours. At the end stands what each run took.
    """
    parts: dict[str, Claims] = {}
    for claim in (claim for folder in runs.values() for claim in read_claims(folder)):
        title = (titles or {}).get(claim["part"], claim["part"].capitalize())
        parts.setdefault(title, []).append(claim)
    marks = ", ".join(f"{_mark(source)} {text}" for source, text in SOURCES.items())
    lines = [INTRO.format(marks=marks)]
    lines += [FIGURE.format(tally(parts))] if parts else ["No page has stated a claim yet.\n"]
    for title, claims in parts.items():
        profiles = ", ".join(f"`{p}`" for p in dict.fromkeys(c["profile"] for c in claims))
        lines += [f"## {title}\n", f"{counted(claims)} (profile {profiles}).\n"]
        order = [*SOURCES].index
        claims.sort(key=lambda claim: order(claim["source"]))
        for source, mine in groupby(claims, key=lambda claim: str(claim["source"])):
            text = SOURCES[source]
            lines.append(f"### {text[0].upper()}{text[1:]}\n")
            lines.append(TABLE.format("\n".join(map(_row, mine))))
    if runs:
        abouts = {name: read_about(folder) for name, folder in runs.items()}
        took = pd.DataFrame(
            {
                "page": name,
                "profile": about["profile"],
                "seconds": round(about["seconds"]),
                "peak memory": about["footer"].get("peak memory"),
            }
            for name, about in abouts.items()
        )
        lines += [COSTS, markdown(took), ""]
    return "\n".join(lines)


def counted(claims: Claims) -> str:
    """Count verdicts in words.

    >>> counted([{"verdict": "holds"}, {"verdict": "does-not-hold"}, {"verdict": "holds"}])
    'holds 2, does not hold 1, not testable at this scale 0'
    """
    count = Counter(claim["verdict"] for claim in claims)
    return ", ".join(f"{text} {count[verdict]}" for verdict, text in VERDICTS.items())


def tally(parts: Mapping[str, Claims]) -> str:
    """Draw how many of each part's claims got which verdict: a row a part, a column a verdict."""
    names = [title.split(" · ")[0] for title in parts]
    with mpl.rc_context():
        figures.use()
        figure = Figure(figsize=(4.8, 0.7 + 0.32 * len(parts)))  # inches: fits a phone
        columns = figure.subplots(1, len(VERDICTS), sharex=True, sharey=True)
        for axes, (verdict, text) in zip(columns, VERDICTS.items(), strict=True):
            numbers = [sum(c["verdict"] == verdict for c in claims) for claims in parts.values()]
            axes.bar_label(axes.barh(names, numbers, 0.7, color=COLOURS[verdict], lw=0), padding=3)
            axes.set_title(text.replace(" at ", "\nat "), loc="left")
            axes.set(xticks=[], frame_on=False, xmargin=0.25)
            axes.grid(visible=False)
        columns[0].invert_yaxis()
        said = "; ".join(map("{}: {}".format, names, map(counted, parts.values())))
        return inline(figures.svg(figure, "fig-scoreboard", said), f"{said}.")


def _row(claim: dict[str, Any]) -> str:
    notes = {"Scale": claim["scale"], "Control": claim["control"], "Why": claim["why"]}
    told = (f"{name}: {escape(text).rstrip('.')}." for name, text in notes.items() if text)
    return ROW.format(
        **{name: escape(claim[name]) for name in ("verdict", "notebook", "id", "statement")},
        found=VERDICTS[claim["verdict"]],
        mark=_mark(claim["source"]),
        notes=" ".join(told),
        paper=escape(claim["paper"] or "–"),
        ours=escape(number(claim["ours"], claim["uncertainty"])),
        band=escape(interval(claim["band"])),
    )


def _mark(source: str) -> str:
    about = f'data-source="{source}" title="{SOURCES[source]}"'
    return f'<abbr class="ts-mark" {about}>{MARKS[source]}</abbr>'
