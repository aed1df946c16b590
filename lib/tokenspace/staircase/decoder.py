"""A decoder of the paper's shape at any size, trained on a text and watched on the way.

arXiv:2608.30315, section 5: RMSNorm first, rotary positions, SwiGLU, untied; AdamW, linear warm-up,
cosine decay, bf16 on a GPU. Its 24 layers of width 1,536 are out of reach on one machine; the
default, about 35 million parameters, is not.
"""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import cast

import torch
from jaxtyping import Float, Int64
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from tokenspace.errors import ParameterError
from tokenspace.nn.checkpoint import named
from tokenspace.nn.seeds import draw_windows, step_generator
from tokenspace.nn.transformer import Block, SwiGLU, Transformer
from tokenspace.staircase import text_signatures, training
from tokenspace.staircase.alignment import alignment, cosine_gram, probe
from tokenspace.staircase.signatures import place_of
from tokenspace.staircase.text import even_windows, refuse_text


@dataclass(frozen=True)
class DecoderShape:
    """Sizes of a decoder, and γ: every matrix is drawn from N(0, d_in^(-2γ)).

    >>> DecoderShape(vocabulary=512, layers=2, d=96).gamma
    0.8
    """

    vocabulary: int
    layers: int = 8
    d: int = 512
    heads: int = 8
    width: int = 1408  # of the gated FFN
    length: int = 256
    gamma: float = 0.8

    def __post_init__(self) -> None:
        if not self.gamma > 0:
            raise ParameterError(f"γ = {self.gamma}: d_in^(-γ) needs γ > 0, small above 0.5.")


class Decoder(nn.Module):
    """logits = U norm(blocks(E x)), drawn from `seed`.

    >>> model = Decoder(DecoderShape(50, layers=1, d=8, heads=2, width=12, length=6))
    >>> model(torch.tensor([[3, 1, 4]])).shape
    torch.Size([1, 3, 50])
    """

    def __init__(self, shape: DecoderShape, seed: int = 0) -> None:
        super().__init__()
        self.shape, d = shape, shape.d
        self.E = nn.Embedding(shape.vocabulary, shape.d)
        self.blocks = Transformer(
            Block(d, shape.heads, norm=nn.RMSNorm, mlp=SwiGLU(d, shape.width), causal=True)
            for _ in range(shape.layers)
        )
        self.layers = cast(list[Block], list(self.blocks))
        self.norm = nn.RMSNorm(shape.d)
        self.U = nn.Linear(shape.d, shape.vocabulary, bias=False)
        generator = torch.Generator().manual_seed(seed)
        for matrix in self.parameters():
            if matrix.ndim == 2:
                drawn = torch.randn(matrix.shape, generator=generator)
                matrix.data = drawn * matrix.shape[1] ** -shape.gamma

    def forward(self, tokens: Int64[Tensor, "B L"]) -> Float[Tensor, "B L V"]:
        """Logits of the next token at every position; refuses more tokens than `length`."""
        return self.U(self.norm(self.blocks(self._embed(tokens))))

    @torch.no_grad()
    def attention(self, tokens: Int64[Tensor, "B L"]) -> list[Float[Tensor, "B L L"]]:
        """The heads' mean attention in every layer."""
        h, found = self._embed(tokens), []
        turn, L = self.blocks.turn(h), tokens.shape[1]
        later = torch.ones(L, L, device=h.device).triu(1).bool()
        for block in self.layers:
            q, k, _ = block.queries_keys_values(block.norm1(h), turn)  # (B, heads, L, size)
            z = (q @ k.mT / q.shape[-1] ** 0.5).masked_fill(later, -torch.inf)
            found.append(z.softmax(-1).mean(1))
            h = block(h, turn)
        return found

    @torch.no_grad()
    def value_rows(self, ids: Int64[Tensor, " T"]) -> Float[Tensor, "layers T d"]:
        """W^O W^V g ⊙ w_α in every layer: what attention moves of a row, up to its length."""
        w, found = self.E.weight[ids], []
        for block in self.layers:
            V = block.attn_qkv.weight.chunk(3)[2]  # (d, d): values lie last
            found.append(block.attn_out(w * block.norm1.weight @ V.mT))
        return torch.stack(found)

    def _embed(self, tokens: Int64[Tensor, "B L"]) -> Float[Tensor, "B L d"]:
        if tokens.shape[1] > self.shape.length:
            raise ParameterError(
                f"{tokens.shape[1]} tokens: this decoder reads at most {self.shape.length}."
            )
        return self.E(tokens)


