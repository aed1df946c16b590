"""A text as a model reads it: after each token the two candidates, their charge, the curvature."""

import unicodedata
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import torch
from torch.nn.functional import normalize

from tokenspace.curvature.connection import curvature, dot, frame
from tokenspace.curvature.reader import Reader, Reading, read
from tokenspace.errors import ParameterError

SIGNS = {"\n": "↵", "\t": "⇥", "\r": "␍"}
PIECES = 3  # tokens before the last piece of a letter, at most: UTF-8 takes four bytes


@dataclass(frozen=True)
class TextPoint:
    """One point of a text: what stands before it and what follows, its candidates, its geometry.

    `next` is None at the end of the text; `entropy` is in nats. `angle` is between the two rows,
    in radians. `across` and `along` are the state's part Πz in their plane: along the line from b
    to a, and along the line half-way between a and b. `norm` is ‖R‖, the hypotenuse of
    `linear` = q D₀ |Πz| and `quadratic` = q² D².
    """

    position: int
    after: str
    next: str | None
    first: str
    second: str
    p1: float
    p2: float
    q: float
    entropy: float
    angle: float
    across: float
    along: float
    norm: float
    linear: float
    quadratic: float


def check_text(text: str) -> None:
    """Raise ParameterError for a text that no model can read: needs no model, so ask it first.

    >>> check_text(" ")
    Traceback (most recent call last):
    tokenspace.errors.ParameterError: the text is blank: give a sentence, in quotes
    """
    if not text.strip():
        raise ParameterError("the text is blank: give a sentence, in quotes")
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise ParameterError(
            f"character {error.start + 1} of the text, U+{ord(text[error.start]):04X}, is half of "
            "a pair (a lone surrogate) and stands for no letter: copy the text anew, as UTF-8"
        ) from error


def encode(reader: Reader, texts: Sequence[str], *, bos: bool) -> list[list[int]]:
    """Token ids with exactly one BOS in front, or with none, whatever the tokenizer's own habit.

    Raises ParameterError when a BOS is asked of a tokenizer that has none, or a text is empty.

    >>> from tokenspace.curvature import untrained_reader
    >>> encode(untrained_reader(["the cat"]), ["the cat"], bos=True)
    [[0, 2, 1]]
    """
    mark = reader.tokenizer.bos_token_id
    if bos and mark is None:
        raise ParameterError("This tokenizer has no BOS token: take bos=False.")
    found = []
    for text in texts:
        ids = list(reader.tokenizer(text, add_special_tokens=False)["input_ids"])
        while mark is not None and ids[:1] == [mark]:  # some write it whatever one asks
            del ids[0]
        ids = [mark, *ids] if bos else ids
        if not ids:
            raise ParameterError(f"The text {text!r} has no tokens, so nothing is read from it.")
        found.append(ids)
    return found


@torch.no_grad()
def continue_greedily(reader: Reader, ids: Sequence[Sequence[int]], length: int) -> list[list[int]]:
    """Each text with `length` likeliest tokens appended, or fewer when the model ends it.

    >>> from tokenspace.curvature import untrained_reader
    >>> continue_greedily(untrained_reader(["the cat sat"]), [[1, 2]], 3)[0][:2]
    [1, 2]
    """
    found = []
    for row in ids:
        start = torch.tensor([list(row)], device=reader.model.device)  # (1, L)
        likeliest = {"max_new_tokens": length, "do_sample": False, "pad_token_id": 0}
        out = reader.model.generate(start, attention_mask=torch.ones_like(start), **likeliest)
        found.append([int(i) for i in out[0]])
    return found


