"""Runs together equal runs apart; merged equals unmerged; resume is bitwise; bands over seeds."""

import math
from dataclasses import replace

import pytest
import torch

from tokenspace import staircase as st
from tokenspace.errors import ParameterError
from tokenspace.staircase.training import History, block_losses

TASK = st.arithmetic("add", 4, 9)
SMALL = st.FFN(9, 9, 8, "silu")


def fit(model, params, task, *, callback=None, checkpoint=None, **settings):
    how = st.Settings(**settings)
    return st.train(model, params, task, how, callback=callback, checkpoint=checkpoint)


def factorial_model(sigma="silu"):
    return st.FFN(st.factorial().vocabulary, 15, 64, sigma, 128)


@pytest.mark.parametrize("model", [SMALL, st.Attention(9, 9, 2, 8, 4)])
@pytest.mark.parametrize("optimizer", ["adam", "sgd"])
@pytest.mark.parametrize("batch", [None, 5])
def test_runs_together_are_runs_apart(model, optimizer, batch):
    settings = {"steps": 30, "optimizer": optimizer, "lr": 0.01, "batch": batch, "logged": [0, 30]}
    params = model.init([0.3, 0.8], [0, 1], torch.float64)
    whole = fit(model, params, TASK, seeds=[0, 1, 0, 1], **settings)
    for r, seed in enumerate([0, 1, 0, 1]):
        one = {name: p[r : r + 1] for name, p in params.items()}
        alone = fit(model, one, TASK, seeds=[seed], **settings)
        assert torch.allclose(whole.losses[:, r], alone.losses[:, 0], rtol=1e-9)
        for name in params:
            assert torch.allclose(whole.params[name][r], alone.params[name][0], atol=1e-7)


def test_batches_follow_each_runs_own_seed():
    gpt, text = st.CharGPT(6, length=4, d=8, width=12, heads=2), torch.arange(500) ** 2 % 6
    settings = st.Settings(3, batch=4, seeds=[0, 1, 0], logged=[3])

    def thrice(model):
        return {name: p.repeat(3, 1, 1) for name, p in model.init([0.5], [0]).items()}

    for found in (
        st.train(SMALL, thrice(SMALL), TASK, settings),
        st.train_text(gpt, thrice(gpt), text.repeat(3, 1), settings),
    ):
        one, other, same = found.params["E"]
        assert torch.equal(one, same)
        assert not torch.allclose(one, other)


def test_a_step_is_torchs_own():
    params = SMALL.init([0.5], [0], torch.float64)
    found = fit(SMALL, params, TASK, steps=1, optimizer="sgd", lr=0.3).params
    E, U = (params[name][0].clone().requires_grad_() for name in "EU")
    logits = torch.nn.functional.silu(E[TASK.sequences].sum(1)) @ U.T
    torch.nn.functional.cross_entropy(logits, TASK.labels.argmax(1)).backward()
    assert torch.allclose(found["E"][0], (E - 0.3 * E.grad).detach())
    assert torch.allclose(found["U"][0], (U - 0.3 * U.grad).detach())


def test_merged_multisets_train_the_same():
    params = SMALL.init([0.5], [0], torch.float64)
    a, b = (fit(SMALL, params, t, steps=40, lr=0.01) for t in (TASK, TASK.merged()))
    assert torch.allclose(a.losses, b.losses, rtol=1e-8)
    assert torch.allclose(a.accuracy, b.accuracy)


@pytest.mark.parametrize("batch", [None, 5])
def test_resume_after_an_interruption_is_bitwise(tmp_path, batch):
    params = SMALL.init([0.5, 0.8], [0])
    settings = {"steps": 60, "batch": batch, "logged": range(0, 61, 7), "freeze": {"U": 33}}
    whole = fit(SMALL, params, TASK, **settings)

    def stop(step, params):
        if step >= 42:
            raise KeyboardInterrupt
        return {}

    at = tmp_path / "run" / "state"
    with pytest.raises(KeyboardInterrupt):
        fit(SMALL, params, TASK, checkpoint=at, save_every=10, callback=stop, **settings)
    resumed = fit(SMALL, params, TASK, checkpoint=at, save_every=10, **settings)
    assert torch.equal(whole.losses, resumed.losses)
    assert torch.equal(whole.embeddings, resumed.embeddings)
    assert all(torch.equal(whole.params[n], resumed.params[n]) for n in whole.params)


