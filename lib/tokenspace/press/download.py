"""The notebook that a reader downloads: executed, with MyST turned into plain Markdown.

Jupyter and Colab show ``{admonition}`` fences and ``{numref}`` roles as raw text, so the download
has blockquotes, numbered captions and plain words instead.
"""

import copy
import re
from collections.abc import Iterator, Mapping
from itertools import pairwise
from pathlib import Path
from typing import Any

import nbformat

OPEN = re.compile(r"^(?P<fence>`{3,}|:{3,}) *\{(?P<name>[\w:.-]+)\} *(?P<title>.*)$")
OPTION = re.compile(r"^:(?P<key>[\w-]+): *(?P<value>.*)$")
ROLE = re.compile(r"(?<!`)\{(?P<role>[\w:.-]+)\}`(?P<text>[^`]+)`")
TARGET = re.compile(r"^\([\w:.-]+\)=\s*$")
NUMBERED = re.compile(r"\$\$ *\((?P<label>[\w:.-]+)\) *$", re.MULTILINE)
TITLED = re.compile(r"^(?P<text>.*?)\s*<(?P<target>[^>]+)>$", re.DOTALL)


def plain_notebook(notebook: Any, citations: Mapping[str, str] | None = None) -> Any:
    """A copy of an executed notebook that reads well without MyST.

    ``citations`` says what stands for each bibliography key: ``{"facco2017": "Facco (2017)"}``.
    """
    plain = copy.deepcopy(notebook)
    names = names_of(plain) | dict(citations or {})
    for cell in plain.cells:
        if cell.cell_type == "markdown":
            cell.source = plain_markdown(cell.source, names)
        if cell.cell_type == "code":
            cell.outputs = [part for output in cell.outputs for part in _output(output, names)]
    return plain


def plain_markdown(text: str, names: Mapping[str, str] | None = None) -> str:
    """MyST Markdown as plain Markdown; ``names`` is what stands for labels and citation keys.

    >>> print(plain_markdown(":::{admonition} Mind\\nSee {eq}`eq-mle`.\\n:::"))
    > **Mind.**
    >
    > See (eq-mle).
    """
    return "\n".join(_blocks(text.splitlines(), names or {}))


def citation_names(bibliography: Path) -> dict[str, str]:
    """``{key: "Author (year)"}`` of a BibTeX file."""
    from pybtex.database import parse_file  # type: ignore[import-untyped]

    names = {}
    for key, entry in parse_file(str(bibliography)).entries.items():
        people = [" ".join(person.last_names) for person in entry.persons["author"]]
        who = people[0] + (f" and {people[1]}" if len(people) == 2 else "")
        who += " et al." if len(people) > 2 else ""
        names[key] = f"{who} ({entry.fields['year']})"
    return names


def _blocks(lines: list[str], names: Mapping[str, str]) -> Iterator[str]:
    """Rewrite prose and directives, inner ones first; leave code blocks as they are."""
    rest = iter(lines)
    prose: list[str] = []
    for line in rest:
        match = OPEN.match(line)
        if match is None and not line.startswith("```"):
            if not TARGET.match(line) and line.strip() != "+++":
                prose.append(line)
            continue
        yield from _prose(prose, names)
        prose = []
        if match is None:  # an ordinary code block
            yield line
            yield from _until(rest, line[: len(line) - len(line.lstrip("`"))], closing=True)
        else:
            body = list(_until(rest, match["fence"]))
            yield from _directive(match["name"], match["title"].strip(), body, names)
    yield from _prose(prose, names)


def _prose(lines: list[str], names: Mapping[str, str]) -> list[str]:
    tag = lambda m: f"\\tag{{{names.get(m['label'], m['label'])}}}\n$$"  # noqa: E731
    text = NUMBERED.sub(tag, "\n".join(lines))
    return _roles(text, names).split("\n") if lines else []


def _roles(text: str, names: Mapping[str, str]) -> str:
    return ROLE.sub(lambda m: _role(m["role"], m["text"], names), text)


