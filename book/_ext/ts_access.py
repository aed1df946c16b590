"""What assistive technology is told: roles that docutils gives, and that no longer hold."""

from typing import Any

from sphinx.application import Sphinx

# docutils calls a bibliography a list and its entries `doc-biblioentry`, a role that ARIA has
# dropped: without it a list would have links and paragraphs as its items.
OUTDATED = {
    ' role="doc-biblioentry"': "",
    ' role="list" class="citation-list"': ' class="citation-list"',
}


def mend_roles(
    app: Sphinx, page: str, template: str, context: dict[str, Any], doctree: Any
) -> None:
    """Leave a page's outdated roles out."""
    body = context.get("body", "")
    for outdated, kept in OUTDATED.items():
        body = body.replace(outdated, kept)
    context["body"] = body


def setup(app: Sphinx) -> dict[str, Any]:
    """Register with Sphinx."""
    app.connect("html-page-context", mend_roles)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
