"""The scoreboard: every claim, what was found, and what would have refuted it."""

from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import matplotlib as mpl
import pandas as pd
from jinja2 import Environment, FileSystemLoader
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
TEMPLATES = Path(__file__).parent / "templates" / "pages"


def scoreboard(runs: Mapping[str, Path], titles: Mapping[str, str] | None = None) -> str:
    """Write the scoreboard of `{"hub/models": run folder}` as a page of MyST.

    `titles` names the parts. In each, the paper's own claims come first; a row is a verdict, a
    claim, the paper's number, ours. At the end stands what each run took.
    """
    parts: dict[str, Claims] = {}
    for claim in (claim for folder in runs.values() for claim in read_claims(folder)):
        title = (titles or {}).get(claim["part"], claim["part"].capitalize())
        parts.setdefault(title, []).append(claim)
    took = []
    for name, folder in runs.items():
        about = read_about(folder)
        row = {"page": name, "profile": about["profile"], "seconds": round(about["seconds"])}
        took.append({**row, "peak memory": about["footer"].get("peak memory")})
    page = Environment(loader=FileSystemLoader(TEMPLATES), autoescape=True)
    page.globals |= {"number": number, "interval": interval, "counted": counted, "marks": MARKS}
    return page.get_template("scoreboard.md.j2").render(
        parts=parts,
        sources=SOURCES,
        verdicts=VERDICTS,
        tally=tally(parts) if parts else "",
        costs=markdown(pd.DataFrame(took)) if took else "",
    )


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
