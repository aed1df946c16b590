"""Figures that a reader moves: what frames share is there once, and sliders lie ready."""

import json
import re
from collections.abc import Iterator
from xml.etree import ElementTree
from xml.etree.ElementTree import Element

import numpy as np
import pytest
from bs4 import BeautifulSoup
from matplotlib import pyplot as plt
from matplotlib.figure import Figure

from tokenspace.press import figures
from tokenspace.press.inline import inline
from tokenspace.press.live import Live, Slider, draw, places, sentence, settle

STEPS = (0, 10, 100)
HREF = "{http://www.w3.org/1999/xlink}href"


@pytest.fixture
def climb() -> Iterator[dict[str, Figure]]:
    """A line that climbs below a title that changes, with the same axes throughout."""
    figures.use()
    made = {}
    for step in STEPS:
        made[f"step {step}"], axes = plt.subplots()
        axes.plot([0, 1], [0, step])
        axes.plot([0, 1], [50, 50], "o")
        axes.set(title=f"step {step} < 101", ylim=(0, 100))
    yield made
    plt.close("all")


def without(root: Element, frame: int) -> list[str]:
    """Paths and glyphs of one frame, in their order."""
    found = []

    def walk(node: Element) -> None:
        if str(frame) in (node.get("data-frame") or str(frame)).split():
            found.extend(f"{node.tag} {node.get(k)}" for k in ("d", HREF) if node.get(k))
            for child in node:
                if not child.tag.endswith("}defs"):
                    walk(child)

    walk(root)
    return found


def merged(figures: dict[str, Figure], start: int = 0) -> str:
    live = Live("frames", [Slider("Frame", list(figures), start)])
    return draw(list(figures.values()), "fig-climb", "it climbs", live)


def test_each_frame_is_the_figure_it_was_made_from(climb: dict[str, Figure]) -> None:
    together = ElementTree.fromstring(merged(climb))
    for i, figure in enumerate(climb.values()):
        alone = ElementTree.fromstring(figures.svg(figure, "fig-climb", "it climbs"))
        assert without(together, i) == without(alone, i)


@pytest.mark.parametrize("start", [0, 2])
def test_only_the_frame_at_the_start_is_seen_without_scripts(
    climb: dict[str, Figure], start: int
) -> None:
    parts = [e for e in ElementTree.fromstring(merged(climb, start)).iter() if e.get("data-frame")]
    assert {e.get("data-frame") for e in parts} >= set("012")
    for part in parts:
        seen = str(start) in part.get("data-frame", "").split()
        assert part.get("display") == (None if seen else "none")


def test_what_frames_share_is_there_once_and_so_are_ids(climb: dict[str, Figure]) -> None:
    drawn = merged(climb)
    one = figures.svg(climb["step 0"], "fig-climb", "it climbs")
    assert len(drawn) < 1.5 * len(one)
    ids = [e.get("id") for e in ElementTree.fromstring(drawn).iter() if e.get("id")]
    assert ids
    assert len(ids) == len(set(ids))


@pytest.mark.parametrize("sizes", [[(3, 2), (3, 3)], [(3, 2)] * 3])
def test_figures_that_no_slider_fits_are_refused(sizes: list[tuple[int, int]]) -> None:
    states = [Figure(figsize=size) for size in sizes]
    live = Live("frames", [Slider("time", ["early", "late"])])
    with pytest.raises(ValueError, match=r"for 2 positions of 'time'; live= needs"):
        draw(states, "fig-x", "nothing", live)
    with pytest.raises(ValueError, match="for no slider; live= needs"):
        draw(states, "fig-x", "nothing", None)


def test_a_page_has_the_sliders_of_a_live_figure_asleep_below_it() -> None:
    live = Live(
        "dial", [Slider("a < b", ['"0"', "1"], 1), Slider("t", ["x", "y"], play=True)], "1 < 2 & 3"
    )
    drawn = draw([Figure()], "fig-dial", "a dial", live)
    page = BeautifulSoup(inline(drawn, "a dial"), "html.parser")
    box = page.select_one("svg + div.ts-interactive")
    assert box is not None
    assert [(i["value"], i["max"], i["aria-valuetext"]) for i in box("input")] == [
        ("1", "1", "1"),
        ("0", "1", "x"),
    ]
    assert len(box.select("input[disabled]")) == 2
    assert [o.text for o in box("output")] == ["1", "x", "1 < 2 & 3"]
    assert [span.text for span in box("span")] == ["a < b", "t"]
    assert len(box("button")) == 1
    held = json.loads(page.svg.metadata.text)  # type: ignore[union-attr]
    assert held["sliders"][0]["words"] == ['"0"', "1"]
    still = inline(draw([Figure()], "fig-dial", "no dial", None), "no dial")
    assert "ts-interactive" not in still


@pytest.mark.parametrize(("words", "start"), [(["0"], 0), (["0", "1"], 2), (["0", "1"], -1)])
def test_a_slider_needs_positions_and_a_start_among_them(words: list[str], start: int) -> None:
    with pytest.raises(ValueError, match="it needs at least two, and a start among them"):
        Slider("length", words, start)


def test_an_artist_with_a_name_is_found_by_its_class_and_halves_may_part() -> None:
    drawn = plt.figure(figsize=(4, 2))
    _, second = drawn.subfigures(1, 2)
    second.set_gid("ts-second")
    svg = figures.svg(drawn, "fig-x", "two halves")
    plt.close(drawn)
    assert 'class="ts-second"' in svg
    assert inline(svg, "two halves").startswith(
        '<div class="ts-figure ts-two" style="--ts-shape: 0.5'
    )


def test_points_lie_in_the_svg_where_a_script_is_told() -> None:
    points = np.random.default_rng(0).normal(size=(4, 5, 2))
    figure, axes = plt.subplots()
    axes.set(xlim=(-3, 3), ylim=(-3, 3), title="five points")
    settle(figure)
    axes.scatter(*points[2].T, gid="ts-dots")
    drawn = BeautifulSoup(figures.svg(figure, "fig-dots", "points"), "html.parser")
    seen = [[float(use["x"]), float(use["y"])] for use in drawn.select(".ts-dots use")]  # type: ignore[arg-type]
    assert np.allclose(seen, places(axes, points)[2], atol=0.06)
    plt.close(figure)


def test_a_sentence_names_its_points_and_escapes_its_words() -> None:
    html = sentence([("<s>", None), ("a", 0), ("&", 1)], [0.1, 0.2], 1)
    assert "<span>&lt;s&gt;</span>" in html
    assert re.search(r'<span data-point="1" class="ts-chosen"[^>]*>&amp;</span>', html)
    assert html.count("ts-chosen") == 1
