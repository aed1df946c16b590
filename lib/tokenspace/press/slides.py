"""A notebook as slides, chosen by its structure: what it says in short, and what it shows.

A page's title and first words; each section with the start of its text; what the paper says; each
numbered formula with the sentence before it; each figure with the first sentence of its caption;
each claim with its verdict; each exercise, as something to predict. A notebook overrules this
with `slideshow` metadata: a cell of type `skip` is left out, one of type `slide` or `subslide` is
shown whole.
"""

import re
from collections.abc import Iterator, Mapping
from html import escape
from typing import Any

from nbconvert.preprocessors import Preprocessor
from nbformat.v4 import new_code_cell, new_markdown_cell, new_output
from traitlets import Dict, Unicode

from tokenspace.format import interval, number
from tokenspace.press.claims import SOURCES, VERDICTS
from tokenspace.press.download import NUMBERED, names_of, plain_markdown
from tokenspace.press.inline import inline

Notebook = Any  # nbformat.NotebookNode: a dict with attribute access

SENTENCE = re.compile(r"(?<=[.?!])(?<!e\.g\.)(?<!i\.e\.)[*_”\"]*\s+(?=[*_“\"$`{]*[A-ZÀ-Þ0-9\\$])")
FENCE = re.compile(r"^(?P<fence>`{3,}|:{3,}) *\{(?P<name>[\w:-]+)\} *(?P<title>.*)$")
OPTION = re.compile(r"^:(?P<key>[\w-]+): *(?P<value>.*)$")
UNTOLD = ("Further reading", "Exercises")
LEAD, CAPTION, BOX, QUESTION = 340, 260, 460, 520  # characters that a slide has room for


class Slides(Preprocessor):
    """Choose a notebook's slides and give nbconvert's names for them: `slide` and `subslide`."""

    citations: Any = Dict(help="What stands for a bibliography key.").tag(config=True)
    command: Any = Unicode(help="The line that runs this page; by default its footer's.")

    def preprocess(self, nb: Notebook, resources: Any) -> tuple[Notebook, Any]:
        """Do it for one notebook."""
        labels = _equations(nb)
        self.names = {**names_of(nb), **self.citations, **labels}
        self.command = self.command or _command(nb)
        self.heading = self.lead = ""
        self.told, self.last = True, ""
        nb.cells = [slide for cell in nb.cells for slide in self._of(cell)]
        return nb, resources

    def _of(self, cell: Notebook) -> Iterator[Notebook]:
        wish = cell.metadata.get("slideshow", {}).get("slide_type")
        if wish in ("slide", "subslide"):
            if cell.cell_type == "markdown":
                cell.source = self._plain(cell.source)
            yield cell
        elif wish == "skip":
            return
        elif cell.cell_type == "markdown":
            for block in blocks(cell.source):
                yield from self._block(block)
        else:
            for output in cell.get("outputs", []):
                yield from self._output(output)

    def _block(self, block: str) -> Iterator[Notebook]:
        """Make slides of a paragraph, a heading, a formula or a box."""
        if title := re.match(r"(#{1,2}) +(.*)", block):
            self.heading, self.lead = block, ""
            self.told = title[2] not in UNTOLD
        elif self.heading and not self.lead and re.match(r"[^#`:$|<(\-!]", block):
            self.lead = block
            if self.told:
                yield from self._opening()
        elif FENCE.match(block.split("\n")[0]):
            yield from self._box(block)
        elif self.told and NUMBERED.search(block):
            before = self._plain(_last(self.last, LEAD)) or f"**{self.heading.lstrip('# ')}**"
            yield _text(f"{before}\n\n{self._plain(block)}")
        if not block.startswith("#"):
            self.last = block

    def _opening(self) -> Iterator[Notebook]:
        lead = self._plain(_closed(first(self.lead, LEAD)))
        if self.heading.startswith("## "):
            yield _text(f"{self._plain(self.heading)}\n\n{lead}", "slide")
            return
        line = f'<div class="ts-command"><code>{escape(self.command)}</code></div>'
        yield _text(
            f"{self._plain(self.heading)}\n\n{lead}\n\n{line if self.command else ''}", "slide"
        )

    def _box(self, block: str) -> Iterator[Notebook]:
        lines = block.split("\n")
        opened = FENCE.match(lines[0])
        assert opened is not None
        options = {m["key"]: m["value"] for line in lines[1:] if (m := OPTION.match(line))}
        text = "\n".join(line for line in lines[1:-1] if not OPTION.match(line)).strip()
        title = self._plain(opened["title"])
        if opened["name"] == "exercise":
            yield _text(
                f"### Predict: {title}\n\n{self._plain(first(text, QUESTION))}", kind="ts-predict"
            )
        elif self.told and options.get("class") in ("paper", "differs"):
            told = self._plain(first(text, BOX))
            yield _text(f"### {title}\n\n{told}", kind=f"ts-{options['class']}")

    def _output(self, output: Notebook) -> Iterator[Notebook]:
        """Make slides of a figure or of a claim."""
        about = output.get("metadata", {}).get("tokenspace", {})
        if figure := about.get("figure"):
            drawn = inline("".join(output["data"]["image/svg+xml"]), figure["alt"])
            shown = new_output("display_data", {"text/html": drawn})
            yield new_code_cell(outputs=[shown], metadata=_metadata("subslide"))
            caption = self._plain(first(figure["caption"], CAPTION))
            named = f"**{self.names[figure['name']]}.** {caption}"
            yield new_markdown_cell(named, metadata=_metadata("-"))
        elif claim := about.get("claim"):
            yield _text(_verdict(claim))

    def _plain(self, text: str) -> str:
        return plain_markdown(text, self.names).strip()


