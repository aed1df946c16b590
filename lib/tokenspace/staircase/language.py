"""A one-layer character GPT, many runs at once, each on its own text. Ours, after the paper's LM.

No norm, untied, learned positions; logits at every position. Runs may differ in γ, seed and text,
so that a text and its Markov clones train in one batch. What its attention carries is compared
with the paper's attention path (arXiv:2608.30315, section 5) at the one layer that it has.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
from jaxtyping import Float, Float64, Int64
from torch import Tensor
from torch.nn.functional import silu

from tokenspace.errors import ParameterError
from tokenspace.nn.checkpoint import named
from tokenspace.nn.seeds import draw_windows, step_generator
from tokenspace.staircase.models import Params, Shapes, Stacked, linear, rows_of
from tokenspace.staircase.text import even_windows, n_gram_codes, refuse_text
from tokenspace.staircase.text_signatures import n_gram_law
from tokenspace.staircase.training import Callback, History, Settings, follow, stacked

Windows = Int64[Tensor, "R B L"]


@dataclass(frozen=True)
class CharGPT(Stacked):
    """h = E + P; h += O [heads of softmax(Q h · K h) V h]; h += W2 silu(W1 h); logits U h.

    >>> model = CharGPT(5, length=3, d=8, width=8, heads=2)
    >>> model(model.init([0.8], [0, 1]), torch.tensor([[[0, 1, 2]]] * 2)).shape
    torch.Size([2, 1, 3, 5])
    """

    vocabulary: int
    length: int = 8
    d: int = 64
    width: int = 128
    heads: int = 4

    def __post_init__(self) -> None:
        if self.d % self.heads:
            raise ParameterError(f"d = {self.d} doesn't divide into {self.heads} heads.")

    def shapes(self) -> Shapes:
        """E (V, d), P (L, d), Q, K, V and O (d, d), W1 (m, d), W2 (d, m), U (V, d)."""
        V, d, m = self.vocabulary, self.d, self.width
        heads = dict.fromkeys("QKVO", (d, d, d))
        ffn = {"W1": (m, d, d), "W2": (d, m, m)}
        return {"E": (V, d, d), "P": (self.length, d, d), **heads, **ffn, "U": (V, d, d)}

    def attention(self, params: Params, windows: Windows) -> Float[Tensor, "R B H L L"]:
        """Causal attention weights of each head."""
        return self._attend(params, self._stream(params, windows))

    def __call__(self, params: Params, windows: Windows) -> Float[Tensor, "R B L V"]:
        """Logits of the next token at every position of windows of at most `length` tokens."""
        h = self._stream(params, windows)
        mixed = self._attend(params, h) @ self._split(h, params["V"])  # (R, B, H, L, d / H)
        h = h + linear(mixed.transpose(2, 3).flatten(3), params["O"])  # (R, B, L, d)
        h = h + linear(silu(linear(h, params["W1"])), params["W2"])
        return linear(h, params["U"])

    def _stream(self, params: Params, windows: Tensor) -> Tensor:
        if windows.shape[-1] > self.length:
            raise ParameterError(
                f"windows of {windows.shape[-1]} tokens: this model has {self.length} positions."
            )
        return rows_of(params["E"], windows) + params["P"][:, None, : windows.shape[-1]]

    def _split(self, h: Tensor, W: Tensor) -> Tensor:
        return linear(h, W).unflatten(-1, (self.heads, -1)).transpose(2, 3)  # (R, B, H, L, d / H)

    def _attend(self, params: Params, h: Tensor) -> Tensor:
        q, k = self._split(h, params["Q"]), self._split(h, params["K"])
        z = k @ q.mT / math.sqrt(self.d // self.heads)  # key, query: few queries lie side by side
        later = torch.ones(z.shape[-2:], dtype=torch.bool, device=z.device).tril(-1)
        return z.masked_fill(later, -torch.inf).softmax(-2).mT


def train_text(
    model: CharGPT,
    params: Params,
    texts: Int64[Tensor, "R n"],
    settings: Settings,
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
    Raises `ParameterError` for settings without a batch, a text shorter than a window, tokens
    outside the vocabulary, or n-grams longer than a window and its next token.
    """
    refuse_text(texts, model.length, model.vocabulary)
    if not all(1 <= k <= model.length + 1 for k in n_grams):
        raise ParameterError(
            f"n_grams = {tuple(n_grams)}: windows of {model.length} tokens and the next one hold "
            f"1 to {model.length + 1}."
        )
    R, n = texts.shape
    settings, runs, batch = settings.of(params), stacked(params, device), settings.batch
    live, seeds = dict(runs.items()), settings.seeds or []
    if len(seeds) != R or batch is None:
        raise ParameterError(
            f"{R} texts, {len(params['E'])} runs, batch = {batch}: a text a run, and the number of "
            "windows that a step draws."
        )
    seen = even_windows(texts, model.length + 1, min(watched, n - model.length)).to(device)
    laws = [
        torch.stack([n_gram_law(t, k, model.vocabulary) for t in texts]).to(device) for k in n_grams
    ]

    def windows(step: int) -> Tensor:
        drawn = [
            draw_windows(text, model.length + 1, batch, step_generator(seed, step))
            for text, seed in zip(texts, seeds, strict=True)
        ]
        return torch.stack(drawn).to(device)

    def loss(step: int) -> Float[Tensor, " R"]:
        drawn = windows(step)
        return _next_loss(model(live, drawn[..., :-1]), drawn)

    def log(step: int) -> dict[str, Tensor]:
        logits = model(live, seen[..., :-1])
        found = {"loss": _next_loss(logits, seen).double(), "E": live["E"].clone()}
        if laws:
            kl = [_kl(logits[:, :, -1], seen[..., :-1], law) for law in laws]
            found["kl"] = torch.stack(kl, dim=-1)
        return found | (callback(step, live) if callback else {})

    data = f"{[named(text) for text in texts]} n_grams {list(n_grams)} watched {watched}"
    return follow(runs, loss, log, settings, (str(model), data), checkpoint)


def _next_loss(logits: Tensor, windows: Tensor) -> Float[Tensor, " R"]:
    picked = logits.log_softmax(-1).gather(-1, windows[..., 1:, None])
    return -picked.mean((1, 2, 3))


def _kl(logits: Tensor, windows: Tensor, law: Tensor) -> Float64[Tensor, " R"]:
    """KL(model ‖ n-gram), mean over windows; the context is the windows' last n - 1 tokens."""
    V = logits.shape[-1]
    back = round(math.log(law.shape[1], V))
    code = n_gram_codes(windows[..., windows.shape[-1] - back :], back, V)  # (R, B, 1)
    other = torch.gather(law, 1, code.expand(-1, -1, V))
    mine = logits.double().log_softmax(-1)
    return (mine.exp() * (mine - other.log())).sum(-1).mean(1)
