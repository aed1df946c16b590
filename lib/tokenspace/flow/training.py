"""Training on one process or several, resumed exactly, and stopped when embeddings collapse.

All that is random about step n is drawn from generators seeded by (seed, n): the tokens of the
whole batch, their times and noise. A process takes its rows of those draws, so two processes see
what one would, and a resumed run what an unbroken one would. Dropout is seeded by part of the
batch: it is the same on any number of processes that go through the same parts (`micro`).
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, runtime_checkable

import torch
from jaxtyping import Float, Float64, Int64
from torch import Tensor, nn

from tokenspace.errors import ParameterError
from tokenspace.flow.exact import MarkovMixture
from tokenspace.flow.network import DiT
from tokenspace.nn import train as loop
from tokenspace.nn.checkpoint import Checkpoint, named
from tokenspace.nn.processes import shares
from tokenspace.nn.seeds import draw_windows, generator, seed_of
from tokenspace.nn.settings import Settings as Common
from tokenspace.nn.settings import identity_of
from tokenspace.nn.train import Ema

Draws = dict[str, Tensor]  # each with the examples first
COLLAPSED = 0.1  # of the distance between rows at the start: far below what training alone moves


@dataclass(frozen=True)
class Settings(Common):
    """A run's numbers; `batch` counts all processes, `micro` examples go through at a time.

    `decay` is that of the averaged weights. Raises ParameterError for a value out of range.

    >>> Settings(steps=100).rate(0)
    0.001
    """

    batch: int = 64
    micro: int | None = None
    decay: float = 0.9999
    precision: str = "fp32"
    log_every: int = 50

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.batch < 1 or self.log_every < 1:
            raise ParameterError(
                f"batch = {self.batch}, log_every = {self.log_every}: both are at least 1."
            )
        if self.precision not in ("fp32", "bf16"):
            raise ParameterError(f"precision {self.precision!r}: 'fp32' or 'bf16'.")


@runtime_checkable
class Data(Protocol):
    """(n, generator) to n sequences; `identity` is a text that tells data sets apart."""

    @property
    def identity(self) -> str: ...

    def __call__(self, n: int, generator: torch.Generator) -> Int64[Tensor, "n L"]: ...


@dataclass(frozen=True)
class Windows:
    """Random windows of L tokens of one text, as the released code draws them.

    Raises ParameterError for a text shorter than a window.

    >>> Windows(torch.arange(9), 4)(2, torch.Generator().manual_seed(0)).shape
    torch.Size([2, 4])
    """

    tokens: Int64[Tensor, " n"]
    L: int

    def __post_init__(self) -> None:
        if not 1 <= self.L <= len(self.tokens):
            raise ParameterError(f"Windows of {self.L} tokens from a text of {len(self.tokens)}.")

    def __call__(self, n: int, generator: torch.Generator) -> Int64[Tensor, "n L"]:
        return draw_windows(self.tokens, self.L, n, generator)

    @property
    def identity(self) -> str:
        """L, and length and digest of the text."""
        return f"windows of {self.L} from {len(self.tokens)} tokens {named(self.tokens)}"


@dataclass(frozen=True)
class Sequences:
    """Fresh sequences of L tokens from a known source."""

    source: MarkovMixture
    L: int

    def __call__(self, n: int, generator: torch.Generator) -> Int64[Tensor, "n L"]:
        return self.source.sample(n, self.L, generator)

    @property
    def identity(self) -> str:
        """L and a digest of the source's tables."""
        tables = (self.source.weights, self.source.initial, self.source.transitions)
        return f"sequences of {self.L} from {' '.join(map(named, tables))}"


class Objective(nn.Module):
    """What `train` trains: a batch can be split over processes, and a step repeated."""

    name: str

    @property
    def E(self) -> Float[Tensor, "V d"]:
        """The rows that tokens are embedded by."""
        raise NotImplementedError

    def draw(self, n: int, L: int, generator: torch.Generator, device: str = "cpu") -> Draws:
        """All that is random about a batch of n sequences of L tokens: here nothing."""
        return {}

    def loss(self, tokens: Int64[Tensor, "B L"], draws: Draws) -> Float[Tensor, ""]:
        """The mean loss of the batch, given its draws."""
        raise NotImplementedError


@dataclass(frozen=True)
class Run:
    """What training leaves: S logged steps; the averaged model; why it stopped early, or ""."""

    steps: Int64[Tensor, " S"]
    losses: Float64[Tensor, " S"]  # mean since the step logged before
    spread: Float64[Tensor, "S+1 3"]  # from step 0: mean, least distance of E's rows; its rank
    averaged: Objective
    stopped: str = ""


