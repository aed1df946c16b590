"""The scoreboard at a glance: how many claims of each part hold, do not hold, or stay open."""

from collections.abc import Mapping
from html import escape

import matplotlib as mpl
from matplotlib.figure import Figure

from tokenspace.press import figures
from tokenspace.press.claims import VERDICTS
from tokenspace.press.inline import inline

COLOURS = {
    "holds": figures.TEAL,
    "does-not-hold": figures.RED,
    "not-testable": figures.MUTED,
}

Counts = Mapping[str, Mapping[str, int]]


def tally_figure(counts: Counts) -> str:
    """Draw `{part: {verdict: number of claims}}` as a figure of HTML, a row a part.

    >>> page = tally_figure({"The hub": {"holds": 3, "does-not-hold": 1}})
    >>> 'aria-label="The hub: holds 3, does not hold 1, not testable at this scale 0."' in page
    True
    """
    said = "; ".join(f"{part}: {in_words(count)}" for part, count in counts.items())
    with mpl.rc_context():
        figures.use()
        drawn = figures.svg(_bars(counts), "fig-scoreboard", said)
    caption = "How many claims of each part got which verdict in these runs."
    return f"<figure>{inline(drawn, f'{said}.')}<figcaption>{escape(caption)}</figcaption></figure>"


def in_words(count: Mapping[str, int]) -> str:
    """Write a part's counts, zeros too."""
    return ", ".join(f"{text} {count.get(verdict, 0)}" for verdict, text in VERDICTS.items())


def _bars(counts: Counts) -> Figure:
    """Draw a column of bars a verdict, so that place tells it as well as colour; fits a phone."""
    figure = Figure(figsize=(4.8, 0.7 + 0.32 * len(counts)), layout="constrained")
    columns = figure.subplots(1, len(VERDICTS), sharex=True, sharey=True)
    for axes, (verdict, text) in zip(columns, VERDICTS.items(), strict=True):
        numbers = [count.get(verdict, 0) for count in counts.values()]
        bars = axes.barh(list(counts), numbers, height=0.7, color=COLOURS[verdict], linewidth=0)
        axes.bar_label(bars, padding=3)
        axes.set_title(text.replace(" at ", "\nat "), loc="left")
        axes.xaxis.set_visible(False)
        axes.grid(visible=False)
        axes.tick_params(left=False)
        axes.spines["bottom"].set_visible(False)
        axes.margins(x=0.25)
    columns[0].invert_yaxis()
    return figure