@pytest.mark.parametrize(
    ("changed", "says"),
    [
        ({"lr": 0.5}, "lr: 0.001 there, 0.5 here"),
        ({"optimizer": "sgd"}, "optimizer: 'adam' there, 'sgd' here"),
        ({"seeds": [0, 2]}, r"seeds: \[0, 1\] there, \[0, 2\] here"),
        ({"freeze": {"U": 8}}, r"freeze: {'U': \[9, 9\]} there, {'U': \[8, 8\]} here"),
        ({"logged": range(0, 21, 4)}, r"logged: \[0, 5, 10, 15, 20\] there, \[0, 4,"),
        ({"params": SMALL.init([0.5], [0, 2])}, "start: "),
        ({"task": st.arithmetic("sub", 4, 9)}, "data: 'add .* there, 'sub"),
        ({"task": replace(TASK, labels=TASK.labels.flip(0))}, "data: 'add .* there, 'add"),
        ({"model": st.FFN(9, 9, 8, "gelu")}, 'model: "FFN.*silu.* there, "FFN.*gelu'),
    ],
)
def test_a_checkpoint_of_other_settings_is_refused(tmp_path, changed, says):
    settings = {
        "model": SMALL, "params": SMALL.init([0.5], [0, 1]), "task": TASK, "steps": 20,
        "batch": 5, "seeds": [0, 1], "freeze": {"U": 9}, "logged": range(0, 21, 5),
    }  # fmt: skip
    at = tmp_path / "state"
    fit(**settings, checkpoint=at)
    before = at.read_bytes()
    with pytest.raises(ParameterError, match="state is of another run. .*" + says):
        fit(**{**settings, **changed}, checkpoint=at)
    assert at.read_bytes() == before


def test_a_diverging_run_is_said_and_leaves_the_others_alone():
    cubic = st.FFN(9, 9, 8, "z^3")
    params = cubic.init([0.3], [0, 1], torch.float64)
    params["E"][1] *= 8
    history = fit(cubic, params, TASK, steps=60, optimizer="sgd", lr=0.05)
    assert history.diverged.tolist() == [False, True]
    assert float(history.losses[-1, 0]) < float(history.losses[0, 0])


@pytest.mark.parametrize(
    ("losses", "diverged"),
    [
        ([2.0, 1.0, 0.5], False),
        ([2.0, 2.0, 2.0], False),  # a plateau
        ([2.0, 0.5, 0.6], False),  # noise
        ([2.0, 0.5, 1.9], True),  # what was learned is lost
        ([2.0, 2.5, 3.0], True),
        ([2.0, math.inf, 0.5], True),
        ([2.0, math.nan, math.nan], True),
    ],
)
def test_what_counts_as_diverged(losses, diverged):
    column = torch.tensor(losses, dtype=torch.float64)[:, None]
    found = History(torch.arange(3), column, {}, {})
    assert found.diverged.tolist() == [diverged]


@pytest.mark.parametrize(
    "model",
    [st.FFN(8, 9, 8), st.FFN(9, 10, 8), st.Attention(9, 9, 3, 8, 4), st.Attention(8, 9, 2, 8, 4)],
)
def test_a_model_of_other_sizes_than_the_task_is_refused(model):
    """Else a token beyond one run's vocabulary would be read as the next run's first."""
    says = "doesn't fit add: it needs a vocabulary of 9 or more, 9 labels, sequences of 2 tokens"
    task = replace(TASK, sequences=TASK.sequences + 4)
    with pytest.raises(ParameterError, match=says):
        fit(model, model.init([0.5], [0, 1]), task, steps=1)


