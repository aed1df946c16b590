"""What is trained and compared: the flow, masked diffusion, an autoregressive model.

All have one network shape and one interface: `draw` makes what is random about a batch, `loss` is
a function of the tokens and those draws, so that a batch can be split over processes and a step
repeated; `generate(n, L, nfe, generator)` samples. The baselines read rows of the same frozen E,
and one more frozen row where a token is masked or before the first, so that their networks have
the same parameters as the flow's.
"""

from pathlib import Path
from typing import Any

import torch
from jaxtyping import Float, Int64
from torch import Tensor, nn
from torch.nn.functional import cross_entropy, normalize

from tokenspace.errors import ParameterError, SourceError
from tokenspace.flow.judges import draw
from tokenspace.flow.network import DiT
from tokenspace.flow.path import Gumbel, corrupt, loss_weight, preserving, stratified
from tokenspace.flow.predictor import Hull, Unconstrained, embeddings
from tokenspace.flow.sampling import Mechanism, plan, sample
from tokenspace.flow.training import Draws, Objective
from tokenspace.nn.checkpoint import load_weights, read_tensors

OWN = 0.25  # the paper's share of examples that are self-conditioned
KINDS = ("hull", "hull-ce", "unconstrained", "masked", "autoregressive")


class Flow(Objective):
    """A predictor along the path: E[(1 + α/σ)² mean|μ - e|²], (17), or cross entropy ("ce").

    γ comes from stratified times of `schedule`, plain numbers here, so the loss can't move them.
    A share of the examples gets its own first prediction as c.
    Raises ParameterError for another loss, or "ce" of a predictor without logits.

    >>> hull = Hull(lambda x, gamma, c: x.new_zeros(*x.shape[:2], 4), embeddings(4, 4, seed=0))
    >>> flow = Flow(hull, Gumbel(1.5, 1.0))
    >>> flow.loss(torch.zeros(2, 3).long(), flow.draw(2, 3, torch.Generator())).shape
    torch.Size([])
    """

    def __init__(
        self, predictor: Hull | Unconstrained, schedule: Gumbel, loss: str = "mse"
    ) -> None:
        super().__init__()
        if loss not in ("mse", "ce") or (loss == "ce" and not isinstance(predictor, Hull)):
            raise ParameterError(
                f"loss = {loss!r} of {type(predictor).__name__}: 'mse', or 'ce' of a Hull."
            )
        self.predictor, self.schedule, self.kind = predictor, schedule, loss
        self.name = f"{type(predictor).__name__} {loss} {schedule} self-conditioned {OWN}"

    @property
    def E(self) -> Float[Tensor, "V d"]:
        return self.predictor.E

    def draw(self, n: int, L: int, generator: torch.Generator, device: str = "cpu") -> Draws:
        """γ (n,), noise (n, L, d) and which examples are self-conditioned (n,)."""
        u = stratified(n, generator, self.schedule.eps)
        own = torch.rand(n, generator=generator) < OWN
        there = generator
        if torch.device(device).type != "cpu":  # the noise is too much to draw here
            seed = int(torch.randint(2**62, (), generator=generator))
            there = torch.Generator(device).manual_seed(seed)
        noise = torch.randn(n, L, self.E.shape[1], generator=there, device=device)
        return {"gamma": self.schedule.gamma(u).float().to(device), "noise": noise, "own": own}

    def loss(self, tokens: Int64[Tensor, "B L"], draws: Draws) -> Float[Tensor, ""]:
        e, gamma = self.E[tokens], draws["gamma"]
        x = corrupt(e, gamma, draws["noise"])
        found = self.predictor(x, gamma, self.condition(x, gamma, draws["own"]))
        if self.kind == "ce":
            return cross_entropy(found.logits.flatten(0, 1), tokens.flatten())  # (B L, V), (B L,)
        squared = (found.mean - e).square().mean((1, 2))
        return (loss_weight(*preserving(gamma)) * squared).mean()

    @torch.no_grad()
    def condition(self, x: Tensor, gamma: Tensor, own: Tensor) -> Tensor:
        """μ(x, γ, 0) for the examples that are self-conditioned, zeros for the others."""
        c = torch.zeros_like(x)
        at = own.nonzero().flatten().to(x.device)
        if len(at):
            c[at] = self.predictor(x[at], gamma[at], c[at]).mean.to(c)
        return c

    @torch.no_grad()
    def generate(
        self,
        n: int,
        L: int,
        nfe: int,
        generator: torch.Generator,
        mechanism: Mechanism | None = None,
        device: str = "cpu",
    ) -> Int64[Tensor, "n L"]:
        """The tokens of largest weight, sampled by `mechanism`: one refinement unless given."""
        how, shape = plan(nfe, mechanism or Mechanism(), self.schedule), (n, L, self.E.shape[1])
        dtype = torch.float32  # the network's error is the larger one
        return sample(self.predictor, how, shape, generator, device=device, dtype=dtype).tokens


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
        t = stratified(n, generator, 1e-3).float()  # no smaller: the loss divides by t
        return {"t": t.to(device), "uniform": torch.rand(n, L, generator=generator).to(device)}

    def loss(self, tokens: Int64[Tensor, "B L"], draws: Draws) -> Float[Tensor, ""]:
        masked = draws["uniform"] < draws["t"][:, None]
        logits = self.logits(torch.where(masked[..., None], self.mask, self.E[tokens]))
        nll = cross_entropy(logits.mT, tokens, reduction="none")  # (B, L)
        return (nll * masked / draws["t"][:, None]).mean()

    @torch.no_grad()
    def generate(
        self, n: int, L: int, nfe: int, generator: torch.Generator, device: str = "cpu"
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
            uniform = torch.rand(n, L, generator=generator, dtype=torch.float64).to(device)
            shown = masked & (uniform * left < 1)
            found = draw(logits.cpu(), generator).to(device)
            tokens = torch.where(shown, found, tokens)
            masked = masked & ~shown
        return tokens


class Autoregressive(TokenModel):
    """Next-token cross entropy, nats a token; raises ParameterError unless `causal`."""

    def __init__(self, network: nn.Module, E: Float[Tensor, "V d"]) -> None:
        super().__init__(network, E)
        if not getattr(network, "causal", True):
            raise ParameterError("An autoregressive model needs a network with causal=True.")

    def loss(self, tokens: Int64[Tensor, "B L"], draws: Draws) -> Float[Tensor, ""]:
        return self.nll(tokens).mean()

    def nll(self, tokens: Int64[Tensor, "B L"]) -> Float[Tensor, " B"]:
        """-log p(tokens)/L, exactly."""
        first = self.mask.expand(len(tokens), 1, -1)
        before = torch.cat([first, self.E[tokens[:, :-1]]], 1)  # (B, L, d)
        return cross_entropy(self.logits(before).mT, tokens, reduction="none").mean(1)

    @torch.no_grad()
    def generate(
        self, n: int, L: int, nfe: int, generator: torch.Generator, device: str = "cpu"
    ) -> Int64[Tensor, "n L"]:
        """Token by token, L evaluations. Raises ParameterError for nfe below that."""
        if nfe < L:
            raise ParameterError(f"nfe = {nfe}: an autoregressive model needs one a token, {L}.")
        x = self.mask.repeat(n, L, 1)  # (n, L, d)
        tokens = torch.zeros(n, L, dtype=torch.int64, device=device)
        for i in range(L):
            logits = self.logits(x[:, : i + 1])[:, -1]
            tokens[:, i] = draw(logits.cpu(), generator).to(device)
            if i + 1 < L:
                x[:, i + 1] = self.E[tokens[:, i]]
        return tokens


def build(
    kind: str, E: Float[Tensor, "V d"], schedule: Gumbel, seed: int = 0, **shape: Any
) -> Flow | Masked | Autoregressive:
    """A model of one kind with its own network; `shape` goes to `DiT` (width, depth, heads...).

    All kinds have the same parameters, but for the unconstrained head's d outputs in place of V.
    Raises ParameterError for an unknown kind.

    >>> build("masked", torch.eye(4), Gumbel(1.5, 1.0), width=8, depth=1, heads=2).name
    'Masked'
    """
    if kind not in KINDS:
        raise ParameterError(f"model {kind!r}: one of {', '.join(KINDS)}.")
    V, d = E.shape
    outputs = d if kind == "unconstrained" else V
    with torch.random.fork_rng([]):
        network = DiT(d, outputs, causal=kind == "autoregressive", **shape)
        network.initialize(torch.Generator().manual_seed(seed))  # threads share torch's own
    if kind == "masked":
        return Masked(network, E)
    if kind == "autoregressive":
        return Autoregressive(network, E)
    if kind == "unconstrained":
        return Flow(Unconstrained(network, E), schedule)
    return Flow(Hull(network, E), schedule, "ce" if kind == "hull-ce" else "mse")


def released(path: Path, heads: int = 12, weights: str = "model") -> Flow:
    """A LangFlow or ConvergeFlow model as released: the file's network, frozen rows and schedule.

    Rows of E are normalized, then times √d. `weights` "ema" takes the average, where the file has
    one (the paper's evaluation takes the raw "model"). `heads` isn't in the file.
    Raises SourceError for a file that isn't of this kind.
    """
    tensors = read_tensors(path, weights)
    needed = ("vocab_embed.embedding", "proposal.loc", "proposal.scale", "sigma_map.mlp.2.bias")
    missing = [name for name in needed if name not in tensors]
    if missing:
        raise SourceError(
            f"{path} isn't a released LangFlow or ConvergeFlow model: it has no "
            f"{', '.join(missing)} among its {len(tensors)} tensors ({', '.join([*tensors][:3])})."
        )
    rows = tensors["vocab_embed.embedding"].float()
    blocks = {name.split(".")[1] for name in tensors if name.startswith("blocks.")}
    V, d = rows.shape
    conditioning = len(tensors["sigma_map.mlp.2.bias"])
    network = DiT(d, V, depth=len(blocks), heads=heads, conditioning=conditioning)
    load_weights(network, path, weights)
    E = normalize(rows, dim=-1) * d**0.5
    loc, scale = float(tensors["proposal.loc"]), float(tensors["proposal.scale"])
    return Flow(Hull(network, E), Gumbel(loc, scale)).eval()
