"""All pages of the site bound into one document, for paper: cover, contents, parts, solutions."""

import os
import posixpath
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from html import escape
from pathlib import Path
from typing import Any

import yaml
from bs4 import BeautifulSoup, Tag

TEMPLATES = Path(__file__).parent / "templates" / "paper"
SVG = re.compile(r"<svg\b.*?</svg>", re.DOTALL)
SCREEN_ONLY = "a.headerlink, button, script, .ts-control"
REFERRING = ("for", "aria-labelledby", "aria-describedby", "aria-controls")


@dataclass
class Bound:
    """A document being bound: what it holds so far, and what its contents list."""

    site: Path
    out: Path
    pages: list[str]
    body: list[str] = field(default_factory=list)
    contents: list[tuple[int, str, str]] = field(default_factory=list)  # depth, anchor, title
    drawings: list[str] = field(default_factory=list)
    solutions: list[Tag] = field(default_factory=list)


def bind(book: Path, out: Path) -> str:
    """Bind the site that was built in `book` into the text of one HTML file that will lie in `out`.

    Links between pages lead to places in the document, solutions stand at the end, what is folded
    is open, and `a[data-page]` is empty where the number of the page it leads to belongs.
    """
    config = yaml.safe_load((book / "_config.yml").read_text("utf-8"))
    parts = list(_parts(yaml.safe_load((book / "_toc.yml").read_text("utf-8"))))
    site = book / "_build" / "html"
    bound = Bound(site, out, [page for _, pages in parts for page in pages])
    for caption, pages in parts:
        for page in pages:
            article = _article(bound, page)
            if caption and page == pages[0]:
                _part(bound, article, caption, anchor=_anchor(pages[0], "part"))
            _list(bound, article, depth=1 if caption else 0)
            bound.body.append(str(article))
    _append_solutions(bound)
    text = (TEMPLATES / "book.html").read_text("utf-8")
    filled = {
        "TITLE": escape(config["title"]),
        "AUTHOR": escape(config["author"]),
        "HEAD": _head(bound),
        "STYLE": (TEMPLATES / "book.css").read_text("utf-8"),
        "COVER": (book / "_static" / "cover.svg").read_text("utf-8"),
        "CONTENTS": "\n".join(_lines(bound)),
        "BODY": "\n".join(bound.body),
    }
    text = re.sub("|".join(filled), lambda m: filled[m[0]], text)
    return re.sub(r'<svg data-drawing="(\d+)"></svg>', lambda m: bound.drawings[int(m[1])], text)


def _parts(contents: Mapping[str, Any]) -> Iterator[tuple[str, list[str]]]:
    """Give the captions of a table of contents and the pages below each."""
    yield "", [contents["root"]]
    for part in contents["parts"]:
        yield part["caption"], list(_files(part["chapters"]))


def _files(chapters: list[Mapping[str, Any]]) -> Iterator[str]:
    for chapter in chapters:
        if "file" in chapter:
            yield chapter["file"]
        yield from _files(chapter.get("sections", []))


def _anchor(page: str, name: str = "") -> str:
    return f"{page.replace('/', '-')}--{name}"


def _article(bound: Bound, page: str) -> Tag:
    """Read a page's text: its names made its own, its links made to lead inside the document."""

    def keep(match: re.Match[str]) -> str:
        bound.drawings.append(match[0])
        return f'<svg data-drawing="{len(bound.drawings) - 1}"></svg>'

    html = SVG.sub(keep, (bound.site / f"{page}.html").read_text("utf-8"))
    article = BeautifulSoup(html, "html.parser").article
    assert article is not None, page
    for element in article.select(SCREEN_ONLY):
        element.decompose()
    for details in article.select("details"):
        details["open"] = ""
    for element in article.find_all(True):
        _rename(bound, element, page)
    for heading in article.find_all(re.compile(r"^h[1-5]$")):
        heading.name = f"h{int(heading.name[1]) + 1}"  # parts are the first level
    article["id"], article["class"] = _anchor(page), "bd-article ts-chapter"
    for number, solution in enumerate(article.select("div.solution")):
        _set_aside(bound, solution, _anchor(page, f"solution-{number}"))
    return article


