"""Signatures of text by literal counting, scores on planted structure, what is refused."""

from collections import Counter

import pytest
import torch

from tokenspace import staircase as st
from tokenspace.errors import ParameterError
from tokenspace.staircase.text_signatures import attention_path_signature, n_gram_law


def random_tokens(n, V, seed=0):
    return torch.randint(V, (n,), generator=torch.Generator().manual_seed(seed))


def grams(tokens, n):
    """Every n-gram of the text and how often it stands there."""
    x = tokens.tolist()
    return Counter(tuple(x[i : i + n]) for i in range(len(x) - n + 1))


def test_n_grams_are_counted():
    x = random_tokens(300, 4)
    counts = st.n_gram_counts(x, 3, 4)
    assert int(counts.sum()) == 298
    assert all(counts[gram] == times for gram, times in grams(x, 3).items())


@pytest.mark.parametrize("order", [0, 1, 2])
def test_text_signatures_are_shares_of_the_n_grams_around_a_token(order):
    x = random_tokens(400, 3)
    found = st.text_signature(x, 3, order).reshape(3, *[3] * order, 3)  # x_t, furthest first, y
    seen = Counter(gram[-2] for gram in grams(x, order + 2).elements())
    for gram, times in grams(x, order + 2).items():
        *before, token, y = gram
        assert float(found[(token, *before, y)]) == pytest.approx(times / seen[token])


@pytest.mark.parametrize("order", [1, 2])
def test_an_innovation_is_what_the_furthest_token_adds(order):
    """P(ctx_k | x) [P(y | x, ctx_k) - P(y | x, ctx_{k-1})], each by its own literal count."""
    x = random_tokens(400, 3)
    found = st.innovation(x, 3, order).reshape(3, *[3] * order, 3)
    whole = grams(x, order + 2)
    for *context, token, y in torch.cartesian_prod(*[torch.arange(3)] * (order + 2)).tolist():

        def times(*gram, near=0):
            """How often these tokens stand where the whole n-gram has them, from `near` on."""
            return sum(c for g, c in whole.items() if g[near : near + len(gram)] == gram)

        around = times(*context, token)
        law = times(*context, token, y) / around
        near = context[1:]
        shorter = times(*near, token, y, near=1) / times(*near, token, near=1)
        expected = around / times(token, near=order) * (law - shorter)
        assert float(found[(token, *context, y)]) == pytest.approx(expected, abs=1e-12)


def test_n_gram_laws_are_counts_with_pseudo_counts_of_the_law_below():
    x = random_tokens(60, 3)
    below = torch.full((3,), 1 / 3).double()
    for n in (1, 2, 3):
        law = n_gram_law(x, n, 3).reshape([3] * n)
        counts, context = grams(x, n), Counter(g[:-1] for g in grams(x, n).elements())
        for *before, y in torch.cartesian_prod(*[torch.arange(3)] * n).reshape(-1, n).tolist():
            rest = float(below[(*before[1:], y)])
            expected = (counts[*before, y] + 0.5 * rest) / (context[tuple(before)] + 0.5)
            assert float(law[(*before, y)]) == pytest.approx(expected)
        below = law
    assert float(n_gram_law(torch.tensor([0, 1, 0, 1]), 3, 3).min()) > 0


def test_followers_are_rows_of_the_next_token_signature():
    tokens = random_tokens(2000, 12)
    ids = torch.tensor([7, 2, 11])
    whole = st.text_signature(tokens, 12, 0)[ids]
    assert torch.allclose(st.followers(tokens, ids), whole[:, whole.sum(0) > 0])
    common = whole[:, :5] / whole[:, :5].sum(1, keepdim=True)
    assert torch.allclose(st.followers(tokens, ids, below=5), common)
    assert st.most_frequent(torch.tensor([2, 0, 0, 1, 1, 2]), 2, least=1).tolist() == [0, 1]


def test_bag_signature_by_hand():
    windows = random_tokens(60, 3).reshape(12, 5)
    literal, times = torch.zeros(3, 3, 3).double(), torch.zeros(3).double()
    for row in windows.tolist():
        for s in range(4):
            times[row[s]] += 1
            for beta in set(row[:s]):
                literal[row[s], row[s + 1], beta] += 1
    assert torch.allclose(st.prefix_bag_signature(windows, 3), literal / times[:, None, None])


def test_attention_path_by_hand():
    tokens, labels = random_tokens(40, 3).reshape(8, 5), random_tokens(40, 3, 1).reshape(8, 5)
    one = attention_path_signature(torch.ones(8, 5, 5), tokens, labels, 3)
    assert torch.allclose(one.sum(1), torch.ones(3).double())
    attention = torch.rand(8, 5, 5, generator=torch.Generator().manual_seed(2))
    got = attention_path_signature(attention, tokens, labels, 3)
    literal, mass = torch.zeros(3, 3).double(), torch.zeros(3).double()
    for b in range(8):
        for s in range(5):
            for i in range(s + 1):
                mass[tokens[b, i]] += 1 / (s + 1)
                literal[tokens[b, i], labels[b, s]] += attention[b, s, i].double() / (s + 1)
    assert torch.allclose(got, literal / mass[:, None])


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: st.n_gram_counts(torch.tensor([0]), 2, 2), "at least n tokens"),
        (lambda: st.n_gram_counts(torch.tensor([0, 5]), 2, 2), "below the vocabulary"),
        (lambda: st.n_gram_counts(torch.tensor([0, 5] * 9), 9, 200), "more than"),
        (lambda: st.n_gram_counts(torch.tensor([], dtype=torch.int64), 1, 2), r"0 tokens \(none\)"),
        (lambda: st.text_signature(torch.tensor([0, 1]), 2, -1), "order = -1: orders begin at 0"),
        (lambda: st.text_signature(torch.tensor([0, 1]), 2, 1), "3-grams of 2 tokens"),
        (lambda: st.innovation(torch.tensor([0, 1, 1]), 2, 0), "k >= 1"),
        (lambda: st.prefix_bag_signature(torch.zeros(3, 1, dtype=torch.int64), 2), "windows of 1"),
    ],
)
def test_what_cannot_be_is_refused(make, says):
    with pytest.raises(ParameterError, match=says):
        make()
