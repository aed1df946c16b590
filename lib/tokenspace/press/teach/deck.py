"""Decks of slides: one for each part of the book, by nbconvert and reveal.js, with no network."""

import shutil
from collections.abc import Mapping
from html import escape
from pathlib import Path
from typing import Any

import nbformat
from nbconvert import SlidesExporter
from nbformat.v4 import new_markdown_cell, new_notebook

from tokenspace.files import write
from tokenspace.press import assets
from tokenspace.press.download import citation_names
from tokenspace.press.figures import DARK
from tokenspace.press.inline import variable
from tokenspace.press.teach.editions import Student
from tokenspace.press.teach.slides import Slides

TEMPLATES = Path(__file__).parent / "templates"
INDEX = """<!doctype html><html lang="en"><head><meta charset="utf-8"><title>Slides</title>
<link rel="stylesheet" href="static/deck.css"></head><body class="ts-index"><h1>Slides</h1>
<ul>{}</ul></body></html>
"""


def build_slides(
    source: Path, runs: Mapping[str, Path], chapters: Mapping[str, str], out: Path
) -> Path:
    """Write `PART.html` for each part, and the `index.html` that lists them, and return the latter.

    `runs` are the notebooks' run folders, `chapters` the captions of their parts, both in the
    book's order; `out` gets everything that a deck needs beside it.
    """
    (out / "static").mkdir(parents=True, exist_ok=True)
    assets.copy_mathjax(out / "mathjax")
    assets.copy_reveal(out / "reveal")
    pages = source / "book" / "_static"
    for path in (
        *pages.glob("*.js"),
        pages / "tokenspace.css",
        *(TEMPLATES / "deck").glob("deck.*"),
    ):
        shutil.copy2(path, out / "static" / path.name)
    citations = citation_names(source / "book" / "references.bib")
    parts: dict[str, list[str]] = {}
    for name in chapters:
        parts.setdefault(name.split("/")[0], []).append(name)
    lines = []
    for part, names in parts.items():
        title = chapters[names[0]]
        cells = [_title(title)]
        for name in names:
            page, _ = Student().preprocess(nbformat.read(runs[name] / "executed.ipynb", 4), {})
            cells += Slides(citations=citations).preprocess(page, {})[0].cells
        write(out / f"{part}.html", export(new_notebook(cells=cells), title))
        lines.append(f'<li><a href="{part}.html">{escape(title)}</a></li>')
    write(out / "index.html", INDEX.format("".join(lines)))
    return out / "index.html"


def export(deck: Any, title: str) -> str:
    """Write a notebook of slides as the HTML of one deck, by nbconvert."""
    exporter = SlidesExporter(
        template_name="deck",
        extra_template_basedirs=[str(TEMPLATES)],
        exclude_input=True,
        exclude_output_prompt=True,
        exclude_anchor_links=True,
        reveal_url_prefix="reveal",
        mathjax_url="mathjax/tex-chtml.js",
    )
    colours = "".join(f"{variable(colour)}:{colour};" for colour in DARK)
    about = {"metadata": {"name": title}, "colours": f"html{{{colours}}}"}
    html: str = exporter.from_notebook_node(deck, about)[0]
    return html


def _title(caption: str) -> Any:
    part, _, name = caption.partition(" · ")
    text = f'<div class="ts-opening">\n\n{part}\n\n# {name or part}\n\n</div>'
    return new_markdown_cell(text, metadata={"slideshow": {"slide_type": "slide"}})
