"""The book to look at, stand-ins for its notebooks, and Chromium to look with."""

import json
import os
import re
import shutil
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import nbformat
import pytest
from bs4 import BeautifulSoup
from filelock import FileLock
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output

from tokenspace.press import layout
from tokenspace.press.runner import run_notebooks
from tokenspace.press.site import Book, build_book

REPOSITORY = Path(__file__).resolve().parents[2]
FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
]
CHAPTERS = list(layout.chapters(REPOSITORY))

SVG = (
    '<svg xmlns="http://www.w3.org/2000/svg" width="360pt" height="216pt" viewBox="0 0 360 216">'
    '<defs><clipPath id="clip"><path d="M0 0H360V216H0Z"/></clipPath></defs>'
    '<rect width="360" height="216" style="fill: #ffffff"/>'
    '<g clip-path="url(#clip)"><path d="M20 200L340 20" style="fill: none; stroke: #262626"/></g>'
    "</svg>"
)

TEXT = """## Neighbours

(sec-%(name)s)=
### Two distances

```{admonition} What the paper says
:class: paper
The reading follows from $r_1 \\le r_2$ {cite:p}`quemy2026hub`.
```

$$
\\hat d = \\frac{N - 1}{\\sum_i \\log (r_2 / r_1)}
$$ (eq-%(name)s)

By {eq}`eq-%(name)s` and {numref}`fig-%(name)s`, all is well.

```{exercise} Count
:label: ex-%(name)s
How many?
```

```{solution-start} ex-%(name)s
:class: dropdown
```

Two.
"""


def figure(name: str, svg: str = SVG) -> Any:
    """A figure as ``page.show`` displays it."""
    told = {"name": name, "caption": "A line, $n = 2$.", "alt": "A line that rises"}
    return new_output(
        "display_data", {"image/svg+xml": svg}, metadata={"tokenspace": {"figure": told}}
    )


def notebook(name: str, extra: str = "") -> Any:
    """An executed notebook with one of each thing that a page may hold."""
    cells = [
        new_markdown_cell(f"# Page {name}\n\nWords about *{name}*.", id="title"),
        new_code_cell("seed: int = 0", id="parameters", metadata={"tags": ["parameters"]}),
        new_markdown_cell(TEXT % {"name": name}, id="text"),
        new_code_cell("print(1 + 1)", id="sum", outputs=[new_output("stream", text="2\n")]),
        new_markdown_cell("```{solution-end}\n```", id="end"),
        new_code_cell("page.show(fig)", id="show", outputs=[figure(f"fig-{name}")]),
    ]
    if extra:
        cells.append(new_markdown_cell(extra, id="extra"))
    kernel = {"name": "python3", "display_name": "Python 3", "language": "python"}
    language = {"name": "python", "pygments_lexer": "ipython3"}
    return new_notebook(cells=cells, metadata={"kernelspec": kernel, "language_info": language})


def write_run(folder: Path, made: Any) -> Path:
    """A run folder as the runner leaves it."""
    folder.mkdir(parents=True, exist_ok=True)
    nbformat.write(made, folder / "executed.ipynb")
    return folder


def referred() -> list[Any]:
    """Cells with every label of the notebooks that the book's own pages refer to."""
    text = "".join(path.read_text() for path in (REPOSITORY / "book").rglob("*.md"))
    asked = set(
        re.findall(r"\{(?:numref|eq|ref)\}`(?:[^`<]*<)?((?:fig|tbl|eq|ex)-[\w-]+)>?`", text)
    )
    own = set(re.findall(r"\(((?:eq|sec)-[\w-]+)\)", text)) | set(re.findall(r":name: (\S+)", text))
    labels = sorted(asked - own)
    made = {
        "eq": "$$\n1\n$$ ({0})",
        "tbl": ":::{{table}} A table\n:name: {0}\n\n| n |\n|--:|\n| 1 |\n:::",
        "ex": "```{{exercise}} Count\n:label: {0}\n\nHow many?\n```",
    }
    words = [made[kind].format(label) for label in labels if (kind := label.split("-")[0]) in made]
    figures = [figure(label) for label in labels if label.startswith("fig-")]
    return [
        new_markdown_cell("## Labels\n\n" + "\n\n".join(words), id="labels"),
        new_code_cell("page.show(fig)", id="figures", outputs=figures),
    ]


