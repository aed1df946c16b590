"""Building the book: what is staged, what a failure leaves, and that nothing is built twice."""

import errno
import os
import re
import shutil
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_notebook, new_output

from tokenspace.errors import RunError
from tokenspace.press import site
from tokenspace.press.download import citation_names, plain_markdown, plain_notebook
from tokenspace.press.editions import Student
from tokenspace.press.site import Book, build_book, figure_files

PAGES = {
    "scoreboard": "# Scoreboard\n\nNo claims yet.\n",
    "bench": "# Bench\n\n| row | ratio |\n|:--|--:|\n| neighbours | .7 |\n",
    "sweeps/toy-smoke": "# A toy (smoke)\n\n## toy\n\n| k | ours |\n|:--|:--|\n| 1 | 2 |\n",
}


@pytest.fixture(scope="module")
def built(
    tmp_path_factory: pytest.TempPathFactory, small_source: Path, stand_in: SimpleNamespace
) -> tuple[Path, Book]:
    """A finished small book and what it is made of."""
    folder = tmp_path_factory.mktemp("built")
    book = Book(small_source, stand_in.write_runs(folder / "runs"), PAGES)
    build_book(book, folder / "out", quiet=True)
    return folder / "out", book


@pytest.fixture
def small(small_source: Path, small_runs: dict[str, Path]) -> Book:
    """A small book that isn't built yet."""
    return Book(small_source, small_runs, PAGES)


def test_a_bench_and_a_sweep_join_the_book_after_the_scoreboard(built: tuple[Path, Book]) -> None:
    site = built[0] / "_build" / "html"
    assert "neighbours</p></td>" in (site / "bench.html").read_text()
    assert "<td" in (site / "sweeps/toy-smoke.html").read_text()
    intro = (site / "intro.html").read_text()
    assert intro.index("scoreboard.html") < intro.index("sweeps/toy-smoke.html")


def test_a_second_build_with_nothing_changed_runs_nothing(
    built: tuple[Path, Book], monkeypatch: pytest.MonkeyPatch
) -> None:
    out, book = built
    monkeypatch.setattr(site, "Popen", None)  # any use of it would fail
    assert build_book(book, out).read_text()


def test_changed_pages_are_read_again_and_no_other(
    built: tuple[Path, Book],
    stand_in: SimpleNamespace,
    tmp_path: Path,
    capfd: pytest.CaptureFixture[str],
) -> None:
    """A page whose figure alone is another is one of them."""
    out, book = built
    made = stand_in.notebook("models")
    figure = made.cells[-1].outputs[0].data
    figure["image/svg+xml"] = figure["image/svg+xml"].replace("L340", "L341")
    runs = {**book.runs, "hub/models": stand_in.write_run(tmp_path / "run", made)}
    pages = {**PAGES, "scoreboard": "# Scoreboard\n\nOne more line.\n"}
    build_book(Book(book.source, runs, pages), out)
    read = re.findall(r"book: reading (\S+)", capfd.readouterr().err)
    assert sorted(read) == ["notebooks/hub/models", "scoreboard"]
    assert "One more line" in (out / "_build/html/scoreboard.html").read_text()
    assert "L341" in (out / "_build/html/notebooks/hub/models.html").read_text()


def test_a_failing_page_is_named_with_its_cell_and_leaves_no_site(
    small: Book, tmp_path: Path, stand_in: SimpleNamespace
) -> None:
    bad = stand_in.notebook("models", extra="By {numref}`fig-missing`.")
    stand_in.write_run(small.runs["hub/models"], bad)
    with pytest.raises(RunError) as caught:
        build_book(small, tmp_path / "out", quiet=True)
    assert caught.value.exit_code == 1
    assert "notebooks/hub/models.ipynb, cell 7, line" in str(caught.value)
    said = "('By {numref}`fig-missing`.'): WARNING: undefined label: 'fig-missing'"
    assert said in str(caught.value)
    assert not (tmp_path / "out" / "_build").exists()


def test_a_full_disk_is_said_in_a_sentence(
    small: Book, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: Any) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(site.os, "replace", full)
    with pytest.raises(RunError, match=r"can't write the book below .*out: No space left.*clean"):
        build_book(small, tmp_path / "out")


def test_a_folder_that_is_not_a_book_is_left_alone(small: Book, tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "letter.txt").write_text("dear")
    with pytest.raises(RunError, match="something else than a book"):
        build_book(small, tmp_path / "mine")
    assert (tmp_path / "mine" / "letter.txt").read_text() == "dear"


