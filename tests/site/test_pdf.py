"""The book on paper: everything the site shows is there, whole, and where the contents say."""

import re
from pathlib import Path
from typing import Any
from unicodedata import normalize
from urllib.parse import unquote

import pytest
import yaml
from pypdf import PdfReader

from tokenspace.files import write
from tokenspace.press.pdf import ROOM, TEMPLATES, build_pdf, page_numbers, pages_of

pytestmark = pytest.mark.site

SOME = ("notebooks/curvature/connection", "scoreboard")  # short pages with a bit of everything
CUT = """() => [...document.querySelectorAll("main :is(pre, table, svg, mjx-container, img)")]
  .filter(box => !box.closest("mjx-assistive-mml") && box.getBoundingClientRect().width)
  .filter(box => box.getBoundingClientRect().right > innerWidth + 1 ||
    (box.tagName === "PRE" && box.scrollWidth > box.clientWidth + 1))
  .map(box => box.outerHTML.slice(0, 100))"""
THINGS = {
    "figure": r"<figure\b",
    "figure number": r'class="caption-number">Figure ',
    "table number": r'class="caption-number">Table ',
    "equation": r'<div class="math notranslate',
    "equation number": r'<span class="eqno"',
    "claim": r'class="ts-claim"',
    "code": r"<pre\b",
    "exercise": r'class="exercise admonition"',
    "solution": r'class="solution [^"]*admonition"',
}


@pytest.fixture(scope="module")
def some(site: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The book cut down to a few pages."""
    whole, folder = site.parent.parent, tmp_path_factory.mktemp("some")
    for name in ("_config.yml", "_static", "_build"):
        (folder / name).symlink_to(whole / name)
    contents = yaml.safe_load((whole / "_toc.yml").read_text())
    for part in contents["parts"]:
        part["chapters"] = [c for c in part["chapters"] if c["file"] in SOME]
    contents["parts"] = [part for part in contents["parts"] if part["chapters"]]
    (folder / "_toc.yml").write_text(yaml.safe_dump(contents))
    return folder


@pytest.fixture(scope="module")
def printed(some: Path, tmp_path_factory: pytest.TempPathFactory, browser: Any) -> Path:
    """These pages as a PDF."""
    return build_pdf(some, tmp_path_factory.mktemp("pdf"), browser)


@pytest.fixture(scope="module")
def texts(printed: Path) -> list[str]:
    """The words on each page of the PDF, its ligatures taken apart."""
    return [normalize("NFKC", page.extract_text()) for page in PdfReader(printed).pages]


def articles(site: Path, pages: list[str]) -> str:
    """What the site shows on these pages, without the frame around it."""
    texts = [(site / f"{page}.html").read_text() for page in pages]
    return "\n".join(re.search(r"<article.*</article>", t, re.DOTALL)[0] for t in texts)  # type: ignore[index]


def names_of(book: Path) -> list[str]:
    contents = yaml.safe_load((book / "_toc.yml").read_text())
    chapters = [c for part in contents["parts"] for c in part["chapters"]]
    return [contents["root"], *(c["file"] for c in chapters)]


def test_the_whole_book_is_bound(site: Path, tmp_path: Path, browser: Any) -> None:
    book, tab = site.parent.parent, browser.new_page()
    tab.set_default_timeout(120_000)
    tab.route("**/tex-chtml.js", lambda route: route.abort())  # formulas stay as they are written
    write(tmp_path / "book.html", pages_of(book))
    tab.goto((tmp_path / "book.html").as_uri())
    bound = tab.content()
    tab.close()
    body, shown = bound[bound.index("<main") :], articles(site, names_of(book))
    for thing, pattern in THINGS.items():
        count = len(re.findall(pattern, shown))
        assert len(re.findall(pattern, body)) == count > 0, thing
    end = body.index('id="solutions"')
    assert body.rindex('class="exercise') < end < body.index('class="solution')
    bound = re.sub(r"<svg.*?</svg>|<script.*?</script>", "", bound, flags=re.DOTALL)
    ids = re.findall(r'\bid="([^"]+)"', bound)
    assert len(ids) == len(set(ids))
    assert {unquote(name) for name in re.findall(r'href="#([^"]+)"', bound)} <= set(ids)


def test_the_contents_name_the_pages_where_things_are(printed: Path, texts: list[str]) -> None:
    listed = re.findall(r"^(.+?)\s*?(\d+)$", texts[1], flags=re.MULTILINE)
    assert len(listed) > 10
    for title, number in listed:
        page = " ".join(texts[int(number) - 1].split())
        assert " ".join(title.split())[:25] in page, (title, number)
    for number, text in enumerate(texts[1:], 2):
        assert text.rstrip().endswith(str(number)) or text.lstrip().startswith(str(number))
    assert "Solutions" in texts[page_numbers(printed)["solutions"] - 1]
    assert not re.search(r"Solution: page\s*$", "\n".join(texts), flags=re.MULTILINE)


def test_the_pdf_is_marked_for_readers_and_has_an_outline(printed: Path) -> None:
    reader = PdfReader(printed)
    assert reader.metadata is not None
    assert reader.metadata.title == "tokenspace"
    assert reader.trailer["/Root"]["/MarkInfo"]["/Marked"]
    assert reader.trailer["/Root"]["/Lang"] == "en"
    titles = str(reader.outline)
    assert "Part IV" in titles
    assert "Solutions" in titles


def test_the_paper_holds_what_the_screen_shows(
    some: Path, site: Path, printed: Path, texts: list[str]
) -> None:
    text = "\n".join(texts)
    shown = articles(site, names_of(some))
    for what in ("Figure", "Table"):
        numbers = set(re.findall(rf'caption-number">{what} ([\d.]+)', shown))
        assert numbers
        assert numbers <= set(re.findall(rf"{what}\s([\d.]*\d)", text)), what
    numbered = set(re.findall(r'class="eqno">\(([\d.]+)\)', shown))
    assert numbered <= set(re.findall(r"\(([\d.]+)\)", text))
    names = set(re.findall(r'aria-label="([^"]{30,})" focusable', shown))
    tags = printed.read_bytes()
    assert tags.count(b"/S /Figure") >= len(names) > 0


def test_nothing_is_cut_off(printed: Path, browser: Any) -> None:
    tab = browser.new_page(viewport={"width": ROOM, "height": 900})
    tab.set_default_timeout(120_000)
    tab.emulate_media(media="print")
    tab.goto(printed.with_name("book.html").as_uri())
    tab.evaluate("async () => { await MathJax.startup.promise; }")
    tab.evaluate((TEMPLATES / "fit.js").read_text())
    assert tab.evaluate(CUT) == []
    smallest = "Math.min(...[...document.querySelectorAll('main *')].map(e => e.style.zoom || 1))"
    assert tab.evaluate(smallest) > 0.5
    tab.close()
