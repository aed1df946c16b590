"""One style: readable with any colour vision, on a light and a dark page; the same bytes twice."""

import itertools
import re
from collections.abc import Iterator
from xml.etree import ElementTree

import numpy as np
import pytest
from matplotlib import pyplot as plt
from matplotlib.figure import Figure

from tokenspace.press import figures
from tokenspace.press.figures import DARK, GRID, INK, MUTED, PALETTE, PAPER, svg

# Machado, Oliveira & Fernandes (2009), severity 1, on linear RGB.
VISION = {
    "normal": np.eye(3),
    "protanopia": [
        [0.152286, 1.052583, -0.204868],
        [0.114503, 0.786281, 0.099216],
        [-0.003882, -0.048116, 1.051998],
    ],
    "deuteranopia": [
        [0.367322, 0.860646, -0.227968],
        [0.280085, 0.672501, 0.047413],
        [-0.011820, 0.042940, 0.968881],
    ],
    "tritanopia": [
        [1.255528, -0.076749, -0.178779],
        [-0.078411, 0.930809, 0.147602],
        [0.004733, 0.691367, 0.303900],
    ],
}
XYZ = np.array([[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]])


def linear(colour: str) -> np.ndarray:
    c = np.array([int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)])
    return np.where(c <= 0.04045, c / 12.92, ((c + 0.055) / 1.055) ** 2.4)


def contrast(a: str, b: str) -> float:
    """WCAG 2's ratio of relative luminances."""
    low, high = sorted(float(XYZ[1] @ linear(x)) for x in (a, b))
    return (high + 0.05) / (low + 0.05)


def lab(rgb: np.ndarray) -> np.ndarray:
    xyz = XYZ @ np.clip(rgb, 0, 1) / [0.9505, 1, 1.089]
    f = np.where(xyz > 0.008856, np.cbrt(xyz), 7.787 * xyz + 16 / 116)
    return np.array([116 * f[1] - 16, 500 * (f[0] - f[1]), 200 * (f[1] - f[2])])


def test_lines_stand_out_from_the_page() -> None:
    for colour in (*PALETTE, MUTED):
        assert contrast(colour, PAPER) >= 3, colour
        assert contrast(DARK[colour], DARK[PAPER]) >= 3, DARK[colour]
    for ink, paper in ((INK, PAPER), (MUTED, PAPER), (DARK[INK], DARK[PAPER])):
        assert contrast(ink, paper) >= 4.5


@pytest.mark.parametrize("vision", VISION)
@pytest.mark.parametrize("page", ["light", "dark"])
def test_colours_differ_for_every_colour_vision(vision: str, page: str) -> None:
    palette = PALETTE if page == "light" else [DARK[c] for c in PALETTE]
    seen = [lab(np.array(VISION[vision]) @ linear(c)) for c in palette]
    nearest = min(float(np.linalg.norm(a - b)) for a, b in itertools.combinations(seen, 2))
    assert nearest > 15  # CIELAB units; about 2 is a just noticeable difference


def test_every_light_colour_has_a_dark_partner() -> None:
    assert {PAPER, INK, GRID, MUTED, *PALETTE} <= set(DARK)
    partners = [DARK[c] for c in (PAPER, INK, GRID, MUTED, *PALETTE)]
    assert len(set(partners)) == len(partners)


@pytest.fixture
def figure() -> Iterator[Figure]:
    """What pages draw: lines, bars, an area, a density, text, an arrow, a legend."""
    import seaborn as sns

    figures.use()
    drawn, (left, right) = plt.subplots(1, 2)
    left.plot([1, 2, 3], [3, 1, 2], label="line")
    left.fill_between([1, 3], [1, 2], alpha=0.3)
    left.hist([1, 2, 2])
    left.axhline(1, color=MUTED)
    left.annotate("text", (1, 1), (2, 2), arrowprops={"arrowstyle": "->"})
    left.set_xlabel("length ρ")
    left.legend()
    sns.barplot(x=["a", "b", "b"], y=[1, 2, 3], ax=right, saturation=1)
    sns.kdeplot(x=[1.0, 2.0, 2.5], ax=right)
    yield drawn
    plt.close(drawn)


def test_only_colours_with_a_partner_are_drawn(figure: Figure) -> None:
    used = set(re.findall(r"#[0-9a-f]{6}\b", svg(figure, "fig-x", "a figure")))
    assert used <= set(DARK)


def test_the_same_figure_gives_the_same_bytes(figure: Figure) -> None:
    assert svg(figure, "fig-x", "a figure") == svg(figure, "fig-x", "a figure")


def test_drawing_needs_no_font_and_describes_itself(figure: Figure) -> None:
    drawn = svg(figure, "fig-x", "a < b")
    tree = ElementTree.fromstring(drawn)
    assert not list(tree.iter("{http://www.w3.org/2000/svg}text"))
    assert tree.find("{http://www.w3.org/2000/svg}desc").text == "a < b"  # type: ignore[union-attr]


def test_two_figures_on_a_page_share_no_id(figure: Figure) -> None:
    first, second = (svg(figure, name, "a figure") for name in ("fig-a", "fig-b"))
    ids = [set(re.findall(r' id="([^"]+)"', drawn)) for drawn in (first, second)]
    assert ids[0]
    assert not ids[0] & ids[1]
    referred = set(re.findall(r'(?:url\(#|href="#)([^)"]+)', first))
    assert referred == ids[0]


def test_a_dense_scatter_becomes_pixels_and_a_sparse_one_stays() -> None:
    figures.use()
    sizes = {}
    for n in (100, 20_000):
        drawn, axes = plt.subplots()
        points = np.random.default_rng(0).normal(size=(n, 2))
        axes.scatter(points[:, 0], points[:, 1])
        axes.plot(points[:, 0], points[:, 1], "o")
        text = svg(drawn, "fig-x", "points")
        sizes[n] = len(text), "<image" in text
        plt.close(drawn)
    assert not sizes[100][1]
    assert sizes[20_000][1]
    assert sizes[20_000][0] < 1_000_000  # as paths: 5 MB
