"""Texts as tokens: characters, byte pairs, a model's own; windows and clones of a text.

Ours: Markov clones, which stand beside every claim on text.
"""

from collections import Counter
from pathlib import Path

import numpy as np
import torch
from jaxtyping import Int64
from tokenizers import Regex, Tokenizer, models, pre_tokenizers, trainers
from torch import Tensor

from tokenspace.errors import ParameterError
from tokenspace.sources import load_tokenizer

Tokens = Int64[Tensor, " n"]  # of a text
Texts = Int64[Tensor, "*batch n"]
REST = "\ufffd"  # stands for the characters too rare to have a token


def characters(text: str, size: int = 32) -> tuple[Tokens, list[str]]:
    """Tokens of the lower-cased text and their symbols: the `size` - 1 commonest, then "?".

    White space is one blank. Raises `ParameterError` for more symbols than the text has.

    >>> tokens, symbols = characters("Abba  cab", 4)
    >>> tokens.tolist(), symbols
    ([0, 1, 1, 0, 2, 3, 0, 1], ['a', 'b', ' ', '?'])
    """
    squeezed = " ".join(text.lower().split())
    common = sorted(Counter(squeezed).items(), key=lambda item: -item[1])
    if not 2 <= size <= len(common) + 1:
        raise ParameterError(
            f"vocabulary of {size}: this text has {len(common)} different characters, so "
            f"2 to {len(common) + 1}."
        )
    symbols = [symbol for symbol, _ in common[: size - 1]]
    place = {symbol: i for i, symbol in enumerate(symbols)}
    return torch.tensor([place.get(s, size - 1) for s in squeezed]), [*symbols, "?"]


def bpe(text: str, size: int = 200) -> tuple[Tokens, list[str]]:
    """Byte pairs trained on the lower-cased text, as `characters`: tokens and `size` symbols.

    White space is one blank, which begins a word's first token. At most half of the symbols are
    the text's alphabet, its commonest characters; the last stands for all others. Symbols are in
    the order of their counts. Raises `ParameterError` for more symbols than the text's pairs
    support, each seen twice or more.

    >>> tokens, symbols = bpe("to be, or not to be, or not", 16)
    >>> "".join(symbols[t] for t in tokens)
    'to be, or not to be, or not'
    """
    squeezed = " ".join(text.lower().split())
    if size < 4:
        raise ParameterError(f"vocabulary of {size}: byte pairs take 4 or more.")
    tokenizer = Tokenizer(models.BPE(unk_token=REST))
    tokenizer.pre_tokenizer = pre_tokenizers.Split(Regex(" ?[^ ]+"), "isolated")
    trainer = trainers.BpeTrainer(
        vocab_size=size, min_frequency=2, limit_alphabet=size // 2, special_tokens=[REST],
        show_progress=False,
    )  # fmt: skip
    tokenizer.train_from_iterator([squeezed], trainer)
    found = tokenizer.get_vocab_size()
    if found < size:
        raise ParameterError(
            f"vocabulary of {size}: the {len(squeezed):,} characters of this text support "
            f"{found}, pairs seen once not merged. Give a longer text or a smaller vocabulary."
        )
    ids = torch.tensor(tokenizer.encode(squeezed).ids)
    counts = torch.bincount(ids, minlength=size)
    counts[tokenizer.token_to_id(REST)] = -1
    order = counts.argsort(descending=True, stable=True)
    symbols = [str(tokenizer.id_to_token(i)) for i in order.tolist()]
    return order.argsort()[ids], symbols


def model_tokens(model: str | Path, text: str) -> Tokens:
    """The text in a published model's own tokens; `model` is as in `load_tokenizer`.

    What looks like a special token in the text is read as text. Raises `SourceError` when the model
    has no tokenizer.

    >>> model_tokens("minilm", "to be").shape
    torch.Size([2])
    """
    tokenizer = load_tokenizer(model)
    tokenizer.encode_special_tokens = True
    tokenizer.no_padding()
    tokenizer.no_truncation()
    encoded = tokenizer.encode_batch_fast([text], add_special_tokens=False)[0]
    return torch.tensor(encoded.ids, dtype=torch.int64)


def clone(tokens: Tokens, n: int, seed: int = 0) -> Tokens:
    """A text of the corpus's own n-gram Markov chain: n = 2 bigrams, 3 trigrams. Ours.

    Each token is drawn as what followed a random occurrence of the last n - 1 (the corpus taken
    as a circle). A claim about order k must fail on the clone of order k - 1, n = k + 1.

    >>> clone(torch.tensor([0, 1, 2]), 2).diff().remainder(3).tolist()
    [1, 1]
    """
    if n < 2 or len(tokens) < n:
        raise ParameterError(
            f"n = {n}, {len(tokens)} tokens: a clone keeps n-grams with n >= 2 of a text that long."
        )
    V = int(tokens.max()) + 1
    codes = n_gram_codes(torch.cat([tokens, tokens[: n - 1]]), n, V).tolist()
    following: dict[int, list[int]] = {}  # by the code of the first n - 1 tokens
    for code in codes:
        following.setdefault(code // V, []).append(code % V)
    rng = np.random.default_rng(seed)
    draws = rng.random(len(tokens)).tolist()
    state = codes[int(rng.integers(len(tokens)))] // V
    out = []
    for u in draws:
        choices = following[state]
        out.append(choices[int(u * len(choices))])
        state = (state * V + out[-1]) % V ** (n - 1)
    return torch.tensor(out)


def n_gram_codes(tokens: Texts, n: int, V: int) -> Int64[Tensor, "*batch count"]:
    """Each n-gram as one number in base V, its first token the highest digit.

    >>> n_gram_codes(torch.tensor([1, 0, 2]), 2, 10).tolist()
    [10, 2]
    """
    count = tokens.shape[-1] - n + 1
    code = tokens.new_zeros(*tokens.shape[:-1], count)
    for j in range(n):
        code = code * V + tokens[..., j : j + count]
    return code


def even_windows(tokens: Texts, width: int, count: int) -> Int64[Tensor, "*batch count width"]:
    """`count` windows of `width` tokens, the first at the text's beginning, the last at its end."""
    first = torch.linspace(0, tokens.shape[-1] - width, count).long()
    return tokens[..., first[:, None] + torch.arange(width)]


def refuse_text(tokens: Texts, length: int, V: int) -> None:
    """Raises `ParameterError` for texts shorter than a window, or with tokens beyond V."""
    n = tokens.shape[-1]
    low, high = (int(tokens.min()), int(tokens.max())) if n else (0, 0)
    if n < length + 2 or low < 0 or high >= V:
        raise ParameterError(
            f"texts of {n:,} tokens, {low} to {high}: needs at least {length + 2} tokens for "
            f"windows of {length}, all below the vocabulary of {V}."
        )
