"""The transformer of arXiv:2608.23551, at any size: what it scores the V tokens with.

A DiT: rotary positions, one pre-norm attention and one MLP a block, each modulated by the noise
level through adaLN-zero, and a head that starts at zero. Parameters carry the names of the
released checkpoints, so that `load_weights` reads one; at their shape (V 50,257, d = width
768, depth 12, heads 12) it is their network.
"""

import math
from functools import partial

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn.functional import silu

from tokenspace.nn.transformer import Block, Transformer

FEATURES = 256  # sines and cosines of the noise level, as released


class DiT(nn.Module):
    """(x, γ, c) to `outputs` numbers at each position; zero before training, whatever the input.

    The input is x + W[x; c], W zero at first; c is the self-conditioning mean or zeros. With
    `width` other than d a linear map follows. `outputs` is V for logits, d for an unconstrained
    head; `causal` hides later positions (the autoregressive baseline). `base` is that of the rotary
    angles: 1e4 in the paper, for 1,024 positions; short sequences learn faster with less.
    Raises ParameterError for a width that doesn't split into heads of even size.

    >>> net = DiT(16, 12, width=32, depth=2, heads=4)
    >>> net(torch.randn(3, 5, 16), torch.zeros(3), torch.zeros(3, 5, 16)).abs().sum().item()
    0.0
    """

    def __init__(
        self,
        d: int,
        outputs: int,
        *,
        width: int | None = None,
        depth: int = 12,
        heads: int = 12,
        conditioning: int = 128,
        dropout: float = 0.0,
        causal: bool = False,
        base: float = 1e4,
    ) -> None:
        super().__init__()
        width = width or d
        self.causal = causal
        self.shape = (
            f"d={d}, outputs={outputs}, width={width}, depth={depth}, heads={heads}, "
            f"conditioning={conditioning}, dropout={dropout}, causal={causal}, base={base:g}"
        )
        self.self_cond_proj = nn.Linear(2 * d, d, bias=False)
        self.enter = nn.Identity() if width == d else nn.Linear(d, width)
        self.sigma_map = NoiseLevel(conditioning)
        norm = partial(nn.LayerNorm, bias=False)
        blocks = [
            Block(
                width, heads, norm=norm, mlp=gelu_mlp(width), level=conditioning,
                dropout=dropout, causal=causal,
            )
            for _ in range(depth)
        ]  # fmt: skip
        self.blocks = Transformer(blocks, base)
        self.output_layer = Head(width, outputs, conditioning)
        self.initialize()

    def initialize(self, generator: torch.Generator | None = None) -> None:
        """Xavier's weights and zero biases, as DiTs have; zero for head, modulations and W.

        Without a generator the one that torch shares draws.
        """
        for layer in self.modules():
            if isinstance(layer, nn.Linear):
                nn.init.xavier_uniform_(layer.weight, generator=generator)
                if layer.bias is not None:
                    nn.init.zeros_(layer.bias)
        modulations = [block.adaLN_modulation for block in [*self.blocks, self.output_layer]]
        for layer in (self.self_cond_proj, self.output_layer.linear, *modulations):
            nn.init.zeros_(layer.weight)

    def forward(
        self, x: Float[Tensor, "B L d"], gamma: Float[Tensor, " B"], c: Float[Tensor, "B L d"]
    ) -> Float[Tensor, "B L V"]:
        dtype = self.self_cond_proj.weight.dtype
        x, c = x.to(dtype), c.to(dtype)
        with torch.autocast(x.device.type, enabled=False):  # as released: bf16 from the blocks on
            h = x + self.self_cond_proj(torch.cat([x, c], -1))
        level = silu(self.sigma_map(gamma.to(dtype)))
        return self.output_layer(self.blocks(self.enter(h), level), level)


def gelu_mlp(width: int) -> nn.Sequential:
    """Two layers, four times as wide between them, with GELU's tanh form."""
    return nn.Sequential(nn.Linear(width, 4 * width), nn.GELU("tanh"), nn.Linear(4 * width, width))


class Head(nn.Module):
    """The last modulated norm and the map to the outputs, zero before training."""

    def __init__(self, width: int, outputs: int, conditioning: int) -> None:
        super().__init__()
        self.norm_final = nn.LayerNorm(width, bias=False)
        self.linear = nn.Linear(width, outputs)
        self.adaLN_modulation = nn.Linear(conditioning, 2 * width)

    def forward(self, h: Tensor, level: Tensor) -> Tensor:
        shift, scale = self.adaLN_modulation(level)[:, None].chunk(2, -1)
        return self.linear(self.norm_final(h) * (1 + scale) + shift)


class NoiseLevel(nn.Module):
    """γ through `FEATURES` sinusoidal features, wavelengths 2π to 2π·10⁴, and a small MLP."""

    def __init__(self, size: int) -> None:
        super().__init__()
        self.mlp = nn.Sequential(nn.Linear(FEATURES, size), nn.SiLU(), nn.Linear(size, size))

    def forward(self, gamma: Float[Tensor, " B"]) -> Float[Tensor, "B size"]:
        half = FEATURES // 2
        steps = torch.arange(half, device=gamma.device, dtype=gamma.dtype)
        phase = gamma[:, None] * torch.exp(-math.log(1e4) * steps / half)
        return self.mlp(torch.cat([phase.cos(), phase.sin()], -1))


def size_of(module: nn.Module) -> int:
    """Trainable parameters.

    >>> size_of(nn.Linear(2, 3))
    9
    """
    return sum(p.numel() for p in module.parameters() if p.requires_grad)
