"""What is minimised: draws that noise a batch, and the loss they give.

`draw` makes all that is random about a batch, `loss` is a function of the tokens and those draws:
so a batch can be split over processes and parts, and a step repeated.
"""

import torch
from jaxtyping import Float, Int64
from torch import Tensor, nn
from torch.nn.functional import cross_entropy, normalize
from torch.nn.utils import parametrize

from tokenspace.errors import ParameterError
from tokenspace.flow.path import Gumbel, corrupt, loss_weight, preserving, stratified
from tokenspace.flow.predictor import Hull, Unconstrained

Draws = dict[str, Tensor]  # each with the examples first


class Objective(nn.Module):
    """What `training.train` trains and `baselines` compares."""

    name: str

    @property
    def E(self) -> Float[Tensor, "V d"]:
        """The rows that tokens are embedded by."""
        raise NotImplementedError

    def draw(self, n: int, L: int, generator: torch.Generator, device: str = "cpu") -> Draws:
        """All that is random about a batch of n sequences of L tokens."""
        raise NotImplementedError

    def loss(self, tokens: Int64[Tensor, "B L"], draws: Draws) -> Float[Tensor, ""]:
        """The mean loss of the batch, given its draws."""
        raise NotImplementedError


class Flow(Objective):
    """A predictor along the path: E[(1 + α/σ)² mean|μ - e|²], (17), or cross entropy ("ce").

    γ comes from stratified times of `schedule`, plain numbers here, so the loss can't move them.
    A share `self_conditioning` of the examples gets its own first prediction as c.
    Raises ParameterError for another loss, or "ce" of a predictor without logits.

    >>> from tokenspace.flow.predictor import embeddings
    >>> hull = Hull(lambda x, gamma, c: x.new_zeros(*x.shape[:2], 4), embeddings(4, 4, seed=0))
    >>> flow = Flow(hull, Gumbel(1.5, 1.0))
    >>> flow.loss(torch.zeros(2, 3).long(), flow.draw(2, 3, torch.Generator())).shape
    torch.Size([])
    """

    def __init__(
        self,
        predictor: Hull | Unconstrained,
        schedule: Gumbel,
        loss: str = "mse",
        self_conditioning: float = 0.25,
    ) -> None:
        super().__init__()
        if loss not in ("mse", "ce") or (loss == "ce" and not isinstance(predictor, Hull)):
            raise ParameterError(
                f"loss = {loss!r} of {type(predictor).__name__}: 'mse', or 'ce' of a Hull."
            )
        if not 0 <= self_conditioning <= 1:
            raise ParameterError(f"self_conditioning = {self_conditioning}: a share, 0 to 1.")
        self.predictor, self.schedule = predictor, schedule
        self.kind, self.share = loss, self_conditioning
        kernel = "" if getattr(predictor, "skip", True) else " without the kernel"
        self.name = (
            f"{type(predictor).__name__}{kernel} {loss} {schedule} self-conditioned {self.share}"
        )

    @property
    def E(self) -> Float[Tensor, "V d"]:
        return self.predictor.E

    def draw(self, n: int, L: int, generator: torch.Generator, device: str = "cpu") -> Draws:
        """u (n,), noise (n, L, d) and which examples are self-conditioned (n,)."""
        u = stratified(n, generator, self.schedule.eps)
        own = torch.rand(n, generator=generator) < self.share
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
            return cross_entropy(found.logits.flatten(0, 1), tokens.flatten())
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


class Normalized(nn.Module):
    """Rows scaled to norm √d."""

    def forward(self, rows: Float[Tensor, "V d"]) -> Float[Tensor, "V d"]:
        return normalize(rows, dim=-1) * rows.shape[-1] ** 0.5


def trainable_embeddings(hull: Hull) -> Hull:
    """Let `hull.E` train, its rows kept at norm √d. Under MSE alone they collapse.

    >>> from tokenspace.flow.predictor import embeddings
    >>> hull = trainable_embeddings(Hull(lambda x, gamma, c: x, embeddings(4, 4, seed=0)))
    >>> hull.E.requires_grad
    True
    """
    rows = nn.Parameter(hull.E.detach().clone())
    del hull.E
    hull.E = rows
    parametrize.register_parametrization(hull, "E", Normalized())
    return hull


def spread_of(E: Float[Tensor, "V d"], rows: int = 1024) -> tuple[float, float, float]:
    """Mean and least distance between rows, effective rank exp(H(squared singular values)).

    Of the first `rows` rows. E constant, the trivial optimum of an MSE, has 0, 0 and 1.

    >>> [round(v, 3) for v in spread_of(torch.eye(4))]
    [1.414, 1.414, 3.0]
    """
    some = E.detach()[:rows].double()
    distance = torch.pdist(some)
    share = torch.linalg.svdvals(some - some.mean(0)).square()
    share = share / share.sum().clamp_min(1e-300)
    entropy = -torch.special.xlogy(share, share).sum()
    return float(distance.mean()), float(distance.min()), float(entropy.exp())