def first(text: str, room: int) -> str:
    """Give as many of a text's first sentences as there is room for, at least one; or list items.

    >>> first("One. Two is longer. Three.", 20)
    'One. Two is longer.'
    """
    listed = re.match(r"[-*] ", text)
    pieces = text.split("\n") if listed else SENTENCE.split(text.split("\n\n")[0])
    kept = pieces[0]
    for piece in pieces[1:]:
        joined = f"{kept}{chr(10) if listed else ' '}{piece}"
        if len(joined) > room:
            break
        kept = joined
    return kept


def _closed(text: str) -> str:
    """Leave out a last sentence that goes on in a formula, if others are left."""
    sentences = SENTENCE.split(text)
    return text if text[-1] in ".?!*)" or len(sentences) == 1 else " ".join(sentences[:-1])


def _last(text: str, room: int) -> str:
    """Give a text's last sentence, which introduces the formula below it."""
    prose = "" if re.match(r"[#`:$|<(]", text) else text
    return SENTENCE.split(prose)[-1] if len(prose) > room else prose


def blocks(source: str) -> Iterator[str]:
    """Split Markdown into paragraphs; boxes, code and formulas stay whole."""
    block: list[str] = []
    closing = ""
    for line in source.split("\n"):
        fence = re.match(r"`{3,}|:{3,}", line)
        if not closing and not line.strip():
            if block:
                yield "\n".join(block)
            block = []
            continue
        if not closing and (fence or line.startswith("$$")):
            if block:
                yield "\n".join(block)
            block, closing = [], fence[0] if fence else "$$"
            if closing == "$$" and line.count("$$") > 1:
                closing = ""
        elif closing and (line.strip() == closing or (closing == "$$" and "$$" in line)):
            closing = ""
        block.append(line)
    if block:
        yield "\n".join(block)


def _equations(nb: Notebook) -> dict[str, str]:
    """Number a notebook's formulas: `{"eq-mle": "3"}`."""
    prose = "\n".join(c.source for c in nb.cells if c.cell_type == "markdown")
    return {m["label"]: str(i) for i, m in enumerate(NUMBERED.finditer(prose), 1)}


def _command(nb: Notebook) -> str:
    outputs = [output for cell in nb.cells for output in cell.get("outputs", [])]
    about = [o.get("metadata", {}).get("tokenspace", {}).get("footer", {}) for o in outputs]
    return next((each["command"] for each in about if "command" in each), "")


def _metadata(kind: str) -> dict[str, Any]:
    return {"slideshow": {"slide_type": kind}}


def _text(markdown: str, slide: str = "subslide", kind: str = "") -> Notebook:
    body = f'<div class="{kind}">\n\n{markdown}\n\n</div>' if kind else markdown
    return new_markdown_cell(body, metadata=_metadata(slide))


def _verdict(claim: Mapping[str, Any]) -> str:
    """Give a claim as a card: the verdict, what is claimed, the paper's number and ours."""
    facts = {
        "paper": claim["paper"] or "no number",
        "ours": number(claim["ours"], claim["uncertainty"]),
        "holds if": interval(claim["band"] and tuple(claim["band"])),
        "why": claim["why"],
    }
    rows = "".join(f"<dt>{k}</dt><dd>{escape(v)}</dd>" for k, v in facts.items() if v)
    return (
        f'<div class="ts-claim" data-verdict="{claim["verdict"]}"><p class="ts-claim-head">'
        f'<span class="ts-verdict">{VERDICTS[claim["verdict"]]}</span> '
        f'<span class="ts-source">{SOURCES[claim["source"]]}</span></p>'
        f'<p class="ts-claim-statement">{escape(claim["statement"])}</p>'
        f'<dl class="ts-claim-facts">{rows}</dl></div>'
    )