def _rename(bound: Bound, element: Tag, page: str) -> None:
    if "id" in element.attrs:
        element["id"] = _anchor(page, str(element["id"]))
    for key in REFERRING:
        if key in element.attrs:
            element[key] = " ".join(_anchor(page, name) for name in str(element[key]).split())
    if element.name == "img":
        element["src"] = _relative(
            bound, posixpath.join(posixpath.dirname(page), str(element["src"]))
        )
    link = str(element.get("href", ""))
    if element.name != "a" or not link or re.match(r"[a-z]+:", link):
        return
    path, _, name = link.partition("#")
    place = posixpath.normpath(posixpath.join(posixpath.dirname(page), path)) if path else page
    target = place.removesuffix(".html")
    if target in bound.pages:
        element["href"] = "#" + _anchor(target, name)
    else:  # a download, the search
        del element["href"]


def _relative(bound: Bound, path: str) -> str:
    return Path(os.path.relpath(bound.site / path, bound.out)).as_posix()


def _set_aside(bound: Bound, solution: Tag, anchor: str) -> None:
    """Take a solution out of its page, under its exercise's title, and say where it went."""
    exercise = solution.find_previous(class_="exercise")
    note = BeautifulSoup(
        f'<p class="ts-aside">Solution: page <a href="#{anchor}" data-page></a></p>', "html.parser"
    )
    solution.replace_with(note)
    solution["id"] = anchor
    title = solution.find(class_="admonition-title")
    if isinstance(exercise, Tag) and isinstance(title, Tag):
        posed = exercise.find(class_="admonition-title")
        title.clear()
        title.append(posed.get_text() if isinstance(posed, Tag) else "Solution")
    bound.solutions.append(solution)


def _part(bound: Bound, article: Tag, caption: str, anchor: str) -> None:
    heading = BeautifulSoup(
        f'<h1 class="ts-part" id="{anchor}">{escape(caption)}</h1>', "html.parser"
    )
    article.insert(0, heading)
    bound.contents.append((0, anchor, caption))


def _list(bound: Bound, article: Tag, depth: int) -> None:
    """List a page and its sections in the contents."""
    for heading in article.find_all(["h2", "h3"]):
        below = heading.name == "h3"
        anchor = str(heading.find_parent("section")["id"])  # type: ignore[index]
        if not (below and depth == 0):
            bound.contents.append((depth + below, anchor, heading.get_text(" ", strip=True)))


def _append_solutions(bound: Bound) -> None:
    if bound.solutions:
        bound.contents.append((0, "solutions", "Solutions"))
        bound.body.append('<article class="bd-article ts-chapter" id="solutions">')
        bound.body.append('<h1 class="ts-part">Solutions</h1>')
        bound.body += [*map(str, bound.solutions), "</article>"]


def _lines(bound: Bound) -> Iterator[str]:
    for depth, anchor, title in bound.contents:
        number = f'<a href="#{anchor}" data-page></a>'
        yield f'<li class="ts-depth-{depth}"><a href="#{anchor}">{escape(title)}</a>{number}</li>'


def _head(bound: Bound) -> str:
    """Give the styles of the site's first page, and MathJax as it is set up there."""
    page = BeautifulSoup((bound.site / f"{bound.pages[0]}.html").read_text("utf-8"), "html.parser")
    found = []
    for element in page.select("head > link[rel=stylesheet], head > script"):
        address = "href" if element.name == "link" else "src"
        if element.name == "script" and "mathjax" not in str(element).lower():
            continue
        if address in element.attrs:
            element[address] = _relative(bound, str(element[address]).split("?")[0])
        found.append(str(element))
    return "\n".join(found)
