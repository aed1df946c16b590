"""Citing: BibTeX entries on a page, and a button on every page that leads to them."""

from typing import Any

from docutils import nodes
from pybtex.database import parse_file
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

PAGE = "citing"


class BibTeX(SphinxDirective):
    """Show one entry of one of the book's .bib files as BibTeX, to be copied."""

    required_arguments = 2  # file, key

    def run(self) -> list[nodes.Node]:
        """Read the entry; raises where the file has none of that key."""
        file, key = self.arguments
        _, path = self.env.relfn2path(file)
        self.env.note_dependency(path)
        entries = parse_file(path).entries
        if key not in entries:
            raise self.error(f"{file} has no entry {key!r}")
        text = entries[key].to_string("bibtex").strip()
        return [nodes.literal_block(text, text, language="bibtex")]


def offer_citation(
    app: Sphinx, page: str, template: str, context: dict[str, Any], doctree: Any
) -> None:
    """Lead from a part's page to its paper's entry, from any other page to the book's."""
    folder, _, name = page.removeprefix("notebooks/").rpartition("/")
    part = folder if page.startswith("notebooks/") and name else "book"
    button = {
        "type": "link",
        "url": f"{context['pathto'](PAGE).removesuffix('#')}#cite-{part}",
        "tooltip": "Cite this page",
        "icon": "fas fa-quote-right",
        "label": "cite-button",
    }
    context.setdefault("header_buttons", []).append(button)


def setup(app: Sphinx) -> dict[str, Any]:
    """Register with Sphinx."""
    app.add_directive("bibtex", BibTeX)
    app.connect("html-page-context", offer_citation, priority=900)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
