"""A sentence whose words open: the plane of two unit rows, and where a unit state lies to it.

Three drawings of one point, all to scale: the plane from above with both rows and the state's
part in it, the same from the plane's edge, and the probabilities as a bar. `planes.js` redraws
them for the word that is chosen.
"""

from collections.abc import Iterator, Sequence
from html import escape
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from tokenspace.press.figures import AMBER, BLUE, GRID, INK, MUTED, TEAL
from tokenspace.press.places import path, places, settle

Places = Float[np.ndarray, "N 2"]


class Plane(NamedTuple):
    """One point: the angle of the rows, the state's part in their plane, and the probabilities.

    `across` runs from the second row's side to the first's, `along` half-way between them.
    """

    angle: float
    across: float
    along: float
    p1: float
    p2: float
    shade: float


class Shape(NamedTuple):
    """A line or an area of one of the three panels, in its coordinates."""

    name: str
    panel: int
    places: Places
    colour: str
    area: bool = False
    dashed: bool = False


def draw_planes(planes: Sequence[Plane], start: int) -> tuple[Figure, list[dict[str, Any]]]:
    """The figure of one of the points, and what `planes.js` needs to draw any of them."""
    figure, panels = _panels()
    settle(figure)
    labels = {}
    for shape in _shapes(planes[start]):
        axes = panels[shape.panel]
        if shape.area:
            alpha = planes[start].shade if shape.name == "between" else 1
            axes.fill(
                *shape.places.T, color=shape.colour, lw=0, alpha=alpha, gid=f"ts-{shape.name}"
            )
        else:
            style = "--" if shape.dashed else "-"
            axes.plot(*shape.places.T, style, color=shape.colour, gid=f"ts-{shape.name}")
    for name, panel, place, text, colour in _labels(planes[start]):
        labels[name] = places(panels[panel], place)
        x, y = place
        word = panels[panel].text(x, y, text, color=colour, ha="center", va="center")
        word.set(fontsize=12, gid=f"ts-{name}")
    return figure, [_state(plane, panels, labels) for plane in planes]


def sentence(words: Sequence[tuple[str, int | None]], shades: Sequence[float], start: int) -> str:
    """The sentence, each word with its point's number and on its shade; `planes.js` wakes it."""
    spans = []
    for word, point in words:
        if point is None:
            spans.append(f"<span>{escape(word)}</span>")
            continue
        chosen = ' class="ts-chosen"' if point == start else ""
        ground = f"background: rgba(221, 160, 40, {shades[point]:.2f})"
        spans.append(f'<span data-point="{point}"{chosen} style="{ground}">{escape(word)}</span>')
    role = 'role="group" aria-label="Words that open in the figure below"'
    return f'<p class="ts-sentence" {role}>{"".join(spans)}</p>'


def _panels() -> tuple[Figure, list[Axes]]:
    """Empty panels: from above, from the edge, and the bar."""
    figure = Figure(figsize=(5.8, 3.9))
    above, edge, bar = figure.subplot_mosaic(
        [["above", "edge"], ["bar", "bar"]], height_ratios=[1, 0.13]
    ).values()
    turn = np.linspace(0, 2 * np.pi, 181)
    above.plot(np.sin(turn), np.cos(turn), color=GRID, lw=1)
    edge.plot(np.cos(turn[:91]), np.sin(turn[:91]), color=GRID, lw=1)
    edge.plot([-1.2, 1.2], [0, 0], color=MUTED, lw=1)
    above.set(title="the plane of both rows", xlim=(-1.25, 1.25), ylim=(-1.25, 1.25))
    edge.set(title="its edge, and the state", xlim=(-1.25, 1.25), ylim=(-1.25, 1.25))
    for axes in (above, edge):
        axes.set_aspect("equal")
        axes.set_axis_off()
    bar.set(xlim=(0, 1), ylim=(0, 1), yticks=[], xlabel="probability: a, b, all other tokens")
    bar.grid(visible=False)
    bar.spines["left"].set_visible(False)
    return figure, [above, edge, bar]


def _shapes(plane: Plane) -> Iterator[Shape]:
    half = plane.angle / 2
    a, b = np.array([[np.sin(half), np.cos(half)], [-np.sin(half), np.cos(half)]])
    inside = np.array([plane.across, plane.along])
    shadow = np.hypot(*inside)
    state = np.array([shadow, np.sqrt(max(0.0, 1 - shadow**2))])
    zero, foot = np.zeros(2), np.array([shadow, 0])
    yield Shape("between", 0, np.stack([zero, a, b]), AMBER, area=True)
    yield from _arrow("a", 0, a, BLUE)
    yield from _arrow("b", 0, b, TEAL)
    yield from _arrow("inside", 0, inside, INK)
    yield Shape("drop", 1, np.stack([state, foot]), MUTED, dashed=True)
    yield from _arrow("foot", 1, foot, INK)
    yield from _arrow("state", 1, state, INK)
    edges = np.array([0, plane.p1, plane.p1 + plane.p2, 1])
    for name, left, right, colour in zip(
        ("p1", "p2", "others"), edges[:-1], edges[1:], (BLUE, TEAL, GRID), strict=True
    ):
        box = np.array([[left, 0], [right, 0], [right, 1], [left, 1]])
        yield Shape(name, 2, box, colour, area=True)


def _arrow(name: str, panel: int, tip: Float[np.ndarray, "2"], colour: str) -> Iterator[Shape]:
    """A shaft from the origin, and a head that is never longer than it."""
    length = float(np.hypot(*tip))
    ahead = tip / max(length, 1e-9) * min(0.11, length)
    aside = 0.4 * np.array([-ahead[1], ahead[0]])
    yield Shape(name, panel, np.stack([0 * tip, tip - 0.8 * ahead]), colour)
    head = np.stack([tip, tip - ahead + aside, tip - ahead - aside])
    yield Shape(f"{name}-head", panel, head, colour, area=True)


def _labels(plane: Plane) -> Iterator[tuple[str, int, Float[np.ndarray, "2"], str, str]]:
    """Name, panel, place, text and colour of each word in the drawing."""
    shapes = {shape.name: shape.places for shape in _shapes(plane)}
    for name, panel, text, colour in (
        ("a", 0, "a", BLUE),
        ("b", 0, "b", TEAL),
        ("inside", 0, r"$\Pi z$", INK),
        ("foot", 1, r"$\Pi z$", INK),
        ("state", 1, "$z$", INK),
    ):
        tip = shapes[f"{name}-head"][0]
        away = tip / max(float(np.hypot(*tip)), 1e-9)
        if name == "foot":
            away = np.array([0.0, -1.0])
        yield f"{name}-label", panel, tip + 0.15 * away, text, colour


def _state(plane: Plane, panels: list[Axes], at: dict[str, Any]) -> dict[str, Any]:
    """What a script needs: the path of each shape, and how far each label moves from its place."""
    return {
        "paths": {
            shape.name: path(places(panels[shape.panel], shape.places), closed=shape.area)
            for shape in _shapes(plane)
        },
        "moves": {
            name: (places(panels[panel], place) - at[name]).round(1).tolist()
            for name, panel, place, _, _ in _labels(plane)
        },
        "shade": round(plane.shade, 3),
    }
