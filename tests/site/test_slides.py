"""The decks: everything that a slide holds lies inside its frame, and nothing is fetched."""

import json
from pathlib import Path
from typing import Any

import nbformat
import pytest
from filelock import FileLock
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook
from tests.site.answers import ROOT, leaks

from tokenspace.press import layout
from tokenspace.press.slides import build_slides
from tokenspace.press.editions import Student, exercises
from tokenspace.press.teach.slides import Slides, blocks, first

CHAPTERS = layout.chapters(ROOT)
PARTS = list(dict.fromkeys(name.split("/")[0] for name in CHAPTERS))
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
        return build_slides(ROOT, runs, CHAPTERS, shared / "slides").parent


def told(run: Path, what: str) -> list[Any]:
    """The figures or claims outside of a notebook's solutions."""
    page, _ = Student().preprocess(nbformat.read(run / "executed.ipynb", as_version=4), {})
    outputs = [output for cell in page.cells for output in cell.get("outputs", [])]
    about = [output.get("metadata", {}).get("tokenspace", {}) for output in outputs]
    return [each[what] for each in about if what in each]


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
    slides = tab.evaluate(LOOK)
    assert not complaints
    assert not [url for url in asked if not url.startswith((decks.as_uri(), "data:"))]
    assert [s for s in slides if s["out"] or s["formulas"]] == []
    assert {tuple(s["frame"]) for s in slides} == {FRAME}
    assert min(s["size"] for s in slides) >= 0.6
    names = [name for name in CHAPTERS if name.startswith(f"{part}/")]
    assert sum(s["figures"] for s in slides) == sum(len(told(runs[n], "figure")) for n in names)
    text = " ".join(" ".join(s["text"].split()) for s in slides)
    for name in names:
        assert f"tokenspace run {name} --profile smoke" in text
        assert all(claim["statement"] in text for claim in told(runs[name], "claim"))
        posed = exercises(nbformat.read(runs[name] / "executed.ipynb", as_version=4))
        assert text.count("Predict: ") >= len(posed) > 0
    tab.keyboard.press("ArrowRight")
    assert tab.evaluate("Reveal.getIndices().h") == 1
    tab.close()


def test_no_slide_holds_a_solution(decks: Path) -> None:
    assert leaks(decks) == []


def slides_of(*cells: Any) -> list[Any]:
    made, _ = Slides(command="tokenspace run a/b").preprocess(new_notebook(cells=list(cells)), {})
    return [(c.metadata["slideshow"]["slide_type"], c.source) for c in made.cells]


def test_structure_decides_what_is_a_slide() -> None:
    text = (
        "# A page\n\nWhat it is. And more.\n\n## One\n\nThe lead, in short. It goes on as\n\n"
        "$$\nx = 1\n$$ (eq-x)\n\nBy {eq}`eq-x` all is well.\n\nNot told.\n\n"
        "```{admonition} What the paper says\n:class: paper\nThat $x = 1$.\n```\n\n"
        "```{note}\nNot told either.\n```\n\n"
        "## Exercises\n\nWords.\n\n```{exercise} ★ Ask\n:label: ex-a\nWhy?\n```\n\n"
        "## Further reading\n\nBooks."
    )
    found = slides_of(new_markdown_cell(text))
    assert [kind for kind, _ in found] == ["slide", "slide", "subslide", "subslide", "subslide"]
    title, one, formula, paper, ask = (source for _, source in found)
    assert title.startswith("# A page\n\nWhat it is. And more.")
    assert "<code>tokenspace run a/b</code>" in title
    assert one == "## One\n\nThe lead, in short."
    assert formula.endswith("$$\nx = 1\n\\tag{1}\n$$")
    assert "That $x = 1$." in paper
    assert "### Predict: ★ Ask\n\nWhy?" in ask
    assert "told" not in json.dumps(found)


def test_a_notebook_may_overrule() -> None:
    shown = new_markdown_cell("Mine.", metadata={"slideshow": {"slide_type": "slide"}})
    hidden = new_markdown_cell("## Two\n\nL.", metadata={"slideshow": {"slide_type": "skip"}})
    assert slides_of(shown, hidden, new_code_cell("1")) == [("slide", "Mine.")]


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("One is 1.5 here. Two.", "One is 1.5 here."),
        ("A word, e.g. This one. Two.", "A word, e.g. This one."),
        ("**Bold. ** $x$ is. Three.", "**Bold. ** $x$ is."),
        ("One.\n\nAnother paragraph.", "One."),
        ("- first\n- second\n- third", "- first\n- second"),
    ],
)
def test_a_slide_takes_whole_sentences(text: str, kept: str) -> None:
    assert first(text, len(kept)) == kept


def test_formulas_and_boxes_stay_whole() -> None:
    source = "A\nb.\n\n$$\nx\n\ny\n$$ (eq-a)\nC.\n\n```{note}\nD.\n\nE.\n```\n$$z$$\n"
    assert list(blocks(source)) == [
        "A\nb.",
        "$$\nx\n\ny\n$$ (eq-a)\nC.",
        "```{note}\nD.\n\nE.\n```",
        "$$z$$",
    ]
