"""Resume is bitwise; parts and processes add up; collapse is seen; checkpoints that don't fit."""

import os
import subprocess
import sys
from argparse import Namespace
from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file
from tests.flow.two_processes import DATA, SETTINGS, model

from tokenspace.errors import ParameterError, SourceError
from tokenspace.flow import models
from tokenspace.flow.exact import MarkovMixture
from tokenspace.flow.models import Flow, build, released
from tokenspace.flow.network import DiT
from tokenspace.flow.path import Gumbel, corrupt, loss_weight, preserving
from tokenspace.flow.predictor import Hull, Unconstrained, embeddings, trainable_embeddings
from tokenspace.flow.training import Sequences, Settings, Windows, train
from tokenspace.nn.checkpoint import load
from tokenspace.nn.processes import shares

TIMES = Gumbel(1.5, 1.0)
SMALL = {"width": 16, "depth": 1, "heads": 2, "conditioning": 8}


def weights(module):
    return {name: p.detach().clone() for name, p in module.named_parameters()}


def same(a, b):
    return all(torch.equal(p, b[name]) for name, p in a.items())


@pytest.mark.parametrize("kind", ["hull", "hull-ce", "unconstrained", "masked", "autoregressive"])
def test_resume_after_an_interruption_is_bitwise(tmp_path, kind):
    settings = Settings(steps=20, batch=8, lr=1e-2, warmup=5, log_every=4, save_every=5)
    straight, before = model(kind), torch.get_rng_state()
    whole = train(straight, DATA, settings)
    assert torch.equal(before, torch.get_rng_state())  # the caller's random numbers are left alone
    at = tmp_path / "run" / "state.safetensors"

    def stop(step, module):
        if step == 16:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        train(model(kind), DATA, settings, callback=stop, checkpoint=at)
    assert load(at)[0]["step"] == 15
    again = model(kind)
    resumed = train(again, DATA, settings, checkpoint=at)
    assert same(weights(straight), weights(again))
    assert same(weights(whole.averaged), weights(resumed.averaged))
    assert torch.equal(whole.losses, resumed.losses)
    assert torch.equal(whole.steps, resumed.steps)
    assert list(tmp_path.rglob("*.part-*")) == []


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"settings": Settings(steps=4, batch=8, seed=1)}, "seed: 0 there, 1 here"),
        ({"settings": Settings(steps=4, batch=8, lr=0.5)}, "lr: 0.001 there, 0.5 here"),
        ({"data": Sequences(MarkovMixture.random(V=5, seed=3), 6)}, "data: 'sequences of 6"),
        ({"model": model("hull", seed=1)}, "start: "),
        ({"model": model("hull-ce")}, "model: 'Hull mse .* there, 'Hull ce .* here"),
        ({"model": model("hull", width=32)}, "width=16, .* there, .* width=32"),
    ],
)
def test_a_checkpoint_of_another_run_is_refused(tmp_path, change, message):
    at = tmp_path / "state.safetensors"
    base = {"model": model("hull"), "data": DATA, "settings": Settings(steps=4, batch=8)}
    train(**base, checkpoint=at)
    with pytest.raises(ParameterError, match=message) as refused:
        train(**(base | {"model": model("hull")} | change), checkpoint=at)
    assert len(str(refused.value)) < 800


