"""Figures live in the page as SVG, so that they take the page's light or dark colours."""

import re
from html import escape
from pathlib import Path
from typing import Any

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.transforms.post_transforms import SphinxPostTransform

from tokenspace.press.figures import DARK

HEX = re.compile("|".join(DARK), re.IGNORECASE)


def variable(colour: str) -> str:
    """Name the CSS variable that stands for one of the style's colours."""
    return f"--ts-{colour.lower().lstrip('#')}"


def style_sheet() -> str:
    """Give every colour of the figure style its light and its dark value."""
    light = "".join(f"{variable(c)}:{c};" for c in DARK)
    dark = "".join(f"{variable(c)}:{partner};" for c, partner in DARK.items())
    return f"html{{{light}}}\nhtml[data-theme=dark]{{{dark}}}\n@media print{{html{{{light}}}}}\n"


def inline(svg: str, alt: str) -> str:
    """An SVG file as a piece of a page: named for screen readers, sized by the page."""
    svg = svg[svg.index("<svg") :]
    head, rest = svg.split(">", 1)
    width = re.search(r' width="([\d.]+)(pt|px)?"', head)
    head = re.sub(r' (width|height)="[^"]*"', "", head)
    style = f' style="max-width:{width[1]}{width[2] or "px"}"' if width else ""
    head += f' role="img" aria-label="{escape(alt)}" focusable="false"{style}'
    coloured = HEX.sub(lambda m: f"var({variable(m[0])})", rest)
    return f'<div class="ts-figure">{head}>{coloured}</div>'


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
