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
    """The sliders of a live figure as HTML, still asleep; nothing for any other figure.

    >>> live = Live("dial", [Slider("length", ["short", "long"])], says="A short one.")
    >>> html = controls(attach("<svg><desc>a</desc></svg>", live))
    >>> html.count("<input"), "A short one." in html, controls("<svg></svg>")
    (1, True, '')
    """
    found = re.search(r"<metadata data-kind=[^>]*>(.*?)</metadata>", svg, re.DOTALL)
    if not found:
        return ""
    live = json.loads(unescape(found[1]))
    rows = "".join(_row(slider) for slider in live["sliders"])
    says = escape(live["says"])
    said = f'<output class="ts-says" aria-live="polite">{says}</output>' if says else ""
    return f'<div class="ts-interactive">{rows}{said}</div>'


def _row(slider: dict[str, Any]) -> str:
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
