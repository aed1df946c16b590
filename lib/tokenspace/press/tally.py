"""Each claim's verdicts over the runs of a sweep, at a glance."""

from collections.abc import Mapping, Sequence

from matplotlib.figure import Figure

from tokenspace.press.claims import VERDICTS
from tokenspace.press.inline import captioned
from tokenspace.press.scoreboard import COLOURS

MARKS = {"holds": "o", "does-not-hold": "X", "not-testable": "|"}


def runs_figure(verdicts: Mapping[str, Sequence[str]]) -> str:
    """Draw `{claim: its verdict in each run}` as a figure of HTML, a row a claim, a column a run.

    A run that doesn't state a claim has "" there.

    >>> page = runs_figure({"hub-ratio": ["holds", "holds", "does-not-hold", ""]})
    >>> 'aria-label="hub-ratio: holds 2, does not hold 1, not testable at this scale 0."' in page
    True
    """
    said = "; ".join(
        f"{claim}: " + ", ".join(f"{text} {list(found).count(v)}" for v, text in VERDICTS.items())
        for claim, found in verdicts.items()
    )
    caption = "Each claim's verdict in each run, runs from left to right as in the tables below."
    return captioned(lambda: _dots(verdicts), "fig-runs", said, caption)


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
