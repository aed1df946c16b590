"""Figures that a reader moves: what frames share is there once, and sliders lie ready."""

import json
from collections.abc import Iterator
from xml.etree import ElementTree
from xml.etree.ElementTree import Element

import pytest
from bs4 import BeautifulSoup
from matplotlib import pyplot as plt
from matplotlib.figure import Figure

from tokenspace.press import figures
from tokenspace.press.frames import frames
from tokenspace.press.inline import inline
from tokenspace.press.live import Live, Slider, attach, controls

STEPS = (0, 10, 100)


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


HREF = "{http://www.w3.org/1999/xlink}href"


def test_each_frame_is_the_figure_it_was_made_from(climb: dict[str, Figure]) -> None:
    together = ElementTree.fromstring(frames(climb, "fig-climb", "it climbs"))
    for i, figure in enumerate(climb.values()):
        alone = ElementTree.fromstring(figures.svg(figure, "fig-climb", "it climbs"))
        assert without(together, i) == without(alone, i)


def test_only_the_first_frame_is_seen_without_scripts(climb: dict[str, Figure]) -> None:
    root = ElementTree.fromstring(frames(climb, "fig-climb", "it climbs"))
    parts = [e for e in root.iter() if e.get("data-frame")]
    assert {e.get("data-frame") for e in parts} >= set("012")
    for part in parts:
        seen = "0" in part.get("data-frame", "").split()
        assert part.get("display") == (None if seen else "none")


def test_what_frames_share_is_there_once_and_so_are_ids(climb: dict[str, Figure]) -> None:
    drawn = frames(climb, "fig-climb", "it climbs")
    one = figures.svg(climb["step 0"], "fig-climb", "it climbs")
    assert len(drawn) < 1.5 * len(one)
    ids = [e.get("id") for e in ElementTree.fromstring(drawn).iter() if e.get("id")]
    assert ids
    assert len(ids) == len(set(ids))


@pytest.mark.parametrize("sizes", [[(3, 2)], [(3, 2), (3, 3)]])
def test_frames_of_one_or_of_other_sizes_are_refused(sizes: list[tuple[int, int]]) -> None:
    made = {str(i): Figure(figsize=size) for i, size in enumerate(sizes)}
    with pytest.raises(ValueError, match="a slider needs at least two"):
        frames(made, "fig-x", "nothing")


def test_a_page_has_the_sliders_of_a_live_figure_asleep_below_it() -> None:
    live = Live(
        "dial", [Slider("a < b", ['"0"', "1"], 1), Slider("t", ["x", "y"], play=True)], "1 < 2 & 3"
    )
    page = BeautifulSoup(inline(attach("<svg><desc>a</desc></svg>", live), "a dial"), "html.parser")
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


def test_a_figure_that_is_not_live_has_no_sliders() -> None:
    assert controls("<svg><desc>a</desc></svg>") == ""
    assert "ts-interactive" not in inline("<svg><desc>a</desc></svg>", "a")


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
