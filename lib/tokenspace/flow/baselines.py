"""The models that ConvergeFlow is compared with, one network shape and one interface for all.

Each is an `Objective` with `generate(n, L, nfe, generator)`. Masked diffusion and the
autoregressive model read rows of the same frozen E, and one more frozen row where a token is
masked or before the first, so that their networks have the same parameters as the flow's.
"""

from typing import Any

import torch
from jaxtyping import Float, Int64
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from tokenspace.errors import ParameterError
from tokenspace.flow.judges import draw
from tokenspace.flow.network import DiT
from tokenspace.flow.objective import Draws, Flow, Objective
from tokenspace.flow.path import Gumbel, stratified
from tokenspace.flow.plans import Mechanism, plan
from tokenspace.flow.predictor import Hull, Unconstrained, embeddings
from tokenspace.flow.sampling import sample

KINDS = ("hull", "hull-ce", "unconstrained", "masked", "autoregressive")


class TokenModel(Objective):
    """A network that reads tokens: rows of E, and the row `mask` where there is none.

    Not zeros: their norm, queries and keys would all be zero, and with them every position.
    """

    mask: Tensor

    def __init__(self, network: nn.Module, E: Float[Tensor, "V d"]) -> None:
        super().__init__()
        self.network, self.name = network, type(self).__name__
        self.register_buffer("rows", E)
        self.register_buffer("mask", embeddings(1, E.shape[1], seed=0, kind="gaussian")[0].to(E))

    @property
    def E(self) -> Float[Tensor, "V d"]:
        return self.get_buffer("rows")

    def logits(self, x: Float[Tensor, "B L d"]) -> Float[Tensor, "B L V"]:
        """The network's, at γ = 0 and without self-conditioning."""
        return self.network(x, x.new_zeros(len(x)), torch.zeros_like(x)).float()


class Masked(TokenModel):
    """Masked diffusion: E over t ~ U(0, 1) of 1/t Σ over masked positions of -log p, nats a token.

    The loss is the continuous-time bound on the NLL (arXiv:2406.07524), each token masked with
    probability t; t is stratified. Samplers unmask with exact fp64 draws.
    """

    def draw(self, n: int, L: int, generator: torch.Generator, device: str = "cpu") -> Draws:
        """t (n,) and a uniform number for each position."""
        t = stratified(n, generator, 1e-3).float()
        return {"t": t.to(device), "lot": torch.rand(n, L, generator=generator).to(device)}

    def loss(self, tokens: Int64[Tensor, "B L"], draws: Draws) -> Float[Tensor, ""]:
        masked = draws["lot"] < draws["t"][:, None]
        logits = self.logits(torch.where(masked[..., None], self.mask, self.E[tokens]))
        nll = cross_entropy(logits.mT, tokens, reduction="none")
        return (nll * masked / draws["t"][:, None]).mean()

    @torch.no_grad()
    def generate(
        self,
        n: int,
        L: int,
        nfe: int,
        generator: torch.Generator,
        temperature: float = 1.0,
        device: str = "cpu",
    ) -> Int64[Tensor, "n L"]:
        """Ancestral: from t to t - 1/nfe, a masked token appears with probability 1/(nfe t).

        Raises ParameterError for nfe below 1.
        """
        if nfe < 1:
            raise ParameterError(f"nfe = {nfe}: at least 1.")
        tokens = torch.zeros(n, L, dtype=torch.int64, device=device)
        masked = torch.ones(n, L, dtype=torch.bool, device=device)
        for left in range(nfe, 0, -1):
            logits = self.logits(torch.where(masked[..., None], self.mask, self.E[tokens]))
            lot = torch.rand(n, L, generator=generator, dtype=torch.float64).to(device)
            shown = masked & (lot * left < 1)
            found = draw(logits.cpu(), temperature, generator).to(device)
            tokens = torch.where(shown, found, tokens)
            masked = masked & ~shown
        return tokens


