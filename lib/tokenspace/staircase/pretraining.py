"""Training a decoder on a text as the paper does, and watching its embeddings on the way.

arXiv:2608.30315, section 5: AdamW, linear warm-up, cosine decay, bf16 on a GPU; the agreement of
embeddings with next-token, prefix-bag and attention-path signatures at chosen steps.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
import torch.nn.functional as F  # noqa: N812
from jaxtyping import Int64
from torch import Tensor

from tokenspace.errors import ParameterError
from tokenspace.staircase.alignment import alignment, cosine_gram, probe
from tokenspace.staircase.decoder import Decoder
from tokenspace.staircase.history import History, log_steps
from tokenspace.staircase.state import Checkpoint, State, named
from tokenspace.staircase.text import (
    attention_path_signature,
    draw_windows,
    prefix_bag_signature,
)
from tokenspace.staircase.tokens import followers, most_frequent

Watch = Callable[[Decoder], dict[str, Tensor]]


def rate(step: int, steps: int, peak: float, warm: float = 0.03, least: float = 0.1) -> float:
    """Learning rate of an update: linear over a share `warm`, then a cosine down to `least` peak.

    The paper states the ratios .03 and .1; the cosine is our reading.

    >>> [round(rate(s, 100, 1.0, warm=0.1), 2) for s in (0, 9, 10, 55, 100)]
    [0.1, 1.0, 1.0, 0.55, 0.1]
    """
    first = max(1, round(warm * steps))
    if step < first:
        return peak * (step + 1) / first
    done = (step - first) / max(1, steps - first)
    return peak * (least + (1 - least) * (1 + math.cos(math.pi * done)) / 2)


@dataclass(frozen=True)
class TextSignatures:
    """What the embeddings of a text's commonest tokens are compared with, counted once.

    Tokens other than `ids` share one place in the prefix bag and the attention path, which would
    need V³ numbers otherwise (ours). Called with a decoder it gives "next" ρ, "probe" held-out
    squared error between cosines, "paths" ρ of every layer; each with a leading axis of one run.
    """

    ids: Int64[Tensor, " T"]
    next_token: Tensor
    bag: Tensor
    windows: Int64[Tensor, "B window"]
    place: Int64[Tensor, " V"]
    probe_steps: int = 300

    @classmethod
    def count(
        cls,
        tokens: Int64[Tensor, " n"],
        vocabulary: int,
        window: int,
        *,
        top: int = 200,
        windows: int = 64,
        probe_steps: int = 300,
    ) -> "TextSignatures":
        """Count them in `tokens`; the attention path is read on `windows` even windows.

        Raises `ParameterError` when fewer than `top` tokens are frequent enough.
        """
        ids = most_frequent(tokens, top)
        place = torch.full((vocabulary,), top)
        place[ids] = torch.arange(top)
        pieces = place[tokens][: len(tokens) // window * window].reshape(-1, window)
        first = torch.linspace(0, len(tokens) - window - 1, windows).long()
        return cls(
            ids,
            followers(tokens, ids),
            prefix_bag_signature(pieces, top + 1)[:top],
            tokens[first[:, None] + torch.arange(window + 1)],
            place,
            probe_steps,
        )

    def __call__(self, model: Decoder) -> dict[str, Tensor]:
        device = model.E.weight.device
        E = model.E.weight.detach()[self.ids.to(device)].cpu()
        with torch.enable_grad():
            fit = probe(self.bag, E, by="tokens", steps=self.probe_steps)
        x, y = self.place[self.windows[:, :-1]], self.place[self.windows[:, 1:]]
        moved = model.value_rows(self.ids.to(device)).cpu()
        paths = [
            alignment(cosine_gram(rows), cosine_gram(attention_path_signature(A.cpu(), x, y, T)))
            for T in [len(self.ids) + 1]
            for A, rows in zip(
                model.attention(self.windows[:, :-1].to(device)),
                torch.cat([moved, moved.new_zeros(len(moved), 1, moved.shape[2])], dim=1),
                strict=True,
            )
        ]
        rho = alignment(cosine_gram(E), cosine_gram(self.next_token))
        return {"next": rho[None], "probe": fit.mse[None], "paths": torch.stack(paths)[None]}


def pretrain(
    model: Decoder,
    tokens: Int64[Tensor, " n"],
    *,
    steps: int,
    batch: int = 32,
    lr: float = 2.5e-4,
    decay: float = 0.0,
    seed: int = 0,
    logged: Sequence[int] | None = None,
    watch: Watch | None = None,
    checkpoint: Path | None = None,
    save_every: int = 500,
    device: str = "cpu",
) -> History:
    """Train on windows drawn uniformly from `tokens`; logs nats a token of each step's own batch.

    On a GPU matrices multiply in bf16, parameters and sums stay fp32. Windows depend on (seed,
    step) alone, so that a run resumed from its `checkpoint` is bitwise the run not interrupted, on
    one machine's CPU. The paper: AdamW, peak 2.5e-4, batch 256; its weight decay is not stated.
    Raises `ParameterError` for a text shorter than a window, tokens outside the vocabulary, or a
    checkpoint of other settings.
    """
    L, n = model.shape.length, len(tokens)
    if n < L + 2 or int(tokens.min()) < 0 or int(tokens.max()) >= model.shape.vocabulary:
        raise ParameterError(
            f"text of {n:,} tokens: needs {L + 2} or more, all below {model.shape.vocabulary}."
        )
    wanted = sorted({s for s in (log_steps(steps) if logged is None else logged) if s <= steps})
    model = model.to(device)
    live: dict[str, Tensor] = dict(model.named_parameters())
    optimizer = torch.optim.AdamW(live.values(), lr=lr, weight_decay=decay, fused=True)
    state, file = State(live, optimizer), None
    if checkpoint is not None:
        settings = {
            "model": model.shape,
            "text": named(tokens),
            "parameters": named(*live.values()),
            "training": f"{steps} steps, batch {batch}, lr {lr:g}, decay {decay:g}, seed {seed}",
        }
        file = Checkpoint(checkpoint, settings)
        file.load(state, wanted)
    start = state.step
    for step in range(start, steps + 1):
        state.step = step
        loss = _loss(model, draw_windows(tokens, L + 1, batch, seed, step).to(device))
        if step in wanted and step not in state.done:
            with torch.no_grad():
                state.note({"loss": loss.detach()[None]} | (watch(model) if watch else {}))
        if file and step > start and (step % save_every == 0 or step == steps):
            file.save(state)
        if step == steps:
            break
        for group in optimizer.param_groups:
            group["lr"] = rate(step, steps, lr)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    records = {name: torch.stack(values) for name, values in state.records.items()}
    final = {name: p.detach().cpu()[None] for name, p in live.items()}
    return History(torch.tensor(state.done), records.pop("loss").double(), records, final)


def _loss(model: Decoder, windows: Int64[Tensor, "B window"]) -> Tensor:
    kind = windows.device.type
    with torch.autocast(kind, torch.bfloat16, enabled=kind == "cuda"):
        logits = model(windows[:, :-1])
    return F.cross_entropy(logits.float().flatten(0, 1), windows[:, 1:].flatten())
