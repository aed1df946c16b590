"""What attention carries in the character GPT: the attention path against W^O W^V w_α.

arXiv:2608.30315, section 5, at the one layer that this model has.
"""

import torch
from jaxtyping import Float, Float64, Int64
from torch import Tensor

from tokenspace.staircase.language import CharGPT
from tokenspace.staircase.models import Params
from tokenspace.staircase.text import attention_path_signature


def attention_paths(
    model: CharGPT, params: Params, windows: Int64[Tensor, "R B window"]
) -> tuple[Float64[Tensor, "R V V"], Float[Tensor, "R V d"]]:
    """φ^attn of each run on its own windows of at most length + 1 tokens, and its rows W^O W^V w_α.

    >>> model = CharGPT(5, length=3, d=8, width=8, heads=2)
    >>> phi, rows = attention_paths(model, model.init([0.8], [0]), torch.tensor([[[0, 1, 2, 3]]]))
    >>> phi.shape, rows.shape
    (torch.Size([1, 5, 5]), torch.Size([1, 5, 8]))
    """
    seen, labels = windows[..., :-1], windows[..., 1:].cpu()
    weights = model.attention(params, seen).mean(2).cpu()
    phi = [
        attention_path_signature(A, x, y, model.vocabulary)
        for A, x, y in zip(weights, seen.cpu(), labels, strict=True)
    ]
    return torch.stack(phi), params["E"] @ params["V"].mT @ params["O"].mT
