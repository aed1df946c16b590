"""One interface, equal parameters, samplers against closed forms, and learning what is known."""

import math

import pytest
import torch

from tokenspace.errors import ParameterError
from tokenspace.flow.exact import MarkovMixture
from tokenspace.flow.judges import bigrams
from tokenspace.flow.models import KINDS, Autoregressive, Masked, build
from tokenspace.flow.network import DiT, size_of
from tokenspace.flow.path import Gumbel
from tokenspace.flow.predictor import embeddings
from tokenspace.flow.training import Sequences, Settings, train

SHAPE = {"width": 16, "depth": 1, "heads": 2, "conditioning": 8}
TIMES = Gumbel(1.0, 1.0)
SOURCE = MarkovMixture.random(V=4, components=1, seed=1, branching=1, floor=0.2)
E = embeddings(4, 4, seed=0)


def seeded(seed=0):
    return torch.Generator().manual_seed(seed)


def test_all_kinds_have_equal_parameters():
    sizes = {size_of(build(kind, E, TIMES, **SHAPE)) for kind in KINDS}
    assert len(sizes) == 1  # V = d, so the unconstrained head too


@pytest.mark.parametrize("kind", KINDS)
def test_one_interface_trains_and_generates(kind):
    """A chain with one likely successor: after 300 small steps samples mostly follow it."""
    model = build(kind, E, TIMES, **SHAPE)
    run = train(model, Sequences(SOURCE, 6), Settings(steps=300, batch=32, lr=1e-2, decay=0.99))
    assert run.losses[-1] < run.losses[0]
    tokens = run.averaged.generate(200, 6, 12, seeded())
    assert tokens.shape == (200, 6)
    assert torch.equal(tokens, run.averaged.generate(200, 6, 12, seeded()))
    likely = SOURCE.transitions[0] > 0.5
    share = float(bigrams(tokens, 4)[likely].sum())
    assert share > 0.35  # 1/4 before, .85 at best; unmasking learns slowest


def test_masked_diffusion_of_a_flat_network_is_uniform():
    """Its bound is log V, unmasking in any number of steps leaves no mask, laws are right."""
    model = Masked(DiT(4, 4, **SHAPE), E)
    draws = model.draw(4000, 5, seeded())
    loss = float(model.loss(torch.zeros(4000, 5, dtype=torch.int64), draws).detach())
    assert loss == pytest.approx(math.log(4), rel=0.05)
    for nfe in (1, 3):
        tokens = model.generate(4000, 2, nfe, seeded())
        assert torch.allclose(bigrams(tokens, 4), torch.full((4, 4), 1 / 16).double(), atol=0.02)


def test_the_masked_samplers_law_is_the_networks():
    """A network that knows a two-token law: one step is the product of marginals, two are exact."""
    joint = torch.tensor([[0.4, 0.1], [0.0, 0.5]]).double()

    class Knowing(torch.nn.Module):
        def forward(self, x, gamma, c):
            seen = (x - model.mask).abs().amax(-1) > 0
            token = (x @ torch.eye(2).T).argmax(-1)
            law = torch.empty(len(x), 2, 2)
            law[:, 0] = torch.where(
                seen[:, 1, None], joint.T[token[:, 1]].float(), joint.sum(1).float()
            )
            law[:, 1] = torch.where(
                seen[:, 0, None], joint[token[:, 0]].float(), joint.sum(0).float()
            )
            return (law / law.sum(-1, keepdim=True)).log()

    model = Masked(Knowing(), torch.eye(2))
    one = bigrams(model.generate(8000, 2, 1, seeded()), 2)
    assert torch.allclose(one, joint.sum(1)[:, None] * joint.sum(0), atol=0.02)
    many = bigrams(model.generate(8000, 2, 40, seeded()), 2)
    assert torch.allclose(many, joint, atol=0.02)


def test_autoregression_samples_what_it_scores():
    model = Autoregressive(DiT(4, 3, **SHAPE, causal=True), embeddings(3, 4, seed=0))
    torch.manual_seed(0)
    with torch.no_grad():
        for p in model.network.parameters():
            p.add_(0.5 * torch.randn(p.shape))
    both = torch.cartesian_prod(torch.arange(3), torch.arange(3))
    law = (-2 * model.nll(both)).exp().detach().double()
    assert float(law.sum()) == pytest.approx(1, abs=1e-5)
    found = bigrams(model.generate(8000, 2, 2, seeded()), 3).flatten()
    assert torch.allclose(found, law, atol=0.02)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Autoregressive(DiT(4, 4, **SHAPE), E), "causal=True"),
        (lambda: build("autoregressive", E, TIMES, **SHAPE).generate(1, 5, 4, seeded()), "nfe = 4"),
        (lambda: build("masked", E, TIMES, **SHAPE).generate(1, 5, 0, seeded()), "nfe = 0"),
        (lambda: build("hull", E, TIMES, **SHAPE).generate(1, 5, 1, seeded()), "nfe = 1 is below"),
    ],
)
def test_bad_settings_are_refused(make, message):
    with pytest.raises(ParameterError, match=message):
        make()
