"""The whole book as one PDF: the bound pages, printed by Chromium."""

import os
from contextlib import nullcontext
from pathlib import Path
from typing import Any

from playwright.sync_api import Browser
from pypdf import PdfReader

from tokenspace.files import write
from tokenspace.press.teach.binding import TEMPLATES, bind
from tokenspace.press.teach.chromium import chromium

ROOM = 650  # CSS pixels between the margins of A4, as book.css sets them
LIMIT = 600_000  # milliseconds that typesetting a book may take on a busy machine
TYPESET = "async () => { await MathJax.startup.promise; await document.fonts.ready; }"
NUMBER = """numbers => {
  for (const link of document.querySelectorAll("a[data-page]"))
    link.textContent = numbers[decodeURIComponent(link.hash.slice(1))] ?? "";
}"""


def build_pdf(book: Path, out: Path, browser: Browser | None = None) -> Path:
    """Print the site that was built in `book` into `out/tokenspace.pdf`, and return its path.

    It is printed twice: the first time to see on which page everything comes to lie. `browser` is
    one that runs already; without it one is started.
    Raises `RunError` when there is no Chromium.
    """
    out.mkdir(parents=True, exist_ok=True)
    page, target = out / "book.html", out / "tokenspace.pdf"
    write(page, bind(book, out))
    with nullcontext(browser) if browser else chromium() as running:
        tab = running.new_page(viewport={"width": ROOM, "height": 900})
        tab.set_default_timeout(LIMIT)
        tab.emulate_media(media="print", color_scheme="light")
        tab.goto(page.as_uri())
        tab.evaluate(TYPESET)
        tab.evaluate((TEMPLATES / "fit.js").read_text())
        partial = target.with_suffix(".partial")
        _print(tab, partial)
        tab.evaluate(NUMBER, page_numbers(partial))
        _print(tab, partial)
        tab.close()
    os.replace(partial, target)
    return target


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
