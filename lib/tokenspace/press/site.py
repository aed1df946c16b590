"""From executed notebooks to the site: stage the sources, run Sphinx, keep nothing that failed."""

import hashlib
import json
import os
import re
import shutil
import sys
from collections.abc import Iterable, Iterator, Mapping
from importlib.metadata import version
from pathlib import Path
from subprocess import PIPE, Popen
from tempfile import TemporaryFile
from typing import Any

import nbformat
import yaml

from tokenspace.errors import RunError
from tokenspace.files import write
from tokenspace.press.download import citation_names, plain_notebook
from tokenspace.press.editions import Whole, edit_source
from tokenspace.press.sync import dumps, with_check

Notebook = Any  # nbformat.NotebookNode: a dict with attribute access

JUPYTER_BOOK = "from jupyter_book.cli.main import main; main()"  # it has no `python -m`
PROGRESS = re.compile(r"(reading|writing) \w+\.\.\. \[ *\d+%\] (\S+)")
COLOUR = re.compile(r"\x1b\[[\d;]*m")
WARNING = re.compile(r"^(?P<path>/\S+?\.(?:ipynb|md))(?::(?P<line>\d+))?: (?P<text>.*)$")


def build_book(
    source: Path,
    runs: Mapping[str, Path],
    scoreboard: str,
    out: Path,
    *,
    pages: Mapping[str, str] | None = None,
    quiet: bool = False,
) -> Path:
    """Build the site from ``{"hub/models": run folder}`` and return its ``index.html``.

    ``source`` is the repository (``book/`` and ``notebooks/`` below it), ``scoreboard`` a page
    of MyST, ``out`` a folder of ours: sources are staged there, the site is ``out/_build/html``.
    ``pages`` holds further pages by name, listed after the scoreboard.
    Nothing is rebuilt when nothing changed. A page that fails leaves no site behind.
    Raises :class:`RunError` naming page and cell.
    """
    try:
        stage(source, runs, scoreboard, out, pages or {})
        return _sphinx(out, quiet)
    except OSError as error:
        shutil.rmtree(out / "_build", ignore_errors=True)
        raise RunError(
            f"can't write the book below {out}: {error.strerror or error}; "
            "free some space (`make clean` empties build/) or build in a folder that is yours"
        ) from error


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


def stage(
    source: Path, runs: Mapping[str, Path], scoreboard: str, out: Path, pages: Mapping[str, str]
) -> None:
    """Lay the book's sources, executed notebooks and downloads out under ``out``."""
    if out.is_dir() and any(out.iterdir()) and not (out / "_toc.yml").is_file():
        raise RunError(f"{out} holds something else than a book: name an empty folder")
    staged = dict[str, str | bytes](_sources(source / "book"))
    staged |= {f"{name}.md": text for name, text in {"scoreboard": scoreboard, **pages}.items()}
    if pages:
        staged["_toc.yml"] = _contents(source / "book" / "_toc.yml", pages)
    citations = citation_names(source / "book" / "references.bib")
    for name, run in runs.items():
        notebook, _ = Whole().preprocess(_read(run / "executed.ipynb"), {})
        code = (source / "notebooks" / f"{name}.py").read_text("utf-8")
        offered = f"downloads/notebooks/{name}"
        staged[f"{offered}.ipynb"] = dumps(with_check(plain_notebook(notebook, citations)))
        staged[f"{offered}.py"] = edit_source(code, Whole())
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
    for path in sorted(_files(out)):
        place = path.relative_to(out)
        on_pages = place.parts[0] in ("notebooks", "downloads") or path.suffix in (".md", ".bib")
        (pages if on_pages else frame).update(str(place).encode() + path.read_bytes())
    return [frame.hexdigest(), pages.hexdigest()]


def figure_files(notebook: Notebook, name: str) -> dict[str, str]:
    """Make each figure of a page a ``{figure}`` directive, and give the SVG files these name.

    A file's name has its content's hash, so that a page whose figure changed is read again.
    """
    files = {}
    for output in (one for cell in notebook.cells for one in cell.get("outputs", [])):
        figure = output.get("metadata", {}).get("tokenspace", {}).get("figure")
        if figure is None:
            continue
        svg = "".join(output.data["image/svg+xml"])
        mark = hashlib.sha256(svg.encode()).hexdigest()[:8]
        files[f"{name}-figures/{figure['name']}-{mark}.svg"] = svg
        path = f"{Path(name).name}-figures/{figure['name']}-{mark}.svg"
        alt = json.dumps(figure["alt"], ensure_ascii=False)  # options are YAML
        options = f":name: {figure['name']}\n:alt: {alt}"
        directive = f"::::{{figure}} {path}\n{options}\n\n{figure['caption']}\n::::"
        output.data = nbformat.from_dict({"text/markdown": directive})
    return files


def _contents(path: Path, pages: Iterable[str]) -> str:
    """Give the book's contents with further pages after the scoreboard."""
    contents = yaml.safe_load(path.read_text("utf-8"))
    for part in contents["parts"]:
        if {"file": "scoreboard"} in part["chapters"]:
            part["chapters"] += [{"file": name} for name in pages]
    return str(yaml.safe_dump(contents, sort_keys=False, allow_unicode=True))


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
    cells = _read(path).cells
    lines = cells[cell - 1].source.splitlines() if 0 < cell <= len(cells) else []
    return f" ({lines[0]!r})" if lines else ""


def _read(path: Path) -> Notebook:
    return nbformat.read(path, as_version=4)


def _sources(source: Path) -> Iterator[tuple[str, bytes]]:
    """Read the book's sources, by their places below it."""
    for path in sorted(source.rglob("*")):
        if path.is_file() and not {"__pycache__", "_build"} & set(path.parts):
            yield path.relative_to(source).as_posix(), path.read_bytes()


def _files(out: Path) -> Iterator[Path]:
    for path in out.rglob("*"):
        inside = path.relative_to(out).parts
        if path.is_file() and inside[0] != "_build" and "__pycache__" not in inside:
            yield path


def write_changed(path: Path, content: str | bytes) -> None:
    """Write only what changed, whole or not at all, so that Sphinx re-reads no more."""
    data = content.encode() if isinstance(content, str) else content
    if not path.exists() or path.read_bytes() != data:
        path.parent.mkdir(parents=True, exist_ok=True)
        write(path, data)
