"""What the next-token signature of a text groups: words of one kind, numbers, days of the week.

arXiv:2608.30315, section 6, draws this; the scores, read beside a shuffle of labels, are ours.
"""

from collections import Counter
from collections.abc import Sequence
from itertools import pairwise

import numpy as np
import torch
from jaxtyping import Float, Float64
from torch import Tensor

from tokenspace.errors import ParameterError
from tokenspace.staircase.alignment import cosine_gram, pairs


def words_of(text: str) -> list[str]:
    """The lower-cased words of a text in reading order, without the marks around them.

    >>> words_of("Two, or 'three' -- O!")
    ['two', 'or', 'three', 'o']
    """
    found = (w.strip(".,;:!?\"'()[]-_") for w in text.lower().split())
    return [w for w in found if w]


def nearest_category(rows: Float[Tensor, "W d"], categories: Sequence[str]) -> float:
    """Share of words whose nearest other word, by centred cosine, is of their own category.

    >>> nearest_category(torch.tensor([[0.0, 1], [0, 2], [3, 0], [4, 0]]), list("aabb"))
    1.0
    """
    if len(rows) != len(categories):
        raise ParameterError(f"{len(rows)} rows and {len(categories)} categories: one a row.")
    gram = cosine_gram(rows, centred=True).fill_diagonal_(-torch.inf)
    nearest = gram.argmax(1).tolist()
    return sum(categories[i] == categories[j] for i, j in enumerate(nearest)) / len(rows)


def order_score(
    rows: Float[Tensor, "W d"], values: Sequence[int | float], cycle: bool = False
) -> float:
    """Pearson over pairs of centred cosine and -|log ratio| of values; a cycle: cos 2π(i-j)/W.

    >>> circle = torch.arange(7) * 2 * torch.pi / 7
    >>> round(order_score(torch.stack([circle.cos(), circle.sin()], 1), range(7), cycle=True), 6)
    1.0
    """
    v = torch.as_tensor(list(values), dtype=torch.float64)
    if len(v) != len(rows) or (not cycle and bool((v <= 0).any())):
        raise ParameterError(f"values {list(values)} for {len(rows)} rows: one a row, positive.")
    if cycle:
        near = torch.cos(2 * torch.pi * (v[:, None] - v) / len(v))
    else:
        near = -(v.log()[:, None] - v.log()).abs()
    x = torch.stack([pairs(cosine_gram(rows, centred=True)), pairs(near)])
    return float(torch.corrcoef(x)[0, 1])


def word_signature(
    text: str, words: Sequence[str], following: int = 2000
) -> Float64[Tensor, "W following"]:
    """φ^nt of chosen words over the commonest next words, lower-cased, the rest left out.

    Raises `ParameterError` naming words that the text never continues.

    >>> word_signature("the cat sat. the dog sat.", ["cat", "dog"], 2).sum(1).tolist()
    [1.0, 1.0]
    """
    found = words_of(text)
    columns = {w: i for i, (w, _) in enumerate(Counter(found).most_common(following))}
    rows = {w: i for i, w in enumerate(words)}
    counts = np.zeros((len(words), following))
    for word, after in pairwise(found):
        if word in rows and after in columns:
            counts[rows[word], columns[after]] += 1
    total = counts.sum(1, keepdims=True)
    missing = [w for w, t in zip(words, total[:, 0], strict=True) if t == 0]
    if missing:
        raise ParameterError(f"words {missing} are never followed by a common word; drop them.")
    return torch.from_numpy(counts / total)
