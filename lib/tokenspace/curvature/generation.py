"""States, logits and the two candidates at every generation point of some texts."""

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
    `points.kept` numbers the points that have a curvature.
    """

    points: Points
    ids: list[list[int]]
    text: Int64[Tensor, " M"]
    position: Int64[Tensor, " M"]


def encode(reader: Reader, texts: Sequence[str], *, bos: bool) -> list[list[int]]:
    """Token ids with exactly one BOS in front, or with none, whatever the tokenizer's own habit.

    Raises ParameterError when a BOS is asked of a tokenizer that has none, or a text is empty.

    >>> encode(Reader(None, None, "none", True, 0.0), [], bos=False)
    []
    """
    found = []
    for text in texts:
        ids = list(reader.tokenizer(text, add_special_tokens=False)["input_ids"])
        mark = reader.tokenizer.bos_token_id
        if bos and mark is None:
            raise ParameterError("This tokenizer has no BOS token: take bos=False.")
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

    >>> from tokenspace.curvature import reader_of
    >>> from transformers import LlamaConfig, LlamaForCausalLM
    >>> sizes = dict(hidden_size=8, intermediate_size=8, num_attention_heads=2, vocab_size=9)
    >>> tiny = reader_of(LlamaForCausalLM(LlamaConfig(num_hidden_layers=1, **sizes)))
    >>> len(read(tiny, [[1, 2, 3], [4, 5]]).points)
    5
    """
    if not ids or not all(len(row) for row in ids):
        raise ParameterError(f"{len(ids)} texts, of which some have no tokens: nothing to read.")
    parts, device = [], reader.model.device
    for batch in _batches(ids, tokens):
        width = max(map(len, batch))
        padded = torch.tensor([[*row, *[0] * (width - len(row))] for row in batch], device=device)
        real = torch.arange(width)[None] < torch.tensor([len(row) for row in batch])[:, None]
        state, logits = run(reader.model, padded, real.to(device).long())
        real = real.to(state.device)
        parts.append(points_of(state[real], logits[real], reader.rows, centre=centre))
    text = torch.cat([torch.full((len(row),), i) for i, row in enumerate(ids)])
    position = torch.cat([torch.arange(len(row)) for row in ids])
    return Reading(join(parts), [list(row) for row in ids], text, position)


def _batches(ids: Sequence[Sequence[int]], tokens: int) -> Iterator[Sequence[Sequence[int]]]:
    """Consecutive texts whose padded size stays within `tokens`; one text at least."""
    start = 0
    while start < len(ids):
        end, width = start + 1, len(ids[start])
        while end < len(ids) and max(width, len(ids[end])) * (end + 1 - start) <= tokens:
            width, end = max(width, len(ids[end])), end + 1
        yield ids[start:end]
        start = end
