"""Verdicts at a glance: how many of each part's claims got which, and each claim's over runs."""

from collections.abc import Mapping, Sequence

from matplotlib.figure import Figure

from tokenspace.press import figures
from tokenspace.press.claims import VERDICTS
from tokenspace.press.inline import captioned

COLOURS = {
    "holds": figures.TEAL,
    "does-not-hold": figures.RED,
    "not-testable": figures.MUTED,
}

MARKS = {"holds": "o", "does-not-hold": "X", "not-testable": "|"}

Counts = Mapping[str, Mapping[str, int]]


def tally_figure(counts: Counts) -> str:
    """Draw `{part: {verdict: number of claims}}` as a figure of HTML, a row a part.

    >>> page = tally_figure({"The hub": {"holds": 3, "does-not-hold": 1}})
    >>> 'aria-label="The hub: holds 3, does not hold 1, not testable at this scale 0."' in page
    True
    """
    said = "; ".join(f"{part}: {in_words(count)}" for part, count in counts.items())
    caption = "How many claims of each part got which verdict in these runs."
    return captioned(lambda: _bars(counts), "fig-scoreboard", said, caption)


def runs_figure(verdicts: Mapping[str, Sequence[str]]) -> str:
    """Draw `{claim: its verdict in each run}` as a figure of HTML, a row a claim, a column a run.

    A run that doesn't state a claim has "" there.

    >>> page = runs_figure({"hub-ratio": ["holds", "holds", "does-not-hold", ""]})
    >>> 'aria-label="hub-ratio: holds 2, does not hold 1, not testable at this scale 0."' in page
    True
    """
    said = "; ".join(
        f"{claim}: {in_words({v: list(found).count(v) for v in VERDICTS})}"
        for claim, found in verdicts.items()
    )
    caption = "Each claim's verdict in each run, runs from left to right as in the tables below."
    return captioned(lambda: _dots(verdicts), "fig-runs", said, caption)


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


def _dots(verdicts: Mapping[str, Sequence[str]]) -> Figure:
    """Draw a mark a verdict, told by its shape as well as by its colour."""
    count = max(map(len, verdicts.values()))
    figure = Figure(
        figsize=(max(6, 3.2 + 0.16 * count), 1.1 + 0.24 * len(verdicts)), layout="constrained"
    )
    axes = figure.subplots()
    for verdict, text in VERDICTS.items():
        places = [
            (run, row)
            for row, found in enumerate(verdicts.values())
            for run, one in enumerate(found)
            if one == verdict
        ]
        x, y = zip(*places, strict=True) if places else ((), ())
        axes.scatter(x, y, marker=MARKS[verdict], color=COLOURS[verdict], s=32, label=text)
    axes.set_yticks(range(len(verdicts)), list(verdicts))
    axes.set_xticks([])
    axes.set(xlim=(-0.7, count - 0.3), ylim=(len(verdicts) - 0.4, -0.6))
    axes.grid(visible=False)
    axes.legend(loc="lower left", bbox_to_anchor=(0, 1), ncols=3, frameon=False)
    return figure
