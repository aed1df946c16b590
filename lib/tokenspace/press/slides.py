"""Decks of slides: one for each part of the book, by nbconvert and reveal.js, with no network.

A notebook's source says which of its cells are slides, in Jupyter's own words:
`# %% [markdown] slideshow={"slide_type": "slide"}`, or `"subslide"` for one below the last.
A code cell is shown as its figures, each with its caption, and the verdicts on its claims.
"""

import shutil
from collections.abc import Iterator, Mapping
from html import escape
from pathlib import Path
from typing import Any

from nbconvert import SlidesExporter
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output

from tokenspace.files import write
from tokenspace.press import assets
from tokenspace.press.download import names_of, plain_markdown, told
from tokenspace.press.editions import Student
from tokenspace.press.figures import DARK
from tokenspace.press.inline import inline, variable
from tokenspace.press.site import Book

Notebook = Any  # nbformat.NotebookNode: a dict with attribute access

TEMPLATES = Path(__file__).parent / "templates"
INDEX = """<!doctype html><html lang="en"><head><meta charset="utf-8"><title>Slides</title>
<link rel="stylesheet" href="static/deck.css"></head><body class="ts-index"><h1>Slides</h1>
<ul>{}</ul></body></html>
"""
OPENING = """<div class="ts-opening">\n\n{}\n\n# {}\n\n</div>"""
COMMAND = """\n\n<div class="ts-command"><code>{}</code></div>"""


def build_slides(book: Book, parts: Mapping[str, str], out: Path) -> Path:
    """Write `PART.html` for each part, and the `index.html` that lists them, and return the latter.

    `parts` has their titles: `{"hub": "Part II · The hub"}`. `out` gets everything that a deck
    needs beside it.
    """
    (out / "static").mkdir(parents=True, exist_ok=True)
    for name in ("mathjax", "reveal"):
        assets.copy(name, out / name)
    beside = book.source / "book" / "_static"
    for path in (*beside.glob("*.js"), beside / "tokenspace.css", *TEMPLATES.glob("deck/deck.*")):
        shutil.copy2(path, out / "static" / path.name)
    citations = book.citations()
    decks: dict[str, list[Notebook]] = {}
    for name, notebook in book.notebooks(Student()):
        decks.setdefault(name.split("/")[0], []).extend(slides(notebook, citations))
    lines = []
    for part, cells in decks.items():
        number, _, title = parts[part].partition(" · ")
        opening = new_markdown_cell(OPENING.format(number, title or number))
        deck = new_notebook(cells=[_slide(opening, "slide"), *cells])
        write(out / f"{part}.html", export(deck, parts[part]))
        lines.append(f'<li><a href="{part}.html">{escape(parts[part])}</a></li>')
    write(out / "index.html", INDEX.format("".join(lines)))
    return out / "index.html"


def slides(notebook: Notebook, citations: Mapping[str, str]) -> Iterator[Notebook]:
    """Give the slides of an executed notebook: the cells that its source marks as such.

    The first says which line runs the page.
    """
    names = {**names_of(notebook), **citations}
    commands = [about["footer"]["command"] for _, about in told(notebook) if "footer" in about]
    for cell in notebook.cells:
        kind = cell.metadata.get("slideshow", {}).get("slide_type")
        if kind not in ("slide", "subslide"):
            continue
        if cell.cell_type == "markdown":
            text = plain_markdown(cell.source, names)
            text += COMMAND.format(escape(commands.pop())) if commands else ""
            yield _slide(new_markdown_cell(text), kind)
        for output, about in told(new_notebook(cells=[cell])):
            if figure := about.get("figure"):
                drawn = inline("".join(output.data["image/svg+xml"]), figure["alt"])
                shown = new_output("display_data", {"text/html": drawn})
                yield _slide(new_code_cell(outputs=[shown]), kind)
                caption = plain_markdown(figure["caption"], names)
                yield _slide(new_markdown_cell(f"**{names[figure['name']]}.** {caption}"), "-")
            elif "claim" in about:
                yield _slide(new_markdown_cell("".join(output.data["text/html"])), kind)


def export(deck: Notebook, title: str) -> str:
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


def _slide(cell: Notebook, kind: str) -> Notebook:
    cell.metadata["slideshow"] = {"slide_type": kind}
    return cell