class Autoregressive(TokenModel):
    """Next-token cross entropy, nats a token; the network must be `causal`.

    Raises ParameterError for a network that sees later tokens.
    """

    def __init__(self, network: nn.Module, E: Float[Tensor, "V d"]) -> None:
        super().__init__(network, E)
        if not getattr(network, "causal", True):
            raise ParameterError("An autoregressive model needs a network with causal=True.")

    def draw(self, n: int, L: int, generator: torch.Generator, device: str = "cpu") -> Draws:
        """Nothing is random."""
        return {}

    def loss(self, tokens: Int64[Tensor, "B L"], draws: Draws) -> Float[Tensor, ""]:
        return self.nll(tokens).mean()

    def nll(self, tokens: Int64[Tensor, "B L"]) -> Float[Tensor, " B"]:
        """-log p(tokens)/L, exactly."""
        first = self.mask.expand(len(tokens), 1, -1)
        before = torch.cat([first, self.E[tokens[:, :-1]]], 1)
        return cross_entropy(self.logits(before).mT, tokens, reduction="none").mean(1)

    @torch.no_grad()
    def generate(
        self,
        n: int,
        L: int,
        nfe: int,
        generator: torch.Generator,
        temperature: float = 1.0,
        device: str = "cpu",
    ) -> Int64[Tensor, "n L"]:
        """Token by token, L evaluations. Raises ParameterError for nfe below that."""
        if nfe < L:
            raise ParameterError(f"nfe = {nfe}: an autoregressive model needs one a token, {L}.")
        x = self.mask.repeat(n, L, 1)
        tokens = torch.zeros(n, L, dtype=torch.int64, device=device)
        for i in range(L):
            logits = self.logits(x[:, : i + 1])[:, -1]
            tokens[:, i] = draw(logits.cpu(), temperature, generator).to(device)
            if i + 1 < L:
                x[:, i + 1] = self.E[tokens[:, i]]
        return tokens


class FlowModel(Flow):
    """A `Flow` with the interface of the baselines: sampled by `mechanism`, decoded by `rule`."""

    @torch.no_grad()
    def generate(
        self,
        n: int,
        L: int,
        nfe: int,
        generator: torch.Generator,
        mechanism: Mechanism | None = None,
        rule: str = "weights",
        device: str = "cpu",
    ) -> Int64[Tensor, "n L"]:
        """Deterministic from its noise; the plan's defaults unless a mechanism is given."""
        how = plan(nfe, mechanism or Mechanism(), self.schedule)
        d, asked = self.E.shape[1], torch.float32
        found = sample(self.predictor, how, n, L, d, generator, device=device, asked=asked)
        return found.decode(self.E, rule)


def build(
    kind: str, E: Float[Tensor, "V d"], schedule: Gumbel, seed: int = 0, **shape: Any
) -> FlowModel | Masked | Autoregressive:
    """A model of one kind with its own network; `shape` goes to `DiT` (width, depth, heads...).

    All kinds have the same parameters, but for the unconstrained head's d outputs in place of V.
    Raises ParameterError for an unknown kind.

    >>> build("masked", torch.eye(4), Gumbel(1.5, 1.0), width=8, depth=1, heads=2).name
    'Masked'
    """
    if kind not in KINDS:
        raise ParameterError(f"model {kind!r}: one of {', '.join(KINDS)}.")
    V, d = E.shape
    with torch.random.fork_rng([]):
        network = DiT(
            V,
            d,
            outputs=d if kind == "unconstrained" else None,
            causal=kind == "autoregressive",
            generator=torch.Generator().manual_seed(seed),  # not torch's own: threads share it
            **shape,
        )
    if kind == "masked":
        return Masked(network, E)
    if kind == "autoregressive":
        return Autoregressive(network, E)
    if kind == "unconstrained":
        return FlowModel(Unconstrained(network, E), schedule)
    return FlowModel(Hull(network, E), schedule, "ce" if kind == "hull-ce" else "mse")
