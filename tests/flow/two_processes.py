"""What the test of two processes runs in each of them, under torchrun."""

import sys
from pathlib import Path

import torch

from tokenspace.flow.exact import MarkovMixture
from tokenspace.flow.models import build
from tokenspace.flow.path import Gumbel
from tokenspace.flow.predictor import embeddings
from tokenspace.flow.training import Sequences, Settings, train
from tokenspace.nn.processes import average, process, processes

DATA = Sequences(MarkovMixture.random(V=5, components=2, branching=2), 6)
SETTINGS = Settings(steps=6, batch=16, lr=1e-2, micro=4, log_every=2, save_every=3)


def model(kind, seed=0, **more):
    shape = {"width": 16, "depth": 1, "heads": 2, "conditioning": 8} | more
    return build(kind, embeddings(5, 8, seed=0), Gumbel(1.5, 1.0), seed, **shape)


if __name__ == "__main__":
    folder = Path(sys.argv[1])
    with processes() as device:
        ours = model("hull", dropout=0.2)
        at = folder / "state.safetensors"
        run = train(ours, DATA, SETTINGS, device=device, checkpoint=at)
        rank, world = process()
        assert world == 2
        one, none = torch.nn.Parameter(torch.zeros(2)), torch.nn.Parameter(torch.zeros(1))
        one.grad = torch.tensor([1.0, -4.0]) * (1 + rank)
        assert average([one, none], torch.tensor(2.0 * rank)).item() == 1  # Adam hides a factor
        assert [p.grad.tolist() for p in (one, none)] == [[1.5, -6.0], [0.0]]
        weights = {name: p.detach() for name, p in ours.named_parameters()}
        torch.save({"weights": weights, "losses": run.losses}, folder / f"{rank}.pt")
