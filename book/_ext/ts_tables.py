"""Tables that a notebook shows as HTML scroll inside a box, as the theme's own tables do."""

import re
from itertools import count
from typing import Any

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.transforms.post_transforms import SphinxPostTransform

TABLE = re.compile(r"<table\b.*?</table>", re.DOTALL)
BOX = (
    '<div class="pst-scrollable-table-container" tabindex="0" role="region" '
    'aria-label="table {number}">'
)


class BoxTables(SphinxPostTransform):
    """Put a box around every table in raw HTML."""

    default_priority = 60
    formats = ("html",)

    def run(self, **kwargs: Any) -> None:
        """Do it for one page; regions of a page need different names."""
        number = count(1)
        for raw in list(self.document.findall(nodes.raw)):
            if "html" in raw.get("format", "") and "<table" in raw.astext():
                html = TABLE.sub(
                    lambda m: f"{BOX.format(number=next(number))}{m[0]}</div>", raw.astext()
                )
                raw.replace_self(nodes.raw("", html, format="html"))


def setup(app: Sphinx) -> dict[str, Any]:
    """Register with Sphinx."""
    app.add_post_transform(BoxTables)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
