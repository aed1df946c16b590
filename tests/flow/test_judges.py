"""Judges against counting by hand, closed forms and a source of known entropy."""

import math
from itertools import pairwise
from types import SimpleNamespace

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy import integrate, stats
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import PreTrainedTokenizerFast

from tokenspace.errors import ParameterError
from tokenspace.flow.exact import MarkovMixture
from tokenspace.flow.judges import (
    SampleScores,
    bigram_kl,
    bigrams,
    distinct,
    draw,
    fit_gumbel,
    generative_perplexity,
    judge,
    nll_bound,
    reencode,
    squared_errors,
    unigram_entropy,
)
from tokenspace.flow.network import DiT
from tokenspace.flow.path import Gumbel
from tokenspace.flow.predictor import Prediction, embeddings


def seeded(seed=0):
    return torch.Generator().manual_seed(seed)


def test_draws_are_in_fp64(monkeypatch):
    """In fp32 a tail of 1e-3 over V = 50,257 tokens was drawn at 1.7e-4: noise can't be small."""
    race, seen = torch.Tensor.exponential_, []

    def recorded(self, *args, **more):
        seen.append(self.dtype)
        return race(self, *args, **more)

    monkeypatch.setattr(torch.Tensor, "exponential_", recorded)
    found = draw(torch.tensor([0.999, 1e-3]).log().expand(60_000, 2), seeded())
    assert float(found.double().mean()) == pytest.approx(1e-3, abs=5 * math.sqrt(1e-3 / 60_000))
    draw(torch.randn(3, 4, dtype=torch.bfloat16))
    assert seen == [torch.float64] * 2


@given(st.lists(st.integers(0, 3), min_size=2, max_size=12))
def test_counts_are_counts(row):
    tokens = torch.tensor([row])
    share = [row.count(v) / len(row) for v in set(row)]
    entropy = -sum(p * math.log(p) for p in share)
    assert float(unigram_entropy(tokens)) == pytest.approx(entropy, abs=1e-12)
    pairs = list(pairwise(row))
    assert distinct(tokens, 2) == pytest.approx(len(set(pairs)) / len(pairs))
    found = bigrams(tokens, 4)
    assert float(found[pairs[0]]) == pytest.approx(pairs.count(pairs[0]) / len(pairs))


def test_divergence_of_data_from_itself_is_the_plug_in_bias():
    source = MarkovMixture.random(seed=0)
    law, n = source.bigram(16), 512
    found = bigram_kl(source.sample(n, 16, seeded()), law)
    assert found == pytest.approx((12**2 - 1) / (2 * n * 15), rel=0.3)
    assert bigram_kl(torch.tensor([[0, 0]]), torch.tensor([[0.0, 1.0], [0.0, 0.0]])) == math.inf
    half = torch.tensor([[0.5, 0.5], [0.0, 0.0]])
    assert bigram_kl(torch.tensor([[0, 0]]), half) == pytest.approx(math.log(2))


def test_the_source_judges_its_own_samples_at_its_entropy():
    source = MarkovMixture.random(seed=0)
    data = judge(source.sample(1000, 16, seeded()), source)
    entropy = source.entropy(16, 1000, seeded(1))[0]
    assert abs(data.nll - entropy) < 4 * data.error
    assert data.perplexity == pytest.approx(math.exp(data.nll))
    repeated = judge(torch.zeros(10, 16, dtype=torch.int64), source)
    assert repeated.entropy == 0
    likely = SampleScores(data.nll - 0.1, 0.01, data.entropy - 0.2, 0.5, 0.1)
    assert likely.degenerate(data)
    assert not SampleScores(data.nll + 0.1, 0.01, 0.1, 0.5, 0.1).degenerate(data)
    assert not data.degenerate(data)
    with pytest.raises(ParameterError, match="3-grams of sequences of 2"):
        distinct(torch.zeros(1, 2, dtype=torch.int64), 3)


class Causal(torch.nn.Module):
    """A causal model as transformers has them: ids to an object with logits."""

    def __init__(self, V=7, d=8):
        super().__init__()
        torch.manual_seed(0)
        self.table = torch.nn.Embedding(V, d)
        self.network = DiT(d, V, width=16, depth=1, heads=2, conditioning=8, causal=True)
        with torch.no_grad():
            for p in self.network.parameters():
                p.add_(0.3 * torch.randn(p.shape))

    def forward(self, ids):
        x = self.table(ids)
        return SimpleNamespace(logits=self.network(x, x.new_zeros(len(x)), torch.zeros_like(x)))


