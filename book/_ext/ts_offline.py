"""Everything a page needs lies beside it: MathJax, and the notebook's downloads."""

from pathlib import Path
from typing import Any

from sphinx.application import Sphinx

from tokenspace.press import assets


def copy_mathjax(app: Sphinx, error: Exception | None) -> None:
    """Copy the parts of MathJax that the pages load."""
    if error is None and app.builder.format == "html":
        assets.copy("mathjax", Path(app.outdir, "_static", "mathjax"))


def offer_downloads(
    app: Sphinx, page: str, template: str, context: dict[str, Any], doctree: Any
) -> None:
    """Offer the executed notebook and its source, and printing, on a notebook's page."""
    name = page.rsplit("/", 1)[-1]
    found = [s for s in (".ipynb", ".py") if Path(app.srcdir, "downloads", page + s).is_file()]
    text = {".ipynb": "Executed notebook (.ipynb)", ".py": "Source (.py)"}
    buttons = [
        {
            "type": "link",
            "url": name + suffix,
            "text": text[suffix],
            "icon": "fas fa-download",
            "label": f"download-{suffix[1:]}-button",
        }
        for suffix in found
    ]
    buttons.append(
        {
            "type": "javascript",
            "javascript": "window.print()",
            "text": "Print or save as PDF",
            "icon": "fas fa-file-pdf",
            "label": "download-pdf-button",
        }
    )
    for button in context.get("header_buttons", []):
        if button.get("label") == "download-buttons":
            button["buttons"] = buttons


def setup(app: Sphinx) -> dict[str, Any]:
    """Register with Sphinx."""
    app.config.mathjax_path = "mathjax/tex-chtml.js"
    app.connect("build-finished", copy_mathjax)
    app.connect("html-page-context", offer_downloads, priority=900)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
