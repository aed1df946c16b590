"""The hub that a reader drags: by mouse, finger and keys; every number is the library's."""

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from torch.nn.functional import normalize

from tokenspace import hub

pytestmark = pytest.mark.site

PAGE = "notebooks/hub/estimators.html"
STATE = """figure => ({
  links: [...figure.querySelectorAll(".ts-links path")].map(p => p.getAttribute("d")),
  tints: [...figure.querySelectorAll(".ts-links path, .ts-tokens use")]
    .map(p => [getComputedStyle(p).stroke, getComputedStyle(p).fill]),
  rows: [...figure.querySelectorAll(".ts-hub use")].filter(u => u.style.display !== "none").length,
  marks: [...figure.querySelectorAll(".ts-mark-reading use, .ts-mark-taken use")]
    .map(u => [u.getAttribute("x"), u.getAttribute("y")].map(Number)),
  says: figure.querySelector(".ts-says").value,
})"""


@pytest.fixture
def tab(site: Path, browser: Any) -> Iterator[Any]:
    """The page."""
    page = browser.new_page(viewport={"width": 1400, "height": 900})
    page.goto((site / PAGE).as_uri(), wait_until="domcontentloaded")
    yield page
    page.close()


@pytest.fixture
def figure(tab: Any) -> Any:
    """The figure, in view."""
    found = tab.locator("#fig-drag")
    found.locator("input").last.scroll_into_view_if_needed()
    return found


@pytest.fixture
def data(soup: Callable[[str], Any]) -> dict[str, Any]:
    """What the figure carries."""
    held: dict[str, Any] = json.loads(soup(PAGE).select_one("#fig-drag metadata").text)["data"]
    return held


def numbers(text: str) -> list[float]:
    return [float(x) for x in re.findall(r"-?\d+(?:\.\d+)?", text)]


def middle(figure: Any, data: dict[str, Any]) -> tuple[float, float, float]:
    """Where the origin is on the screen, and how many pixels a unit of length is."""
    return tuple(  # type: ignore[return-value]
        figure.locator("svg").evaluate(
            """(svg, [x, y, unit]) => {
                const matrix = svg.querySelector(".ts-area").getScreenCTM();
                const point = new DOMPoint(x, y).matrixTransform(matrix);
                return [point.x, point.y, unit * matrix.a];
            }""",
            [*data["origin"], data["unit"]],
        )
    )


def test_keys_move_the_hub_and_everything_follows(figure: Any, data: dict[str, Any]) -> None:
    length, rows = figure.locator("input").all()
    start = figure.evaluate(STATE)
    length.press("End")
    far = figure.evaluate(STATE)
    length.press("Home")
    near = figure.evaluate(STATE)
    for state, i in ((start, data["start"]), (far, -1), (near, 0)):
        k = data["count"]
        assert state["says"] == data["says"][i][k]
        for mark, name in zip(state["marks"], ("reading", "taken"), strict=True):
            assert mark == pytest.approx(data[name][k][i], abs=0.1)
        assert state["rows"] == data["counts"][k]
    assert start["links"] != far["links"] != near["links"]
    assert len(set(map(tuple, far["tints"]))) < len(set(map(tuple, near["tints"])))
    rows.press("Home")
    assert figure.evaluate(STATE)["says"] == data["says"][0][0]
    assert figure.evaluate(STATE)["rows"] == data["counts"][0]


def test_scripts_draw_the_first_state_as_the_page_has_it(figure: Any, data: dict[str, Any]) -> None:
    before = figure.evaluate(STATE)
    for slider in figure.locator("input").all():
        slider.press("Home")
    changed = figure.evaluate(STATE)
    assert changed["links"] != before["links"]
    figure.locator("input").first.press("End")
    for slider, steps in zip(
        figure.locator("input").all(), (data["start"], data["count"]), strict=True
    ):
        slider.press("Home")
        for _ in range(steps):
            slider.press("ArrowRight")
    after = figure.evaluate(STATE)
    for old, new in zip(before.pop("links"), after.pop("links"), strict=True):
        assert numbers(new) == pytest.approx(numbers(old), abs=0.2)
    for old, new in zip(before.pop("marks"), after.pop("marks"), strict=True):
        assert new == pytest.approx(old, abs=0.2)
    assert after == before