def _until(rest: Iterator[str], fence: str, *, closing: bool = False) -> Iterator[str]:
    for line in rest:
        bare = line.strip()
        if bare.startswith(fence) and set(bare) == {fence[0]}:
            if closing:
                yield line
            return
        yield line


def _directive(name: str, title: str, body: list[str], names: Mapping[str, str]) -> Iterator[str]:
    """One directive as plain Markdown."""
    options = {}
    while body and (option := OPTION.match(body[0])):
        options[option["key"]] = option["value"]
        body = body[1:]
    kind = name.rsplit(":", 1)[-1]
    title = _roles(title, names)
    if kind == "table":
        yield from [f"**{names.get(options.get('name', ''), 'Table')}.** {title}", ""]
        yield from _blocks(body, names)
    elif kind == "math":
        label = options.get("label", "")
        tag = [f"\\tag{{{names.get(label, label)}}}"] if label else []
        yield from ["$$", *body, *tag, "$$"]
    elif kind in ("code-block", "code", "code-cell"):
        yield from [f"```{title}", *body, "```"]
    elif kind in ("image", "figure"):
        yield f"![{options.get('alt', '')}]({title})"
        yield from _blocks(body, names)
    elif kind == "solution-start":
        yield f"**Solution: {names.get(title, title)}**"
    elif kind not in ("solution-end", "bibliography", "tableofcontents"):
        yield from _quote(_heading(kind, title, names), list(_blocks(body, names)))


def _heading(kind: str, title: str, names: Mapping[str, str]) -> str:
    if kind == "admonition":
        return title
    if kind == "solution":
        return f"Solution: {names.get(title, title)}"
    return kind.replace("-", " ").capitalize() + (f": {title}" if title else "")


def _quote(heading: str, body: list[str]) -> Iterator[str]:
    while body and not body[0].strip():
        body = body[1:]
    end = "" if heading.endswith((".", "?", "!", ":")) else "."
    yield f"> **{heading}{end}**"
    yield ">"
    for line in body:
        yield f"> {line}".rstrip()
    yield ""


def _role(role: str, text: str, names: Mapping[str, str]) -> str:
    if titled := TITLED.match(text):
        return titled["text"]
    if role == "math":
        return f"${text}$"
    if role == "eq":
        return f"({names.get(text, text)})"
    if role.startswith("cite"):
        cited = ", ".join(names.get(key.strip(), key.strip()) for key in text.split(","))
        return f"[{cited}]" if role in ("cite", "cite:p") else cited
    return names.get(text, text)


def names_of(notebook: Any) -> dict[str, str]:
    """What stands for each label: figures and tables by number, other boxes by title."""
    names: dict[str, str] = {}
    counts = {"figure": 0, "table": 0}
    for cell in notebook.cells:
        lines = cell.source.splitlines() if cell.cell_type == "markdown" else []
        for line, following in pairwise([*lines, ""]):
            opened, option = OPEN.match(line), OPTION.match(following)
            if opened and option and option["key"] in ("label", "name"):
                names[option["value"]] = opened["title"] or opened["name"]
        for output in cell.get("outputs", []):
            shown = output.get("metadata", {}).get("tokenspace", {})
            for kind in counts:
                if kind in shown:
                    counts[kind] += 1
                    names[shown[kind]["name"]] = f"{kind.capitalize()} {counts[kind]}"
    return names


def _output(output: Any, names: Mapping[str, str]) -> Iterator[Any]:
    """An output with its Markdown made plain, and a figure's caption below it."""
    data = output.get("data", {})
    if "text/markdown" in data:
        source = data["text/markdown"]
        data["text/markdown"] = plain_markdown("".join(source), names)
    yield output
    if figure := output.get("metadata", {}).get("tokenspace", {}).get("figure"):
        caption = plain_markdown(figure["caption"], names)
        text = f"**{names[figure['name']]}.** {caption}"
        yield nbformat.v4.new_output("display_data", {"text/markdown": text})
