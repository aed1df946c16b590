"""A step is torch's own; parts add up; stacked models stay apart; runs resume and stop."""

from contextlib import contextmanager

import pytest
import torch
from torch import nn

from tokenspace.errors import ParameterError
from tokenspace.nn.checkpoint import Checkpoint, load
from tokenspace.nn.settings import Settings
from tokenspace.nn.train import Ema, train

X = torch.randn(12, 3, generator=torch.Generator().manual_seed(0))
LOGGED = range(0, 12, 3)


def layer(seed=0):
    made = nn.Linear(3, 2)
    with torch.no_grad():
        for p in made.parameters():
            p.copy_(torch.randn(p.shape, generator=torch.Generator().manual_seed(seed)))
    return made


def fit(model, settings, *, parts=1, average=None, **more):
    """Four rows a step, another four at the next."""

    def batches(step):
        return X.roll(step, 0)[:4].chunk(parts)

    def loss(x):
        return (model(x) - x[:, :2].square()).square().mean()

    return train(model, batches, loss, settings, average=average, **more)


def weights(module):
    return torch.cat([p.detach().flatten() for p in module.parameters()])


@pytest.mark.parametrize(
    ("name", "kind", "more"),
    [("adamw", "AdamW", {"weight_decay": 0.1}), ("adam", "Adam", {}), ("sgd", "SGD", {})],
)
def test_steps_are_torchs_own(name, kind, more):
    ours, theirs = layer(), layer()
    fit(ours, Settings(5, 0.1, warmup=2, optimizer=name, clip=0.5, **more))
    optimizer = getattr(torch.optim, kind)(theirs.parameters(), lr=0.1, **more)
    for step in range(5):
        optimizer.param_groups[0]["lr"] = 0.05 if step == 0 else 0.1
        optimizer.zero_grad()
        x = X.roll(step, 0)[:4]
        (theirs(x) - x[:, :2].square()).square().mean().backward()
        nn.utils.clip_grad_norm_(theirs.parameters(), 0.5)
        optimizer.step()
    assert torch.allclose(weights(ours), weights(theirs), atol=1e-6)


def test_parts_of_a_batch_add_up():
    one, two = layer(), layer()
    fit(one, Settings(5, 0.1, optimizer="sgd"))
    fit(two, Settings(5, 0.1, optimizer="sgd"), parts=2)
    assert torch.allclose(weights(one), weights(two), atol=1e-6)


def test_the_logged_loss_is_the_mean_since_the_last_log():
    every = fit(layer(), Settings(6, 0.1), logged=range(7)).records["loss"]
    some = fit(layer(), Settings(6, 0.1), logged=[0, 4, 6]).records["loss"]
    assert every[0].isnan()
    assert torch.allclose(some[1], torch.stack(every[1:5]).mean())
    assert torch.allclose(some[2], torch.stack(every[5:]).mean())


def test_the_average_warms_up():
    """Decay (1 + n)/(10 + n): at .9999 from the start it would have gone .05 of the way."""
    one = nn.Linear(1, 1, bias=False)
    start = ours = float(one.weight.detach())
    ema = Ema(one)
    with torch.no_grad():
        for n in range(1000):
            one.weight += 0.01
            ema.update(one)
            rate = min(0.9999, (1 + n) / (10 + n))
            ours = rate * ours + (1 - rate) * float(one.weight.detach())
    assert float(ema.weights["weight"]) == pytest.approx(ours, rel=1e-4)
    assert ours - start > 0.85 * 10
    with pytest.raises(ParameterError, match=r"decay = 1\.0"):
        Ema(one, 1.0)


@pytest.mark.parametrize("stop", range(12))
def test_a_run_stopped_in_any_step_goes_on_as_if_it_had_not_been(tmp_path, stop):
    """Weights, moments, average, logs and the losses since the last one: the same file."""
    settings = Settings(11, 0.1, warmup=4, save_every=4)

    @contextmanager
    def interrupt(step):
        if step == stop:
            raise KeyboardInterrupt
        yield

    files, models = [], []
    for name in ("whole", "resumed"):
        keep = Checkpoint(tmp_path / name / "state", {"a": (1, "b")}, LOGGED)
        if name == "resumed" and stop < 11:
            broken = layer()
            with pytest.raises(KeyboardInterrupt):
                fit(
                    broken, settings, average=Ema(broken), logged=LOGGED, checkpoint=keep,
                    around=interrupt,
                )  # fmt: skip
            assert keep.path.exists() is (stop >= 4)
        model = layer()
        fit(model, settings, average=Ema(model), logged=LOGGED, checkpoint=keep)
        files.append(keep.path.read_bytes())
        models.append(model)
        assert [path.name for path in keep.path.parent.iterdir()] == ["state"]
    assert files[0] == files[1]
    assert torch.equal(*map(weights, models))


def test_a_log_can_stop_a_run_for_good(tmp_path):
    keep = Checkpoint(tmp_path / "state", {})

    def log(run):
        run.stopped = "enough" if run.step == 6 else ""
        return {"loss": run.mean_loss}

    for _ in range(2):
        run = fit(layer(), Settings(11, 0.1), log=log, logged=LOGGED, checkpoint=keep)
        assert (run.step, run.stopped, run.logged) == (6, "enough", [0, 3, 6])
    assert load(keep.path)[0]["stopped"] == "enough"


def test_a_longer_run_and_other_names_are_refused(tmp_path):
    keep = Checkpoint(tmp_path / "state", {})
    fit(layer(), Settings(5), logged=[0, 3], checkpoint=keep)
    with pytest.raises(ParameterError, match="is at step 5, beyond the 4 asked for"):
        fit(layer(), Settings(4), logged=[0, 3], checkpoint=keep)
    with pytest.raises(ParameterError, match=r"logged \['other'\] at step 6 after \['loss'\]"):
        fit(
            layer(), Settings(7), log=lambda run: {"other": run.mean_loss}, logged=[6],
            checkpoint=keep,
        )  # fmt: skip
