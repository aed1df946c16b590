"""Training a decoder on a text as the paper does, and watching its embeddings on the way.

arXiv:2608.30315, section 5: AdamW, linear warm-up, cosine decay, bf16 on a GPU; the agreement of
embeddings with next-token, prefix-bag and attention-path signatures at chosen steps.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
from jaxtyping import Float, Int64
from torch import Tensor
from torch.nn.functional import cross_entropy

from tokenspace.errors import ParameterError
from tokenspace.nn import train as loop
from tokenspace.nn.checkpoint import Checkpoint, named
from tokenspace.nn.seeds import draw_windows, step_generator
from tokenspace.nn.settings import Settings, identity_of
from tokenspace.staircase.alignment import alignment, cosine_gram, probe
from tokenspace.staircase.decoder import Decoder
from tokenspace.staircase.history import History, steps_to_log
from tokenspace.staircase.text_signatures import (
    attention_path_signature,
    followers,
    most_frequent,
    prefix_bag_signature,
)

Watch = Callable[[Decoder], dict[str, Tensor]]


@dataclass(frozen=True)
class DecoderSettings(Settings):
    """How a decoder is trained: the paper's ratios .03 and .1 of warm-up and last rate.

    A cosine between them is our reading. The paper: peak 2.5e-4, batch 256; its weight decay is not
    stated. `logged` are the steps at which is logged (default `log_steps`).

    >>> settings = DecoderSettings(100, lr=1.0, warmup=0.1)
    >>> [round(settings.rate(s), 2) for s in (0, 9, 10, 55, 100)]
    [0.1, 1.0, 1.0, 0.55, 0.1]
    """

    lr: float = 2.5e-4
    warmup: int | float = 0.03
    schedule: str = "cosine"
    save_every: int = 500
    batch: int = 32
    logged: Sequence[int] | None = None


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
    settings: DecoderSettings,
    *,
    watch: Watch | None = None,
    checkpoint: Path | None = None,
    device: str = "cpu",
) -> History:
    """Train on windows drawn uniformly from `tokens`; logs nats a token of each step's own batch.

    On a GPU matrices multiply in bf16, parameters and sums stay fp32. Windows depend on (seed,
    step) alone, so that a run resumed from its `checkpoint` is bitwise the run not interrupted, on
    one machine's CPU.
    Raises `ParameterError` for a text shorter than a window, tokens outside the vocabulary, or a
    checkpoint of other settings.
    """
    L, n = model.shape.length, len(tokens)
    if n < L + 2 or int(tokens.min()) < 0 or int(tokens.max()) >= model.shape.vocabulary:
        raise ParameterError(
            f"text of {n:,} tokens: needs {L + 2} or more, all below {model.shape.vocabulary}."
        )
    wanted = steps_to_log(settings.steps, settings.logged)
    model = model.to(device)
    identity = identity_of(model, str(model.shape), named(tokens), settings)

    def windows(step: int) -> Int64[Tensor, "B window"]:
        drawn = step_generator(settings.seed, step)
        return draw_windows(tokens, L + 1, settings.batch, drawn).to(device)

    def loss(windows: Int64[Tensor, "B window"]) -> Float[Tensor, ""]:
        kind = windows.device.type
        with torch.autocast(kind, torch.bfloat16, enabled=kind == "cuda"):
            logits = model(windows[:, :-1])
        return cross_entropy(logits.float().flatten(0, 1), windows[:, 1:].flatten())

    @torch.no_grad()
    def log(run: loop.Run) -> dict[str, Tensor]:
        found = {"loss": loss(windows(run.step))[None]}
        return found | (watch(model) if watch else {})

    run = loop.train(
        model, lambda step: [windows(step)], loss, settings,
        log=log, logged=wanted, checkpoint=Checkpoint.at(checkpoint, identity, wanted),
    )  # fmt: skip
    return History.of(run, {name: p.detach().cpu()[None] for name, p in model.named_parameters()})
