"""What models of stacked parameters spend their time on: rows, their sums, the read-out.

A leading axis R holds the runs. Two gradients are written out where torch's own are slow.
"""

from typing import Any

import torch
import torch.nn.functional as F  # noqa: N812
from jaxtyping import Float, Int64
from torch import Tensor


def rows_of(
    table: Float[Tensor, "R V d"], index: Int64[Tensor, "N L"] | Int64[Tensor, "R N L"]
) -> Float[Tensor, "R N L d"]:
    """table[r, index[r]], or table[r, index] when the index has no leading run axis.

    >>> rows_of(torch.eye(2)[None], torch.tensor([[1, 0]])).tolist()
    [[[[0.0, 1.0], [1.0, 0.0]]]]
    """
    R, V, _ = table.shape
    return F.embedding(index + _starts(R, V, index)[:, :, None], table.flatten(0, 1))


def sum_rows(
    table: Float[Tensor, "R V d"], index: Int64[Tensor, "N L"] | Int64[Tensor, "R N L"]
) -> Float[Tensor, "R N d"]:
    """Σ_i table[r, x_i]: a bag of rows, so that no (R, N, L, d) is stored.

    >>> sum_rows(torch.eye(2)[None], torch.tensor([[1, 0], [1, 1]])).tolist()
    [[[1.0, 1.0], [0.0, 2.0]]]
    """
    return _Sums.apply(table, index)


def linear(h: Float[Tensor, "R B L d"], W: Float[Tensor, "R m d"]) -> Float[Tensor, "R B L m"]:
    """W h at every place: one product a run, not one a window.

    >>> linear(torch.ones(1, 2, 3, 4), torch.ones(1, 5, 4)).shape
    torch.Size([1, 2, 3, 5])
    """
    return (h.flatten(1, 2) @ W.mT).unflatten(1, h.shape[1:3])


def read_out(h: Float[Tensor, "R N d"], U: Float[Tensor, "R K d"]) -> Float[Tensor, "R N K"]:
    """h U^T, stored as (R, K, N): a softmax over few labels is slow where they lie side by side.

    >>> read_out(torch.ones(1, 2, 3), torch.ones(1, 4, 3)).mT.is_contiguous()
    True
    """
    return _ReadOut.apply(h, U)


class _ReadOut(torch.autograd.Function):
    """h's gradient stored as h is: torch's own is stored the other way, and slows what follows."""

    @staticmethod
    def forward(ctx: Any, h: Tensor, U: Tensor) -> Tensor:
        ctx.save_for_backward(h, U)
        return (U @ h.mT).mT

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, Tensor]:
        h, U = ctx.saved_tensors
        return grad @ U, grad.mT @ h


class _Sums(torch.autograd.Function):
    """The gradient of a row is the sum of the gradients of the bags that hold it: a bag as well.

    torch's own backward sorts the tokens of all runs again, and adds in one at a time.
    """

    @staticmethod
    def forward(ctx: Any, table: Tensor, index: Tensor) -> Tensor:
        R, V, _ = table.shape
        ctx.save_for_backward(index)
        ctx.V = V
        flat = index + _starts(R, V, index)[:, :, None]
        sums = F.embedding_bag(flat.flatten(0, 1), table.flatten(0, 1), mode="sum")
        return sums.unflatten(0, flat.shape[:2])

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None]:
        (index,) = ctx.saved_tensors
        R, N, _ = grad.shape
        L = index.shape[-1]
        tokens = index.reshape(-1, N * L)  # one row, or one a run
        bag = tokens.argsort(dim=1, stable=True) // L
        times = torch.zeros(len(tokens), ctx.V, dtype=torch.int64, device=index.device)
        times.scatter_add_(1, tokens, torch.ones_like(tokens))
        first = times.cumsum(1) - times
        found = F.embedding_bag(
            (bag + _starts(R, N, index)).flatten(),
            grad.reshape(R * N, -1),
            (first + _starts(R, N * L, index)).flatten(),
            mode="sum",
        )
        return found.unflatten(0, (R, ctx.V)), None


def _starts(R: int, size: int, like: Tensor) -> Int64[Tensor, "R 1"]:
    return torch.arange(0, R * size, size, device=like.device)[:, None]
