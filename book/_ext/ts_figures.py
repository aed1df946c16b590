"""Figures live in the page as SVG, so that they take the page's light or dark colours."""

from pathlib import Path
from typing import Any

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.transforms.post_transforms import SphinxPostTransform

from tokenspace.press.figures import DARK
from tokenspace.press.inline import inline, variable


def style_sheet() -> str:
    """Give every colour of the figure style its light and its dark value."""
    light = "".join(f"{variable(c)}:{c};" for c in DARK)
    dark = "".join(f"{variable(c)}:{partner};" for c, partner in DARK.items())
    return f"html{{{light}}}\nhtml[data-theme=dark]{{{dark}}}\n@media print{{html{{{light}}}}}\n"


class InlineFigures(SphinxPostTransform):
    """Replace SVG images by the SVG itself."""

    default_priority = 60  # after myst-nb has chosen an output's form
    formats = ("html",)

    def run(self, **kwargs: Any) -> None:
        """Do it for one page."""
        for image in list(self.document.findall(nodes.image)):
            path = Path(self.app.srcdir, image["uri"])
            if path.suffix != ".svg" or not path.is_file():
                continue
            raw = nodes.raw("", inline(path.read_text(), image.get("alt", "")), format="html")
            image.replace_self(raw)


def write_style_sheet(app: Sphinx) -> None:
    """Put the colours where Sphinx finds static files."""
    folder = Path(app.doctreedir).parent / "figures"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "ts-figures.css").write_text(style_sheet())
    app.config.html_static_path.append(str(folder))
    app.add_css_file("ts-figures.css")


def setup(app: Sphinx) -> dict[str, Any]:
    """Register with Sphinx."""
    app.add_post_transform(InlineFigures)
    app.connect("builder-inited", write_style_sheet)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
