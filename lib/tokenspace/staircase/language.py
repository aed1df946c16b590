"""A one-layer character GPT, many runs at once, each on its own text. Ours, after the paper's LM.

No norm, untied, learned positions; logits at every position. Runs may differ in γ, seed and text,
so that a text and its Markov clones train in one batch.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
from jaxtyping import Float, Float64, Int64
from torch import Tensor

from tokenspace.errors import ParameterError
from tokenspace.nn.checkpoint import named
from tokenspace.nn.seeds import draw_windows, step_generator
from tokenspace.staircase.history import History
from tokenspace.staircase.kernels import rows_of
from tokenspace.staircase.models import Params, activation, draw
from tokenspace.staircase.text import n_gram_counts
from tokenspace.staircase.training import Callback, Settings, train_runs

TEXT = Settings(4000, lr=3e-3, batch=64)  # enough for one layer on a million characters


@dataclass(frozen=True)
class CharGPT:
    """h = E + P; h += O [heads of softmax(Q h · K h) V h]; h += W2 σ(W1 h); logits U h.

    >>> model = CharGPT(5, length=3, d=8, width=8, heads=2)
    >>> model(model.init([0.8], [0, 1]), torch.tensor([[[0, 1, 2]]] * 2)).shape
    torch.Size([2, 1, 3, 5])
    """

    vocabulary: int
    length: int = 8
    d: int = 64
    width: int = 128
    heads: int = 4
    activation: str = "silu"

    def __post_init__(self) -> None:
        activation(self.activation)
        if self.d % self.heads:
            raise ParameterError(f"d = {self.d} doesn't divide into {self.heads} heads.")

    def init(
        self, gammas: Sequence[float], seeds: Sequence[int], dtype: torch.dtype = torch.float32
    ) -> Params:
        """Parameters of runs γ × seeds, each matrix N(0, d_in^(-2γ)), stacked along axis 0."""
        V, d, m = self.vocabulary, self.d, self.width
        square = dict.fromkeys("QKVO", (d, d, d))
        shapes = {"E": (V, d, d), "P": (self.length, d, d), **square}
        return draw(
            shapes | {"W1": (m, d, d), "W2": (d, m, m), "U": (V, d, d)}, gammas, seeds, dtype
        )

    def attention(
        self, params: Params, windows: Int64[Tensor, "R B L"]
    ) -> Float[Tensor, "R B H L L"]:
        """Causal attention weights of each head."""
        return self._attend(params, self._stream(params, windows))

    def __call__(self, params: Params, windows: Int64[Tensor, "R B L"]) -> Float[Tensor, "R B L V"]:
        """Logits of the next token at every position of windows of at most `length` tokens."""
        h = self._stream(params, windows)
        mixed = self._attend(params, h) @ self._split(h, params["V"])
        h = h + _linear(mixed.transpose(2, 3).flatten(3), params["O"])
        inner = activation(self.activation)(_linear(h, params["W1"]))
        h = h + _linear(inner, params["W2"])
        return _linear(h, params["U"])

    def _stream(self, params: Params, windows: Tensor) -> Tensor:
        if windows.shape[-1] > self.length:
            raise ParameterError(
                f"windows of {windows.shape[-1]} tokens: this model has {self.length} positions."
            )
        return rows_of(params["E"], windows) + params["P"][:, None, : windows.shape[-1]]

    def _split(self, h: Tensor, W: Tensor) -> Tensor:
        return _linear(h, W).unflatten(-1, (self.heads, -1)).transpose(2, 3)

    def _attend(self, params: Params, h: Tensor) -> Tensor:
        q, k = self._split(h, params["Q"]), self._split(h, params["K"])
        z = k @ q.mT / math.sqrt(self.d // self.heads)  # key, query: few queries lie side by side
        later = torch.ones(z.shape[-2:], dtype=torch.bool, device=z.device).tril(-1)
        return z.masked_fill(later, -torch.inf).softmax(-2).mT


def train_text(
    model: CharGPT,
    params: Params,
    texts: Int64[Tensor, "R n"],
    settings: Settings = TEXT,
    *,
    n_grams: Sequence[int] = (),
    watched: int = 1024,
    callback: Callback | None = None,
    checkpoint: Path | None = None,
    device: str = "cpu",
) -> History:
    """Adam on windows drawn uniformly from each run's own text; logs loss, E and KL to n-grams.

    Loss: nats a token over `watched` even windows. `n_grams` (1, 2, 3): "kl" is KL(model ‖ n-gram
    of the run's text) at the windows' last position, (S, R, len(n_grams)).
    `settings` default to 4,000 steps of 64 windows at a rate of 3e-3.
    Raises `ParameterError` for settings without a batch, a text shorter than a window, tokens
    outside the vocabulary, or n-grams longer than a window and its next token.
    """
    _refuse_misfit(model, texts, n_grams)
    R, n = texts.shape
    seeds, batch = settings.seeds_of(R), settings.batch
    if len(params["E"]) != R or batch is None:
        raise ParameterError(
            f"{R} texts, {len(params['E'])} runs, batch = {batch}: a text a run, and the number of "
            "windows that a step draws."
        )
    span = torch.arange(model.length + 1)
    even = torch.linspace(0, n - model.length - 1, min(watched, n - model.length)).long()
    seen = texts[:, even[:, None] + span].to(device)  # (R, watched, L + 1)
    laws = [torch.stack([n_gram_law(t, k, model.vocabulary) for t in texts]) for k in n_grams]
    laws = [law.to(device) for law in laws]

    def windows(step: int) -> Tensor:
        drawn = [
            draw_windows(text, model.length + 1, batch, step_generator(seed, step))
            for text, seed in zip(texts, seeds, strict=True)
        ]
        return torch.stack(drawn).to(device)

    def loss(step: int, params: Params) -> Float[Tensor, " R"]:
        drawn = windows(step)
        return _next_loss(model(params, drawn[..., :-1]), drawn)

    def log(step: int, params: Params) -> dict[str, Tensor]:
        logits = model(params, seen[..., :-1])
        found = {"loss": _next_loss(logits, seen).double(), "E": params["E"].clone()}
        if laws:
            kl = [_kl(logits[:, :, -1], seen[..., :-1], law) for law in laws]
            found["kl"] = torch.stack(kl, dim=-1)
        return found | (callback(step, params) if callback else {})

    data = f"{[named(text) for text in texts]} n_grams {list(n_grams)} watched {watched}"
    names = str(model), data
    return train_runs(loss, params, log, settings, names, checkpoint=checkpoint, device=device)


def _refuse_misfit(model: CharGPT, texts: Int64[Tensor, "R n"], n_grams: Sequence[int]) -> None:
    n = texts.shape[1]
    low, high = int(texts.min()) if n else 0, int(texts.max()) if n else 0
    if n < model.length + 2 or low < 0 or high >= model.vocabulary:
        raise ParameterError(
            f"texts of {n:,} tokens, {low} to {high}: needs at least {model.length + 2} tokens for "
            f"windows of {model.length}, all below the vocabulary of {model.vocabulary}."
        )
    if not all(1 <= k <= model.length + 1 for k in n_grams):
        raise ParameterError(
            f"n_grams = {tuple(n_grams)}: windows of {model.length} tokens and the next one hold "
            f"1 to {model.length + 1}."
        )


def n_gram_law(
    tokens: Int64[Tensor, " n"], n: int, V: int, added: float = 0.5
) -> Float64[Tensor, "contexts V"]:
    """P(y | last n - 1 tokens): counts plus `added` pseudo-counts spread as the (n-1)-gram law.

    So no probability is 0; below the unigram stands the uniform law.

    >>> n_gram_law(torch.tensor([0, 1, 0, 1]), 1, 2).tolist()
    [[0.5, 0.5]]
    """
    law = torch.full((1, V), 1 / V, dtype=torch.float64)
    for k in range(1, n + 1):
        counts = n_gram_counts(tokens, k, V).reshape(-1, V)
        shorter = law.repeat(len(counts) // len(law), 1)
        law = (counts + added * shorter) / (counts.sum(1, keepdim=True) + added)
    return law


def twins(
    tokens: Int64[Tensor, " n"], ids: Sequence[int], V: int, seed: int = 0
) -> Int64[Tensor, " n"]:
    """Each occurrence of ids[i] becomes, with probability 1/2, its synonym V + i. Ours.

    >>> twins(torch.tensor([0, 0, 0, 0, 1]), [0], 2).unique().tolist()
    [0, 1, 2]
    """
    inside = [i for i in ids if 0 <= i < V]
    if len(inside) < len(ids) or len(set(ids)) < len(ids):
        raise ParameterError(f"ids {list(ids)}: give distinct tokens from 0 to {V - 1}.")
    synonym = torch.arange(V)
    synonym[list(ids)] = V + torch.arange(len(ids))
    g = torch.Generator().manual_seed(seed)
    flip = torch.rand(len(tokens), generator=g) < 0.5
    return torch.where(flip, synonym[tokens], tokens)


def twin_cosine(
    E: Float[Tensor, "*batch rows d"], ids: Sequence[int], V: int
) -> Float[Tensor, "*batch"]:
    """Mean cosine between each of `ids` and its synonym's row, V + i.

    >>> twin_cosine(torch.tensor([[1.0, 0.0], [0.0, 1.0], [2.0, 0.0]]), [0], 2).round().item()
    1.0
    """
    own, other = E[..., list(ids), :], E[..., V : V + len(ids), :]
    return torch.cosine_similarity(own, other, dim=-1).mean(-1)


def _linear(h: Float[Tensor, "R B L d"], W: Float[Tensor, "R m d"]) -> Float[Tensor, "R B L m"]:
    """h Wᵀ of each run as one product: broadcasting W over windows would copy it for each."""
    return (h.flatten(1, 2) @ W.mT).unflatten(1, h.shape[1:3])


def _next_loss(logits: Tensor, windows: Tensor) -> Float[Tensor, " R"]:
    picked = logits.log_softmax(-1).gather(-1, windows[..., 1:, None])
    return -picked.mean((1, 2, 3))


def _kl(logits: Tensor, windows: Tensor, law: Tensor) -> Float64[Tensor, " R"]:
    """KL(model ‖ n-gram), mean over windows; the context is the windows' last n - 1 tokens."""
    V = logits.shape[-1]
    back = round(math.log(law.shape[1], V))
    code = torch.zeros(windows.shape[:2], dtype=torch.int64, device=windows.device)
    for j in range(back):
        code = code * V + windows[..., windows.shape[-1] - back + j]
    other = torch.gather(law, 1, code[..., None].expand(-1, -1, V))
    mine = logits.double().log_softmax(-1)
    return (mine.exp() * (mine - other.log())).sum(-1).mean(1)
