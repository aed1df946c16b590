"""Generation points: a state and its two candidates at every position of some texts."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Int64
from torch import Tensor

from tokenspace.curvature.points import Points, join, points_of
from tokenspace.curvature.reader import Reader, run
from tokenspace.errors import ParameterError


@dataclass(frozen=True)
class Reading:
    """The points of some texts: of point i among all read, `text[i]` and `position[i]`.

    `ids` are the token ids as the model saw them, so that a BOS can be seen or missed.
    `points.kept` numbers the points that have a curvature. All tensors lie on one device.
    """

    points: Points
    ids: list[list[int]]
    text: Int64[Tensor, " M"]
    position: Int64[Tensor, " M"]


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


def read(
    reader: Reader, ids: Sequence[Sequence[int]], *, centre: bool = False, tokens: int = 128
) -> Reading:
    """The generation points of texts in token ids: one a position, in the order of the texts.

    `tokens` bounds how many are run at once (more for one longer text): their logits are
    tokens × V numbers. `centre` takes the mean row off the candidates' rows.

    >>> from tokenspace.curvature import untrained_reader
    >>> len(read(untrained_reader(["the cat sat"]), [[1, 2, 3], [2, 1]]).points)
    5
    """
    if not ids or not all(len(row) for row in ids):
        raise ParameterError(f"{len(ids)} texts, of which some have no tokens: nothing to read.")
    parts, device = [], reader.model.device
    for batch in _batches(ids, tokens):
        width = max(map(len, batch))
        padded = torch.tensor([[*row, *[0] * (width - len(row))] for row in batch], device=device)
        real = torch.arange(width)[None] < torch.tensor([len(row) for row in batch])[:, None]
        state, logits = run(reader.model, padded, real.to(device).long())  # (N, L, n), (N, L, V)
        real = real.to(state.device)
        # a few at a time, since fp64 copies of the logits are made: of one long text there are many
        for some, theirs in zip(state[real].split(tokens), logits[real].split(tokens), strict=True):
            parts.append(points_of(some, theirs, reader.rows, centre=centre))
    points = join(parts)
    text = torch.cat([torch.full((len(row),), i) for i, row in enumerate(ids)])
    position = torch.cat([torch.arange(len(row)) for row in ids])
    there = points.kept.device
    return Reading(points, [list(row) for row in ids], text.to(there), position.to(there))


def _batches(ids: Sequence[Sequence[int]], tokens: int) -> Iterator[Sequence[Sequence[int]]]:
    """Consecutive texts whose padded size stays within `tokens`; one text at least."""
    start = 0
    while start < len(ids):
        end, width = start + 1, len(ids[start])
        while end < len(ids) and max(width, len(ids[end])) * (end + 1 - start) <= tokens:
            width, end = max(width, len(ids[end])), end + 1
        yield ids[start:end]
        start = end


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
        out = reader.model.generate(
            start,
            attention_mask=torch.ones_like(start),
            max_new_tokens=length,
            do_sample=False,
            pad_token_id=0,
        )
        found.append([int(i) for i in out[0]])
    return found
