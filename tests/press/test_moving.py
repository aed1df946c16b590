"""Figures whose parts a script moves: what it is given for the first state is what is drawn."""

import math
import re
from xml.etree import ElementTree
from xml.etree.ElementTree import Element

import numpy as np
import pytest
from matplotlib import pyplot as plt

from tokenspace.press import figures
from tokenspace.press.particles import draw_particles
from tokenspace.press.places import settle
from tokenspace.press.planes import Plane, draw_planes, sentence

SVG = "{http://www.w3.org/2000/svg}"
PLANES = [Plane(1.2, 0.1, 0.3, 0.5, 0.3, 0.4), Plane(2.4, -0.2, -0.5, 0.9, 0.05, 0.1)]


def part(root: Element, name: str) -> Element:
    (found,) = root.findall(f".//{SVG}g[@class='ts-{name}']")
    return found


def numbers(d: str) -> list[float]:
    return [float(x) for x in re.findall(r"-?[\d.]+", d)]


def close(d: str, drawn: str) -> bool:
    """Whether two paths have the same places, to the tenth that scripts are given."""
    return bool(np.allclose(numbers(d), numbers(drawn), atol=0.06))


@pytest.fixture(autouse=True)
def style() -> None:
    figures.use()


def test_the_particles_given_for_the_level_drawn_are_the_drawn_ones() -> None:
    rng = np.random.default_rng(0)
    at, target, corners = rng.normal(size=(3, 4, 5, 2))
    figure, axes = plt.subplots()
    axes.set(xlim=(-3, 3), ylim=(-3, 3), title="four levels")
    settle(figure)
    told = draw_particles(axes, 0, at, target, corners, np.arange(5), 2)
    root = ElementTree.fromstring(figures.svg(figure, "fig-fall", "they fall"))
    for name in ("dots", "stars"):
        uses = part(root, f"{name}-0").findall(f".//{SVG}use")
        drawn = [[float(use.get("x", "")), float(use.get("y", ""))] for use in uses]
        assert np.allclose(drawn, [path[4:6] for path in told[name]], atol=0.06)
    trails = [p.get("d", "") for p in part(root, "trails-0").findall(f".//{SVG}path")]
    for path, trail in zip(told["dots"], trails, strict=True):
        assert np.allclose(numbers(trail), path[:6], atol=0.06)
    assert len(told["targets"]) == 5
    plt.close(figure)


@pytest.mark.parametrize("start", [0, 1])
def test_the_plane_given_for_the_word_drawn_is_the_drawn_one(start: int) -> None:
    figure, states = draw_planes(PLANES, start)
    root = ElementTree.fromstring(figures.svg(figure, "fig-plane", "a plane"))
    for name, d in states[start]["paths"].items():
        drawn = part(root, name).findall(f".//{SVG}path")
        assert len(drawn) == 1
        assert close(d, drawn[0].get("d", "")), name
    assert all(by == [0, 0] for by in states[start]["moves"].values())
    assert any(any(by) for by in states[1 - start]["moves"].values())


@pytest.mark.parametrize("plane", PLANES)
def test_angles_and_lengths_are_drawn_to_scale(plane: Plane) -> None:
    _, (state,) = draw_planes([plane], 0)
    tips = {}
    for name in ("a", "b", "inside", "state", "foot"):
        start = np.array(numbers(state["paths"][name])[:2])
        tips[name] = np.array(numbers(state["paths"][f"{name}-head"])[:2]) - start
    unit = np.linalg.norm(tips["a"])
    cosine = tips["a"] @ tips["b"] / unit**2
    assert math.isclose(math.acos(cosine), plane.angle, abs_tol=0.01)
    shadow = math.hypot(plane.across, plane.along)
    for name, length in (("b", 1), ("state", 1), ("inside", shadow), ("foot", shadow)):
        assert math.isclose(np.linalg.norm(tips[name]) / unit, length, abs_tol=0.01)
    assert (tips["inside"] @ (tips["a"] - tips["b"]) > 0) == (plane.across > 0)
    boxes = {n: numbers(state["paths"][n]) for n in ("p1", "p2", "others")}
    widths = np.array([box[2] - box[0] for box in boxes.values()])
    shares = [plane.p1, plane.p2, 1 - plane.p1 - plane.p2]
    assert np.allclose(widths / widths.sum(), shares, atol=0.001)


def test_a_sentence_names_its_points_and_escapes_its_words() -> None:
    html = sentence([("<s>", None), ("a", 0), ("&", 1)], [0.1, 0.2], 1)
    assert "<span>&lt;s&gt;</span>" in html
    assert re.search(r'<span data-point="1" class="ts-chosen"[^>]*>&amp;</span>', html)
    assert html.count("ts-chosen") == 1
