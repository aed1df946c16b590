"""Signatures of tokens in text, counted.

arXiv:2608.30315, section 5: next-token, prefix-bag and attention-path signatures. Ours:
position-specific orders with their innovations.
"""

import torch
from jaxtyping import Float, Float64, Int64
from torch import Tensor

from tokenspace.errors import ParameterError
from tokenspace.staircase.signatures import LARGEST, place_of
from tokenspace.staircase.text import Tokens, n_gram_codes

Windows = Int64[Tensor, "B L"]


def n_gram_counts(tokens: Tokens, n: int, V: int) -> Float64[Tensor, "*V"]:
    """How often each n-gram stands in the text; axes in reading order, the last token last.

    >>> n_gram_counts(torch.tensor([0, 1, 0, 1]), 2, 2).tolist()
    [[0.0, 2.0], [1.0, 0.0]]
    """
    if n < 1 or len(tokens) < n or int(tokens.max()) >= V or int(tokens.min()) < 0:
        reach = f"{int(tokens.min())} to {int(tokens.max())}" if len(tokens) else "none"
        raise ParameterError(
            f"{n}-grams of {len(tokens):,} tokens ({reach}) with a vocabulary of {V}: needs "
            f"n >= 1, at least n tokens, all below the vocabulary."
        )
    if V**n > LARGEST:
        raise ParameterError(f"{n}-grams of {V} tokens: {V**n:,} counts, more than {LARGEST:,}.")
    code = n_gram_codes(tokens, n, V)
    return torch.bincount(code, minlength=V**n).double().reshape([V] * n)  # (V, ..., V)


def n_gram_law(tokens: Tokens, n: int, V: int) -> Float64[Tensor, "contexts V"]:
    """P(y | last n - 1 tokens): counts plus half a pseudo-count spread as the (n-1)-gram law.

    So no probability is 0; below the unigram stands the uniform law.

    >>> n_gram_law(torch.tensor([0, 1, 0, 1]), 1, 2).tolist()
    [[0.5, 0.5]]
    """
    law = torch.full((1, V), 1 / V, dtype=torch.float64)
    for k in range(1, n + 1):
        counts = n_gram_counts(tokens, k, V).reshape(-1, V)
        shorter = law.repeat(len(counts) // len(law), 1)
        law = (counts + 0.5 * shorter) / (counts.sum(1, keepdim=True) + 0.5)
    return law


def text_signature(tokens: Tokens, V: int, order: int) -> Float64[Tensor, "V features"]:
    """P(y, x_{t-1}, ..., x_{t-order} | x_t): order 0 is the next-token signature. Unseen: zeros.

    >>> text_signature(torch.tensor([0, 1, 0, 1, 1]), 2, 0).tolist()
    [[0.0, 1.0], [0.5, 0.5]]
    """
    if order < 0:
        raise ParameterError(f"order = {order}: orders begin at 0, the next-token signature.")
    joint = n_gram_counts(tokens, order + 2, V).movedim(-2, 0).flatten(1)  # (V, V^(order + 1))
    return joint / joint.sum(1, keepdim=True).clamp_min(1)


def innovation(tokens: Tokens, V: int, order: int) -> Float64[Tensor, "V features"]:
    """P(ctx_k | x) [P(y | x, ctx_k) - P(y | x, ctx_{k-1})], k = `order`: its pure part. Ours.

    >>> innovation(torch.tensor([0, 1] * 9), 2, 1).abs().max().item() < 1e-6  # bigrams say all
    True
    """
    if order < 1:
        raise ParameterError(f"order = {order}: an innovation compares orders k and k - 1; k >= 1.")
    full = n_gram_counts(tokens, order + 2, V)  # axes: ctx_k furthest first, x, y
    near = full.sum(0)
    context = full.sum(-1, keepdim=True)
    law = full / context.clamp_min(1)
    shorter = near / near.sum(-1, keepdim=True).clamp_min(1)
    seen = context.movedim(-2, 0).flatten(1).sum(1, keepdim=True)  # (V, 1), times x
    part = (context * (law - shorter)).movedim(-2, 0).flatten(1)  # (V, V^(order + 1))
    return part / seen.clamp_min(1)


def most_frequent(tokens: Tokens, count: int, least: int = 10) -> Int64[Tensor, " count"]:
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
    tokens: Tokens, ids: Int64[Tensor, " T"], below: int | None = None
) -> Float64[Tensor, "T features"]:
    """φ^nt of `ids` alone: P(x_{s+1} = ν | x_s = α), a column a ν that ever follows one of them.

    With `below`, given that ν < `below`. Zeros for an α that nothing follows.

    >>> followers(torch.tensor([3, 1, 3, 1, 3, 2]), torch.tensor([3])).tolist()  # 1, 1, 2
    [[0.666..., 0.333...]]
    """
    place = place_of(ids, int(torch.cat([tokens, ids]).max()) + 1)
    at, after = place[tokens[:-1]], tokens[1:]
    kept = at >= 0 if below is None else (at >= 0) & (after < below)
    columns, column = after[kept].unique(return_inverse=True)
    size = len(ids), len(columns)
    counts = torch.bincount(at[kept] * size[1] + column, minlength=size[0] * size[1])
    shares = counts.double().reshape(size)  # (T, features)
    return shares / shares.sum(1, keepdim=True).clamp_min(1)


def prefix_bag_signature(windows: Windows, V: int) -> Float64[Tensor, "V V V"]:
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
    phi = torch.zeros(V * V, V, dtype=torch.float64)  # a row for each pair x_s, x_{s+1}
    times = torch.zeros(V, dtype=torch.float64)
    bag = torch.zeros(len(windows), V, dtype=torch.float64)
    for s in range(windows.shape[1] - 1):
        x, y = windows[:, s], windows[:, s + 1]
        phi.index_add_(0, x * V + y, bag)
        times += torch.bincount(x, minlength=V)
        bag.scatter_(1, x[:, None], 1.0)
    return phi.reshape(V, V, V) / times.clamp_min(1)[:, None, None]


def attention_path_signature(
    attention: Float[Tensor, "B L L"], tokens: Windows, labels: Windows, V: int
) -> Float64[Tensor, "V V"]:
    """φ^attn_α(ν) = E[A_{s,I} 1{x_{s+1} = ν} | x_I = α], I uniform in 1..s; A the heads' mean.

    `labels` is x_{s+1}. For α at I the mean is over every s >= I and its own 1/s.

    >>> A = torch.tensor([[[1.0, 0.0], [0.25, 0.75]]])
    >>> attention_path_signature(A, torch.tensor([[0, 1]]), torch.tensor([[1, 0]]), 2)[1].tolist()
    [0.75, 0.0]
    """
    B, L = tokens.shape
    prior = torch.ones(L, L).tril().double() / torch.arange(1, L + 1)[:, None]  # (s, I), P(I | s)
    x = tokens[:, None, :].expand(B, L, L)  # of I, at (b, s, I)
    y = labels[:, :, None].expand(B, L, L)  # of s
    weight = prior.expand(B, L, L)
    phi = torch.zeros(V * V, dtype=torch.float64)
    phi.index_add_(0, (x * V + y).flatten(), (weight * attention.double()).flatten())
    mass = torch.zeros(V, dtype=torch.float64).index_add_(0, x.flatten(), weight.flatten())
    return phi.reshape(V, V) / mass.clamp_min(1e-300)[:, None]
