"""The notebook that a reader downloads: executed, with MyST turned into plain Markdown.

Jupyter and Colab show ``{admonition}`` fences and ``{numref}`` roles as raw text, so the download
has blockquotes, numbered captions and plain words instead.
"""

import copy
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import nbformat

BOX = re.compile(
    r"^(?P<fence>`{3,}|:{3,}) *\{(?P<kind>[\w-]+)\} *(?P<title>.*)\n"
    r"(?P<options>(?::[\w-]+:.*\n)*)(?P<body>(?:.*\n)*?)(?P=fence) *$",
    re.MULTILINE,
)
NAME = re.compile(r"^:(?:label|name): *(\S+)", re.MULTILINE)
# Code comes first: what looks like a role inside of it is left alone.
ROLE = re.compile(
    r"^```.*?^```|`[^`]+`|\{(?P<role>[\w:.-]+)\}`(?P<text>[^`]+)`", re.MULTILINE | re.DOTALL
)
TARGET = re.compile(r"^\([\w:.-]+\)=\n", re.MULTILINE)
NUMBERED = re.compile(r"\$\$ *\((?P<label>[\w:.-]+)\) *$", re.MULTILINE)
TITLED = re.compile(r"(?P<text>.*?)\s*<[^>]+>", re.DOTALL)


def plain_notebook(notebook: Any, citations: Mapping[str, str]) -> Any:
    """A copy of an executed notebook that reads well without MyST; captions stand below figures.

    `citations` says what stands for each bibliography key: `{"facco2017": "Facco (2017)"}`.
    """
    plain = copy.deepcopy(notebook)
    names = {**names_of(plain), **citations}
    for cell in plain.cells:
        if cell.cell_type == "markdown":
            cell.source = plain_markdown(cell.source, names)
        else:
            cell.outputs = [part for output in cell.outputs for part in _output(output, names)]
    return plain


def plain_markdown(text: str, names: Mapping[str, str]) -> str:
    """MyST Markdown as plain Markdown; `names` is what stands for labels and citation keys.

    >>> print(plain_markdown("```{admonition} Mind\\nSee {eq}`eq-mle`.\\n```", {"eq-mle": "1"}))
    > **Mind.**
    >
    > See (1).
    """
    text = NUMBERED.sub(lambda m: f"\\tag{{{names.get(m[1], m[1])}}}\n$$", TARGET.sub("", text))
    return ROLE.sub(lambda m: _role(m, names), _boxes(text, names))


def names_of(notebook: Any) -> dict[str, str]:
    """What stands for each label: figures, tables and equations by number, boxes by title."""
    prose = "\n".join(cell.source for cell in notebook.cells if cell.cell_type == "markdown")
    names = {m["label"]: str(i) for i, m in enumerate(NUMBERED.finditer(prose), 1)}
    for box in BOX.finditer(prose):
        if label := NAME.search(box["options"]):
            names[label[1]] = box["title"]
    for kind in ("figure", "table"):
        shown = [about[kind]["name"] for _, about in told(notebook) if kind in about]
        names |= {name: f"{kind.capitalize()} {i}" for i, name in enumerate(shown, 1)}
    return names


def told(notebook: Any) -> Iterator[tuple[Any, dict[str, Any]]]:
    """Give each output of a notebook with what `Page` says about it."""
    for cell in notebook.cells:
        for output in cell.get("outputs", []):
            yield output, output.get("metadata", {}).get("tokenspace", {})


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


def _boxes(text: str, names: Mapping[str, str]) -> str:
    """Rewrite directives, inner ones too."""

    def plain(box: re.Match[str]) -> str:
        kind, title, label = box["kind"], box["title"].strip(), NAME.search(box["options"])
        body = _boxes(box["body"].strip("\n"), names)
        if kind == "table":
            return f"**{names.get(label[1], 'Table') if label else 'Table'}.** {title}\n\n{body}"
        if kind.startswith("solution"):  # a solution stands between two boxes
            return "" if kind == "solution-end" else f"**Solution: {names.get(title, title)}**"
        if kind != "admonition":
            title = kind.capitalize() + (f": {title}" if title else "")
        end = "" if title.endswith((".", "?", "!", ":")) else "."
        lines = [f"**{title}{end}**", "", *body.split("\n")]
        return "\n".join(f"> {line}".rstrip() for line in lines) + "\n"

    return BOX.sub(plain, text)


def _role(found: re.Match[str], names: Mapping[str, str]) -> str:
    role, text = found["role"], found["text"]
    if role is None:  # code
        return found[0]
    if titled := TITLED.fullmatch(text):
        return titled["text"]
    if role.startswith("cite"):
        cited = ", ".join(names.get(key.strip(), key.strip()) for key in text.split(","))
        return f"[{cited}]" if role == "cite:p" else cited
    if role == "math":
        return f"${text}$"
    return f"({names.get(text, text)})" if role == "eq" else names.get(text, text)


def _output(output: Any, names: Mapping[str, str]) -> Iterator[Any]:
    """An output with its Markdown made plain, and a figure's caption below it."""
    data = output.get("data", {})
    if "text/markdown" in data:
        data["text/markdown"] = plain_markdown("".join(data["text/markdown"]), names)
    yield output
    if figure := output.get("metadata", {}).get("tokenspace", {}).get("figure"):
        caption = f"**{names[figure['name']]}.** {plain_markdown(figure['caption'], names)}"
        yield nbformat.v4.new_output("display_data", {"text/markdown": caption})