@dataclass(frozen=True)
class DecoderSettings(training.Settings):
    """How a decoder is trained: the paper's ratios .03 and .1 of warm-up and last rate.

    A cosine between them is our reading. The paper: peak 2.5e-4, batch 256, no word of decay.

    >>> settings = DecoderSettings(100, lr=1.0, warmup=0.1)
    >>> [round(settings.rate(s), 2) for s in (0, 9, 10, 55, 100)]
    [0.1, 1.0, 1.0, 0.55, 0.1]
    """

    lr: float = 2.5e-4
    warmup: int | float = 0.03
    schedule: str = "cosine"
    optimizer: str = "adamw"
    batch: int = 32


class TextSignatures:
    """What the embeddings of a text's commonest tokens are compared with, counted once.

    Tokens other than the `top` share one place in the prefix bag and the attention path, which
    would need V³ numbers otherwise (ours). The attention path is read on `windows` even windows.
    Called with a decoder it gives "next" ρ, "probe" held-out squared error between cosines, "paths"
    ρ of every layer; each with a leading axis of one run.
    Raises `ParameterError` when fewer than `top` tokens are frequent enough.
    """

    def __init__(
        self,
        tokens: Int64[Tensor, " n"],
        vocabulary: int,
        window: int,
        *,
        top: int = 200,
        windows: int = 64,
        probe_steps: int = 300,
    ) -> None:
        self.ids = text_signatures.most_frequent(tokens, top)
        self.place = place_of(self.ids, vocabulary, top)
        pieces = self.place[tokens][: len(tokens) // window * window].reshape(-1, window)
        self.next_token = text_signatures.followers(tokens, self.ids)
        self.bag = text_signatures.prefix_bag_signature(pieces, top + 1)[:top]
        self.windows = even_windows(tokens, window + 1, windows)
        self.probe_steps = probe_steps

    def __call__(self, model: Decoder) -> dict[str, Tensor]:
        device = model.E.weight.device
        ids, seen = self.ids.to(device), self.windows[:, :-1].to(device)
        E, moved = model.E.weight.detach()[ids].cpu(), model.value_rows(ids).cpu()
        with torch.enable_grad():
            fit = probe(self.bag, E, by="tokens", steps=self.probe_steps)
        rho = alignment(cosine_gram(E), cosine_gram(self.next_token))
        x, y = self.place[self.windows[:, :-1]], self.place[self.windows[:, 1:]]
        T, paths = len(self.ids) + 1, []
        for A, rows in zip(model.attention(seen), moved, strict=True):
            path = text_signatures.attention_path_signature(A.cpu(), x, y, T)
            others = rows.new_zeros(1, rows.shape[1])  # the place that all other tokens share
            paths.append(alignment(cosine_gram(torch.cat([rows, others])), cosine_gram(path)))
        return {"next": rho[None], "probe": fit.mse[None], "paths": torch.stack(paths)[None]}


def pretrain(
    model: Decoder,
    tokens: Int64[Tensor, " n"],
    settings: DecoderSettings,
    *,
    watch: Callable[[Decoder], dict[str, Tensor]] = lambda model: {},
    checkpoint: Path | None = None,
    device: str = "cpu",
) -> training.History:
    """Train on windows drawn uniformly from `tokens`; logs nats a token of each step's own batch.

    On a GPU matrices multiply in bf16, parameters and sums stay fp32. Windows depend on (seed,
    step) alone. Raises `ParameterError` for a text shorter than a window or tokens outside the
    vocabulary, and as `follow` does.
    """
    L = model.shape.length
    refuse_text(tokens, L, model.shape.vocabulary)
    model = model.to(device)

    def loss(step: int) -> Float[Tensor, ""]:
        drawn = step_generator(settings.seed, step)
        windows = draw_windows(tokens, L + 1, settings.batch, drawn).to(device)
        kind = windows.device.type
        with torch.autocast(kind, torch.bfloat16, enabled=kind == "cuda"):
            logits = model(windows[:, :-1])
        return cross_entropy(logits.float().flatten(0, 1), windows[:, 1:].flatten())

    def log(step: int) -> dict[str, Tensor]:
        return {"loss": loss(step)[None], **watch(model)}

    names = str(model.shape), named(tokens)
    return training.follow(model, loss, log, settings, names, checkpoint)
