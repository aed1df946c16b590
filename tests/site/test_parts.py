"""The book's own parts: the cover, figures in the page's colours, and what the guides promise."""

import importlib.util
import re
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from tokenspace.press.figures import DARK, INK, PAPER

REPOSITORY = Path(__file__).resolve().parents[2]
BOOK = REPOSITORY / "book"


def module_at(path: Path) -> ModuleType:
    """Import a file of the book, which is no package."""
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


cover = module_at(BOOK / "_static" / "cover.py")


@pytest.fixture(scope="module")
def ts_figures() -> ModuleType:
    """The extension that puts figures into pages."""
    return module_at(BOOK / "_ext" / "ts_figures.py")


def test_the_cover_is_the_one_the_code_draws() -> None:
    assert (BOOK / "_static" / "cover.svg").read_text() == cover.drawing()


def test_the_cover_shows_what_its_caption_says() -> None:
    table, angle, radius = cover.rows()
    token = table[: cover.TOKENS]
    nearest = cover.two_nearest(table)
    brute = np.array([np.linalg.norm(table - row, axis=1) for row in table])
    assert (np.sort(brute, axis=1)[:, 1:3] >= 0).all()
    picked = np.take_along_axis(brute, nearest, axis=1)
    assert np.allclose(picked, np.sort(brute, axis=1)[:, 1:3])
    unit = token / np.linalg.norm(token, axis=1, keepdims=True)
    cosine = unit @ unit.T - 2 * np.eye(len(unit))
    apart = np.degrees(np.arccos(cosine.max(axis=1)))
    captured = (nearest[: cover.TOKENS] >= cover.TOKENS).all(axis=1)
    assert not captured[apart < 50].any()
    assert captured[apart > 70].all()
    assert 0.2 < captured.mean() < 0.6
    assert np.allclose(radius, np.linalg.norm(table, axis=1))
    assert angle.shape == radius.shape


def test_a_figure_takes_every_colour_from_the_page(ts_figures: ModuleType) -> None:
    svg = "<?xml ?>\n<svg width='1' viewBox='0 0 9 9'>" + "".join(
        f'<path style="fill: {colour.upper()}"/>' for colour in DARK
    )
    page = ts_figures.inline(svg.replace("'", '"') + "</svg>", 'x < y & "z"')
    assert not any(colour in page.lower() for colour in DARK)
    assert page.count("var(--ts-") == len(DARK)
    assert 'role="img" aria-label="x &lt; y &amp; &quot;z&quot;"' in page
    assert "<?xml" not in page
    sheet = ts_figures.style_sheet()
    light, dark, printed = sheet.splitlines()
    assert f"--ts-{INK[1:]}:{INK};" in light
    assert f"--ts-{INK[1:]}:{DARK[INK]};" in dark
    assert dark.startswith("html[data-theme=dark]")
    assert f"--ts-{PAPER[1:]}:{PAPER};" in printed


@pytest.mark.parametrize(
    "words",
    [
        "unknown parameter",
        "did you mean",
        "time is up after",
        "the kernel died",
        "can't be reached",
        "it is a web page",
        "no such file, folder or packaged table",
        "has no tensor",
        "holds no tokenizer",
        "rows are not finite",
        "sees none; use --device cpu",
        "the book did not build",
        "no Dask scheduler answers at",
        "a cluster needs a disk that its machines share",
    ],
)
def test_the_running_guide_quotes_messages_that_exist(words: str) -> None:
    assert words in (BOOK / "guide" / "running.md").read_text()
    code = "".join(p.read_text() for p in (REPOSITORY / "lib").rglob("*.py"))
    assert words in re.sub(r'"\s*\n\s*f?"', "", code)


def test_commands_in_the_guides_exist() -> None:
    from typer.main import get_command

    from tokenspace.cli import app

    told = {
        word
        for guide in ("reading", "running", "scaling", "teaching")
        for word in re.findall(
            r"`?tokenspace ([a-z]+)\b", (BOOK / "guide" / f"{guide}.md").read_text()
        )
    }
    assert told <= {*get_command(app).commands, "import"}


def test_names_in_the_glossary_exist() -> None:
    import tokenspace.hub as hub

    text = (BOOK / "glossary.md").read_text().split("## Symbols of Part II")[1].split("## Terms")[0]
    cells = [line.rsplit("|", 2)[1] for line in text.splitlines() if line.startswith("| $")]
    names = {re.match(r"\w+", code)[0] for cell in cells for code in re.findall(r"`([^`]+)`", cell)}
    assert len(names) > 10
    assert {n for n in names if not hasattr(hub, n)} == set()
