"""Figures of several frames: a slider, keys, a button that plays; whole without scripts."""

import json
from pathlib import Path
from typing import Any

import pytest
from bs4 import BeautifulSoup

pytestmark = pytest.mark.site

PAGE = "notebooks/staircase/signatures.html"
FIGURE = ".ts-figure:has(metadata[data-kind=frames])"
SEEN = """parts => parts.filter(p => getComputedStyle(p).display !== "none")
                   .map(p => p.dataset.frame.split(" ").map(Number))"""


def words(figure: Any) -> list[str]:
    """What the slider says, by the data in the figure."""
    told: list[str] = json.loads(figure.locator("metadata").text_content())["sliders"][0]["words"]
    return told


def seen(figure: Any) -> list[list[int]]:
    """The frames of each part that is seen."""
    found: list[list[int]] = figure.locator("[data-frame]").evaluate_all(SEEN)
    return found


def shows(figure: Any, frame: int) -> bool:
    """Whether the parts that are seen are those of this frame, and all of them."""
    told = figure.locator("[data-frame]").evaluate_all(
        "parts => parts.map(p => p.dataset.frame.split(' ').map(Number))"
    )
    return seen(figure) == [frames for frames in told if frame in frames]


def test_keys_choose_the_frame_and_words_say_which(site: Path, browser: Any) -> None:
    tab = browser.new_page()
    tab.goto((site / PAGE).as_uri(), wait_until="domcontentloaded")
    figure = tab.locator(FIGURE).first
    slider, told = figure.locator("input[type=range]"), words(figure)
    assert shows(figure, 0)
    slider.focus()
    for key, frame in (("ArrowRight", 1), ("End", len(told) - 1), ("ArrowLeft", len(told) - 2)):
        slider.press(key)
        assert shows(figure, frame)
        assert not shows(figure, 0)
        assert figure.locator("output").inner_text() == told[frame]
        assert slider.get_attribute("aria-valuetext") == told[frame]
    slider.press("Home")
    assert shows(figure, 0)
    tab.close()


def test_the_mouse_drags_the_slider(site: Path, browser: Any) -> None:
    tab = browser.new_page()
    tab.goto((site / PAGE).as_uri(), wait_until="domcontentloaded")
    figure = tab.locator(FIGURE).first
    slider = figure.locator("input[type=range]")
    slider.scroll_into_view_if_needed()
    box = slider.bounding_box()
    tab.mouse.move(box["x"] + 5, box["y"] + box["height"] / 2)
    tab.mouse.down()
    tab.mouse.move(box["x"] + box["width"], box["y"] + box["height"] / 2, steps=5)
    tab.mouse.up()
    assert shows(figure, len(words(figure)) - 1)
    tab.close()


def test_a_button_plays_to_the_end_and_stops_when_the_reader_takes_over(
    site: Path, browser: Any
) -> None:
    context = browser.new_context(reduced_motion="no-preference")
    tab = context.new_page()
    tab.clock.install()
    tab.goto((site / PAGE).as_uri(), wait_until="domcontentloaded")
    figure = tab.locator(FIGURE).first
    slider, button = figure.locator("input[type=range]"), figure.locator("button")
    last = len(words(figure)) - 1
    button.press("Enter")
    tab.clock.run_for(1300)
    assert int(slider.input_value()) >= 1
    assert button.inner_text() == "Pause"
    slider.press("ArrowRight")
    taken = slider.input_value()
    assert button.inner_text() == "Play"
    tab.clock.run_for(3000)
    assert slider.input_value() == taken
    button.click()
    tab.clock.run_for(1000 * (last + 1))
    assert shows(figure, last)
    assert button.inner_text() == "Play"
    context.close()


def test_nothing_plays_for_readers_who_want_no_motion(site: Path, browser: Any) -> None:
    context = browser.new_context(reduced_motion="reduce")
    tab = context.new_page()
    tab.goto((site / PAGE).as_uri(), wait_until="domcontentloaded")
    assert not tab.locator(FIGURE).first.locator("button").is_visible()
    context.close()


def test_without_scripts_the_first_frame_is_seen_and_no_slider(site: Path, browser: Any) -> None:
    context = browser.new_context(java_script_enabled=False)
    tab = context.new_page()
    tab.goto((site / PAGE).as_uri(), wait_until="domcontentloaded")
    figure = tab.locator(FIGURE).first
    assert figure.locator("svg").is_visible()
    parts = BeautifulSoup((site / PAGE).read_text(), "html.parser").select("[data-frame]")
    assert parts
    for part in parts:
        assert (part.get("display") is None) == ("0" in part["data-frame"].split())
    assert not figure.locator(".ts-control").first.is_visible()
    context.close()


@pytest.mark.parametrize("width", [1400, 390])
def test_sliders_are_as_high_as_a_finger_and_shift_nothing(
    site: Path, browser: Any, width: int
) -> None:
    tab = browser.new_page(viewport={"width": width, "height": 900})
    tab.route("**/live.js", lambda route: route.abort())  # the page before its scripts
    tab.goto((site / PAGE).as_uri(), wait_until="domcontentloaded")
    where = "e => [...e.querySelectorAll('*')].map(x => x.getBoundingClientRect().toJSON())"
    asleep = tab.locator(FIGURE).first.locator(".ts-interactive").evaluate(where)
    tab.unroute("**/live.js")
    tab.reload(wait_until="domcontentloaded")
    figure = tab.locator(FIGURE).first
    assert figure.locator(".ts-interactive").evaluate(where) == asleep
    for control in figure.locator("input, button").all():
        assert control.is_enabled()
        assert control.bounding_box()["height"] >= 44
    tab.close()


def test_the_orders_that_the_staircase_names_are_those_of_its_table(
    site: Path, browser: Any
) -> None:
    page = BeautifulSoup((site / PAGE).read_text(), "html.parser")
    held = page.select_one("#fig-climb metadata")
    assert held is not None
    told = json.loads(held.text)["sliders"][0]["words"]
    assert [int(word.split()[1].strip(",")) for word in told] == sorted(
        {int(word.split()[1].strip(",")) for word in told}
    )
    led = [word[-1] for word in told if not word.endswith("yet")]
    route = [a for a, b in zip(led, ["", *led[:-1]], strict=True) if a != b]
    γ = page.select_one("#fig-climb figcaption").text.split("γ = ")[1].split(",")[0]  # type: ignore[union-attr]
    row = next(
        row
        for row in page.select("#tbl-staircase tbody tr")
        if row.td.text.strip() == γ  # type: ignore[union-attr]
    )
    paths = row("td")[1].text.split(";")[0].strip().split("→")
    assert route == [order for order in paths if order in route]
    assert len(route) >= len(paths) - 1  # a short spell may fall between two frames
    svg = page.select_one("#fig-climb svg")
    assert svg is not None
    assert len(svg("image")) == len(told) + 3  # the rows at each frame, and three signatures
