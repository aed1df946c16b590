"""Figures live in the page as SVG, so that they take the page's light or dark colours."""

from typing import Any

from sphinx.application import Sphinx


def setup(app: Sphinx) -> dict[str, Any]:
    """Register with Sphinx."""
    return {"parallel_read_safe": True, "parallel_write_safe": True}
