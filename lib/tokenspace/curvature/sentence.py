"""A text as a model reads it: at each token the two candidates to follow, their charge, ‖R‖."""

from typing import Any

from tokenspace.curvature.connection import curvature_norm
from tokenspace.curvature.generation import encode, read
from tokenspace.curvature.reader import Reader
from tokenspace.curvature.sensitivity import continue_greedily
from tokenspace.errors import ParameterError


def read_sentence(reader: Reader, text: str, *, more: int = 0) -> dict[str, Any]:
    """The generation points of one text, and of `more` likeliest tokens that the model adds.

    A point stands after each token: the likeliest token `first` with probability `p1`, the
    runner-up `second` with `p2`, the charge `q`, the `entropy` in nats, the curvature's `norm`,
    and `next`, what did follow (None at the end). `points` is what `generation.read` gives with
    one BOS where the model has one, `excluded` counts the points without a curvature by reason.
    Raises ParameterError for a blank text, or one longer than the model's window.

    >>> from tokenspace.curvature import untrained_reader
    >>> told = read_sentence(untrained_reader(["the cat sat"]), "the cat")
    >>> [(point["after"], point["next"]) for point in told["points"]][-2:]
    [('the', 'cat'), ('cat', None)]
    """
    if not text.strip():
        raise ParameterError("the text is blank: give a sentence, in quotes")
    ids = encode(reader, [text], bos=reader.tokenizer.bos_token_id is not None)
    window = getattr(reader.model.config, "max_position_embeddings", None)
    if window is not None and len(ids[0]) + more > window:
        raise ParameterError(
            f"{len(ids[0])} tokens and {more} more are beyond the model's window of {window}: "
            "shorten the text"
        )
    if more:
        ids = continue_greedily(reader, ids, more)
    reading, (tokens,) = read(reader, ids), ids
    points, words = reading.points, [reader.tokenizer.decode([token]) for token in ids[0]]
    norms = curvature_norm(points).tolist()
    found = []
    for i, at in enumerate(points.kept.tolist()):
        found.append(
            {
                "position": at,
                "after": words[at],
                "first": reader.tokenizer.decode([int(points.top1[i])]),
                "p1": float(points.p1[i]),
                "second": reader.tokenizer.decode([int(points.top2[i])]),
                "p2": float(points.p2[i]),
                "next": words[at + 1] if at + 1 < len(tokens) else None,
                "q": float(points.q[i]),
                "entropy": float(points.entropy[i]),
                "norm": norms[i],
            }
        )
    return {"tokens": words, "points": found, "excluded": points.excluded}
