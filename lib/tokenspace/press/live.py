"""What a reader may move in a figure: sliders below it, and the data that its script reads.

A live figure is drawn whole in its first state, for paper and for pages without scripts. The data
lie inside the SVG, the page has the sliders ready (`controls`), and `_static/live.js` wakes them
for the script of a `kind`, such as `_static/frames.js`.
"""

import json
import re
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from html import escape, unescape
from typing import Any

import numpy as np
from jaxtyping import Float
from matplotlib.axes import Axes
from matplotlib.figure import Figure


@dataclass(frozen=True)
class Slider:
    """One slider: its name, what it says at each of its positions, and where it starts."""

    name: str
    words: Sequence[str]
    start: int = 0
    play: bool = False
    """Has a button that moves it along by itself."""

    def __post_init__(self) -> None:
        if len(self.words) < 2 or not 0 <= self.start < len(self.words):
            raise ValueError(
                f"slider {self.name!r}: {len(self.words)} positions and a start at {self.start}; "
                "it needs at least two, and a start among them."
            )


@dataclass(frozen=True)
class Live:
    """What makes a figure live: the kind of its script, sliders, a first sentence, and data.

    `says` is the sentence below the sliders, which the script rewrites as they move.
    """

    kind: str
    sliders: Sequence[Slider]
    says: str = ""
    data: dict[str, Any] = field(default_factory=dict)


def attach(svg: str, live: Live) -> str:
    """Put what a script needs into an SVG, behind its description.

    >>> attach("<svg><desc>a</desc></svg>", Live("dial", [Slider("x", ["0", "1"])]))[:45]
    '<svg><desc>a</desc><metadata data-kind="dial"'
    """
    text = json.dumps(asdict(live), separators=(",", ":"), ensure_ascii=False)
    inside = f'<metadata data-kind="{escape(live.kind)}">{escape(text, quote=False)}</metadata>'
    return svg.replace("</desc>", f"</desc>{inside}", 1)


def controls(svg: str) -> str:
    """The sliders of a live figure as HTML, disabled until its script runs; "" for other figures.

    >>> live = Live("dial", [Slider("length", ["short", "long"])], says="A short one.")
    >>> html = controls(attach("<svg><desc>a</desc></svg>", live))
    >>> html.count("<input"), "A short one." in html, controls("<svg></svg>")
    (1, True, '')
    """
    found = re.search(r"<metadata data-kind=[^>]*>(.*?)</metadata>", svg, re.DOTALL)
    if not found:
        return ""
    live = json.loads(unescape(found[1]))
    rows = "".join(_slider_html(slider) for slider in live["sliders"])
    says = escape(live["says"])
    said = f'<output class="ts-says" aria-live="polite">{says}</output>' if says else ""
    return f'<div class="ts-interactive">{rows}{said}</div>'


def _slider_html(slider: dict[str, Any]) -> str:
    word = escape(slider["words"][slider["start"]])
    widest = max(map(len, slider["words"]))
    button = (
        '<button type="button" class="ts-play" disabled>Play</button>' if slider["play"] else ""
    )
    return (
        f'<div class="ts-control"><label><span>{escape(slider["name"])}</span>'
        f'<input type="range" min="0" max="{len(slider["words"]) - 1}" value="{slider["start"]}" '
        f'aria-valuetext="{word}" autocomplete="off" disabled></label>'
        f'<output aria-live="off" style="--ts-widest: {widest}ch">{word}</output>{button}</div>'
    )


def settle(figure: Figure) -> None:
    """Lay the figure out once and for all: what is added later moves no panel."""
    figure.draw_without_rendering()
    figure.set_layout_engine("none")


def places(axes: Axes, points: Float[np.ndarray, "*N 2"]) -> Float[np.ndarray, "*N 2"]:
    """Points of a panel's data in the units of the SVG, to a tenth; the figure is settled.

    >>> from matplotlib.figure import Figure
    >>> axes = Figure(figsize=(2, 1)).add_axes((0, 0, 1, 1))
    >>> places(axes, np.array([[0.0, 0.0], [1.0, 1.0]])).tolist()
    [[0.0, 72.0], [144.0, 0.0]]
    """
    figure = axes.get_figure(root=True)
    assert figure is not None
    points = np.asarray(points, dtype=float)
    pixels = axes.transData.transform(points.reshape(-1, 2)) * 72 / figure.dpi  # (N, 2)
    pixels[:, 1] = 72 * figure.get_size_inches()[1] - pixels[:, 1]  # an SVG's y runs downwards
    return np.round(pixels, 1).reshape(points.shape) + 0.0  # no -0.0


def sentence(words: Sequence[tuple[str, int | None]], shades: Sequence[float], start: int) -> str:
    """A sentence as HTML, for a figure of the kind `planes`: words choose the slider's position.

    Each word comes with its position, or `None`; `shades[i]` from 0 to 1 is position i's ground.
    """
    spans = []
    for word, position in words:
        if position is None:
            spans.append(f"<span>{escape(word)}</span>")
            continue
        chosen = ' class="ts-chosen"' if position == start else ""
        ground = f"background: rgba(221, 160, 40, {shades[position]:.2f})"
        about = f'data-point="{position}"{chosen} style="{ground}"'
        spans.append(f"<span {about}>{escape(word)}</span>")
    role = 'role="group" aria-label="Words that open in the figure below"'
    return f'<p class="ts-sentence" {role}>{"".join(spans)}</p>'
