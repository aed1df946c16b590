"""Every part's main computations off the CPU: on a GPU where there is one, and always on one that
isn't there (`pretended`), which refuses what a GPU refuses."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from tests.curvature import tiny
from tests.flow.two_processes import DATA
from tests.flow.two_processes import model as flow_model
from tests.pretended import pretended
from torch import Tensor
from torch.nn.attention import SDPBackend, sdpa_kernel

from tokenspace.curvature import continue_greedily, curvature, read, reader_of
from tokenspace.curvature.chess.model import ChessRecipe, train_chess
from tokenspace.curvature.statistics import swap_divergence
from tokenspace.flow.path import Gumbel
from tokenspace.flow.sampling import Mechanism, plan, sample
from tokenspace.flow.training import Settings
from tokenspace.flow.training import train as train_flow
from tokenspace.hub import read_dimension
from tokenspace.hub.neighbours import nearest, nearest_prefixes
from tokenspace.staircase import FFN, Attention, arithmetic
from tokenspace.staircase import Settings as StackSettings
from tokenspace.staircase.decoder import (
    Decoder,
    DecoderSettings,
    DecoderShape,
    TextSignatures,
    pretrain,
)
from tokenspace.staircase.training import train

Found = dict[str, Tensor]

GPU = pytest.param("cuda", marks=pytest.mark.gpu)


@pytest.fixture
def device(request: pytest.FixtureRequest) -> str:
    """A device by its name; what needs a GPU is skipped without one, in one line of the report."""
    if request.param == "cuda" and not torch.cuda.is_available():
        pytest.skip("needs a CUDA device")
    name: str = request.param
    return name


def rows() -> Tensor:
    return torch.randn(300, 8, generator=torch.Generator().manual_seed(0))


def neighbours(device: str) -> Found:
    table = torch.cat([rows(), rows()[:5]])
    one = nearest(table, k=3, block=64, device=device)
    few = nearest(table, queries=torch.tensor([7, 301, 2]), block=64, device=device)
    cuts = nearest_prefixes(table, torch.arange(305), [100, 305], device=device)
    return {
        "distances": one.distances,
        "indices": one.indices,
        "queried": few.distances,
        "cut": cuts[0].distances,
    }


def dimension(device: str) -> Found:
    table = torch.cat([rows(), rows()[:40] / 1000])
    found = read_dimension(table, controls=True, device=device)
    of = (found.full, found.hub_removed, found.normalized, *found.controls.values())
    return {"mle": torch.tensor([values.mle for values in of], dtype=torch.float64)}


def staircase(device: str) -> Found:
    task = arithmetic("add", 3, vocabulary=7)
    found = {}
    for network in (FFN(7, 7, d=8), Attention(7, 7, length=task.length, d=8, d_k=4)):
        start = network.init([0.5, 0.8], [0, 1])
        for name, more in {"whole": {}, "batch": {"batch": 4, "freeze": {"E": 2}}}.items():
            history = train(network, start, task, StackSettings(4, **more), device=device)
            found[f"{type(network).__name__} {name}"] = history.losses
            found |= {f"{type(network).__name__} {name} {k}": v for k, v in history.params.items()}
    return found


def decoder(device: str) -> Found:
    tokens = torch.randint(20, (900,), generator=torch.Generator().manual_seed(0))
    watch = TextSignatures(tokens, 20, 6, top=15, windows=4, probe_steps=3)
    shape = DecoderShape(20, layers=2, d=8, heads=2, width=12, length=6)
    settings = DecoderSettings(4, batch=4)
    history = pretrain(Decoder(shape), tokens, settings, watch=watch, device=device)
    return {"losses": history.losses, **history.records}


KINDS = ("hull", "hull-ce", "unconstrained", "masked", "autoregressive")


def flow(device: str) -> Found:
    """A step's loss and gradients, for draws that were made on the CPU."""
    found = {}
    for kind in KINDS:
        model, drawn = flow_model(kind), torch.Generator().manual_seed(1)
        tokens, draws = DATA(8, drawn), model.draw(8, 6, drawn)
        model.to(device)
        loss = model.loss(tokens.to(device), {n: t.to(device) for n, t in draws.items()})
        loss.backward()
        found[kind] = loss.detach().cpu()
        gradients = {n: p.grad for n, p in model.named_parameters() if p.grad is not None}
        found |= {f"{kind} {name}": gradient.cpu() for name, gradient in gradients.items()}
    return found


def flow_training(device: str) -> dict[str, torch.Tensor]:
    """Whole training; a GPU's noise is its own, so nothing here is the CPU's number."""
    settings = Settings(steps=4, batch=8)
    runs = {k: train_flow(flow_model(k), DATA, settings, device=device) for k in KINDS}
    return {kind: run.losses for kind, run in runs.items()}