def test_a_released_file_gives_the_whole_model(tmp_path):
    donor = DiT(8, 5, depth=2, heads=2, conditioning=8)
    with torch.no_grad():
        for p in donor.parameters():
            p.add_(0.1 * torch.randn(p.shape))
    state = {f"backbone.{n}": t for n, t in donor.state_dict().items()}
    rows = torch.randn(5, 8)
    state |= {
        "backbone.vocab_embed.embedding": rows,
        "backbone.rotary_emb.inv_freq": torch.ones(2),
        "proposal.loc": torch.tensor(4.5), "proposal.scale": torch.tensor(0.5),
    }  # fmt: skip
    torch.save({"model": state, "ema": state, "opt": {}, "args": Namespace()}, tmp_path / "a.pt")
    save_file(state, tmp_path / "a.safetensors")
    for name in ("a.pt", "a.safetensors"):
        found = released(tmp_path / name, heads=2)
        assert found.schedule == Gumbel(4.5, 0.5)
        assert torch.allclose(found.E, rows / rows.norm(dim=1, keepdim=True) * 8**0.5)
        assert same(weights(donor), weights(found.predictor.network))
    torch.save(donor.state_dict(), tmp_path / "b.pt")
    with pytest.raises(SourceError, match="a released LangFlow or ConvergeFlow"):
        released(tmp_path / "b.pt")


def test_two_processes_are_one_with_twice_the_batch(tmp_path):
    """torchrun, gloo, 8 examples each in two parts, against 16 here in four; with dropout."""
    command = [
        sys.executable, "-m", "torch.distributed.run", "--nproc-per-node=2", "--standalone",
        "-m", "tests.flow.two_processes", str(tmp_path),
    ]  # fmt: skip
    root = Path(__file__).resolve().parents[2]
    env = os.environ | {"CUDA_VISIBLE_DEVICES": "", "OMP_NUM_THREADS": "1"}
    done = subprocess.run(command, cwd=root, capture_output=True, text=True, timeout=120, env=env)
    assert done.returncode == 0, done.stderr[-2000:]
    alone = model("hull", dropout=0.2)
    run = train(alone, DATA, SETTINGS)
    ranks = [torch.load(tmp_path / f"{rank}.pt") for rank in range(2)]
    for name, p in weights(alone).items():
        assert torch.equal(ranks[0]["weights"][name], ranks[1]["weights"][name])
        assert torch.allclose(ranks[0]["weights"][name], p, atol=1e-6), name
    assert torch.allclose(ranks[0]["losses"], run.losses, rtol=1e-5)
    assert [load(p)[0]["step"] for p in tmp_path.glob("*.safetensors")] == [6]


def test_a_run_beside_others_in_threads_is_what_it_is_alone(monkeypatch):
    """Others seed torch's one generator whenever they like: between two layers, or two losses."""

    def final(seed):
        made = model("hull", seed)
        train(made, DATA, Settings(steps=3, batch=4, lr=1e-2, seed=seed))
        return weights(made)

    alone, other = final(0), final(1)
    assert not same(alone, other)
    for where, name in ((torch.nn.init, "xavier_uniform_"), (Flow, "loss")):
        undisturbed = getattr(where, name)

        def disturbed(*args, undisturbed=undisturbed, **more):
            torch.manual_seed(int(torch.randint(2**60, ())))
            return undisturbed(*args, **more)

        monkeypatch.setattr(where, name, disturbed)
    assert same(alone, final(0))


@pytest.mark.parametrize(("batch", "micro"), [(6, 4), (3, 2)])
def test_a_batch_that_does_not_split_is_refused(batch, micro):
    with pytest.raises(ParameterError, match=f"batch = {batch} on 1 processes in parts of {micro}"):
        shares(batch, micro)


@pytest.mark.parametrize(("loss", "collapses"), [("mse", True), ("ce", False)])
def test_trainable_embeddings_collapse_under_mse_alone(loss, collapses):
    """V = 32, d = 8: the run stops, and says why."""
    torch.manual_seed(0)
    hull = Hull(DiT(8, 32, **SMALL), embeddings(32, 8, seed=0, kind="gaussian"))
    flow = Flow(trainable_embeddings(hull), TIMES, loss)
    data = Sequences(MarkovMixture.random(V=32, seed=0), 8)
    run = train(flow, data, Settings(steps=200, batch=32, lr=3e-2, log_every=10))
    assert ("collapsed" in run.stopped) is collapses
    assert bool((run.spread[-1, :2] < 0.1 * run.spread[0, :2]).any()) is collapses
    assert torch.allclose(flow.E.norm(dim=1), torch.full((32,), 8**0.5))


