"""The decks: everything that a slide holds lies inside its frame, and nothing is fetched."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import nbformat
import pytest
from filelock import FileLock
from nbformat.v4 import new_output
from tests.site.answers import ROOT, leaks

from tokenspace.press import layout
from tokenspace.press.download import told
from tokenspace.press.editions import Student
from tokenspace.press.site import Book
from tokenspace.press.slides import build_slides, slides

CHAPTERS = layout.chapters(ROOT)
TITLES = layout.part_titles(ROOT)
PARTS = list(TITLES)
FRAME = (1280, 720)
LOOK = """() => Reveal.getSlides().map(slide => {
  const frame = slide.getBoundingClientRect();
  const out = [...slide.querySelectorAll(":not(mjx-assistive-mml, mjx-assistive-mml *, svg *)")]
    .filter(element => {
      const box = element.getBoundingClientRect();
      return box.width && box.height && (box.left < frame.left || box.top < frame.top ||
        box.right > frame.left + 1280 || box.bottom > frame.top + 720);
    }).map(element => element.outerHTML.slice(0, 80));
  return { text: slide.innerText, frame: [frame.width, frame.height], out,
    size: parseFloat(slide.style.fontSize || "1"),
    figures: slide.querySelectorAll("svg[role=img]").length,
    formulas: slide.querySelectorAll("mjx-merror").length };
})"""


@pytest.fixture(scope="session")
def decks(shared: Path, runs: dict[str, Path]) -> Path:
    """All decks, made from the smoke profile's runs."""
    with FileLock(shared / "slides.lock"):
        return build_slides(Book.of(ROOT, runs), TITLES, shared / "slides").parent


def statements(run: Path) -> list[str]:
    """What the claims outside of a notebook's solutions state."""
    page, _ = Student().preprocess(nbformat.read(run / "executed.ipynb", as_version=4), {})
    return [about["claim"]["statement"] for _, about in told(page) if "claim" in about]


@pytest.mark.site
@pytest.mark.parametrize("part", PARTS)
def test_every_slide_fits_its_frame_and_the_deck_is_whole(
    decks: Path, runs: dict[str, Path], browser: Any, part: str
) -> None:
    tab = browser.new_page(viewport={"width": FRAME[0], "height": FRAME[1]})
    tab.set_default_timeout(120_000)
    asked: list[str] = []
    complaints: list[str] = []
    tab.on("request", lambda r: asked.append(r.url))
    tab.on("pageerror", lambda e: complaints.append(str(e)))
    tab.on("console", lambda m: complaints.append(m.text) if m.type != "log" else None)
    tab.goto((decks / f"{part}.html").as_uri())
    tab.wait_for_selector("html[data-ready]", state="attached")
    shown = tab.evaluate(LOOK)
    assert not complaints
    assert not [url for url in asked if not url.startswith((decks.as_uri(), "data:"))]
    assert [s for s in shown if s["out"] or s["formulas"]] == []
    assert {tuple(s["frame"]) for s in shown} == {FRAME}
    assert min(s["size"] for s in shown) >= 0.6
    assert 25 <= len(shown) <= 40
    names = [name for name in CHAPTERS if name.startswith(f"{part}/")]
    assert sum(s["figures"] for s in shown) >= 5 * len(names)
    text = " ".join(" ".join(s["text"].split()) for s in shown)
    assert text.count("Exercise: ") == text.count("What the paper says") == len(names)
    for name in names:
        assert f"tokenspace run {name} --profile smoke" in text
        assert 3 <= sum(statement in text for statement in statements(runs[name])) <= 7
    tab.keyboard.press("ArrowRight")
    assert tab.evaluate("Reveal.getIndices().h") == 1
    tab.close()


def test_no_slide_holds_a_solution(decks: Path) -> None:
    assert leaks(decks) == []


def test_cells_that_are_marked_are_the_slides_in_plain_words(stand_in: SimpleNamespace) -> None:
    made = stand_in.notebook("models")
    assert list(slides(made, {})) == []
    for cell, kind in zip(
        made.cells, ("slide", "skip", "subslide", "", "", "subslide"), strict=True
    ):
        cell.metadata["slideshow"] = {"slide_type": kind}
    footer = {"tokenspace": {"footer": {"command": "tokenspace run a/b -p x='<1>'"}}}
    made.cells[3].outputs.append(new_output("display_data", metadata=footer))
    found = list(slides(made, {"quemy2026hub": "Quemy (2026)"}))
    kinds = [cell.metadata["slideshow"]["slide_type"] for cell in found]
    assert kinds == ["slide", "subslide", "subslide", "-"]
    title, text, figure, caption = found
    assert title.source.startswith("# Page models")
    assert "<code>tokenspace run a/b -p x=&#x27;&lt;1&gt;&#x27;</code>" in title.source
    assert "[Quemy (2026)]" in text.source
    assert "By (1) and Figure 1, all is well." in text.source
    assert 'aria-label="A line that rises"' in figure.outputs[0].data["text/html"]
    assert caption.source == "**Figure 1.** A line, $n = 2$."
