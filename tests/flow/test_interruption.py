"""A run that was stopped anywhere goes on as if it hadn't been: the same batches, the same bits."""

import pytest
import torch
from tests.flow.two_processes import model

from tokenspace.flow.training import Settings, Windows, train
from tokenspace.nn import checkpoint as state

TEXT = Windows(torch.arange(400) * 7 % 13 % 5, 6)
SETTINGS = Settings(steps=7, batch=4, lr=1e-2, warmup=2, save_every=2, log_every=3)


class Recorded:
    """The text, noting what is drawn; the batch after `batches` is an interruption."""

    def __init__(self, batches=100):
        self.batches, self.drawn, self.identity = batches, [], TEXT.identity

    def __call__(self, n, generator):
        if len(self.drawn) == self.batches:
            raise KeyboardInterrupt
        self.drawn.append(TEXT(n, generator))
        return self.drawn[-1]


@pytest.fixture(scope="module")
def unbroken(tmp_path_factory):
    """The checkpoint that a run leaves which nothing stopped, and the batches it saw."""
    at, data = tmp_path_factory.mktemp("unbroken") / "state.safetensors", Recorded()
    train(model("hull", dropout=0.2), data, SETTINGS, checkpoint=at)
    return at.read_bytes(), data.drawn


def finish(at, unbroken, done):
    """Go on from the file: the same batches from step `done` on, the same checkpoint to the bit.

    It holds the weights, their average and its count, the moments, the step and the losses.
    """
    data = Recorded()
    train(model("hull", dropout=0.2), data, SETTINGS, checkpoint=at)
    assert len(data.drawn) == 7 - done
    assert all(map(torch.equal, data.drawn, unbroken[1][done:]))
    assert at.read_bytes() == unbroken[0]


@pytest.mark.parametrize("stop", [1, 3, 6])
def test_a_run_stopped_in_any_step_is_taken_up_at_its_last_saved_one(tmp_path, unbroken, stop):
    at = tmp_path / "state.safetensors"
    with pytest.raises(KeyboardInterrupt):
        train(model("hull", dropout=0.2), Recorded(stop), SETTINGS, checkpoint=at)
    assert at.exists() is (stop >= 2)
    finish(at, unbroken, done=stop - stop % 2)


@pytest.mark.parametrize("first", [True, False])
def test_a_compiled_model_goes_on_from_a_plain_one_s_checkpoint_and_back(tmp_path, first):
    """Wrapped as compiling does, and run as it is: the types that tests check don't compile."""
    at, settings = tmp_path / "state.safetensors", [Settings(steps=n, batch=4) for n in (3, 5)]
    made = [model("hull") for _ in range(3)]
    made[1 - first].predictor.network = torch.compile(made[1 - first].predictor.network)
    with torch.compiler.set_stance("force_eager"):
        for each, until in zip(made, settings, strict=False):
            train(each, TEXT, until, checkpoint=at)
        train(made[2], TEXT, settings[1])
    one, two = map(state.whole, made[1:])
    assert all(torch.equal(tensor, two[name]) for name, tensor in one.items())
