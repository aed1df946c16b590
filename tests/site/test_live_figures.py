"""What the four figures with sliders have in common: keys, mouse, fingers, paper, no network."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
from tests.site.conftest import opened

pytestmark = pytest.mark.site

PAGES = {
    "frames": "notebooks/staircase/signatures",
    "hub": "notebooks/hub/estimators",
    "particles": "notebooks/flow/vertices",
    "planes": "notebooks/curvature/connection",
}
WHERE = """e => [...e.querySelectorAll('input, output, button, svg'),
    ...document.querySelectorAll('.ts-sentence > *')].map(x => {
  const box = x.getBoundingClientRect();
  return [box.x, box.y + scrollY, box.width, box.height];
})"""
each = pytest.mark.parametrize("kind", PAGES)
FRAMES = """parts => parts.filter(p => getComputedStyle(p).display !== "none")
                     .map(p => p.dataset.frame.split(" ").map(Number))"""


def shows(figure: Any, frame: int) -> bool:
    """Whether the parts that are seen are those of this frame, and all of them."""
    parts = figure.locator("[data-frame]")
    told = parts.evaluate_all("parts => parts.map(p => p.dataset.frame.split(' ').map(Number))")
    seen: list[list[int]] = parts.evaluate_all(FRAMES)
    return seen == [frames for frames in told if frame in frames]


@each
@pytest.mark.parametrize("width", [1400, 390])
def test_it_asks_for_nothing_shifts_nothing_and_fits_a_finger(
    site: Path, browser: Any, kind: str, width: int
) -> None:
    asked: list[str] = []
    complaints: list[str] = []
    tab = browser.new_page(viewport={"width": width, "height": 900})
    tab.on("request", lambda r: asked.append(r.url))
    for script in ("live", kind):
        tab.route(f"**/{script}.js", lambda route: route.abort())  # the page before its scripts
    tab.goto((site / f"{PAGES[kind]}.html").as_uri(), wait_until="domcontentloaded")
    figure = tab.locator(f".ts-figure:has(metadata[data-kind={kind}])").first
    asleep = figure.evaluate(WHERE)
    for script in ("live", kind):
        tab.unroute(f"**/{script}.js")
    tab.on("pageerror", lambda e: complaints.append(str(e)))
    tab.reload(wait_until="domcontentloaded")
    assert figure.evaluate(WHERE) == asleep
    for control in figure.locator("input").all():
        assert control.is_enabled()
        assert control.bounding_box()["height"] >= 44
        control.press("End")
    assert figure.evaluate(WHERE) == asleep
    assert [u for u in asked if not u.startswith((site.as_uri(), "data:", "blob:"))] == []
    assert complaints == []
    tab.close()


@each
def test_without_scripts_and_on_paper_the_first_state_is_seen_and_no_slider(
    site: Path, browser: Any, kind: str
) -> None:
    context = browser.new_context(java_script_enabled=False)
    tab, figure, live = opened(context, site / f"{PAGES[kind]}.html", kind)
    start = live["sliders"][0]["start"]
    assert figure.locator("svg").is_visible()
    assert not figure.locator("[data-frame]").count() or shows(figure, start)
    assert not figure.locator("input").first.is_visible()
    if live["says"]:
        assert figure.locator(".ts-says").inner_text() == live["says"]
    context.close()
    tab, figure, _ = opened(browser, site / f"{PAGES[kind]}.html", kind)
    tab.emulate_media(media="print")
    assert not figure.locator("input").first.is_visible()
    assert figure.locator(".ts-says").count() == bool(live["says"])
    tab.close()


@each
def test_its_data_are_small(site: Path, kind: str) -> None:
    page = (site / f"{PAGES[kind]}.html").read_text()
    found = re.search(rf'<metadata data-kind="{kind}">.*?</metadata>', page, re.DOTALL)
    assert found
    assert len(found[0]) < 300_000


@each
def test_the_mouse_drags_a_slider(site: Path, browser: Any, kind: str) -> None:
    tab, figure, live = opened(browser, site / f"{PAGES[kind]}.html", kind)
    slider = figure.locator("input").first
    slider.scroll_into_view_if_needed()
    box = slider.bounding_box()
    tab.mouse.move(box["x"] + 5, box["y"] + box["height"] / 2)
    tab.mouse.down()
    tab.mouse.move(box["x"] + box["width"], box["y"] + box["height"] / 2, steps=5)
    tab.mouse.up()
    words = live["sliders"][0]["words"]
    assert slider.input_value() == str(len(words) - 1)
    assert slider.get_attribute("aria-valuetext") == words[-1]
    assert kind != "frames" or shows(figure, len(words) - 1)
    tab.close()


def test_keys_choose_the_frame_and_words_say_which(site: Path, browser: Any) -> None:
    tab, figure, live = opened(browser, site / f"{PAGES['frames']}.html", "frames")
    slider, told = figure.locator("input"), live["sliders"][0]["words"]
    last = len(told) - 1
    for key, frame in (("ArrowRight", 1), ("End", last), ("ArrowLeft", last - 1), ("Home", 0)):
        slider.press(key)
        assert shows(figure, frame)
        assert figure.locator("output").inner_text() == told[frame]
        assert slider.get_attribute("aria-valuetext") == told[frame]
    tab.close()


def test_a_button_plays_to_the_end_and_stops_when_the_reader_takes_over(
    site: Path, browser: Any
) -> None:
    context = browser.new_context(reduced_motion="no-preference")
    tab = context.new_page()
    tab.clock.install()
    tab, figure, live = opened(tab, site / f"{PAGES['frames']}.html", "frames")
    slider, button = figure.locator("input"), figure.locator("button")
    last = len(live["sliders"][0]["words"]) - 1
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
    _, figure, _ = opened(context, site / f"{PAGES['frames']}.html", "frames")
    assert not figure.locator("button").is_visible()
    context.close()


def test_the_orders_that_the_staircase_names_are_those_of_its_table(site: Path, soup: Any) -> None:
    page = soup(f"{PAGES['frames']}.html")
    told = json.loads(page.select_one("#fig-climb metadata").text)["sliders"][0]["words"]
    steps = [int(word.split()[1].strip(",")) for word in told]
    assert steps == sorted(set(steps))
    led = [word[-1] for word in told if not word.endswith("yet")]
    route = [a for a, b in zip(led, ["", *led[:-1]], strict=True) if a != b]
    γ = page.select_one("#fig-climb figcaption").text.split("γ = ")[1].split(",")[0]
    rows = page.select("#tbl-staircase tbody tr")
    row = next(row for row in rows if row.td.text.strip() == γ)
    paths = row("td")[1].text.split(";")[0].strip().split("→")
    assert route == [order for order in paths if order in route]
    assert len(route) >= len(paths) - 1  # a short spell may fall between two frames
    drawn = page.select_one("#fig-climb svg")
    assert len(drawn("image")) == len(told) + 3  # the rows at each frame, and three signatures
