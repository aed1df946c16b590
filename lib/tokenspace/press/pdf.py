"""The whole book as one PDF: the pages of the site in one document, printed by Chromium.

`templates/paper/bind.js` makes one document of them: cover, contents, parts, solutions at the end.
(Sphinx's `singlehtml` can't: sphinx-exercise has visitors for it, so that those which other
extensions have for `html` are no longer found.)
"""

import os
import re
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext
from html import escape
from pathlib import Path
from typing import Any

import yaml
from playwright.sync_api import Browser, Error, sync_playwright
from pypdf import PdfReader

from tokenspace.errors import RunError
from tokenspace.files import write

TEMPLATES = Path(__file__).parent / "templates" / "paper"
ROOM = 650  # CSS pixels between the margins of A4, as book.css sets them
LIMIT = 600_000  # milliseconds that typesetting a book may take on a busy machine
TYPESET = "async () => { await MathJax.startup.promise; await document.fonts.ready; }"
NUMBER = """numbers => {
  for (const link of document.querySelectorAll("a[data-page]"))
    link.textContent = numbers[decodeURIComponent(link.hash.slice(1))] ?? "";
}"""
FLAGS = ("--no-sandbox", "--disable-gpu", "--disable-background-networking", "--no-first-run")
HEAD = re.compile(r'<link\b[^>]*rel="stylesheet"[^>]*>|<script\b[^>]*>[^<]*</script>')
IN_USE = re.compile("^<link|mathjax", re.IGNORECASE)


@contextmanager
def chromium() -> Iterator[Browser]:
    """Start Debian's Chromium, the one that `$CHROMIUM` names, or Playwright's own; close it.

    Raises `RunError` when there is none.
    """
    path = os.environ.get("CHROMIUM") or shutil.which("chromium") or shutil.which("google-chrome")
    with sync_playwright() as playwright:
        try:
            browser = playwright.chromium.launch(executable_path=path, args=FLAGS)
        except Error as error:
            raise RunError(
                f"no Chromium to print with ({str(error).splitlines()[0]}): `apt-get install "
                "chromium`, or `python -m playwright install chromium`, or name one in $CHROMIUM"
            ) from error
        try:
            yield browser
        finally:
            browser.close()


def build_pdf(book: Path, out: Path, browser: Browser | None = None) -> Path:
    """Print the site that was built in `book` into `out/tokenspace.pdf`, and return its path.

    It is printed twice: the first time to see on which page everything comes to lie. `browser` is
    one that runs already; without it one is started.
    Raises `RunError` when there is no Chromium.
    """
    out.mkdir(parents=True, exist_ok=True)
    page, target = out / "book.html", out / "tokenspace.pdf"
    write(page, pages_of(book))
    with nullcontext(browser) if browser else chromium() as running:
        tab = running.new_page(viewport={"width": ROOM, "height": 900})
        tab.set_default_timeout(LIMIT)
        tab.emulate_media(media="print", color_scheme="light")
        tab.goto(page.as_uri())
        tab.evaluate(TYPESET)
        tab.evaluate((TEMPLATES / "fit.js").read_text("utf-8"))
        partial = target.with_suffix(".partial")
        _print(tab, partial)
        tab.evaluate(NUMBER, page_numbers(partial))
        _print(tab, partial)
        tab.close()
    os.replace(partial, target)
    return target


def pages_of(book: Path) -> str:
    """Give the pages of the site that was built in `book` as one HTML file, with its `bind.js`."""
    config = yaml.safe_load((book / "_config.yml").read_text("utf-8"))
    contents = yaml.safe_load((book / "_toc.yml").read_text("utf-8"))
    site, articles = book / "_build" / "html", []
    for page, part in _chapters(contents):
        text = (site / f"{page}.html").read_text("utf-8")
        article = text[text.index("<article") : text.rindex("</article>")]
        about = f'data-source="{page}" data-part="{escape(part)}"'
        articles.append(article.replace("<article", f"<article {about}", 1) + "</article>")
    first = (site / f"{contents['root']}.html").read_text("utf-8")
    head = [tag for tag in HEAD.findall(first.split("</head>")[0]) if IN_USE.search(tag)]
    filled = {
        "TITLE": escape(config["title"]),
        "AUTHOR": escape(config["author"]),
        "SITE": f"{site.as_uri()}/",
        "HEAD": re.sub(r'\b(href|src)="', rf"\g<0>{site.as_uri()}/", "\n".join(head)),
        "STYLE": (TEMPLATES / "book.css").read_text("utf-8"),
        "COVER": (book / "_static" / "cover.svg").read_text("utf-8"),
        "BODY": "\n".join(articles),
        "BIND": (TEMPLATES / "bind.js").read_text("utf-8"),
    }
    text = (TEMPLATES / "book.html").read_text("utf-8")
    return re.sub("|".join(filled), lambda m: filled[m[0]], text)


def _chapters(contents: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Give the pages of a table of contents, the first of each part with the part's caption."""
    yield contents["root"], ""
    for part in contents["parts"]:
        captions = iter([part["caption"]])
        for chapter in part["chapters"]:
            for page in (chapter, *chapter.get("sections", [])):
                yield page["file"], next(captions, "")


def page_numbers(path: Path) -> dict[str, int]:
    """Read on which page of a PDF each named place is, counted from 1."""
    reader = PdfReader(path)
    found = {
        name.lstrip("/"): reader.get_destination_page_number(place)
        for name, place in reader.named_destinations.items()
    }
    return {name: number + 1 for name, number in found.items() if number is not None}


def _print(tab: Any, path: Path) -> None:
    tab.pdf(path=path, prefer_css_page_size=True, print_background=True, outline=True, tagged=True)