def test_frozen_parts_stay_each_run_at_its_own_step():
    seen = {}

    def look(step, params):
        seen[step] = params["E"].detach().clone()
        return {}

    fit(
        SMALL, SMALL.init([0.5], [0, 1]), TASK, steps=6, logged=range(7), callback=look,
        freeze={"E": torch.tensor([0, 4])},
    )  # fmt: skip
    assert torch.equal(seen[0][0], seen[6][0])
    assert torch.equal(seen[4][1], seen[6][1])
    assert not torch.equal(seen[3][1], seen[4][1])


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"optimizer": "lion"}, "'lion' is unknown"),
        ({"lr": 0.0}, "lr = 0.0"),
        ({"batch": 17}, "batch = 17 of 16 rows"),
        ({"batch": 4, "seeds": [0]}, "1 seeds for 2 runs"),
        ({"freeze": {"W": 0}}, "can't freeze .'W'.: the model has E, U"),
        ({"freeze": {"E": torch.tensor([1])}}, "one step a run"),
        ({"logged": [99]}, "log one of 0..steps"),
    ],
)
def test_bad_settings_are_refused(changed, message):
    with pytest.raises(ParameterError, match=message):
        fit(SMALL, SMALL.init([0.5], [0, 1]), TASK, steps=3, **changed)


def test_block_losses_read_one_where_nothing_is_known():
    task = st.factorial()
    exact = (task.labels * 200 + 1e-300).log()[None]
    flat = torch.zeros_like(exact)
    known, none = (block_losses(x, task.labels, task.weights, task.blocks) for x in (exact, flat))
    assert float(known.abs().max()) < 1e-9
    assert torch.allclose(none, torch.ones_like(none))


@pytest.fixture(scope="module")
def climbed():
    """γ .3, .8 x 3 seeds on FactorialTask, every step logged while block 0 is learned."""
    model, task = factorial_model(), st.factorial()
    logged = [*range(130), *range(130, 901, 6)]
    return fit(model, model.init([0.3, 0.8], range(3)), task, steps=900, logged=logged)


def test_small_initialization_climbs_order_by_order(climbed):
    task = st.factorial()
    raw = [st.label_signature(task, k) for k in range(3)]
    order = st.best_order(climbed.embeddings, raw)
    for r in range(3, 6):
        seen = [int(v) for v in order[:, r].unique_consecutive() if v >= 0]
        assert seen == [0, 1, 2]
    t = climbed.fitted()[3:, :3].double()  # steps at which each target block is half fitted
    assert bool((t > 0).all())
    assert float((t[:, 1] / t[:, 0]).min()) >= 2.5
    assert float((t[:, 2] / t[:, 1]).min()) >= 2
    at = climbed.records["blocks"][:, :, 0].le(0.5).int().argmax(0)
    E = torch.stack([climbed.embeddings[i, r] for r, i in enumerate(at.tolist())])
    share = st.variance_share(E, st.pure(task, 0))
    assert float(share[:3].max()) <= 0.15
    assert float(share[3:].min()) >= 0.8
    zero = st.alignment(st.cosine_gram(E, True), st.cosine_gram(raw[0], True))
    assert float(zero[3:].min()) >= 0.95


def test_embeddings_of_order_k_reach_level_k_and_no_further(climbed):
    task, model = st.factorial(), factorial_model()
    for k, level in [(0, 2.0489), (1, 1.8292)]:
        params = {name: p[3:].clone() for name, p in climbed.params.items()}
        params["E"][:, :27] = st.project(
            params["E"][:, :27], [st.pure(task, j) for j in range(k + 1)]
        )
        history = fit(model, params, task, steps=900, lr=3e-3, freeze={"E": 0}, logged=[0, 900])
        assert (history.losses[-1] - level).abs().max() < 0.005
