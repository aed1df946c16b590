"""Signatures of tokens in text, and the Markov clones that stand beside every claim on text.

arXiv:2608.30315, section 5: next-token, prefix-bag and attention-path signatures. Ours: position-
specific orders with their innovations, and clones.
"""

from collections import Counter

import numpy as np
import torch
from jaxtyping import Float, Float64, Int64
from torch import Tensor

from tokenspace.errors import ParameterError

LARGEST = 2**27  # entries of a table of counts, 1 GiB


def characters(text: str, size: int = 32) -> tuple[Int64[Tensor, " n"], list[str]]:
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


def n_gram_counts(tokens: Int64[Tensor, " n"], n: int, V: int) -> Float64[Tensor, "*V"]:
    """How often each n-gram stands in the text; axes in reading order, the last token last.

    >>> n_gram_counts(torch.tensor([0, 1, 0, 1]), 2, 2).tolist()
    [[0.0, 2.0], [1.0, 0.0]]
    """
    _check_text(tokens, n, V)
    if V**n > LARGEST:
        raise ParameterError(f"{n}-grams of {V} tokens: {V**n:,} counts, more than {LARGEST:,}.")
    code = _codes(tokens, n, V)
    return torch.bincount(code, minlength=V**n).double().reshape([V] * n)


def text_signature(
    tokens: Int64[Tensor, " n"], V: int, order: int
) -> Float64[Tensor, "V features"]:
    """P(y, x_{t-1}, ..., x_{t-order} | x_t): order 0 is the next-token signature. Unseen: zeros.

    >>> text_signature(torch.tensor([0, 1, 0, 1, 1]), 2, 0).tolist()
    [[0.0, 1.0], [0.5, 0.5]]
    """
    if order < 0:
        raise ParameterError(f"order = {order}: orders begin at 0, the next-token signature.")
    joint = n_gram_counts(tokens, order + 2, V).movedim(-2, 0).flatten(1)  # x_t first
    return joint / joint.sum(1, keepdim=True).clamp_min(1)


def next_token_signature(tokens: Int64[Tensor, " n"], V: int) -> Float64[Tensor, "V V"]:
    """φ^nt_α(ν) = P(x_{s+1} = ν | x_s = α).

    >>> next_token_signature(torch.tensor([0, 1, 0, 1, 1]), 2).tolist()
    [[0.0, 1.0], [0.5, 0.5]]
    """
    return text_signature(tokens, V, 0)


def innovation(tokens: Int64[Tensor, " n"], V: int, order: int) -> Float64[Tensor, "V features"]:
    """P(ctx_k | x) [P(y | x, ctx_k) - P(y | x, ctx_{k-1})], k = `order` >= 1: its pure part. Ours.

    >>> innovation(torch.tensor([0, 1] * 9), 2, 1).abs().max().item() < 1e-6  # bigrams say all
    True
    """
    if order < 1:
        raise ParameterError(f"order = {order}: an innovation compares orders k and k - 1; k >= 1.")
    full = n_gram_counts(tokens, order + 2, V)  # ctx_k furthest first, x, y
    near = full.sum(0)
    law = full / full.sum(-1, keepdim=True).clamp_min(1)
    shorter = near / near.sum(-1, keepdim=True).clamp_min(1)
    context = full.sum(-1, keepdim=True)
    seen = context.movedim(-2, 0).flatten(1).sum(1, keepdim=True)
    part = (context * (law - shorter)).movedim(-2, 0).flatten(1)
    return part / seen.clamp_min(1)


def prefix_bag_signature(windows: Int64[Tensor, "B L"], V: int) -> Float64[Tensor, "V V V"]:
    """φ(α, ν, β) = P(x_{s+1} = ν, β anywhere in X_{<s} | x_s = α): presence only, s < L.

    >>> phi = prefix_bag_signature(torch.tensor([[0, 0, 1, 2]]), 3)
    >>> phi[1, 2].tolist(), phi[0].sum(0).tolist()
    ([1.0, 0.0, 0.0], [0.5, 0.0, 0.0])
    """
    if windows.shape[1] < 2 or V**3 > LARGEST:
        raise ParameterError(
            f"windows of {windows.shape[1]} tokens, vocabulary {V}: needs windows of 2 or more and "
            f"at most {LARGEST:,} entries, not {V**3:,}."
        )
    phi = torch.zeros(V * V, V, dtype=torch.float64)
    times = torch.zeros(V, dtype=torch.float64)
    bag = torch.zeros(len(windows), V, dtype=torch.float64)
    for s in range(windows.shape[1] - 1):
        x, y = windows[:, s], windows[:, s + 1]
        phi.index_add_(0, x * V + y, bag)
        times += torch.bincount(x, minlength=V)
        bag.scatter_(1, x[:, None], 1.0)
    return phi.reshape(V, V, V) / times.clamp_min(1)[:, None, None]


