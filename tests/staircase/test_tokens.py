"""Byte pairs: the text comes back, the counts are in order, and a size too large is refused."""

from itertools import pairwise

import pytest
import torch

from tokenspace.errors import ParameterError
from tokenspace.sources import load_corpus
from tokenspace.staircase import CharGPT, bpe, characters, most_frequent, next_token_signature
from tokenspace.staircase.tokens import REST, followers

TEXT = load_corpus().text[:100_000]


@pytest.mark.parametrize("size", [60, 200, 500])
def test_byte_pairs_spell_the_text(size):
    tokens, symbols = bpe(TEXT, size)
    squeezed = " ".join(TEXT.lower().split())
    back = "".join(symbols[t] for t in tokens)
    known = "".join(symbols)
    expected = "".join(s if s in known else REST for s in squeezed)
    if size >= 200:
        assert back == squeezed
    assert back == expected
    assert len(symbols) == len(set(symbols)) == size
    assert symbols[-1] == REST
    counts = torch.bincount(tokens, minlength=size)
    assert all(a >= b for a, b in pairwise(counts[:-1].tolist()))


def test_larger_vocabularies_make_shorter_texts():
    lengths = [len(characters(TEXT)[0])] + [len(bpe(TEXT, n)[0]) for n in (100, 300, 900)]
    assert lengths == sorted(lengths, reverse=True)
    assert lengths[-1] < 0.5 * lengths[0]


def test_a_word_is_not_merged_with_the_next():
    symbols = bpe(TEXT, 300)[1]
    assert " the" in symbols
    assert not any(" " in symbol[1:] for symbol in symbols)


def test_the_same_text_gives_the_same_tokens():
    (a, left), (b, right) = bpe(TEXT, 300), bpe(TEXT, 300)
    assert torch.equal(a, b)
    assert left == right


@pytest.mark.parametrize(
    ("text", "size", "says"),
    [
        ("a short text", 60, "vocabulary of 60: the 12 characters of this text support"),
        ("", 60, "the 0 characters of this text support 1"),
        (TEXT, 3, "4 or more"),
    ],
)
def test_a_size_that_cannot_be_is_refused(text, size, says):
    with pytest.raises(ParameterError, match=says):
        bpe(text, size)


def test_byte_pairs_have_signatures_and_train():
    tokens, symbols = bpe(TEXT, 120)
    ids = most_frequent(tokens, 50)
    assert ids.tolist() == sorted(ids.tolist())  # symbols are in the order of their counts
    whole = next_token_signature(tokens, 120)[ids]
    assert torch.allclose(followers(tokens, ids), whole[:, whole.sum(0) > 0])
    model = CharGPT(len(symbols), d=8, width=8, heads=2)
    assert model(model.init([0.5], [0]), tokens[None, None, :8]).shape == (1, 1, 8, 120)
