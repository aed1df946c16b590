"""A sentence whose words open: by mouse, keys and slider, with the library's numbers, to scale."""

import json
import math
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from bs4 import Tag
from tests.site.conftest import opened

from tokenspace.curvature import assemble, curvature

pytestmark = pytest.mark.site

PAGE = "notebooks/curvature/connection.html"


def numbers(d: str) -> list[float]:
    return [float(x) for x in re.findall(r"-?[\d.]+", d)]


@pytest.fixture(scope="module")
def drawing(soup: Callable[[str], Any]) -> Tag:
    """The figure's SVG, as the page has it before its scripts."""
    drawn: Tag = soup(PAGE).select_one(".ts-figure:has(metadata[data-kind=planes]) svg")
    return drawn


def paths(svg: Tag, word: int) -> dict[str, np.ndarray]:
    """The places of each named shape at one word."""
    found = {}
    for name in ("between", "a", "b", "inside", "foot", "state", "p1", "p2", "others"):
        (d,) = (
            path["d"]
            for path in svg.select(f".ts-{name} path")
            if str(word) in path.get("data-frame", str(word)).split()
        )
        found[name] = np.array(numbers(str(d))).reshape(-1, 2)
    return found


def tip(arrow: np.ndarray) -> np.ndarray:
    """From the middle of an arrow's foot to its tip, which is drawn first; y runs upwards."""
    return (arrow[0] - (arrow[3] + arrow[4]) / 2) * [1, -1]


def shows(tab: Any, figure: Any, live: dict[str, Any], word: int) -> bool:
    """Whether sentence, slider, words and drawing agree on one point."""
    told = figure.locator("[data-frame]").evaluate_all(
        "parts => parts.map(p => [p.dataset.frame.split(' '), p.getAttribute('display')])"
    )
    chosen = tab.locator(".ts-sentence button[aria-pressed=true]")
    return (
        all((display is None) == (str(word) in mine) for mine, display in told)
        and chosen.get_attribute("data-point") == str(word)
        and tab.locator(".ts-sentence button[tabindex='0']").count() == 1
        and figure.locator("input").input_value() == str(word)
        and figure.locator(".ts-says").inner_text() == live["data"]["says"][word]
    )


def test_words_are_chosen_by_mouse_by_keys_and_by_the_slider(site: Path, browser: Any) -> None:
    tab, figure, live = opened(browser, site / PAGE, "planes")
    last = len(live["data"]["says"]) - 1
    words, chosen = (tab.locator(f".ts-sentence button{s}") for s in ("", "[aria-pressed=true]"))
    assert words.count() == last + 1
    assert chosen.get_attribute("data-point") == str(live["sliders"][0]["start"])
    words.nth(2).click()
    assert shows(tab, figure, live, 2)
    for key, word in (
        ("ArrowRight", 3),
        ("ArrowLeft", 2),
        ("Home", 0),
        ("ArrowLeft", 0),
        ("End", last),
    ):
        chosen.press(key)
        assert shows(tab, figure, live, word)
        assert tab.evaluate("document.activeElement.dataset.point") == str(word)
    slider = figure.locator("input")
    slider.press("ArrowLeft")
    assert shows(tab, figure, live, last - 1)
    assert slider.get_attribute("aria-valuetext") == live["sliders"][0]["words"][last - 1]
    tab.close()


def test_the_numbers_said_are_those_of_what_is_drawn(drawing: Tag) -> None:
    """The drawing is to scale, so that the library must find the same curvature in it."""
    live = json.loads(drawing.metadata.text)  # type: ignore[union-attr]
    for word, told in enumerate(live["data"]["says"]):
        drawn = paths(drawing, word)
        said = told.split("p₁ = ")[1]
        p1, p2, q, degrees, inside, norm = (
            float(re.search(pattern, "p₁ = " + said)[1])
            for pattern in (
                r"p₁ = ([\d.]+\d)", r"p₂ = ([\d.]+\d)", r"q = ([\d.]+\d)",
                r"(\d+)° apart", r"\|Πz\| = ([\d.]+\d)", r"‖R‖ = ([\d.]+\d)",
            )
        )  # fmt: skip
        unit = np.linalg.norm(tip(drawn["a"]))
        assert math.isclose(np.linalg.norm(tip(drawn["b"])) / unit, 1, abs_tol=0.01)
        assert math.isclose(np.linalg.norm(tip(drawn["state"])) / unit, 1, abs_tol=0.01)
        a, b, z = (np.append(tip(drawn[name]) / unit, 0) for name in ("a", "b", "inside"))
        assert math.isclose(
            np.linalg.norm(tip(drawn["foot"])) / unit, np.linalg.norm(z), abs_tol=0.01
        )
        z[2] = math.sqrt(1 - z @ z)
        edges = [np.sort(drawn[name][:, 0])[[0, -1]] for name in ("p1", "p2", "others")]
        width = edges[2][1] - edges[0][0]
        shares = torch.tensor([[(right - left) / width] for left, right in edges[:2]]).double()
        rows = (torch.tensor(v[None]) for v in (z, a, b))
        ids = torch.zeros(1, dtype=torch.int64)
        found = assemble(*rows, (shares[0], shares[1]), (ids, ids))
        assert math.isclose(float(shares[0]), p1, abs_tol=0.01)
        assert math.isclose(float(shares[1]), p2, abs_tol=0.01)
        assert math.isclose(float(found.q), q, abs_tol=0.02)
        assert math.isclose(math.degrees(math.acos(a @ b)), degrees, abs_tol=1.5)
        assert math.isclose(np.linalg.norm(z[:2]), inside, abs_tol=0.015)
        assert math.isclose(float(curvature(found).norm()), norm, rel_tol=0.05, abs_tol=0.01)


def test_without_scripts_the_point_of_largest_charge_is_seen(site: Path, browser: Any) -> None:
    context = browser.new_context(java_script_enabled=False)
    tab, _, live = opened(context, site / PAGE, "planes")
    says, start = live["data"]["says"], live["sliders"][0]["start"]
    charges = [float(re.search(r"q = ([\d.]+\d)", told)[1]) for told in says]
    assert charges[start] == max(charges)
    assert live["says"] == says[start]
    assert tab.locator(".ts-sentence button").count() == 0
    assert tab.locator(".ts-sentence .ts-chosen").get_attribute("data-point") == str(start)
    context.close()


def test_words_are_as_large_as_a_finger(site: Path, browser: Any) -> None:
    tab, _, _ = opened(
        browser.new_page(viewport={"width": 390, "height": 900}), site / PAGE, "planes"
    )
    boxes = [word.bounding_box() for word in tab.locator(".ts-sentence button").all()]
    assert all(min(box["width"], box["height"]) >= 44 for box in boxes)
    tab.close()
