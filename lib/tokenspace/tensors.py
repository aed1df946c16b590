"""What the papers' packages do alike with tensors: name them by content, turn them by position."""

import hashlib

import torch
from jaxtyping import Float
from torch import Tensor


def digest(*parts: str | Tensor) -> str:
    """The first 12 hexadecimal digits of SHA-256 over texts and tensors' bytes.

    Bytes know neither shape nor type: say them in a text before the tensor.

    >>> digest("(2,)", torch.zeros(2)) == digest("(1, 2)", torch.zeros(1, 2))
    False
    """
    found = hashlib.sha256()
    for part in parts:
        if isinstance(part, str):
            found.update(part.encode())
        else:
            raw = part.detach().cpu().contiguous().flatten().view(torch.uint8)
            found.update(raw.numpy().data)
    return found.hexdigest()[:12]


def turns(
    length: int, width: int, base: float = 10_000.0, device: torch.device | str | None = None
) -> Float[Tensor, "2 length half"]:
    """Cosines and sines of rotary positions: pair i of position s turns by s base^(-2i/width).

    >>> turns(3, 4)[0, 0].tolist()
    [1.0, 1.0]
    """
    pair = torch.arange(0, width, 2, device=device, dtype=torch.float32)
    position = torch.arange(length, device=device, dtype=torch.float32)
    angle = position[:, None] * base ** (-pair / width)
    return torch.stack([angle.cos(), angle.sin()])


def rotate(
    x: Float[Tensor, "*batch L width"], turn: Float[Tensor, "2 L half"]
) -> Float[Tensor, "*batch L width"]:
    """Turn the pairs (x_i, x_{i + width/2}) of every position: products depend on distance only.

    >>> rotate(torch.tensor([[1.0, 0.0]]), turns(2, 2)[:, 1:]).tolist()
    [[0.540..., 0.841...]]
    """
    a, b = x.chunk(2, dim=-1)
    cos, sin = turn
    return torch.cat([a * cos - b * sin, a * sin + b * cos], dim=-1)