def train(
    model: Objective,
    data: Data,
    settings: Settings,
    *,
    checkpoint: Path | None = None,
    device: str = "cpu",
    callback: Callable[[int, Objective], None] | None = None,
) -> Run:
    """AdamW on `model.loss` in place, with an average of the weights.

    With `checkpoint` the state is saved every so many steps, and a second call goes on from it:
    bitwise the same on one machine's CPU. Under `processes()` each process takes its share of
    the batch. The run stops where the mean or least distance between embeddings falls below .1
    of the start's, or the loss isn't finite. `callback(step, model)` is called at logged steps.
    Runs in threads beside one another are what they are alone, unless they use dropout, which
    draws from the one generator of torch.
    Raises ParameterError for a checkpoint of another run, or a batch that doesn't split.
    """
    kind = torch.device(device)
    parts = shares(settings.batch, settings.micro)
    bf16 = settings.precision == "bf16"

    def batches(step: int) -> list[tuple[int, Tensor, Draws]]:
        tokens = data(settings.batch, generator(settings.seed, step, "tokens"))
        noise = generator(settings.seed, step, "noise")
        draws = model.draw(settings.batch, tokens.shape[1], noise, device)
        return [
            (
                seed_of(settings.seed, step, "dropout", part.start),
                tokens[part].to(device),
                {name: draw[part] for name, draw in draws.items()},
            )
            for part in parts
        ]

    def loss(part: tuple[int, Tensor, Draws]) -> Tensor:
        dropout_seed, tokens, draws = part
        torch.manual_seed(dropout_seed)
        with torch.autocast(kind.type, torch.bfloat16, enabled=bf16):
            return model.loss(tokens, draws)

    with torch.random.fork_rng([kind] if kind.type == "cuda" else []):
        model.to(device).train()
        every = range(0, settings.steps, settings.log_every)
        shapes = [str(m.shape) for m in model.modules() if isinstance(m, DiT)]  # compiled or not
        about = "; ".join([model.name, *shapes])
        keep = Checkpoint.at(checkpoint, identity_of(model, about, data.identity, settings))
        average = Ema(model, settings.decay)
        run = loop.train(
            model, batches, loss, settings, log=_logs(model, callback),
            logged=[*every, settings.steps],
            average=average, checkpoint=keep,
        )  # fmt: skip
    records = {name: torch.stack(values) for name, values in run.records.items()}
    steps, losses = torch.tensor(run.logged[1:]), records["loss"][1:]
    return Run(steps, losses, records["spread"], average.averaged(model), run.stopped)


def _logs(
    model: Objective, callback: Callable[[int, Objective], None] | None
) -> Callable[[loop.Run], dict[str, Tensor]]:
    """What is logged, E's spread anew where E trains; ends a run that went wrong."""

    def log(run: loop.Run) -> dict[str, Tensor]:
        start = run.records["spread"][0] if run.logged else None
        if start is None or model.E.requires_grad:
            spread = torch.tensor(spread_of(model.E), dtype=torch.float64)
        else:
            spread = start
        if start is not None:
            run.stopped = _went_wrong(run, spread / start)
        if callback and run.step:
            callback(run.step, model)
        return {"loss": run.mean_loss, "spread": spread}

    return log


def _went_wrong(run: loop.Run, ratio: Float64[Tensor, " 3"]) -> str:
    """Say why a run should end, or nothing; `ratio` is E's spread over that of the start."""
    loss, (least, which) = float(run.mean_loss), ratio[:2].min(0)
    if not math.isfinite(loss):
        return f"The loss is {loss} at step {run.step}: lower lr = {run.settings.lr}."
    if float(least) < COLLAPSED:
        return (
            f"Embeddings collapsed by step {run.step}: the {('mean', 'least')[int(which)]} "
            f"distance between rows is {float(least):.2g} of the start's (limit {COLLAPSED}). "
            "An MSE to embeddings that train is least where all are equal: freeze them, or "
            "train with cross entropy."
        )
    return ""


def spread_of(E: Float[Tensor, "V d"], rows: int = 1024) -> tuple[float, float, float]:
    """Mean and least distance between rows, effective rank exp(H(squared singular values)).

    Of the first `rows` rows. E constant, the trivial optimum of an MSE, has 0, 0 and 1.
    """
    some = E.detach()[:rows].double()
    distance = torch.pdist(some)
    share = torch.linalg.svdvals(some - some.mean(0)).square()
    share = share / share.sum().clamp_min(1e-300)
    entropy = -torch.special.xlogy(share, share).sum()
    return float(distance.mean()), float(distance.min()), float(entropy.exp())