def short(chapter: str) -> str:
    """A stand-in's name, which its labels carry: "models", and "flow-language" elsewhere."""
    return chapter.removeprefix("hub/").replace("/", "-")


def write_runs(folder: Path) -> dict[str, Path]:
    """A stand-in's run for every chapter of the book."""
    made = {c: notebook(short(c)) for c in CHAPTERS}
    made[CHAPTERS[0]].cells += referred()
    return {c: write_run(folder / c, page) for c, page in made.items()}


@pytest.fixture(scope="session")
def stand_in() -> SimpleNamespace:
    """How to make an executed notebook, and a run folder of it, without running anything."""
    return SimpleNamespace(notebook=notebook, write_run=write_run, write_runs=write_runs)


@pytest.fixture(scope="session")
def small_source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The repository's book with a stand-in for every notebook."""
    source = tmp_path_factory.mktemp("source")
    shutil.copytree(REPOSITORY / "book", source / "book")
    for chapter in CHAPTERS:
        path = source / "notebooks" / f"{chapter}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"# # Page {short(chapter)}\n")
    return source


@pytest.fixture(scope="session")
def source() -> Path:
    """The repository."""
    return REPOSITORY


@pytest.fixture(scope="session")
def shared(tmp_path_factory: pytest.TempPathFactory, worker_id: str) -> Path:
    """A folder that all workers of this test run share."""
    folder = tmp_path_factory.getbasetemp()
    return folder if worker_id == "master" else folder.parent


@pytest.fixture(scope="session")
def runs(shared: Path) -> dict[str, Path]:
    """Every notebook's run at the smoke profile, by name: made where the last ones are stale."""
    with FileLock(shared / "site.lock"):  # one worker runs for all
        made = run_notebooks(CHAPTERS, root=REPOSITORY, profile="smoke")
        return {run.notebook: run.folder for run in made}


@pytest.fixture(scope="session")
def site(shared: Path, request: pytest.FixtureRequest) -> Path:
    """The real book, built at the smoke profile; or the finished site that `$SITE` names."""
    if "SITE" in os.environ:
        return Path(os.environ["SITE"]).resolve()
    runs = request.getfixturevalue("runs")
    with FileLock(shared / "site.lock"):  # one worker builds for all
        return build_book(Book.of(REPOSITORY, runs), shared / "site", quiet=True).parent


@pytest.fixture
def small_runs(tmp_path: Path) -> dict[str, Path]:
    """Their runs."""
    return write_runs(tmp_path / "runs")


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    """Debian's Chromium, or the one that `$CHROMIUM` names, or Playwright's own."""
    sync_api = pytest.importorskip("playwright.sync_api")
    path = os.environ.get("CHROMIUM") or shutil.which("chromium") or shutil.which("google-chrome")
    with sync_api.sync_playwright() as playwright:
        try:
            chromium = playwright.chromium.launch(executable_path=path, args=FLAGS)
        except sync_api.Error as error:
            if os.environ.get("CI"):  # a test that is always skipped there tests nothing
                raise
            pytest.skip(f"no Chromium: install it or set $CHROMIUM ({str(error).splitlines()[0]})")
        yield chromium
        chromium.close()


def opened(browser: Any, page: Path, kind: str) -> tuple[Any, Any, dict[str, Any]]:
    """A page in a new tab, its live figure of a kind, and the data in it."""
    tab = browser if hasattr(browser, "goto") else browser.new_page()
    tab.goto(page.as_uri(), wait_until="domcontentloaded")
    figure = tab.locator(f".ts-figure:has(metadata[data-kind={kind}])").first
    return tab, figure, json.loads(figure.locator("metadata").text_content())


@pytest.fixture(scope="session")
def soup(site: Path) -> Callable[[str], Any]:
    """A page of the site without a browser: `soup("intro.html").select(...)`."""
    return cache(lambda page: BeautifulSoup((site / page).read_text(), "html.parser"))
