"""A decoder of the paper's shape at any size: RMSNorm first, rotary positions, SwiGLU, untied.

arXiv:2608.30315, section 5. Its 24 layers of width 1,536 are out of reach on one machine; the
default, about 35 million parameters, is not.
"""

from dataclasses import dataclass
from typing import cast

import torch
import torch.nn.functional as F  # noqa: N812
from jaxtyping import Float, Int64
from torch import Tensor, nn

from tokenspace.errors import ParameterError
from tokenspace.nn.transformer import rotate, turns


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


class Block(nn.Module):
    """h += O attention(norm h); h += W2 (silu(W1 norm h) ⊙ W3 norm h)."""

    def __init__(self, shape: DecoderShape) -> None:
        super().__init__()
        d, m = shape.d, shape.width
        self.heads = shape.heads
        self.attention_norm, self.ffn_norm = nn.RMSNorm(d), nn.RMSNorm(d)
        self.Q, self.K, self.V, self.O = (nn.Linear(d, d, bias=False) for _ in "QKVO")
        self.W1, self.W3 = nn.Linear(d, m, bias=False), nn.Linear(d, m, bias=False)
        self.W2 = nn.Linear(m, d, bias=False)

    def queries_keys(
        self, h: Float[Tensor, "B L d"], turn: Float[Tensor, "2 L half"]
    ) -> tuple[Float[Tensor, "B H L k"], Float[Tensor, "B H L k"]]:
        """Queries and keys of every head, turned by their position."""
        x = self.attention_norm(h)
        return rotate(self._split(self.Q(x)), turn), rotate(self._split(self.K(x)), turn)

    def forward(
        self, h: Float[Tensor, "B L d"], turn: Float[Tensor, "2 L half"]
    ) -> Float[Tensor, "B L d"]:
        """The stream after this block."""
        q, k = self.queries_keys(h, turn)
        v = self._split(self.V(self.attention_norm(h)))
        mixed = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        h = h + self.O(mixed.transpose(1, 2).flatten(2))
        x = self.ffn_norm(h)
        return h + self.W2(F.silu(self.W1(x)) * self.W3(x))

    def _split(self, x: Tensor) -> Tensor:
        return x.unflatten(-1, (self.heads, -1)).transpose(1, 2)


class Decoder(nn.Module):
    """logits = U norm(blocks(E x)), drawn from `seed`.

    >>> model = Decoder(DecoderShape(50, layers=1, d=8, heads=2, width=12, length=6))
    >>> model(torch.tensor([[3, 1, 4]])).shape
    torch.Size([1, 3, 50])
    """

    turn: Tensor

    def __init__(self, shape: DecoderShape, seed: int = 0) -> None:
        super().__init__()
        self.shape = shape
        self.E = nn.Embedding(shape.vocabulary, shape.d)
        self.blocks = nn.ModuleList(Block(shape) for _ in range(shape.layers))
        self.norm = nn.RMSNorm(shape.d)
        self.U = nn.Linear(shape.d, shape.vocabulary, bias=False)
        self.register_buffer("turn", turns(shape.length, shape.d // shape.heads), persistent=False)
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
        h = self.E(tokens)
        turn = self._turn(tokens)
        for block in self.layers:
            h = block(h, turn)
        return self.U(self.norm(h))

    @torch.no_grad()
    def attention(self, tokens: Int64[Tensor, "B L"]) -> list[Float[Tensor, "B L L"]]:
        """The heads' mean attention in every layer."""
        h, turn, found = self.E(tokens), self._turn(tokens), []
        later = torch.ones(tokens.shape[1], tokens.shape[1], device=h.device).triu(1).bool()
        for block in self.layers:
            q, k = block.queries_keys(h, turn)
            z = (q @ k.mT / q.shape[-1] ** 0.5).masked_fill(later, -torch.inf)
            found.append(z.softmax(-1).mean(1))
            h = block(h, turn)
        return found

    @torch.no_grad()
    def value_rows(self, ids: Int64[Tensor, " T"]) -> Float[Tensor, "layers T d"]:
        """W^O W^V g ⊙ w_α in every layer: what attention moves of a row, up to its length."""
        w = self.E.weight[ids]
        return torch.stack([b.O(b.V(w * b.attention_norm.weight)) for b in self.layers])

    def _turn(self, tokens: Tensor) -> Tensor:
        if tokens.shape[1] > self.shape.length:
            raise ParameterError(
                f"{tokens.shape[1]} tokens: this decoder reads at most {self.shape.length}."
            )
        return self.turn[:, : tokens.shape[1]]