def test_the_loss_is_the_papers():
    """(17) of an untrained hull, by hand; schedule's numbers aren't parameters."""
    flow = model("hull")
    tokens = DATA(8, torch.Generator().manual_seed(0))
    draws = flow.draw(8, 6, torch.Generator().manual_seed(1))
    alpha, sigma = preserving(draws["gamma"])
    e = flow.E[tokens]
    x = alpha[:, None, None] * e + sigma[:, None, None] * draws["noise"]
    w = ((alpha / sigma**2)[:, None, None] * x @ flow.E.T).softmax(-1)
    squared = ((w @ flow.E - e) ** 2).mean((1, 2))
    expected = float((loss_weight(alpha, sigma) * squared).mean())
    assert float(flow.loss(tokens, draws).detach()) == pytest.approx(expected, rel=1e-5)
    assert all(name.startswith("predictor.network.") for name, _ in flow.named_parameters())
    assert 0 < float(draws["own"].double().mean()) < 1


def test_a_share_of_the_examples_conditions_on_its_own_prediction():
    asked = []

    def network(x, gamma, c):
        asked.append((len(x), c.abs().amax((1, 2)) > 0))
        return torch.zeros(*x.shape[:2], 5)

    flow = Flow(Hull(network, embeddings(5, 8, seed=0)), TIMES)
    draws = flow.draw(400, 6, torch.Generator().manual_seed(0))
    flow.loss(torch.zeros(400, 6, dtype=torch.int64), draws)
    (first, none), (second, own) = asked
    assert first == int(draws["own"].sum()) == pytest.approx(100, abs=30)
    assert second == 400
    assert not none.any()
    assert torch.equal(own, draws["own"])


def test_no_gradient_goes_through_the_first_prediction(monkeypatch):
    """c is a constant of the loss: the gradient is that of a loss that is given c."""
    torch.manual_seed(0)
    scale = torch.nn.Parameter(torch.tensor(0.3))
    E = embeddings(5, 8, seed=0)
    predictor = Hull(lambda x, gamma, c: scale * (x + c) @ E.T, E)
    monkeypatch.setattr(models, "OWN", 1.0)
    flow = Flow(predictor, TIMES)
    tokens, draws = torch.arange(12).reshape(2, 6) % 5, flow.draw(2, 6, torch.Generator())
    found = torch.autograd.grad(flow.loss(tokens, draws), scale)[0]
    x = corrupt(E[tokens], draws["gamma"], draws["noise"])
    given = predictor(x, draws["gamma"], torch.zeros_like(x)).mean.detach()
    mean = predictor(x, draws["gamma"], given).mean
    squared = (mean - E[tokens]).square().mean((1, 2))
    loss = (loss_weight(*preserving(draws["gamma"])) * squared).mean()
    torch.testing.assert_close(found, torch.autograd.grad(loss, scale)[0])


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Settings(steps=1, batch=0), "batch = 0, log_every = 50: both are at least 1"),
        (lambda: Settings(steps=1, precision="fp16"), "precision 'fp16'"),
        (lambda: Windows(torch.arange(3), 4), "Windows of 4 tokens from a text of 3"),
        (
            lambda: Flow(Unconstrained(DiT(2, 2, **SMALL), torch.eye(2)), TIMES, "ce"),
            "'ce' of a Hull",
        ),
        (lambda: build("gan", torch.eye(2), TIMES), "model 'gan'"),
    ],
)
def test_bad_settings_are_refused(make, message):
    with pytest.raises(ParameterError, match=message):
        make()


def test_a_loss_that_is_not_finite_stops_the_run():
    wild = model("unconstrained")
    run = train(wild, DATA, Settings(steps=200, batch=4, lr=1e12, log_every=5))
    assert "lower lr" in run.stopped
    assert len(run.losses) < 40
