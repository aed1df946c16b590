"""Text: signatures by literal counting, clones that keep n-grams and no more, texts refused."""

import gzip

import pytest
import torch

from tokenspace.errors import ParameterError, SourceError
from tokenspace.sources import load_corpus
from tokenspace.staircase import (
    attention_path_signature,
    characters,
    clone,
    innovation,
    n_gram_counts,
    nearest_category,
    order_score,
    prefix_bag_signature,
    text_signature,
    word_signature,
    words_of,
)


@pytest.fixture(scope="module")
def letters():
    return characters(load_corpus().text[:200_000], 30)[0]


def random_tokens(n, V, seed=0):
    return torch.randint(V, (n,), generator=torch.Generator().manual_seed(seed))


def test_the_packaged_text_is_whole():
    assert len(load_corpus().text) == 5_053_984


def test_characters_cover_the_text():
    text = load_corpus().text[:50_000]
    tokens, symbols = characters(text, 32)
    back = "".join(symbols[t] for t in tokens)
    squeezed = " ".join(text.lower().split())
    assert len(symbols) == 32
    assert len(back) == len(squeezed)
    assert all(a in (b, "?") for a, b in zip(back, squeezed, strict=True))


def test_n_grams_are_counted():
    x = random_tokens(300, 4)
    counts = n_gram_counts(x, 3, 4)
    for gram in ((0, 1, 2), (3, 3, 0)):
        literal = sum(tuple(x[i : i + 3].tolist()) == gram for i in range(298))
        assert float(counts[gram]) == literal


def test_text_signatures_marginalise(letters):
    fine, coarse = text_signature(letters, 30, 1), text_signature(letters, 30, 0)
    # axes: x | context, y; edges of the text are one occurrence
    assert torch.allclose(fine.reshape(30, 30, 30).sum(1), coarse, atol=0.02)
    common = coarse.sum(1) > 0
    assert torch.allclose(coarse.sum(1)[common], torch.ones(int(common.sum())).double())


def test_bag_signature_by_hand():
    windows = random_tokens(60, 3).reshape(12, 5)
    literal, times = torch.zeros(3, 3, 3).double(), torch.zeros(3).double()
    for row in windows.tolist():
        for s in range(4):
            times[row[s]] += 1
            for beta in set(row[:s]):
                literal[row[s], row[s + 1], beta] += 1
    assert torch.allclose(prefix_bag_signature(windows, 3), literal / times[:, None, None])


def test_uniform_attention_gives_the_mean_of_the_uniform_weights():
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


def kl(tokens, other, n):
    p, q = (n_gram_counts(t, n, 30).flatten() for t in (tokens, other))
    p, q = p / p.sum(), (q + 0.01) / (q + 0.01).sum()
    return float((torch.xlogy(p, p) - p * q.log()).sum())


def test_a_clone_keeps_its_n_grams_and_loses_the_next(letters):
    two, three = clone(letters, 2), clone(letters, 3)
    assert len(two) == len(letters)
    assert kl(letters, two, 2) < 0.02
    assert kl(letters, three, 3) < 0.1 < 0.3 < kl(letters, two, 3)
    assert torch.equal(two, clone(letters, 2))
    assert not torch.equal(two, clone(letters, 2, seed=1))


def test_a_bigram_clone_has_no_innovation_beyond_noise(letters):
    size = [float(innovation(t, 30, 1).norm()) for t in (letters, clone(letters, 2))]
    assert size[1] < 0.35 * size[0]


def test_a_clone_only_says_what_the_text_says():
    x = random_tokens(500, 5)
    circle = torch.cat([x, x[:2]])
    assert ((n_gram_counts(clone(x, 3, 2000), 3, 5) > 0) <= (n_gram_counts(circle, 3, 5) > 0)).all()


def test_semantic_scores_know_planted_structure():
    logs = torch.linspace(0, 3, 12).double()
    line = torch.stack([logs.cos(), logs.sin()], 1)
    assert order_score(line, logs.exp().tolist()) > 0.8
    shuffled = torch.randperm(12, generator=torch.Generator().manual_seed(0))
    assert abs(order_score(line[shuffled], logs.exp().tolist())) < 0.5
    rows = torch.eye(3).repeat_interleave(4, 0) + 0.05 * torch.rand(12, 3)
    assert nearest_category(rows, [c for c in "abc" for _ in range(4)]) == 1


def test_words_lose_their_marks_and_no_letters():
    assert words_of("He said: 'Tis o'er--my LORD!") == ["he", "said", "tis", "o'er--my", "lord"]
    assert words_of(" -- ") == []


def test_word_signature_counts_next_words():
    phi = word_signature("a b a c a b. d", ["a"], 3)
    assert sorted(phi[0].tolist(), reverse=True) == pytest.approx([2 / 3, 1 / 3, 0])


@pytest.mark.parametrize(
    ("raw", "least", "says"),
    [
        (b"", 1, "is empty"),
        (b" \n", 1, "is empty"),
        (b"ab\0c", 1, "binary: a zero byte at 2"),
        ("caf\u00e9".encode("latin1"), 1, "not UTF-8: byte 0xe9 at 3"),
        (b"short", 9, "5 characters, fewer than the 9 needed here"),
    ],
)
def test_texts_that_cannot_be_used(tmp_path, raw, least, says):
    path = tmp_path / "text.txt"
    path.write_bytes(raw)
    with pytest.raises(SourceError, match=says):
        load_corpus(path, least=least)


def test_files_that_can(tmp_path):
    (tmp_path / "a.txt").write_bytes("\ufeffab\r\nc".encode())
    assert load_corpus(tmp_path / "a.txt").text == "ab\nc"
    (tmp_path / "b.txt.gz").write_bytes(gzip.compress(b"abc"))
    assert load_corpus(tmp_path / "b.txt.gz").text == "abc"
    for name in ("none.txt", "bad.gz", ""):
        (tmp_path / "bad.gz").write_bytes(b"no gzip")
        with pytest.raises(SourceError, match="can't be read"):
            load_corpus(tmp_path / name)


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: characters("abc", 9), "3 different characters"),
        (lambda: n_gram_counts(torch.tensor([0]), 2, 2), "at least n tokens"),
        (lambda: n_gram_counts(torch.tensor([0, 5]), 2, 2), "below the vocabulary"),
        (lambda: n_gram_counts(torch.tensor([0, 5] * 9), 9, 200), "more than"),
        (lambda: clone(torch.tensor([0, 1]), 1), "n >= 2"),
        (lambda: clone(torch.tensor([0, 1]), 3), "2 tokens: a clone keeps n-grams"),
        (lambda: text_signature(torch.tensor([0, 1]), 2, -1), "order = -1: orders begin at 0"),
        (lambda: text_signature(torch.tensor([0, 1]), 2, 1), "3-grams of 2 tokens"),
        (lambda: innovation(torch.tensor([0, 1]), 2, 1), "3-grams of 2 tokens"),
        (lambda: n_gram_counts(torch.tensor([], dtype=torch.int64), 1, 2), r"0 tokens \(none\)"),
        (lambda: characters("", 2), "0 different characters"),
        (lambda: innovation(torch.tensor([0, 1, 1]), 2, 0), "k >= 1"),
        (lambda: prefix_bag_signature(torch.zeros(3, 1, dtype=torch.int64), 2), "windows of 1"),
        (lambda: order_score(torch.eye(2), [0.0, 1.0]), "positive"),
        (lambda: word_signature("a b", ["z"]), r"\['z'\]"),
    ],
)
def test_what_cannot_be_is_refused(make, says):
    with pytest.raises(ParameterError, match=says):
        make()
