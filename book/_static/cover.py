"""The cover: a ring of tokens, a hub of short rows in the middle, every token tied to its two
nearest rows.

The picture is computed, not composed. Tokens lie along a closed curve in 48 dimensions, spread
more and more from left to right; the radius on the page is a row's length, the angle its place
on the curve. Where the nearest token is within about 60 degrees the ties stay on the ring; where
it is not, the short rows are nearer than any token.

`python book/_static/cover.py book/_static/cover.svg` draws it again.
"""

import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from tokenspace.files import write
from tokenspace.press.figures import BLUE, INK, MUTED, PAPER, RED

TOKENS, SHORT, DIMENSIONS, FREQUENCIES = 220, 14, 48, 3
WIDTH, HEIGHT, RADIUS = 760, 440, 186
FONT = 'font-family="system-ui,sans-serif" font-size="15"'


def rows(seed: int = 3) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Rows of the toy table (short ones last), with the angle and radius to draw each at."""
    draw = np.random.default_rng(seed)
    angle = np.linspace(0, 2 * np.pi, TOKENS, endpoint=False)
    basis = np.linalg.qr(draw.normal(size=(DIMENSIONS, 2 * FREQUENCIES)))[0].T
    turns = np.outer(angle, np.arange(1, FREQUENCIES + 1))
    curve = np.hstack([np.cos(turns), np.sin(turns)]) @ basis / np.sqrt(FREQUENCIES)
    noise = draw.normal(size=curve.shape)
    noise /= np.linalg.norm(noise, axis=1, keepdims=True)
    spread = ((1.0 + np.cos(angle)) / 2.0)[:, None]  # none on the left, all on the right
    token = np.sqrt(1 - spread**2) * curve + spread * noise
    token *= draw.normal(1.0, 0.05, size=(TOKENS, 1)) / np.linalg.norm(token, axis=1)[:, None]
    short = draw.normal(size=(SHORT, DIMENSIONS))
    short *= draw.uniform(0.06, 0.2, size=(SHORT, 1)) / np.linalg.norm(short, axis=1)[:, None]
    table = np.vstack([token, short])
    around = np.linspace(0, 2 * np.pi, SHORT, endpoint=False) * 5  # so that neighbours lie apart
    return table, np.concatenate([angle, around]), np.linalg.norm(table, axis=1)


def two_nearest(table: np.ndarray) -> np.ndarray:
    """The two nearest rows of every row."""
    squares = (table**2).sum(axis=1)
    distances = squares[:, None] + squares - 2 * table @ table.T
    np.fill_diagonal(distances, np.inf)
    return np.argsort(distances, axis=1)[:, :2]


def drawing() -> str:
    """The cover as an SVG file."""
    table, angle, radius = rows()
    nearest = two_nearest(table)
    place = (
        np.column_stack([np.cos(angle), -np.sin(angle)]) * radius[:, None] * RADIUS
        + np.array([WIDTH, HEIGHT]) / 2
    )
    captured = np.all(nearest >= TOKENS, axis=1)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{HEIGHT}" '
        f'viewBox="0 0 {WIDTH} {HEIGHT}">',
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="{PAPER}"/>',
        *_ties(place, nearest),
        *_dots(place, captured),
        *_words(),
        "</svg>",
    ]
    return "\n".join(parts) + "\n"


def _ties(place: np.ndarray, nearest: np.ndarray) -> Iterator[str]:
    """A curve from every token to each of its two nearest rows, bent towards the middle."""
    middle = np.array([WIDTH, HEIGHT]) / 2
    for row in range(TOKENS):
        for other in nearest[row]:
            colour, strength = (RED, 0.5) if other >= TOKENS else (BLUE, 0.55)
            half = (place[row] + place[other]) / 2
            inward = (middle - half) / np.linalg.norm(middle - half)
            bend = half + 0.3 * np.linalg.norm(place[row] - place[other]) * inward * (
                other < TOKENS
            )
            points = " ".join(f"{x:.0f},{y:.0f}" for x, y in (place[row], bend, place[other]))
            start, control, end = points.split()
            yield (
                f'<path d="M{start}Q{control} {end}" fill="none" stroke="{colour}" '
                f'stroke-opacity="{strength}"/>'
            )


def _dots(place: np.ndarray, captured: np.ndarray) -> Iterator[str]:
    for row, (x, y) in enumerate(place):
        short = row >= TOKENS
        colour = RED if short or captured[row] else BLUE
        fill = colour if short or not captured[row] else PAPER
        yield (
            f'<circle cx="{x:.0f}" cy="{y:.0f}" r="{4 if short else 3}" fill="{fill}" '
            f'stroke="{colour}" stroke-width="1.5"/>'
        )


def _words() -> Iterator[str]:
    words = (
        (14, "start", ("Close together:", "a token’s two nearest", "rows are tokens.")),
        (WIDTH - 14, "end", ("Far apart:", "both of them are", "short rows.")),
    )
    for x, anchor, lines in words:
        for number, line in enumerate(lines):
            colour = MUTED if number else INK
            y = HEIGHT / 2 - 16 + 21 * number
            style = f'text-anchor="{anchor}" fill="{colour}" {FONT}'
            yield f'<text x="{x}" y="{y}" {style}>{line}</text>'


def main() -> None:
    """Write the cover to the path given."""
    write(Path(sys.argv[1]), drawing())


if __name__ == "__main__":
    main()
