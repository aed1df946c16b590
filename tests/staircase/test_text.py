"""Texts as tokens: they spell the text; clones keep n-grams and no more; twins; what is refused."""

from itertools import pairwise

import pytest
import torch
from tests.sources.checkpoints import EMBED, random_rows, single
from tokenizers import Tokenizer
from tokenizers.models import WordLevel
from tokenizers.pre_tokenizers import Whitespace

from tokenspace import staircase as st
from tokenspace.errors import ParameterError
from tokenspace.sources import load_corpus
from tokenspace.staircase.text import REST

TEXT = load_corpus().text[:100_000]
SQUEEZED = " ".join(TEXT.lower().split())


@pytest.fixture(scope="module")
def letters():
    return st.characters(load_corpus().text[:200_000], 30)[0]


def random_tokens(n, V, seed=0):
    return torch.randint(V, (n,), generator=torch.Generator().manual_seed(seed))


def test_characters_cover_the_text():
    tokens, symbols = st.characters(TEXT, 32)
    back = "".join(symbols[t] for t in tokens)
    assert len(symbols) == 32
    assert len(back) == len(SQUEEZED)
    assert all(a in (b, "?") for a, b in zip(back, SQUEEZED, strict=True))


@pytest.mark.parametrize("size", [60, 200, 500])
def test_byte_pairs_spell_the_text(size):
    tokens, symbols = st.bpe(TEXT, size)
    back, known = "".join(symbols[t] for t in tokens), "".join(symbols)
    assert back == "".join(s if s in known else REST for s in SQUEEZED)
    assert size < 200 or back == SQUEEZED
    assert len(symbols) == len(set(symbols)) == size
    assert symbols[-1] == REST
    counts = torch.bincount(tokens, minlength=size)
    assert all(a >= b for a, b in pairwise(counts[:-1].tolist()))


def test_a_text_is_put_in_the_models_own_tokens(hub):
    own = Tokenizer(WordLevel({"to": 0, "be": 1, "or": 2, "[UNK]": 3}, "[UNK]"))
    own.pre_tokenizer = Whitespace()
    own.add_special_tokens(["<s>"])
    own.enable_padding(length=50)
    own.enable_truncation(2)
    files = single({EMBED: random_rows(30, 16)})
    hub.add("org/model", files | {"tokenizer.json": own.to_str().encode()})
    tokens = st.model_tokens("org/model", "to be or not to be <s>" * 2)
    assert tokens[:6].tolist() == [0, 1, 2, 3, 0, 1]
    assert own.token_to_id("<s>") not in tokens
    assert st.most_frequent(tokens, 2, least=4).tolist() == [3, 0]
    with pytest.raises(ParameterError, match="3 are seen 4 times or more"):
        st.most_frequent(tokens, 4, least=4)


def kl(tokens, other, n):
    p, q = (st.n_gram_counts(t, n, 30).flatten() for t in (tokens, other))
    p, q = p / p.sum(), (q + 0.01) / (q + 0.01).sum()
    return float((torch.xlogy(p, p) - p * q.log()).sum())


def test_a_clone_keeps_its_n_grams_and_loses_the_next(letters):
    two, three = st.clone(letters, 2), st.clone(letters, 3)
    assert len(two) == len(letters)
    assert kl(letters, two, 2) < 0.02
    assert kl(letters, three, 3) < 0.1 < 0.3 < kl(letters, two, 3)
    assert torch.equal(two, st.clone(letters, 2))
    assert not torch.equal(two, st.clone(letters, 2, seed=1))
    new = [float(st.innovation(t, 30, 1).norm()) for t in (letters, two)]
    assert new[1] < 0.35 * new[0]  # noise


def test_a_clone_only_says_what_the_text_says():
    x = random_tokens(500, 5)
    circle = torch.cat([x, x[:2]])
    assert (
        (st.n_gram_counts(st.clone(x, 3), 3, 5) > 0) <= (st.n_gram_counts(circle, 3, 5) > 0)
    ).all()


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: st.characters("abc", 9), "3 different characters"),
        (lambda: st.characters("", 2), "0 different characters"),
        (lambda: st.bpe("a short text", 60), "of 60: the 12 characters of this text support"),
        (lambda: st.bpe("", 60), "the 0 characters of this text support 1"),
        (lambda: st.bpe(TEXT, 3), "4 or more"),
        (lambda: st.clone(torch.tensor([0, 1]), 1), "n >= 2"),
        (lambda: st.clone(torch.tensor([0, 1]), 3), "2 tokens: a clone keeps n-grams"),
    ],
)
def test_what_cannot_be_is_refused(make, says):
    with pytest.raises(ParameterError, match=says):
        make()
