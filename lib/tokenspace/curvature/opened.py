"""A text whose points are opened: the two candidates of each, and the plane of their rows."""

import unicodedata
from dataclasses import dataclass
from typing import Any

from torch.nn.functional import normalize

from tokenspace.curvature.connection import curvature_norm
from tokenspace.curvature.frames import dot, frame
from tokenspace.curvature.generation import Reading

SIGNS = {"\n": "↵", "\t": "⇥", "\r": "␍"}


@dataclass(frozen=True)
class Opened:
    """One point: what stands before it and after it, its candidates, and its geometry.

    `angle` is between the two rows, in radians. `across` and `along` are the state's part Πz in
    their plane: along the line from b to a, and along the line half-way between a and b.
    `norm` is ‖R‖, the hypotenuse of `linear` = q D₀ |Πz| and `quadratic` = q² D².
    """

    position: int
    after: str
    follows: str
    first: str
    second: str
    p1: float
    p2: float
    q: float
    angle: float
    across: float
    along: float
    norm: float
    linear: float
    quadratic: float


def open_points(reading: Reading, tokenizer: Any, text: int = 0) -> list[Opened]:
    """The points of one text of a reading that chose a token of it, in order.

    >>> from tokenspace.curvature import encode, read, untrained_reader
    >>> reader = untrained_reader(["the cat sat"])
    >>> reading = read(reader, encode(reader, ["the cat sat"], bos=True))
    >>> [(point.after, point.follows) for point in open_points(reading, reader.tokenizer)]
    [('<s>', 'the'), ('the', 'cat'), ('cat', 'sat')]
    """
    ids, points = reading.ids[text], reading.points
    a, b = normalize(points.v1, dim=-1), normalize(points.v2, dim=-1)
    between, apart = normalize(a + b, dim=-1), normalize(a - b, dim=-1)
    across, along = dot(points.z, apart), dot(points.z, between)
    at, q = frame(points), points.q
    columns = {
        "p1": points.p1,
        "p2": points.p2,
        "q": q,
        "angle": 2 * (a - b).norm(dim=-1).atan2((a + b).norm(dim=-1)),
        "across": across,
        "along": along,
        "norm": curvature_norm(points),
        "linear": q * at.D0 * across.hypot(along),
        "quadratic": (q * at.D) ** 2,
    }
    found = []
    for i, read in enumerate(points.kept.tolist()):
        here = int(reading.position[read])
        if int(reading.text[read]) != text or here + 1 == len(ids):
            continue
        tokens = (ids[here], ids[here + 1], int(points.top1[i]), int(points.top2[i]))
        words: list[Any] = [readable(tokenizer, token) for token in tokens]
        numbers: dict[str, Any] = {name: float(column[i]) for name, column in columns.items()}
        found.append(Opened(here, *words, **numbers))
    return found


def readable(tokenizer: Any, token: int) -> str:
    """A token as people can read it: what can't be seen, or isn't a letter yet, by its name.

    >>> from tokenspace.curvature import untrained_reader
    >>> readable(untrained_reader(["the cat"]).tokenizer, 0)
    '<s>'
    """
    word = str(tokenizer.decode([token]))
    if not word or "\N{REPLACEMENT CHARACTER}" in word:  # a piece of a letter's bytes
        return f"⟨{tokenizer.convert_ids_to_tokens(token)}⟩"
    if not word.strip(" "):
        return "␣" * len(word)
    return "".join(map(_visible, word))


def _visible(letter: str) -> str:
    if letter in SIGNS:
        return SIGNS[letter]
    hidden = letter != " " and unicodedata.category(letter)[0] in "CZ"
    return f"⟨U+{ord(letter):04X}⟩" if hidden else letter
