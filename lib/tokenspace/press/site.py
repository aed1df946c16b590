"""From executed notebooks to the site: stage the sources, run Sphinx, keep nothing that failed."""

import hashlib
import json
import os
import re
import shutil
import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from subprocess import PIPE, Popen
from tempfile import TemporaryFile
from typing import Any

import nbformat
import yaml

from tokenspace.errors import RunError
from tokenspace.files import read_text, write
from tokenspace.press import layout, sweep_page
from tokenspace.press.download import citation_names, plain_notebook, told
from tokenspace.press.editions import Student, Whole, edit_source
from tokenspace.press.scoreboard import scoreboard
from tokenspace.press.sync import dumps, with_check

Notebook = Any  # nbformat.NotebookNode: a dict with attribute access
Edition = Whole | Student

JUPYTER_BOOK = "from jupyter_book.cli.main import main; main()"  # it has no `python -m`
PROGRESS = re.compile(r"(reading|writing) \w+\.\.\. \[ *\d+%\] (\S+)")
COLOUR = re.compile(r"\x1b\[[\d;]*m")
WARNING = re.compile(r"^(?P<path>/\S+?\.(?:ipynb|md))(?::(?P<line>\d+))?: (?P<text>.*)$")


@dataclass(frozen=True)
class Book:
    """What an edition is made of.

    `source` is the repository (`book/` and `notebooks/` below it), `runs` has the notebooks' run
    folders (`{"hub/models": folder}`), `pages` MyST for pages that lie nowhere: the scoreboard,
    and others, which are listed after it.
    """

    source: Path
    runs: Mapping[str, Path]
    pages: Mapping[str, str]

    @classmethod
    def of(cls, root: Path, runs: Mapping[str, Path]) -> "Book":
        """Make the book of a repository: scoreboard, its bench's table, its sweeps' summaries."""
        pages = {"scoreboard": scoreboard(runs, layout.part_titles(root))}
        bench = root / "build" / "bench" / "bench.md"
        pages |= {"bench": bench.read_text("utf-8")} if bench.is_file() else {}
        return cls(root, runs, pages | sweep_page.pages(root))

    def notebooks(self, edition: Edition) -> Iterator[tuple[str, Notebook]]:
        """Give each executed notebook, in an edition, with its name."""
        for name, run in self.runs.items():
            notebook = nbformat.read(run / "executed.ipynb", as_version=4)
            yield name, edition.preprocess(notebook, {})[0]

    def citations(self) -> dict[str, str]:
        """Give what stands for a key of the bibliography where there are no links."""
        return citation_names(self.source / "book" / "references.bib")


def build_book(book: Book, out: Path, edition: Edition | None = None, quiet: bool = False) -> Path:
    """Build the site in a folder of ours and return its `index.html`, in `out/_build/html`.

    Nothing is rebuilt when nothing changed. A page that fails leaves no site behind.
    Raises `RunError` naming page and cell.
    """
    try:
        stage(book, out, edition or Whole())
        return _sphinx(out, quiet)
    except OSError as error:
        shutil.rmtree(out / "_build", ignore_errors=True)
        raise RunError(
            f"can't write the book below {out}: {error.strerror or error}; "
            "free some space (`make clean` empties build/) or build in a folder that is yours"
        ) from error


def build_handout(book: Book, out: Path, quiet: bool = False) -> Path:
    """Write `student/` and `teacher/` below `out`, and return it.

    Both hold every notebook, executed; the student's has no solution in its cells, and cells to be
    filled in, and `student/site` is the whole book without solutions: its pages, its downloads and
    its search.
    Raises `PageError` for a solution that isn't closed, `RunError` when the site doesn't build.
    """
    index = build_book(book, out / ".work" / "site", Student(), quiet)
    shutil.rmtree(out / "student" / "site", ignore_errors=True)
    shutil.copytree(index.parent, out / "student" / "site")
    citations = book.citations()
    for folder, edition in (("student", Student()), ("teacher", Whole())):
        for name, notebook in book.notebooks(edition):
            offered = dumps(with_check(plain_notebook(notebook, citations)))
            write_changed(out / folder / f"{name}.ipynb", offered)
    return out


def _sphinx(out: Path, quiet: bool) -> Path:
    """Run Sphinx over the staged sources, unless it did so before."""
    build = out / "_build"
    index, stamp = build / "html" / "index.html", build / "key"
    old = stamp.read_text("utf-8").split() if stamp.exists() and index.exists() else ["", ""]
    new = content_keys(out)
    if new == old:
        return index
    if new[0] != old[0]:  # Sphinx looks for changed pages, not for a changed frame
        shutil.rmtree(build, ignore_errors=True)
    stamp.unlink(missing_ok=True)
    command = [sys.executable, "-c", JUPYTER_BOOK, "build", str(out), "-W", "-n", "--keep-going"]
    quietly = {**os.environ, "PYTHONWARNINGS": "ignore", "PYTHONUTF8": "1"}
    with (
        TemporaryFile("w+", encoding="utf-8") as errors,
        Popen(command, env=quietly, stdout=PIPE, stderr=errors, encoding="utf-8") as process,
    ):
        for line in process.stdout or ():
            if not quiet and (match := PROGRESS.match(COLOUR.sub("", line))):
                print(f"book: {match[1]} {match[2]}", file=sys.stderr, flush=True)
        process.wait()
        errors.seek(0)
        said = errors.read()
    if process.returncode != 0:
        complaints = "\n".join(_complaints(said, out))
        shutil.rmtree(build, ignore_errors=True)
        raise RunError(f"the book did not build:\n{complaints}")
    stamp.write_text("\n".join(new), "utf-8")
    return index


