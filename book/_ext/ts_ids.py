"""Every id on a page once: sphinx-exercise gives all its boxes the same one."""

from typing import Any

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.transforms.post_transforms import SphinxPostTransform

SHARED = {"exercise-content", "solution-content", "proof-content"}


class SingleIds(SphinxPostTransform):
    """Drop the ids that boxes share; nothing links to them."""

    default_priority = 60
    formats = ("html",)

    def run(self, **kwargs: Any) -> None:
        """Do it for one page."""
        for section in self.document.findall(nodes.section):
            section["ids"] = [name for name in section["ids"] if name not in SHARED]


def setup(app: Sphinx) -> dict[str, Any]:
    """Register with Sphinx."""
    app.add_post_transform(SingleIds)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