def test_the_mouse_drags_the_hub_in_and_out(tab: Any, figure: Any, data: dict[str, Any]) -> None:
    length, radii = figure.locator("input").first, data["radii"]
    x, y, unit = middle(figure, data)
    tab.mouse.move(x + radii[data["start"]] * unit, y)  # the handle
    tab.mouse.down()
    tab.mouse.move(x + 0.71 * unit, y + 0.71 * unit, steps=4)  # any direction will do
    assert radii[int(length.input_value())] == pytest.approx(1.0)
    tab.mouse.move(x, y, steps=4)
    assert length.input_value() == "0"
    tab.mouse.up()
    tab.mouse.move(x + unit, y)
    assert length.input_value() == "0"
    assert figure.evaluate(STATE)["says"] == data["says"][0][data["count"]]


def test_fingers_find_the_handle_and_taps_place_the_hub(
    site: Path, browser: Any, data: dict[str, Any]
) -> None:
    context = browser.new_context(viewport={"width": 390, "height": 844}, has_touch=True)
    tab = context.new_page()
    tab.goto((site / PAGE).as_uri(), wait_until="domcontentloaded")
    figure = tab.locator("#fig-drag")
    figure.locator(".ts-area").scroll_into_view_if_needed()
    x, y, unit = middle(figure, data)
    tab.touchscreen.tap(x - unit, y)
    length = figure.locator("input").first
    assert data["radii"][int(length.input_value())] == pytest.approx(1.0)
    grip = figure.locator(".ts-grip").bounding_box()
    assert min(grip["width"], grip["height"]) >= 44
    assert figure.locator(".ts-grip").evaluate("e => getComputedStyle(e).touchAction") == "none"
    assert figure.locator(".ts-area").evaluate("e => getComputedStyle(e).touchAction") == "auto"
    assert all(slider.bounding_box()["height"] >= 44 for slider in figure.locator("input").all())
    second = figure.locator(".ts-second").bounding_box()
    assert second["y"] > y
    assert second["x"] + second["width"] <= 390
    assert second["width"] > 250
    context.close()


def test_every_number_is_what_the_library_reads(soup: Any, data: dict[str, Any]) -> None:
    caption = soup(PAGE).select_one("#fig-drag figcaption")
    found = re.search(
        r"([\d,]+) tokens of dimension (\d+), D = ([\d,]+), up to (\d+)", caption.text
    )
    assert found is not None
    n, d, D, h = (int(x.replace(",", "")) for x in found.groups())
    core = hub.manifold(n, d, D, 0.35, 0, length_sd=0.1)
    for i, k in ((0, 0), (data["start"], data["count"]), (12, -2), (-1, -1)):
        radius, count = data["radii"][i], data["counts"][k]
        table = hub.plant(core, h, radius, 0)[0][: n + count]
        near, even = hub.nearest(table), hub.nearest(normalize(table))
        share = float(hub.captured(near, torch.arange(n, n + count))[:n].double().mean())
        reads = [hub.mle(f.r1[:n], f.r2[:n]).value for f in (near, even)]
        said = numbers(data["says"][i][k].replace(",", ""))
        assert said[:3] == [count, pytest.approx(radius, abs=0.005), n]
        assert said[3:] == [
            pytest.approx(reads[0], abs=0.051),
            pytest.approx(100 * share, abs=0.51),
            pytest.approx(reads[1], abs=0.051),
        ]


def test_the_control_stays_put_and_the_reading_does_not(data: dict[str, Any]) -> None:
    told = [numbers(states[-1].replace(",", "")) for states in data["says"]]
    assert len({state[5] for state in told}) == 1
    assert max(state[3] for state in told) > 2 * min(state[3] for state in told)
    hubward = [sum(min(two) >= 0 for two in links[-1]) for links in data["links"]]
    assert hubward[0] > len(data["tokens"]) / 2 > hubward[-1]