def describe_points(reading: Reading, tokenizer: Any) -> list[TextPoint]:
    """The points of a reading of one text, in order, in words and numbers.

    >>> from tokenspace.curvature import untrained_reader
    >>> reader = untrained_reader(["the cat sat"])
    >>> reading = read(reader, encode(reader, ["the cat sat"], bos=True))
    >>> [(point.after, point.next) for point in describe_points(reading, reader.tokenizer)]
    [('<s>', 'the'), ('the', 'cat'), ('cat', 'sat'), ('sat', None)]
    """
    (ids,), points = reading.ids, reading.points
    a, b = normalize(points.v1, dim=-1), normalize(points.v2, dim=-1)
    across = dot(points.z, normalize(a - b, dim=-1))
    along = dot(points.z, normalize(a + b, dim=-1))
    at, q = frame(points), points.q
    columns = {
        "p1": points.p1,
        "p2": points.p2,
        "q": q,
        "entropy": points.entropy,
        "angle": 2 * (a - b).norm(dim=-1).atan2((a + b).norm(dim=-1)),
        "across": across,
        "along": along,
        "norm": curvature(points).norm(),
        "linear": q * at.D0 * across.hypot(along),
        "quadratic": (q * at.D) ** 2,
    }
    words = _words(tokenizer, ids)
    follows = [*words[1:], None]
    found = []
    for i, here in enumerate(points.kept.tolist()):  # of one text the number is the position
        first, second = (
            readable(tokenizer, int(top[i]), ids[: here + 1]) for top in (points.top1, points.top2)
        )
        numbers = {name: float(column[i]) for name, column in columns.items()}
        found.append(TextPoint(here, words[here], follows[here], first, second, **numbers))
    return found


def _words(tokenizer: Any, ids: Sequence[int]) -> list[str]:
    return [readable(tokenizer, token, ids[:k]) for k, token in enumerate(ids)]


def readable(tokenizer: Any, token: int, before: Sequence[int] = ()) -> str:
    """A token as people can read it: what can't be seen, or isn't a letter yet, by its name.

    `before` are the tokens that it follows: the last piece of a letter's bytes is shown as the
    letter.

    >>> from tokenspace.curvature import untrained_reader
    >>> readable(untrained_reader(["the cat"]).tokenizer, 0)
    '<s>'
    """
    word = str(tokenizer.decode([token]))
    for k in range(1, min(PIECES, len(before)) + 1):
        if "\N{REPLACEMENT CHARACTER}" in word:
            whole = str(tokenizer.decode([*before[-k:], token]))
            word = word if "\N{REPLACEMENT CHARACTER}" in whole else whole
    if not word or "\N{REPLACEMENT CHARACTER}" in word:
        return f"⟨{tokenizer.convert_ids_to_tokens(token)}⟩"
    if not word.strip(" "):
        return "␣" * len(word)
    return "".join(map(_visible, word))


def _visible(letter: str) -> str:
    if letter in SIGNS:
        return SIGNS[letter]
    hidden = letter != " " and unicodedata.category(letter)[0] in "CZ"
    return f"⟨U+{ord(letter):04X}⟩" if hidden else letter


def read_sentence(reader: Reader, text: str, *, more: int = 0) -> dict[str, Any]:
    """The points of one text, and of `more` likeliest tokens that the model adds.

    `points` holds a `TextPoint` after each token, as a dictionary, with one BOS in front where
    the model has one; `excluded` counts the points without a curvature by reason. Raises
    ParameterError as `check_text` does, and for a text longer than the model's window.

    >>> from tokenspace.curvature import untrained_reader
    >>> told = read_sentence(untrained_reader(["the cat sat"]), "the cat")
    >>> [(point["after"], point["next"]) for point in told["points"]][-2:]
    [('the', 'cat'), ('cat', None)]
    """
    check_text(text)
    ids = encode(reader, [text], bos=reader.tokenizer.bos_token_id is not None)
    window = getattr(reader.model.config, "max_position_embeddings", None)
    if window is not None and len(ids[0]) + more > window:
        raise ParameterError(
            f"{len(ids[0])} tokens and {more} more are beyond the model's window of {window}: "
            "shorten the text"
        )
    if more:
        ids = continue_greedily(reader, ids, more)
    reading = read(reader, ids)
    found = [asdict(point) for point in describe_points(reading, reader.tokenizer)]
    words = _words(reader.tokenizer, ids[0])
    return {"tokens": words, "points": found, "excluded": reading.points.excluded}