def sampling(device: str) -> Found:
    denoiser = flow_model("hull").predictor.to(device).eval()
    how = plan(12, Mechanism(K=2, w_scg=1.5), Gumbel(1.5, 1.0))
    drawn = torch.Generator().manual_seed(0)
    found = sample(denoiser, how, (4, 6, 8), drawn, device=device, dtype=torch.float32)
    return {"x": found.x, "mean": found.mean}


def geometry(device: str) -> Found:
    reader = reader_of(tiny.llama().to(device))
    reading = read(reader, [[0, 3, 2, 5, 1], [0, 4]])
    found = curvature(reading.points)
    return {
        "position": reading.position[reading.points.kept].cpu(),
        "curvature": found.norm().cpu(),
        "divergence": swap_divergence(reader, reading),
    }


def chess(device: str) -> Found:
    recipe = ChessRecipe(width=8, layers=1, heads=1, games=4, plies=4, steps=3, batch=2)
    losses: list[float] = []
    model = train_chess(recipe, lambda step, loss: losses.append(loss), device=device)
    return {"losses": torch.tensor(losses), "head": model.lm_head.weight.detach()}


def generation(device: str) -> Found:
    reader = reader_of(tiny.llama().to(device))
    return {"ids": torch.tensor(continue_greedily(reader, [[0, 3, 2]], 4))}


COMPUTATIONS: list[Callable[[str], Found]] = [
    *(neighbours, dimension, staircase, decoder, flow, sampling, geometry, chess)
]


@pytest.mark.parametrize("compute", COMPUTATIONS, ids=lambda f: f.__name__)
def test_nothing_is_left_on_the_cpu(compute: Callable[[str], Found]) -> None:
    with sdpa_kernel(SDPBackend.MATH):
        expected = compute("cpu")
        with pretended() as device:
            found = compute(device)
    assert {name for name, value in found.items() if type(value) is not Tensor} == set()
    assert {
        n for n in expected if not torch.allclose(found[n], expected[n], equal_nan=True)
    } == set()


def test_flow_trains_on_noise_drawn_where_it_is_used() -> None:
    with sdpa_kernel(SDPBackend.MATH), pretended() as device:
        found = flow_training(device)
    assert all(
        type(losses) is Tensor and bool(losses.isfinite().all()) for losses in found.values()
    )


def test_what_a_gpu_refuses_is_refused_without_one() -> None:
    with pretended() as device:
        there, here = torch.ones(2, 2, device=device), torch.ones(2, 2)
        refused: list[Callable[[], Any]] = [
            lambda: there + here,
            lambda: torch.cat([here, there]),
            lambda: there.add_(here),
            lambda: here[there.long()],
            lambda: there.numpy(),
            lambda: torch.randn(2, generator=torch.Generator(), device=device),
        ]
        for mixed in refused:
            with pytest.raises((RuntimeError, TypeError)):
                mixed()
        assert torch.equal((there + here.to(device) * here[0, 0]).cpu(), here * 2)
        assert torch.equal(there[torch.tensor([1])].cpu(), here[:1])


@pytest.mark.parametrize("device", ["cpu", GPU], indirect=True)
def test_bf16_moves_a_loss_little_and_leaves_the_weights_fp32(device: str) -> None:
    """Products in bf16, of 8 bits of precision; embeddings, targets and the loss itself in fp32."""
    for kind in KINDS:
        runs = [
            train_flow(flow_model(kind), DATA, Settings(8, batch=8, precision=p), device=device)
            for p in ("fp32", "bf16")
        ]
        one, other = (run.losses for run in runs)
        assert torch.allclose(one, other, rtol=0.02)
        assert not torch.equal(one, other)
        assert {p.dtype for p in runs[1].averaged.parameters()} == {torch.float32}


@pytest.mark.parametrize("compute", [*COMPUTATIONS, generation], ids=lambda f: f.__name__)
@pytest.mark.parametrize("device", [GPU], indirect=True)
def test_a_gpu_finds_what_the_cpu_finds(compute: Callable[[str], Found], device: str) -> None:
    expected, found = compute("cpu"), compute(device)
    close = {neighbours: 0.0, generation: 0.0, decoder: 0.05}.get(compute, 1e-3)  # decoder: bf16
    for name, value in expected.items():
        assert torch.allclose(found[name], value, rtol=close, atol=close, equal_nan=True), name


@pytest.mark.parametrize("device", ["cpu", GPU], indirect=True)
def test_twice_is_the_same(device: str) -> None:
    """To the bit on the CPU; on a GPU sums in another order may move the last bits of training."""
    for compute in (*COMPUTATIONS, flow_training):
        one, two = compute(device), compute(device)
        exact = device == "cpu" or compute in (neighbours, dimension)
        for name, value in one.items():
            rtol = 0.0 if exact else 1e-3
            assert torch.allclose(two[name], value, rtol=rtol, atol=rtol, equal_nan=True), name
