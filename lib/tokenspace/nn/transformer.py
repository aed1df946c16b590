"""The transformer that Part I's decoder and Part III's network are made of.

Pre-norm blocks with rotary positions; the norm, the MLP and a modulation by a noise level are the
model's choice. Parameters carry the names of the checkpoints that Part III's paper released.
"""

from collections.abc import Callable, Iterable

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn.functional import dropout, scaled_dot_product_attention, silu

from tokenspace.errors import ParameterError


def turns(
    length: int, width: int, base: float = 10_000.0, device: torch.device | str | None = None
) -> Float[Tensor, "2 length half"]:
    """Cosines and sines of rotary positions: pair i of position s turns by s base^(-2i/width).

    >>> turns(3, 4)[0, 0].tolist()
    [1.0, 1.0]
    """
    pair = torch.arange(0, width, 2, device=device, dtype=torch.float32)
    position = torch.arange(length, device=device, dtype=torch.float32)
    angle = position[:, None] * base ** (-pair / width)  # (length, half)
    return torch.stack([angle.cos(), angle.sin()])


def rotate(
    x: Float[Tensor, "*batch L width"], turn: Float[Tensor, "2 L half"]
) -> Float[Tensor, "*batch L width"]:
    """Turn the pairs (x_i, x_{i + width/2}) of every position: products depend on distance only.

    >>> turn = turns(2, 2)[:, 1:]  # by one radian
    >>> [round(v, 3) for v in rotate(torch.tensor([[1.0, 0.0]]), turn)[0].tolist()]
    [0.54, 0.841]
    """
    a, b = x.chunk(2, dim=-1)
    cos, sin = turn
    return torch.cat([a * cos - b * sin, a * sin + b * cos], dim=-1)


class Block(nn.Module):
    """h += attention(norm h), then h += mlp(norm h), both bias-free in attention.

    With `level` > 0 inputs are shifted and scaled, and outputs gated, by a linear map of a noise
    level of that size (adaLN). `causal` hides later positions.
    Raises ParameterError for a width that doesn't split into heads of even size.
    """

    def __init__(
        self,
        width: int,
        heads: int,
        *,
        norm: Callable[[int], nn.LayerNorm | nn.RMSNorm],
        mlp: nn.Module,
        level: int = 0,
        dropout: float = 0.0,
        causal: bool = False,
    ) -> None:
        super().__init__()
        if width % (2 * heads):
            raise ParameterError(
                f"width = {width} in {heads} heads: rotary positions need heads of an even size, "
                f"so a width that is a multiple of {2 * heads}."
            )
        self.heads, self.dropout, self.causal = heads, dropout, causal
        self.norm1 = norm(width)
        self.attn_qkv = nn.Linear(width, 3 * width, bias=False)
        self.attn_out = nn.Linear(width, width, bias=False)
        self.norm2 = norm(width)
        self.mlp = mlp
        self.adaLN_modulation = nn.Linear(level, 6 * width) if level else None

    def forward(
        self,
        h: Float[Tensor, "B L width"],
        turn: Float[Tensor, "2 L half"],
        level: Float[Tensor, "B size"] | None = None,
    ) -> Float[Tensor, "B L width"]:
        """The stream after this block."""
        if self.adaLN_modulation is None or level is None:
            h = h + self._drop(self.attention(self.norm1(h), turn))
            return h + self._drop(self.mlp(self.norm2(h)))
        modulation = self.adaLN_modulation(level)[:, None].chunk(6, -1)  # six of (B, 1, width)
        shift, scale, gate, shift_mlp, scale_mlp, gate_mlp = modulation
        h = h + gate * self._drop(self.attention(self.norm1(h) * (1 + scale) + shift, turn))
        return h + gate_mlp * self._drop(self.mlp(self.norm2(h) * (1 + scale_mlp) + shift_mlp))

    def attention(self, x: Tensor, turn: Tensor) -> Tensor:
        """What attention adds, of a normed stream."""
        q, k, v = self.queries_keys_values(x, turn)
        mixed = scaled_dot_product_attention(q, k, v, is_causal=self.causal)
        return self.attn_out(mixed.transpose(1, 2).flatten(2))  # (B, L, heads · size)

    def queries_keys_values(
        self, x: Float[Tensor, "B L width"], turn: Float[Tensor, "2 L half"]
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Queries, keys and values of every head, the first two turned by their position."""
        split = self.attn_qkv(x).unflatten(-1, (3, self.heads, -1))  # (B, L, 3, heads, size)
        q, k, v = split.permute(2, 0, 3, 1, 4)  # (3, B, heads, L, size)
        q, k = (rotate(each, turn.to(each.dtype)) for each in (q, k))
        return q, k, v  # each (B, heads, L, size)

    def _drop(self, x: Tensor) -> Tensor:
        return dropout(x, self.dropout, self.training)


class Transformer(nn.ModuleList):
    """Blocks one after the other, their positions turned by angles of this `base`.

    >>> blocks = Transformer([Block(8, 2, norm=nn.RMSNorm, mlp=SwiGLU(8, 12), causal=True)] * 3)
    >>> blocks(torch.zeros(1, 5, 8)).shape
    torch.Size([1, 5, 8])
    """

    def __init__(self, blocks: Iterable[Block], base: float = 1e4) -> None:
        made = list(blocks)
        super().__init__(made)
        self.heads, self.base = made[0].heads, base

    def forward(
        self, h: Float[Tensor, "B L width"], level: Float[Tensor, "B size"] | None = None
    ) -> Float[Tensor, "B L width"]:
        """The stream after the last block."""
        turn = self.turn(h)
        for block in self:
            h = block(h, turn, level)
        return h

    def turn(self, h: Float[Tensor, "B L width"]) -> Float[Tensor, "2 L half"]:
        """How far each position of the stream is turned."""
        return turns(h.shape[1], h.shape[-1] // self.heads, self.base, h.device).to(h.dtype)


class SwiGLU(nn.Module):
    """W2 (silu(W1 x) ⊙ W3 x), without biases."""

    def __init__(self, width: int, inner: int) -> None:
        super().__init__()
        self.W1 = nn.Linear(width, inner, bias=False)
        self.W3 = nn.Linear(width, inner, bias=False)
        self.W2 = nn.Linear(inner, width, bias=False)

    def forward(self, x: Float[Tensor, "B L width"]) -> Float[Tensor, "B L width"]:
        return self.W2(silu(self.W1(x)) * self.W3(x))
