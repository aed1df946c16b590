"""Tokens of a text: byte pairs trained on it, or a published model's own; and what follows them."""

from pathlib import Path

import torch
from jaxtyping import Float64, Int64
from tokenizers import Regex, Tokenizer, models, pre_tokenizers, trainers
from torch import Tensor

from tokenspace.errors import ParameterError
from tokenspace.sources import load_tokenizer

REST = "\ufffd"  # stands for the characters too rare to have a token


def bpe(text: str, size: int = 200) -> tuple[Int64[Tensor, " n"], list[str]]:
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
        vocab_size=size,
        min_frequency=2,
        limit_alphabet=size // 2,
        special_tokens=[REST],
        show_progress=False,
    )
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


def model_tokens(
    model: str | Path, text: str, revision: str | None = None
) -> tuple[Int64[Tensor, " n"], list[str]]:
    """The text in a published model's own tokens, and every token's string by id.

    `model` is as in `load_tokenizer`. What looks like a special token in the text is read as text.
    Raises `SourceError` when the model has no tokenizer.

    >>> tokens, symbols = model_tokens("minilm", "to be")
    >>> [symbols[t] for t in tokens]
    ['to', 'be']
    """
    tokenizer = load_tokenizer(model, revision=revision)
    tokenizer.encode_special_tokens = True
    tokenizer.no_padding()
    tokenizer.no_truncation()
    ids = tokenizer.encode_batch_fast([text], add_special_tokens=False)[0].ids
    vocabulary = tokenizer.get_vocab(with_added_tokens=True)
    symbols = [""] * (max(vocabulary.values()) + 1)
    for symbol, i in vocabulary.items():
        symbols[i] = symbol
    return torch.tensor(ids, dtype=torch.int64), symbols


def most_frequent(
    tokens: Int64[Tensor, " n"], count: int = 200, least: int = 10
) -> Int64[Tensor, " count"]:
    """The paper's eligible tokens, taken by us as those seen `least` times before another token.

    Ties go to the smaller id. Raises `ParameterError` when fewer than `count` are eligible.

    >>> most_frequent(torch.tensor([3, 1, 3, 1, 3, 2]), 2, least=2).tolist()
    [3, 1]
    """
    seen = torch.bincount(tokens[:-1])
    eligible = int((seen >= least).sum())
    if not 1 <= count <= eligible:
        raise ParameterError(
            f"{count} tokens of {len(tokens):,}: {eligible} are seen {least} times or more. "
            f"Give a longer text, or a count from 1 to {eligible}."
        )
    return seen.argsort(descending=True, stable=True)[:count]


def followers(
    tokens: Int64[Tensor, " n"], ids: Int64[Tensor, " T"]
) -> Float64[Tensor, "T features"]:
    """φ^nt of `ids` alone: P(x_{s+1} = ν | x_s = α), a column a ν that ever follows one of them.

    >>> followers(torch.tensor([3, 1, 3, 1, 3, 2]), torch.tensor([3])).tolist()  # 1, 1, 2
    [[0.666..., 0.333...]]
    """
    place = torch.full((int(torch.cat([tokens, ids]).max()) + 1,), -1)
    place[ids] = torch.arange(len(ids))
    at = place[tokens[:-1]]
    columns, after = tokens[1:][at >= 0].unique(return_inverse=True)
    counts = torch.zeros(len(ids) * len(columns), dtype=torch.float64)
    counts += torch.bincount(at[at >= 0] * len(columns) + after, minlength=len(counts))
    shares = counts.reshape(len(ids), -1)
    return shares / shares.sum(1, keepdim=True).clamp_min(1)