def attention_path_signature(
    attention: Float[Tensor, "B L L"],
    tokens: Int64[Tensor, "B L"],
    labels: Int64[Tensor, "B L"],
    V: int,
) -> Float64[Tensor, "V V"]:
    """φ^attn_α(ν) = E[A_{s,I} 1{x_{s+1} = ν} | x_I = α], I uniform in 1..s; A the heads' mean.

    `labels` is x_{s+1}. For α at I the mean is over every s >= I and its own 1/s.

    >>> A = torch.tensor([[[1.0, 0.0], [0.25, 0.75]]])
    >>> attention_path_signature(A, torch.tensor([[0, 1]]), torch.tensor([[1, 0]]), 2)[1].tolist()
    [0.75, 0.0]
    """
    B, L = tokens.shape
    prior = torch.ones(L, L).tril().double() / torch.arange(1, L + 1)[:, None]  # P(I | s)
    x = tokens[:, None, :].expand(B, L, L)
    y = labels[:, :, None].expand(B, L, L)
    weight = prior.expand(B, L, L)
    phi = torch.zeros(V * V, dtype=torch.float64)
    phi.index_add_(0, (x * V + y).flatten(), (weight * attention.double()).flatten())
    mass = torch.zeros(V, dtype=torch.float64).index_add_(0, x.flatten(), weight.flatten())
    return phi.reshape(V, V) / mass.clamp_min(1e-300)[:, None]


def clone(
    tokens: Int64[Tensor, " n"], n: int, length: int | None = None, seed: int = 0
) -> Int64[Tensor, " length"]:
    """A text of the corpus's own n-gram Markov chain: n = 2 bigrams, 3 trigrams. Ours.

    Each token is drawn as what followed a random occurrence of the last n - 1 (the corpus taken
    as a circle). A claim about order k must fail on the clone of order k - 1, n = k + 1.

    >>> clone(torch.tensor([0, 1, 2]), 2, 5).diff().remainder(3).tolist()
    [1, 1, 1, 1]
    """
    if n < 2 or len(tokens) < n:
        raise ParameterError(
            f"n = {n}, {len(tokens)} tokens: a clone keeps n-grams with n >= 2 of a text that long."
        )
    V = int(tokens.max()) + 1
    code = _codes(torch.cat([tokens, tokens[: n - 1]]), n, V)
    context = code // V
    by_context = torch.argsort(context, stable=True)
    following = (code[by_context] % V).tolist()
    states, times = context.unique(return_counts=True)
    first = (times.cumsum(0) - times).tolist()
    many, place = times.tolist(), {s: i for i, s in enumerate(states.tolist())}
    length = len(tokens) if length is None else length
    rng = np.random.default_rng(seed)
    draws = rng.random(length).tolist()
    state = int(context[int(rng.integers(len(tokens)))])
    out, wrap = [], V ** (n - 1)
    for u in draws:
        i = place[state]
        token = following[first[i] + int(u * many[i])]
        out.append(token)
        state = (state * V + token) % wrap
    return torch.tensor(out)


def _check_text(tokens: Tensor, n: int, V: int) -> None:
    if n < 1 or len(tokens) < n or int(tokens.max()) >= V or int(tokens.min()) < 0:
        reach = f"{int(tokens.min())} to {int(tokens.max())}" if len(tokens) else "none"
        raise ParameterError(
            f"{n}-grams of {len(tokens):,} tokens ({reach}) with a vocabulary of {V}: needs "
            f"n >= 1, at least n tokens, all below the vocabulary."
        )


def _codes(tokens: Tensor, n: int, V: int) -> Tensor:
    """Each n-gram as one number, its first token the highest digit."""
    code = torch.zeros(len(tokens) - n + 1, dtype=torch.int64)
    for j in range(n):
        code = code * V + tokens[j : len(tokens) - n + 1 + j]
    return code
