"""One style for every figure: colours that survive colour blindness, print and a dark page.

A figure is drawn in the light colours below. The page swaps each for its partner in `DARK`, so
nothing else may be used for text, lines and areas; transparency (`alpha=`) keeps a colour's name.
Heat maps take `CMAP`, which reads on both. seaborn's bars need `saturation=1`.
"""

import io
import re
from collections.abc import Iterator
from xml.sax.saxutils import escape

import matplotlib as mpl
import numpy as np
from matplotlib.artist import Artist
from matplotlib.collections import PathCollection
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

PAPER = "#ffffff"
INK = "#262626"
GRID = "#dededf"
MUTED = "#6e6e72"
"""Reference lines, controls, what stands behind."""
BLUE, RED, TEAL, AMBER, PINK, INDIGO = PALETTE = [
    "#2457d0",
    "#cc4a3c",
    "#2f9488",
    "#b57a00",
    "#dd52c4",
    "#35127d",
]
CMAP = "cividis"

DARK = {
    PAPER: "#14181e",
    INK: "#e8e8ea",
    GRID: "#3b414b",
    MUTED: "#a3a6ad",
    BLUE: "#4d90ff",
    RED: "#f0603f",
    TEAL: "#4fe0a0",
    AMBER: "#f2e35c",
    PINK: "#d070a8",
    INDIGO: "#dcaef5",
    "#000000": "#e8e8ea",  # what matplotlib draws when nobody says otherwise
    "#424242": "#e8e8ea",  # seaborn's error bars
}
"""Light colour -> its partner on a dark page."""

DENSE = 1500
"""A scatter of more points than this is drawn as pixels inside the SVG."""


def use() -> None:
    """Make this the style of every figure drawn from here on."""
    import seaborn as sns  # a second to import, and only pages need it

    sns.set_theme(
        context="notebook",
        style="whitegrid",
        palette=PALETTE,
        rc={
            "figure.figsize": (6.8, 3.9),
            "figure.constrained_layout.use": True,
            "figure.dpi": 100,
            "savefig.dpi": 160,
            "font.family": "DejaVu Sans",
            "font.size": 10,
            "axes.labelsize": 10.5,
            "axes.titlesize": 10.5,
            "legend.fontsize": 9.5,
            "xtick.labelsize": 9.5,
            "ytick.labelsize": 9.5,
            "axes.spines.top": False,
            "axes.spines.right": False,
            "axes.edgecolor": MUTED,
            "axes.linewidth": 0.8,
            "grid.linewidth": 0.7,
            "lines.linewidth": 1.8,
            "legend.frameon": False,
            "image.cmap": CMAP,
            "svg.fonttype": "path",
            "svg.hashsalt": "tokenspace",
            **dict.fromkeys(("figure.facecolor", "axes.facecolor", "savefig.facecolor"), PAPER),
            **dict.fromkeys(("text.color", "axes.labelcolor", "patch.edgecolor"), INK),
            **dict.fromkeys(("xtick.color", "ytick.color"), INK),
            "grid.color": GRID,
        },
    )


def _artists(figure: Figure) -> Iterator[Artist]:
    for axes in figure.axes:
        yield from axes.collections
        yield from axes.lines


def _points(artist: Artist) -> int:
    if isinstance(artist, PathCollection):
        return np.size(artist.get_offsets()) // 2
    if isinstance(artist, Line2D) and artist.get_marker() not in ("", " ", "None", "none", None):
        return np.size(artist.get_xdata())
    return 0


def svg(figure: Figure, name: str, description: str) -> str:
    """Draw `figure` as an SVG text, the same bytes for the same figure.

    Dense scatters become pixels; ids are kept only where something refers to them, and carry
    `name`, so that many figures can share a page. The gid of an artist that begins with `ts-`
    becomes its class, by which style sheet and scripts find it; a subfigure that is `ts-second`
    moves below the first on a phone.

    >>> from matplotlib.figure import Figure
    >>> drawn = svg(Figure(), "fig-empty", "nothing")
    >>> drawn == svg(Figure(), "fig-empty", "nothing"), "<desc>nothing</desc>" in drawn
    (True, True)
    """
    for artist in _artists(figure):
        if _points(artist) > DENSE:
            artist.set_rasterized(True)
    with io.StringIO() as buffer, mpl.rc_context({"svg.hashsalt": "tokenspace"}):
        figure.savefig(buffer, format="svg", metadata={"Date": None, "Creator": None})
        text = buffer.getvalue()
    text = re.sub(r"\s*<metadata>.*?</metadata>", "", text[text.index("<svg") :], flags=re.DOTALL)
    text = re.sub(r' id="(ts-[^"]+)"', r' class="\1"', text)
    used = set(re.findall(r'(?:url\(#|href="#)([^)"]+)', text))
    text = re.sub(r' id="([^"]+)"', lambda m: m[0] if m[1] in used else "", text)
    text = re.sub(r'( id="|url\(#|href="#)', rf"\g<1>{name}-", text)
    return re.sub(r"(<svg[^>]*>)", rf"\1<desc>{escape(description)}</desc>", text, count=1)