def test_a_source_may_begin_with_a_byte_order_mark(small: Book, tmp_path: Path) -> None:
    source = tmp_path / "source"
    shutil.copytree(small.source, source)
    path = source / "notebooks" / "hub" / "models.py"
    path.write_bytes(b"\xef\xbb\xbf" + path.read_bytes())
    site.stage(Book(source, small.runs, PAGES), tmp_path / "out", Student())
    offered = (tmp_path / "out" / "downloads" / "notebooks" / "hub" / "models.py").read_text()
    assert offered == "# %%\n# # Page models\n"
    assert "title: tokenspace, student edition\n" in (tmp_path / "out/_config.yml").read_text()


def test_a_figure_becomes_a_directive_beside_its_file(stand_in: SimpleNamespace) -> None:
    made = stand_in.notebook("models")
    about = made.cells[-1].outputs[0].metadata.tokenspace.figure
    about.alt = 'A "line": it rises # 3\u00a0°'
    ((path, svg),) = figure_files(made, "hub/models").items()
    assert path == "hub/models-figures/fig-models.svg"
    assert svg.startswith("<svg")
    assert made.cells[-1].outputs[0].data["text/markdown"] == (
        "::::{figure} models-figures/fig-models.svg\n:name: fig-models\n"
        ':alt: "A \\"line\\": it rises # 3\u00a0°"\n\nA line, $n = 2$.\n::::'
    )


@pytest.mark.parametrize(
    ("myst", "plain"),
    [
        ("A *word*, `{eq}` and $x$.", "A *word*, `{eq}` and $x$."),
        ("```python\n# {numref}`x`\n```", "```python\n# {numref}`x`\n```"),
        ("Write `{eq}` and `x`.", "Write `{eq}` and `x`."),
        ("See {doc}`the\npage <hub/models>`.", "See the\npage."),
        ("(sec-a)=\n## A", "## A"),
        ("$$\nx\n$$ (eq-x)\nBy {eq}`eq-x`.", "$$\nx\n\\tag{3}\n$$\nBy (3)."),
        ("{doc}`the page <hub/models>` and {cite:t}`a,b`", "the page and A (2001), B (2002)"),
        ("{cite:p}`a`", "[A (2001)]"),
        (
            "::::{admonition} What the paper says\n:class: paper\nOne.\n\n"
            ":::{note}\nTwo.\n:::\n::::",
            "> **What the paper says.**\n>\n> One.\n>\n> > **Note.**\n> >\n> > Two.\n>",
        ),
        (
            "```{exercise} Count?\n:label: ex-a\nHow many?\n```",
            "> **Exercise: Count?**\n>\n> How many?",
        ),
        ("```{solution-start} ex-a\n:class: dropdown\n```\nTwo.", "**Solution: Count?**\nTwo."),
        ("```{solution-end}\n```", ""),
    ],
)
def test_myst_becomes_plain_markdown(myst: str, plain: str) -> None:
    names = {"a": "A (2001)", "b": "B (2002)", "ex-a": "Count?", "eq-x": "3"}
    assert plain_markdown(myst, names).strip() == plain


def test_a_downloaded_notebook_keeps_outputs_and_says_its_captions(
    stand_in: SimpleNamespace,
) -> None:
    made = plain_notebook(stand_in.notebook("models"), {"quemy2026hub": "Quemy (2026)"})
    nbformat.validate(made)
    text = "\n".join(c.source for c in made.cells if c.cell_type == "markdown")
    assert not re.search(r"\{[a-z:-]+\}[` ]|^\(.*\)=$|^:", text, re.MULTILINE)
    assert "> The reading follows from $r_1 \\le r_2$ [Quemy (2026)]." in text
    assert "By (1) and Figure 1, all is well." in text
    figure, caption = made.cells[-1].outputs
    assert "image/svg+xml" in figure.data
    assert caption.data["text/markdown"] == "**Figure 1.** A line, $n = 2$."


def test_a_downloaded_table_is_numbered_and_its_caption_plain() -> None:
    text = ":::{table} Rows of {numref}`tbl-b`\n:name: tbl-a\n\n| n |\n|--:|\n| 1 |\n:::"
    told = [{"tokenspace": {"table": {"name": name}}} for name in ("tbl-b", "tbl-a")]
    outputs = [new_output("display_data", {"text/markdown": text}, metadata=m) for m in told]
    (cell,) = plain_notebook(new_notebook(cells=[new_code_cell("", outputs=outputs)]), {}).cells
    said = cell.outputs[1].data["text/markdown"]
    assert said == "**Table 2.** Rows of Table 1\n\n| n |\n|--:|\n| 1 |"


def test_citations_are_named_by_author_and_year(tmp_path: Path) -> None:
    (tmp_path / "r.bib").write_text(
        "@misc{a, author={Facco, E. and Laio, A. and Rest, R.}, year={2017}}\n"
        "@misc{b, author={Levina, E. and Bickel, P.}, year={2004}}\n"
    )
    assert citation_names(tmp_path / "r.bib") == {
        "a": "Facco et al. (2017)",
        "b": "Levina and Bickel (2004)",
    }
