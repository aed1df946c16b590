"""The bench's two figures: ratios against targets, and how time and memory grow."""

import math
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator

from tokenspace.press import figures
from tokenspace.press.inline import captioned

Record = dict[str, Any]
COLUMNS = 2


def ratio_figure(rows: list[Record]) -> str:
    """Draw each row's ratio, its spread and its target, as a figure of HTML."""
    labels = [label(row) for row in rows]
    told = "; ".join(
        f"{name}: {row['ratio']:.2g}, target {row['target']:.2g}"
        for name, row in zip(labels, rows, strict=True)
    )
    caption = (
        "Time or memory of ours over the peer's, threads in brackets: the point is the median over "
        "pairs of runs, the line goes from the least to the greatest, the bar is the target. Left "
        "of the bar it is met (filled), right of it missed (open)."
    )
    return captioned(lambda: _ratios(rows, labels), "fig-bench", told, caption)


def curve_figure(curves: list[Record]) -> str:
    """Draw each curve with its fitted power law, as a figure of HTML."""
    told = "; ".join(
        f"{curve['name']}: exponent {curve['exponent']:.2f}, counted "
        f"{curve['counted_exponent']:.2f}"
        for curve in curves
    )
    caption = (
        "Seconds or MB over size, both on logarithmic axes: medians with least and greatest, the "
        "power law fitted to the filled points (line), and the arithmetic, at the rate of the "
        "largest size (dashed)."
    )
    return captioned(lambda: _curves(curves), "fig-bench-curves", told, caption)


def label(row: Record) -> str:
    """Name a row with its threads.

    >>> label({"name": "TwoNN: MiniLM", "threads": 2})
    'TwoNN: MiniLM (2)'
    """
    return f"{row['name']} ({row['threads']})"


def _ratios(rows: list[Record], labels: list[str]) -> Figure:
    figure = Figure(figsize=(6.8, 0.29 * len(rows) + 0.9), layout="constrained")
    axes = figure.subplots()
    for y, row in enumerate(rows):
        met = row["ratio"] <= row["target"]
        colour = figures.BLUE if met else figures.RED
        axes.plot(row["spread"], [y, y], color=colour, lw=1.6)
        axes.plot(row["ratio"], y, "o", color=colour, mfc=colour if met else figures.PAPER)
        axes.plot(row["target"], y, "|", color=figures.INK, ms=13, mew=2)
    axes.set(xscale="log", xlabel="ours / peer's", yticks=range(len(rows)), yticklabels=labels)
    axes.xaxis.set_major_formatter("{x:g}")
    axes.axvline(1, color=figures.MUTED, lw=0.8)
    axes.grid(visible=False, axis="y")
    axes.invert_yaxis()
    return figure


def _curves(curves: list[Record]) -> Figure:
    lines = math.ceil(len(curves) / COLUMNS)
    figure = Figure(figsize=(6.8, 2.3 * lines), layout="constrained")
    places = figure.subplots(lines, COLUMNS, squeeze=False).flatten()
    for axes, curve in zip(places, curves, strict=False):
        _curve(axes, curve)
    for axes in places[len(curves) :]:
        axes.set_visible(False)
    return figure


def _curve(axes: Axes, curve: Record) -> None:
    points = curve["points"]
    size, y = (np.array([point[key] for point in points]) for key in ("size", "median"))
    for point in points:
        used = point["size"] >= curve["fitted_from"]
        span = [point["least"], point["greatest"]]
        axes.plot([point["size"]] * 2, span, color=figures.BLUE, lw=1.4)
        face = figures.BLUE if used else figures.PAPER
        axes.plot(point["size"], point["median"], "o", color=figures.BLUE, mfc=face, ms=5)
    fitted = size[size >= curve["fitted_from"]]
    law = np.exp(curve["intercept"]) * fitted ** curve["exponent"]
    axes.plot(fitted, law, color=figures.BLUE, lw=1.4)
    work = np.array([point["count"] for point in points])
    axes.plot(size, y[-1] * work / work[-1], "--", color=figures.MUTED, lw=1.4)
    axes.set(xscale="log", yscale="log", xlabel=curve["variable"], ylabel=curve["unit"])
    axes.set_xticks(size[::2], [f"{n:,}" for n in size[::2]])
    subs = (1,) if y.max() > 100 * y.min() else (1, 2, 5)
    axes.yaxis.set_major_locator(LogLocator(subs=subs))
    axes.yaxis.set_major_formatter("{x:g}")
    axes.minorticks_off()
    axes.set_title(curve["name"], loc="left")
    axes.xaxis.label.set_fontsize(8.5)