def stage(book: Book, out: Path, edition: Edition) -> None:
    """Lay the book's sources, executed notebooks and downloads out under `out`."""
    if out.is_dir() and any(out.iterdir()) and not (out / "_toc.yml").is_file():
        raise RunError(f"{out} holds something else than a book: name an empty folder")
    sources = book.source / "book"
    staged: dict[str, str | bytes] = {
        path.relative_to(sources).as_posix(): path.read_bytes() for path in _files(sources)
    }
    staged |= {f"{name}.md": text for name, text in book.pages.items()}
    staged["_toc.yml"] = _contents(read_text(sources / "_toc.yml"), book.pages)
    title = re.compile(r"^title: .*", re.MULTILINE)
    config = read_text(sources / "_config.yml")
    staged["_config.yml"] = title.sub(lambda line: line[0] + edition.note, config)
    citations = book.citations()
    for name, notebook in book.notebooks(edition):
        offered, code = f"downloads/notebooks/{name}", book.source / "notebooks" / f"{name}.py"
        staged[f"{offered}.ipynb"] = dumps(with_check(plain_notebook(notebook, citations)))
        staged[f"{offered}.py"] = edit_source(read_text(code), edition)
        staged |= {f"notebooks/{path}": svg for path, svg in figure_files(notebook, name).items()}
        staged[f"notebooks/{name}.ipynb"] = dumps(notebook)
    # the contents first: by them a folder is known to be a book's, should we be stopped here
    for place in sorted(staged, key=lambda place: (place != "_toc.yml", place)):
        write_changed(out / place, staged[place])
    for path in _files(out):
        if path.relative_to(out).as_posix() not in staged:
            path.unlink()


def content_keys(out: Path) -> list[str]:
    """Hash what frames every page (settings, styles, versions), and what stands on the pages."""
    frame, pages = hashlib.sha256(), hashlib.sha256()
    for package in ("jupyter-book", "sphinx", "myst-nb", "sphinx-book-theme"):
        frame.update(f"{package} {version(package)}\n".encode())
    for name in ("figures.py", "inline.py"):
        frame.update(Path(__file__).with_name(name).read_bytes())
    for path in _files(out):
        place = path.relative_to(out)
        on_pages = place.parts[0] in ("notebooks", "downloads") or path.suffix in (".md", ".bib")
        (pages if on_pages else frame).update(str(place).encode() + path.read_bytes())
    return [frame.hexdigest(), pages.hexdigest()]


def figure_files(notebook: Notebook, name: str) -> dict[str, str]:
    """Make each figure of a page a `{figure}` directive, and give the SVG files these name."""
    files = {}
    for output, about in told(notebook):
        if figure := about.get("figure"):
            path = Path(f"{name}-figures", f"{figure['name']}.svg")
            files[path.as_posix()] = "".join(output.data["image/svg+xml"])
            alt = json.dumps(figure["alt"], ensure_ascii=False)  # options are YAML
            head = f"::::{{figure}} {path.relative_to(path.parents[1]).as_posix()}"
            options = f":name: {figure['name']}\n:alt: {alt}"
            directive = f"{head}\n{options}\n\n{figure['caption']}\n::::"
            output.data = nbformat.from_dict({"text/markdown": directive})
    return files


def _contents(text: str, pages: Iterable[str]) -> str:
    """Give the book's contents with the pages that they lack after the scoreboard."""
    more = [{"file": name} for name in pages if name != "scoreboard"]
    contents = yaml.safe_load(text)
    for part in contents["parts"] if more else []:
        if {"file": "scoreboard"} in part["chapters"]:
            part["chapters"] += more
    return str(yaml.safe_dump(contents, sort_keys=False, allow_unicode=True)) if more else text


def _complaints(stderr: str, out: Path) -> Iterator[str]:
    """Sphinx's warnings, with page and cell in place of a path and ``10000 * cell + line``."""
    ours = COLOUR.sub("", stderr).split("\nThe above exception was the direct cause")[0]
    for line in ours.splitlines():
        match = WARNING.match(line)
        if match is None:
            if line.strip():
                yield line
            continue
        path = Path(match["path"])
        where = str(path.relative_to(out)) if path.is_relative_to(out) else path.name
        if match["line"] and path.suffix == ".ipynb":
            cell, row = divmod(int(match["line"]), 10_000)
            where += f", cell {cell}, line {row}{_first_line(path, cell)}"
        elif match["line"]:
            where += f", line {match['line']}"
        yield f"{where}: {match['text']}"


def _first_line(path: Path, cell: int) -> str:
    cells = nbformat.read(path, as_version=4).cells
    lines = cells[cell - 1].source.splitlines() if 0 < cell <= len(cells) else []
    return f" ({lines[0]!r})" if lines else ""


def _files(folder: Path) -> Iterator[Path]:
    for path in sorted(folder.rglob("*")):
        inside = path.relative_to(folder).parts
        if path.is_file() and inside[0] != "_build" and "__pycache__" not in inside:
            yield path


def write_changed(path: Path, content: str | bytes) -> None:
    """Write only what changed, whole or not at all, so that Sphinx re-reads no more."""
    data = content.encode() if isinstance(content, str) else content
    if not path.exists() or path.read_bytes() != data:
        path.parent.mkdir(parents=True, exist_ok=True)
        write(path, data)
