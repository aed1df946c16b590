"""An SVG of the figure style as a piece of a page, in the page's light or dark colours."""

import json
import re
from html import escape, unescape
from typing import Any

from tokenspace.press.figures import DARK

HEX = re.compile("|".join(DARK), re.IGNORECASE)


def variable(colour: str) -> str:
    """Name the CSS variable that stands for one of the style's colours."""
    return f"--ts-{colour.lower().lstrip('#')}"


def inline(svg: str, alt: str) -> str:
    """An SVG file as a piece of a page: named for screen readers, sized by the page.

    A live figure has its sliders below it, disabled until its script runs.
    """
    head, rest = svg[svg.index("<svg") :].split(">", 1)
    width = re.search(r' width="([\d.]+)(pt|px)?"', head)
    head = re.sub(r' (width|height)="[^"]*"', "", head)
    style = f' style="max-width:{width[1]}{width[2] or "px"}"' if width else ""
    head += f' role="img" aria-label="{escape(alt)}" focusable="false"{style}'
    box = re.search(r'viewBox="\S+ \S+ (\S+) (\S+)"', head)
    two = ""
    if box and 'class="ts-second"' in rest:
        two = f' ts-two" style="--ts-shape: {float(box[2]) / float(box[1]):.4f}'
    live = re.search(r"<metadata data-kind=[^>]*>(.*?)</metadata>", rest, re.DOTALL)
    controls = _controls(json.loads(unescape(live[1]))) if live else ""
    coloured = HEX.sub(lambda m: f"var({variable(m[0])})", rest)
    return f'<div class="ts-figure{two}">{head}>{coloured}{controls}</div>'


def _controls(live: dict[str, Any]) -> str:
    """The sliders of a live figure, each with its word and its button, and what it says."""
    rows = []
    for slider in live["sliders"]:
        words, start = slider["words"], slider["start"]
        button = '<button type="button" class="ts-play" disabled>Play</button>'
        rows.append(
            f'<div class="ts-control"><label><span>{escape(slider["name"])}</span>'
            f'<input type="range" min="0" max="{len(words) - 1}" value="{start}" '
            f'aria-valuetext="{escape(words[start])}" autocomplete="off" disabled></label>'
            f'<output aria-live="off" style="--ts-widest: {max(map(len, words))}ch">'
            f"{escape(words[start])}</output>{button if slider['play'] else ''}</div>"
        )
    if live["says"]:
        says = escape(live["says"])
        rows.append(f'<output class="ts-says" aria-live="polite">{says}</output>')
    return f'<div class="ts-interactive">{"".join(rows)}</div>'
