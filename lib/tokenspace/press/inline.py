"""An SVG of the figure style as a piece of a page, in the page's light or dark colours."""

import re
from collections.abc import Callable
from html import escape

import matplotlib as mpl
from matplotlib.figure import Figure

from tokenspace.press import figures
from tokenspace.press.figures import DARK
from tokenspace.press.live import controls

HEX = re.compile("|".join(DARK), re.IGNORECASE)


def variable(colour: str) -> str:
    """Name the CSS variable that stands for one of the style's colours."""
    return f"--ts-{colour.lower().lstrip('#')}"


def inline(svg: str, alt: str) -> str:
    """An SVG file as a piece of a page: named for screen readers, sized by the page.

    A live figure has its sliders below it.
    """
    svg = svg[svg.index("<svg") :]
    head, rest = svg.split(">", 1)
    width = re.search(r' width="([\d.]+)(pt|px)?"', head)
    head = re.sub(r' (width|height)="[^"]*"', "", head)
    style = f' style="max-width:{width[1]}{width[2] or "px"}"' if width else ""
    head += f' role="img" aria-label="{escape(alt)}" focusable="false"{style}'
    coloured = HEX.sub(lambda m: f"var({variable(m[0])})", rest)
    box = re.search(r'viewBox="\S+ \S+ (\S+) (\S+)"', head)
    two = ""
    if box and 'class="ts-second"' in rest:
        two = f' ts-two" style="--ts-shape: {float(box[2]) / float(box[1]):.4f}'
    return f'<div class="ts-figure{two}">{head}>{coloured}{controls(svg)}</div>'


def captioned(draw: Callable[[], Figure], name: str, told: str, caption: str) -> str:
    """Draw a figure in the style, and give it as HTML with a caption and what it tells in words."""
    with mpl.rc_context():
        figures.use()
        drawn = figures.svg(draw(), name, told)
    return f"<figure>{inline(drawn, f'{told}.')}<figcaption>{escape(caption)}</figcaption></figure>"
