"""A decoder of the paper's shape at any size: RMSNorm first, rotary positions, SwiGLU, untied.

arXiv:2608.30315, section 5. Its 24 layers of width 1,536 are out of reach on one machine; the
default, about 35 million parameters, is not.
"""

from dataclasses import dataclass
from functools import partial
from typing import cast

import torch
from jaxtyping import Float, Int64
from torch import Tensor, nn

from tokenspace.errors import ParameterError
from tokenspace.nn.transformer import Block, SwiGLU, Transformer


@dataclass(frozen=True)
class DecoderShape:
    """Sizes of a decoder, and γ: every matrix is drawn from N(0, d_in^(-2γ)).

    >>> round(DecoderShape(8192).parameters / 1e6)
    34
    """

    vocabulary: int
    layers: int = 8
    d: int = 512
    heads: int = 8
    width: int = 1408  # of the gated FFN
    length: int = 256
    gamma: float = 0.8

    def __post_init__(self) -> None:
        if self.d % (2 * self.heads):
            raise ParameterError(
                f"d = {self.d}, {self.heads} heads: rotary positions need an even d / heads."
            )
        if not self.gamma > 0:
            raise ParameterError(f"γ = {self.gamma}: d_in^(-γ) needs γ > 0, small above 0.5.")

    @property
    def parameters(self) -> int:
        """How many numbers are trained."""
        d, block = self.d, 4 * self.d**2 + 3 * self.d * self.width + 2 * self.d
        return 2 * self.vocabulary * d + self.layers * block + d


class Decoder(nn.Module):
    """logits = U norm(blocks(E x)), drawn from `seed`.

    >>> model = Decoder(DecoderShape(50, layers=1, d=8, heads=2, width=12, length=6))
    >>> model(torch.tensor([[3, 1, 4]])).shape
    torch.Size([1, 3, 50])
    """

    def __init__(self, shape: DecoderShape, seed: int = 0) -> None:
        super().__init__()
        self.shape = shape
        self.E = nn.Embedding(shape.vocabulary, shape.d)
        mlp = partial(SwiGLU, shape.d, shape.width)
        self.blocks = Transformer(
            shape.d, shape.layers, shape.heads, norm=nn.RMSNorm, mlp=mlp, causal=True
        )
        self.norm = nn.RMSNorm(shape.d)
        self.U = nn.Linear(shape.d, shape.vocabulary, bias=False)
        generator = torch.Generator().manual_seed(seed)
        for matrix in self.parameters():
            if matrix.ndim == 2:
                drawn = torch.randn(matrix.shape, generator=generator)
                matrix.data = drawn * matrix.shape[1] ** -shape.gamma

    @property
    def layers(self) -> list[Block]:
        """The blocks, first to last."""
        return cast(list[Block], list(self.blocks))

    def forward(self, tokens: Int64[Tensor, "B L"]) -> Float[Tensor, "B L V"]:
        """Logits of the next token at every position.

        Raises `ParameterError` for more tokens than the decoder's length.
        """
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