def test_perplexity_is_over_all_scored_tokens_of_ragged_sequences():
    model, rows = Causal(), [[1, 2, 3, 4, 5, 6], [3, 1], [5], [2, 2, 2, 0]]
    total, scored = 0.0, 0
    for row in (rows[0][:5], rows[1], rows[3]):  # the 6th token is beyond the context
        ids = torch.tensor([row])
        laws = model(ids).logits[0].double().log_softmax(-1)
        total -= float(sum(laws[i, row[i + 1]] for i in range(len(row) - 1)).detach())
        scored += len(row) - 1
    for batch in (1, 4):
        found = generative_perplexity(model, rows, context=5, batch=batch)
        assert found == pytest.approx(math.exp(total / scored), rel=1e-5)


def test_ids_that_the_judge_does_not_have_are_refused():
    with pytest.raises(ParameterError, match="Token 7 for a judge of 7 tokens"):
        generative_perplexity(Causal(V=7), [[1, 7]])
    with pytest.raises(ParameterError, match="none with a second token"):
        generative_perplexity(Causal(), [[1], []])


def test_both_libraries_tokenizers_carry_text_over():
    """A tokenizer of tokenizers, one of transformers, with other ids and other pieces."""
    ours = Tokenizer(models.WordLevel({"the": 0, "cat": 1, "sat": 2}, unk_token="the"))
    ours.pre_tokenizer = pre_tokenizers.Whitespace()
    theirs = Tokenizer(models.WordLevel({"sat": 0, "the": 1, "?": 2, "cat": 3}, unk_token="?"))
    theirs.pre_tokenizer = pre_tokenizers.Whitespace()
    theirs.add_special_tokens(["<s>"])
    wrapped = PreTrainedTokenizerFast(tokenizer_object=theirs, bos_token="<s>")
    tokens = torch.tensor([[0, 1, 2], [1, 1, 1]])
    for judge_s in (theirs, wrapped):
        assert reencode(tokens, ours, judge_s) == [[1, 3, 0], [3, 3, 3]]


# --- entropy from squared errors

SOURCE = MarkovMixture.random()
E = embeddings(12, 12, 0).double()
GAMMAS = torch.linspace(-3, 10, 45, dtype=torch.float64)


def curve(denoiser, n=512, seed=0, **settings):
    tokens = SOURCE.sample(n, 16, seeded(seed))
    return squared_errors(denoiser, E, tokens, GAMMAS, seeded(seed + 1), **settings)


def test_two_tokens_on_a_line_carry_one_bit():
    """mmse of ±1 is 1 - E tanh(snr + √snr z): ½ ∫ mmse dSNR = log 2."""

    def error(gamma):
        a = math.exp(-gamma)
        value = lambda z: stats.norm.pdf(z) * math.tanh(a + math.sqrt(a) * z)  # noqa: E731
        return 1 - integrate.quad(value, -9, 9)[0]

    gammas = torch.linspace(-4, 12, 120, dtype=torch.float64)
    errors = torch.tensor([error(float(g)) for g in gammas], dtype=torch.float64)
    assert float(nll_bound(gammas, errors)) == pytest.approx(math.log(2), rel=2e-3)


def test_beyond_the_last_level_the_error_counts_as_constant():
    """½ ∫ c exp(-γ) dγ from 0 on is c/2, of which a grid up to 1 holds 63 %."""
    gammas = torch.linspace(0, 1, 200, dtype=torch.float64)
    assert float(nll_bound(gammas, torch.full_like(gammas, 3.0))) == pytest.approx(1.5, rel=1e-4)


def test_the_oracle_s_squared_errors_give_the_entropy():
    entropy, _ = SOURCE.entropy(16, 500, seeded())
    values = nll_bound(GAMMAS, curve(SOURCE.oracle(E), n=1500))
    mean, se = float(values.mean()), float(values.std()) / math.sqrt(len(values))
    assert abs(mean - entropy) < 3 * se + 0.005 * entropy
    assert se < 0.015 * entropy  # so that the comparison says something


def test_a_gumbel_s_own_density_gives_it_back():
    gammas = torch.linspace(-6, 25, 4000, dtype=torch.float64)
    density = torch.tensor(stats.gumbel_r.pdf(gammas.numpy(), 1.5, 0.9))
    found = fit_gumbel(gammas, density)
    assert (found.loc, found.scale) == pytest.approx((1.5, 0.9), abs=1e-4)
    assert isinstance(found, Gumbel)


def test_a_second_pass_is_given_the_first_one_s_mean():
    seen = []

    def still(x, gamma, c):
        seen.append(c)
        return Prediction(x, torch.full_like(x, 2.0))

    squared_errors(still, E, torch.zeros(2, 3, dtype=torch.long), GAMMAS[:1], seeded(), passes=2)
    assert [float(c.abs().max()) for c in seen] == [0.0, 2.0]


@pytest.mark.parametrize("gammas", [[1.0], [2.0, 1.0], [1.0, 1.0]])
def test_levels_that_do_not_ascend_are_refused(gammas):
    levels = torch.tensor(gammas, dtype=torch.float64)
    with pytest.raises(ParameterError, match="γ must ascend"):
        nll_bound(levels, torch.ones_like(levels))
