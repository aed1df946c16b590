"""What a reader may move in a figure: sliders below it, and the data that its script reads.

A live figure is drawn whole in its first state, for paper and for pages without scripts. The data
lie inside the SVG, the page has the sliders ready (`inline`), and `_static/live.js` wakes them
for the script of a `kind`, such as `_static/frames.js`. Figures of that kind are several states of
one, merged so that what they share is there once.
"""

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from html import escape
from typing import Any
from xml.etree import ElementTree
from xml.etree.ElementTree import Element

import numpy as np
from jaxtyping import Float
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from tokenspace.press.figures import svg

ElementTree.register_namespace("", "http://www.w3.org/2000/svg")
ElementTree.register_namespace("xlink", "http://www.w3.org/1999/xlink")


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


def draw(figures: Sequence[Figure], name: str, description: str, live: Live | None) -> str:
    """Draw a figure as SVG with what its script needs; several are the states of one.

    There is one for each position of the first slider, whose start is seen. A part that differs
    between them carries the numbers of its own in `data-frame`; parts without it belong to all.
    Raises `ValueError` for figures that are not as many as the positions, or not of one size.

    >>> early, late = Figure(), Figure()
    >>> text = late.text(0.5, 0.5, "late")
    >>> live = Live("frames", [Slider("time", ["early", "late"])])
    >>> drawn = draw([early, late], "fig-both", "nothing, then a word", live)
    >>> drawn.count('data-frame="1" display="none"')
    1
    """
    drawn = [svg(figure, name, description) for figure in figures]
    if len(drawn) > 1:
        slider = live.sliders[0] if live else None
        sizes = sorted({tuple(figure.get_size_inches()) for figure in figures})
        if slider is None or len(figures) != len(slider.words) or len(sizes) != 1:
            places = f"{len(slider.words)} positions of {slider.name!r}" if slider else "no slider"
            raise ValueError(
                f"{name}: {len(figures)} figures of sizes {sizes} for {places}; live= needs a "
                "slider that has a position for each, and figures of one size."
            )
        drawn = [_merged([ElementTree.fromstring(text) for text in drawn], str(slider.start))]
    if live is None:
        return drawn[0]
    text = json.dumps(asdict(live), separators=(",", ":"), ensure_ascii=False)
    inside = f'<metadata data-kind="{escape(live.kind)}">{escape(text, quote=False)}</metadata>'
    return drawn[0].replace("</desc>", f"</desc>{inside}", 1)


def _merged(drawn: list[Element], start: str) -> str:
    """One drawing of several; glyphs, markers and clip paths are there once for all frames."""
    defined = Element("{http://www.w3.org/2000/svg}defs")
    found: dict[str, Element] = {}  # ids say what they are
    for root in drawn:
        for parent in root.iter():
            parent.text, parent.tail = (parent.text or "").strip(), (parent.tail or "").strip()
            for defs in [child for child in parent if child.tag.endswith("}defs")]:
                found |= {one.get("id", one.tag): one for one in defs}
                parent.remove(defs)
    defined.extend(found.values())
    (whole,) = _merge(drawn, start)
    whole.insert(1, defined)  # behind the description
    return ElementTree.tostring(whole, encoding="unicode") + "\n"


def _merge(versions: list[Element], start: str) -> list[Element]:
    """One element where all are alike; else their parts merged, or each for its own frames."""
    texts = [ElementTree.tostring(v) for v in versions]
    first = versions[0]
    if len(set(texts)) == 1:
        return [first]
    if len(first) and len({(v.tag, *v.items(), v.text, len(v)) for v in versions}) == 1:
        whole = Element(first.tag, first.attrib)
        whole.text = first.text
        for parts in zip(*versions, strict=True):
            whole.extend(_merge(list(parts), start))
        return [whole]
    found: dict[bytes, tuple[Element, list[str]]] = {}
    for i, (text, version) in enumerate(zip(texts, versions, strict=True)):
        found.setdefault(text, (version, []))[1].append(str(i))
    for element, mine in found.values():
        element.set("data-frame", " ".join(mine))
        if start not in mine:
            element.set("display", "none")
    return [element for element, _ in found.values()]


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
        about = ""
        if position is not None:
            chosen = ' class="ts-chosen"' if position == start else ""
            ground = f"background: rgba(221, 160, 40, {shades[position]:.2f})"
            about = f' data-point="{position}"{chosen} style="{ground}"'
        spans.append(f"<span{about}>{escape(word)}</span>")
    role = 'role="group" aria-label="Words that open in the figure below"'
    return f'<p class="ts-sentence" {role}>{"".join(spans)}</p>'
