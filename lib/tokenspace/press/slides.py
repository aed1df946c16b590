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

import nbformat
from nbconvert import SlidesExporter
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output

from tokenspace.files import write
from tokenspace.press import assets
from tokenspace.press.download import NUMBERED, citation_names, names_of, plain_markdown
from tokenspace.press.editions import Student
from tokenspace.press.figures import DARK
from tokenspace.press.inline import inline, variable

Notebook = Any  # nbformat.NotebookNode: a dict with attribute access

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
    beside = source / "book" / "_static"
    for pattern in (
        beside.glob("*.js"),
        beside.glob("tokenspace.css"),
        TEMPLATES.glob("deck/deck.*"),
    ):
        for path in pattern:
            shutil.copy2(path, out / "static" / path.name)
    citations = citation_names(source / "book" / "references.bib")
    lines = []
    for caption in dict.fromkeys(chapters.values()):
        names = [name for name in chapters if chapters[name] == caption]
        cells = [_title(caption)]
        for name in names:
            page, _ = Student().preprocess(nbformat.read(runs[name] / "executed.ipynb", 4), {})
            cells += slides(page, citations)
        part = names[0].split("/")[0]
        write(out / f"{part}.html", export(new_notebook(cells=cells), caption))
        lines.append(f'<li><a href="{part}.html">{escape(caption)}</a></li>')
    write(out / "index.html", INDEX.format("".join(lines)))
    return out / "index.html"


def slides(notebook: Notebook, citations: Mapping[str, str]) -> Iterator[Notebook]:
    """Give the slides of an executed notebook: the cells that its source marks as such.

    The first says which line runs the page.
    """
    prose = "\n".join(cell.source for cell in notebook.cells if cell.cell_type == "markdown")
    numbers = {m["label"]: str(i) for i, m in enumerate(NUMBERED.finditer(prose), 1)}
    names = {**names_of(notebook), **citations, **numbers}
    outputs = [output for cell in notebook.cells for output in cell.get("outputs", [])]
    told = [output.get("metadata", {}).get("tokenspace", {}) for output in outputs]
    commands = [each["footer"]["command"] for each in told if "footer" in each]
    for cell in notebook.cells:
        kind = cell.metadata.get("slideshow", {}).get("slide_type")
        if kind not in ("slide", "subslide"):
            continue
        if cell.cell_type == "markdown":
            text = plain_markdown(cell.source, names)
            if commands:
                line = escape(commands.pop())
                text += f'\n\n<div class="ts-command"><code>{line}</code></div>'
            yield _slide(new_markdown_cell(text), kind)
        for output in cell.get("outputs", []):
            yield from _shown(output, names, kind)


def _shown(output: Notebook, names: Mapping[str, str], kind: str) -> Iterator[Notebook]:
    """Give an output's slide: a figure with its caption, or the verdict on a claim."""
    about = output.get("metadata", {}).get("tokenspace", {})
    if figure := about.get("figure"):
        drawn = inline("".join(output.data["image/svg+xml"]), figure["alt"])
        yield _slide(
            new_code_cell(outputs=[new_output("display_data", {"text/html": drawn})]), kind
        )
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


def _title(caption: str) -> Notebook:
    part, _, name = caption.partition(" · ")
    text = f'<div class="ts-opening">\n\n{part}\n\n# {name or part}\n\n</div>'
    return _slide(new_markdown_cell(text), "slide")


def _slide(cell: Notebook, kind: str) -> Notebook:
    cell.metadata["slideshow"] = {"slide_type": kind}
    return cell
