"""Search results show the words around a hit, also when the book is opened from disk.

Sphinx fetches each page it has found, which a browser refuses to do from disk. So the pages'
texts go into one script, loaded by the search page alone, that answers in their place.
"""

import json
from pathlib import Path
from typing import Any

from bs4 import BeautifulSoup
from sphinx.application import Sphinx

SCRIPT = "search-pages.js"
ANSWER = """
if (location.protocol === "file:") {
  const root = new URL(document.documentElement.dataset.content_root || "./", location.href).href;
  window.fetch = async url => {
    const page = new URL(url, location.href).href.split(/[?#]/)[0].slice(root.length, -5);
    return new Response(`<div role="main">${searchPages[page] ?? ""}</div>`);
  };
}
"""


def text_of(page: Path) -> str:
    """A page's article without what isn't text; its sections keep their names."""
    article = BeautifulSoup(page.read_text(), "html.parser").article
    if article is None:
        return ""
    for element in article.select("svg, script, style, nav, button, a.headerlink"):
        element.decompose()
    for element in article(True):
        element.attrs = {k: v for k, v in element.attrs.items() if k == "id"}
    return str(article)


def write_pages(app: Sphinx, error: Exception | None) -> None:
    """Write the script, when all pages stand."""
    if error is None and app.builder.format == "html":
        pages = {d: text_of(Path(app.outdir, f"{d}.html")) for d in sorted(app.env.found_docs)}
        script = f"const searchPages = {json.dumps(pages)};\n{ANSWER}"
        Path(app.outdir, "_static", SCRIPT).write_text(script)


def load_pages(app: Sphinx, page: str, *_: Any) -> None:
    """Load the script on the search page."""
    if page == "search":
        app.add_js_file(SCRIPT)


def setup(app: Sphinx) -> dict[str, Any]:
    """Register with Sphinx."""
    app.connect("html-page-context", load_pages)
    app.connect("build-finished", write_pages)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
