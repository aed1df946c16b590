"""Rates against torch's own schedules and closed forms; what is refused."""

import math

import pytest
import torch

from tokenspace.errors import ParameterError
from tokenspace.nn.settings import Settings, identity_of


@pytest.mark.parametrize("steps", [2, 10, 137])
def test_one_cycle_is_torchs(steps):
    weight = torch.nn.Parameter(torch.zeros(1))
    optimizer = torch.optim.AdamW([weight], 2e-3)
    theirs = torch.optim.lr_scheduler.OneCycleLR(optimizer, 2e-3, steps)
    ours = Settings(steps, 2e-3, schedule="one-cycle")
    for step in range(steps):
        group, found = optimizer.param_groups[0], ours.group(step)
        assert (found["lr"], found["betas"]) == (group["lr"], group["betas"])
        optimizer.step()
        theirs.step()


def test_constant_stays_and_linear_falls_in_proportion_to_the_steps_left():
    assert {Settings(9, 0.5).rate(step) for step in range(9)} == {0.5}
    found = [Settings(100, 2.0, warmup=10, schedule="linear").rate(step) for step in range(101)]
    assert found[4] == pytest.approx(2 * 0.5 * 0.96)
    assert found[10::30] == pytest.approx([1.8, 1.2, 0.6, 0.0])


def test_cosine_rises_over_a_share_and_ends_at_a_tenth():
    settings = Settings(1000, 2.5e-4, warmup=0.03, schedule="cosine")
    found = [settings.rate(step) for step in range(1001)]
    assert found[29] == max(found) == pytest.approx(2.5e-4)
    assert found[14] == pytest.approx(2.5e-4 / 2)
    assert found[515] == pytest.approx(2.5e-4 * 0.55)  # half way down
    assert found[1000] == pytest.approx(2.5e-5)
    assert found[30:] == sorted(found[30:], reverse=True)


@pytest.mark.parametrize(("schedule", "further"), [("constant", True), ("linear", False)])
def test_a_run_may_be_taken_further_unless_its_rate_depends_on_its_length(schedule, further):
    layer = torch.nn.Linear(1, 1)
    one, two = (
        identity_of(layer, "", "", Settings(n, schedule=schedule, save_every=n)) for n in (5, 6)
    )
    assert (one == two) is further


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"steps": 0}, "steps = 0, .* steps and save_every are at least 1"),
        ({"lr": 0.0}, "lr = 0.0, .* lr above 0"),
        ({"lr": math.nan}, "lr = nan"),
        ({"warmup": -1}, "warmup = -1"),
        ({"save_every": 0}, "save_every = 0"),
        ({"optimizer": "lion"}, "'lion' is unknown; take one of adamw, adam, sgd"),
        ({"schedule": "step"}, "'step': one of constant, linear, cosine, one-cycle"),
    ],
)
def test_bad_settings_are_refused(changed, message):
    with pytest.raises(ParameterError, match=message):
        Settings(**{"steps": 1, **changed})
