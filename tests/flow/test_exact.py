"""The known source against counting, listing all sequences, and its own samples."""

import math

import pytest
import torch

from tokenspace.errors import ParameterError
from tokenspace.flow.exact import MarkovMixture
from tokenspace.flow.path import corrupt
from tokenspace.flow.predictor import embeddings
from tokenspace.flow.theory import brute_force, leave_one_out

TINY = MarkovMixture.random(V=4, components=3, seed=1, branching=2)
L = 5


def generator(seed=0):
    return torch.Generator().manual_seed(seed)


def every(V, L):
    return torch.cartesian_prod(*[torch.arange(V)] * L).reshape(-1, L)


def noisy(source, gamma, E, n=6, L=L, seed=0):
    e = E[source.sample(n, L, generator(seed))]
    return corrupt(e, gamma, torch.randn(e.shape, generator=generator(seed), dtype=e.dtype))


# --- likelihood, entropy, marginals


def test_the_likelihood_of_all_sequences_sums_to_one():
    assert float((-L * TINY.nll(every(4, L))).exp().sum()) == pytest.approx(1, abs=1e-12)


def test_the_likelihood_of_one_sequence_by_hand():
    x = [2, 0, 3]
    by_hand = sum(
        float(w) * float(start[x[0]]) * float(T[x[0], x[1]]) * float(T[x[1], x[2]])
        for w, start, T in zip(TINY.weights, TINY.initial, TINY.transitions, strict=True)
    )
    found = float(TINY.nll(torch.tensor([x])))
    assert found == pytest.approx(-math.log(by_hand) / 3, rel=1e-12)


def test_entropy_is_that_of_the_listed_law():
    p = (-L * TINY.nll(every(4, L))).exp()
    exact = float(torch.special.entr(p).sum()) / L
    value, se = TINY.entropy(L, 4000, generator())
    assert abs(value - exact) < 4 * se
    assert se < 0.01


def test_marginals_and_bigrams_are_those_of_the_listed_law():
    tokens = every(4, L)
    p = (-L * TINY.nll(tokens)).exp()
    for i, law in enumerate(TINY.marginals(L)):
        torch.testing.assert_close(
            law, torch.zeros(4, dtype=p.dtype).index_add_(0, tokens[:, i], p)
        )
    pairs = (tokens[:, :-1] * 4 + tokens[:, 1:]).flatten()
    counted = torch.zeros(16, dtype=p.dtype).index_add_(0, pairs, p.repeat_interleave(L - 1))
    torch.testing.assert_close(TINY.bigram(L).flatten(), counted / (L - 1))


def test_samples_have_the_listed_law():
    n = 40_000
    drawn = TINY.sample(n, 3, generator())
    counts = torch.bincount((drawn * torch.tensor([16, 4, 1])).sum(1), minlength=64)
    p = (-3 * TINY.nll(every(4, 3))).exp()
    z = (counts - n * p) / (n * p * (1 - p)).sqrt()
    assert float(z.abs().max()) < 4.5
    assert float(z.std()) == pytest.approx(1, abs=0.3)


def test_a_sparse_source_has_its_branching_and_can_forbid():
    source = MarkovMixture.random(branching=3, floor=0.0)
    assert torch.equal((source.transitions > 0).sum(-1), torch.full((4, 12), 3))
    assert not bool(source.transitions.diagonal(dim1=1, dim2=2).any())
    assert math.isinf(float(source.nll(torch.zeros(1, 16, dtype=torch.long))))
    assert math.isinf(source.log_odds_bound())


# --- the oracle


FREE_ROWS = torch.randn(4, 3, generator=generator(3), dtype=torch.float64)  # of any norm


@pytest.mark.parametrize("E", [embeddings(4, 4, 0).double(), FREE_ROWS], ids=["one norm", "any"])
@pytest.mark.parametrize("gamma", [4.0, 1.0, -1.0])
@pytest.mark.parametrize(
    "source", [TINY, MarkovMixture.random(V=4, components=2, branching=2, floor=0.0)]
)
def test_the_oracle_is_the_brute_force_posterior(source, gamma, E):
    gamma = torch.tensor(gamma).double()
    x = noisy(source, gamma, E)
    full, without = brute_force(source, x, gamma, E)
    found = source.oracle(E)(x, gamma)
    torch.testing.assert_close(found.logits, full, rtol=1e-9, atol=1e-9)
    torch.testing.assert_close(found.mean, full.exp() @ E, rtol=1e-9, atol=1e-9)
    # Proposition 1: what is left without the kernel is the posterior given the other positions
    if source is TINY:  # elsewhere some tokens are impossible: -inf on both sides
        torch.testing.assert_close(
            leave_one_out(found.logits, x, gamma, E), without, rtol=1e-8, atol=1e-8
        )


def test_the_oracle_takes_a_gamma_for_each_example():
    E, gammas = embeddings(4, 4, 0).double(), torch.tensor([3.0, 0.0, -2.0]).double()
    x = noisy(TINY, gammas, E, n=3)
    together = TINY.oracle(E)(x, gammas)
    for i, gamma in enumerate(gammas):
        torch.testing.assert_close(TINY.oracle(E)(x[i : i + 1], gamma).mean[0], together.mean[i])


def test_evidence_against_every_likely_sequence_is_survived():
    """All weight on repeats of one token, which a sparse chain can't write: still a law."""
    source = MarkovMixture.random(V=4, components=2, branching=2, floor=0.0)
    x = (100 * embeddings(4, 4, 0).double()[0]).expand(1, L, 4)
    logits = source.oracle(embeddings(4, 4, 0))(x, torch.tensor(-8.0).double()).logits
    torch.testing.assert_close(logits.exp().sum(-1), torch.ones(1, L).double())


def test_no_context_favours_a_token_by_more_than_the_bound():
    source, E = MarkovMixture.random(V=4, branching=1, seed=2), embeddings(4, 4, 0).double()
    largest = 0.0
    for gamma in torch.tensor([2.0, -1.0, -4.0]).double():
        x = noisy(source, gamma, E, n=200)
        f = leave_one_out(source.oracle(E)(x, gamma).logits, x, gamma, E)
        largest = max(largest, float((f.amax(-1) - f.amin(-1)).max()))
    assert 0.5 * source.log_odds_bound() < largest <= source.log_odds_bound() + 1e-6


# --- refused


TWO = torch.tensor([[0.5, 0.5]]).double()
ONE = torch.ones(1).double()


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: MarkovMixture.random(branching=0), "branching = 0"),
        (lambda: MarkovMixture.random(branching=12), "branching = 12"),
        (lambda: MarkovMixture.random(V=1), "V = 1"),
        (lambda: MarkovMixture.random(components=0), "components = 0"),
        (lambda: MarkovMixture.random(floor=1.5), "floor = 1.5"),
        (lambda: MarkovMixture(ONE, TWO, 2 * TWO.expand(2, 2)[None]), "off the simplex"),
        (lambda: MarkovMixture(ONE, TWO, TWO.expand(3, 2)[None]), r"aren't \(K,\), \(K, V\)"),
        (lambda: TINY.nll(torch.tensor([[0, -1]])), "this source has 0 to 3"),
        (lambda: TINY.nll(torch.tensor([[0, 4]])), "this source has 0 to 3"),
        (lambda: TINY.oracle(embeddings(5, 5, 0)), "E has 5 rows for a source of 4 tokens"),
    ],
)
def test_what_is_no_source_of_this_kind_is_refused(make, message):
    with pytest.raises(ParameterError, match=message):
        make()
