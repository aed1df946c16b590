"""Entropy from squared errors, against closed forms and a source of known entropy."""

import math

import pytest
import torch
from scipy import integrate, stats

from tokenspace.errors import ParameterError
from tokenspace.flow.exact import MarkovMixture
from tokenspace.flow.judges import fit_gumbel, information_density, nll_bound, squared_errors
from tokenspace.flow.path import Gumbel
from tokenspace.flow.predictor import Hull, Prediction, context_free, embeddings

SOURCE = MarkovMixture.random()
E = embeddings(12, 12, 0).double()
GAMMAS = torch.linspace(-3, 10, 45, dtype=torch.float64)


def generator(seed=0):
    return torch.Generator().manual_seed(seed)


def curve(denoiser, n=512, seed=0, **settings):
    tokens = SOURCE.sample(n, 16, generator(seed))
    return squared_errors(denoiser, E, tokens, GAMMAS, generator(seed + 1), **settings)


def agrees(values, expected, tolerance):
    mean, se = float(values.mean()), float(values.std()) / math.sqrt(len(values))
    assert abs(mean - expected) < 3 * se + tolerance * expected
    assert se < 0.015 * expected  # so that the comparison says something


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
    entropy, _ = SOURCE.entropy(16, 500, generator())
    agrees(nll_bound(GAMMAS, curve(SOURCE.oracle(E), n=1500)), entropy, 0.005)


def test_without_context_they_give_the_entropy_of_single_tokens():
    law = SOURCE.marginals(16)
    single = float(torch.special.entr(law).sum(1).mean())
    found = curve(lambda x, gamma, c: context_free(x, gamma, E, law))
    agrees(nll_bound(GAMMAS, found), single, 0.005)


def test_a_worse_predictor_has_a_larger_bound():
    def blunt(x, gamma, c):
        logits = 0.7 * SOURCE.oracle(E)(x, gamma).logits
        return Prediction(logits, logits.softmax(-1) @ E)

    gap = nll_bound(GAMMAS, curve(blunt, 128) - curve(SOURCE.oracle(E), 128))  # same draws
    assert float(gap.mean()) > 3 * float(gap.std()) / math.sqrt(128)


def test_an_error_that_does_not_vanish_makes_the_bound_useless():
    """What an unconstrained head leaves at small noise costs ½ SNR a unit of γ, without end."""
    exact = curve(SOURCE.oracle(E), 64)
    free = nll_bound(GAMMAS, exact + 0.5)
    added = float((free - nll_bound(GAMMAS, exact)).mean())
    assert added == pytest.approx(0.25 * math.exp(3), rel=0.02)


def test_half_of_the_information_lies_on_either_side_of_the_fitted_schedule_s_median():
    density = information_density(GAMMAS, curve(SOURCE.oracle(E))).mean(1)
    schedule = fit_gumbel(GAMMAS, density)
    below = schedule.gamma(torch.tensor(0.5, dtype=torch.float64)) > GAMMAS
    assert float(density[below].sum() / density.sum()) == pytest.approx(0.5, abs=0.05)


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

    squared_errors(still, E, torch.zeros(2, 3, dtype=torch.long), GAMMAS[:1], generator(), passes=2)
    assert [float(c.abs().max()) for c in seen] == [0.0, 2.0]


def test_no_gradient_is_kept():
    table = torch.nn.Parameter(E.float())
    hull = Hull(lambda x, gamma, c: torch.zeros(2, 3, 12), table)
    tokens = torch.zeros(2, 3, dtype=torch.long)
    assert not squared_errors(hull, table, tokens, GAMMAS[:1], generator()).requires_grad


@pytest.mark.parametrize("gammas", [[1.0], [2.0, 1.0], [1.0, 1.0]])
def test_levels_that_do_not_ascend_are_refused(gammas):
    levels = torch.tensor(gammas, dtype=torch.float64)
    with pytest.raises(ParameterError, match="γ must ascend"):
        nll_bound(levels, torch.ones_like(levels))
