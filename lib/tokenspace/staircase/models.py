"""The models of Part I as functions of stacked parameters: a leading axis R holds the runs.

Yao, Hang and Xu (arXiv:2608.30315): f = U σ(Σ E_x) and attention alone. Ours: a hidden matrix W,
the residual stream. Every matrix is drawn from N(0, d_in^(-2γ)); γ > 1/2 is small.
A run's draws depend on its seed alone, so that runs trained together equal runs trained apart.
Two gradients are written out where torch's own are slow.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import torch
import torch.nn.functional as F  # noqa: N812
from jaxtyping import Float, Int64
from torch import Tensor

from tokenspace.errors import ParameterError

Params = dict[str, Tensor]
Shapes = dict[str, tuple[int, int, int]]  # rows, columns and d_in of every matrix
Sequences = Int64[Tensor, "N L"] | Int64[Tensor, "R N L"]  # shared by the runs, or each run its own

# σ and its derivatives s_0, s_1, ... at zero; ReLU's are those of z / 2, |z| / 2 having none.
ACTIVATIONS: dict[str, tuple[Callable[[Tensor], Tensor], tuple[float, ...]]] = {
    "relu": (F.relu, (0.0, 0.5, 0.0, 0.0)),
    "gelu": (F.gelu, (0.0, 0.5, 2 / math.sqrt(2 * math.pi), 0.0)),
    "silu": (F.silu, (0.0, 0.5, 0.5, 0.0)),
    "tanh": (torch.tanh, (0.0, 1.0, 0.0, -2.0)),
    "linear": (lambda z: z, (0.0, 1.0, 0.0, 0.0)),
}


def activation(name: str) -> tuple[Callable[[Tensor], Tensor], tuple[float, ...]]:
    """σ and its derivatives s_0..s_3 at zero: relu, gelu, silu, tanh, linear, or "z^K".

    >>> activation("z^3")[1]
    (0.0, 0.0, 0.0, 6.0)
    """
    if name in ACTIVATIONS:
        return ACTIVATIONS[name]
    if name[:2] != "z^" or not name[2:].isdigit() or int(name[2:]) < 1:
        known = ", ".join(ACTIVATIONS)
        raise ParameterError(f"activation {name!r} is unknown; take one of {known}, or 'z^K'.")
    power = int(name[2:])
    at_zero = (float(math.factorial(j)) if j == power else 0.0 for j in range(4))
    return lambda z: z**power, tuple(at_zero)


class Stacked:
    """What all models here share: parameters drawn by their `shapes`."""

    def shapes(self) -> Shapes:
        """Rows, columns and d_in of every matrix."""
        raise NotImplementedError

    def init(
        self, gammas: Sequence[float], seeds: Sequence[int], dtype: torch.dtype = torch.float32
    ) -> Params:
        """Parameters of runs γ × seeds, γ outermost, each matrix N(0, d_in^(-2γ)), along axis 0.

        Drawn in float64, run after run. Raises `ParameterError` for γ not above 0, or for no run.

        >>> FFN(2, 2, d=3).init([0.5], [0, 1])["E"].shape
        torch.Size([2, 2, 3])
        """
        bad = [g for g in gammas if not g > 0 or math.isinf(g)]
        if bad or not gammas or not seeds:
            raise ParameterError(
                f"γ = {bad or list(gammas)}, seeds {list(seeds)}: the standard deviation d_in^(-γ) "
                f"needs γ > 0 (small above 0.5), and at least one γ and one seed."
            )
        stacks: dict[str, list[Tensor]] = {name: [] for name in self.shapes()}
        for gamma, seed in product(gammas, seeds):
            g = torch.Generator().manual_seed(seed)
            for name, (rows, columns, d_in) in self.shapes().items():
                z = torch.randn(rows, columns, generator=g, dtype=torch.float64)
                stacks[name].append(z * d_in**-gamma)
        return {name: torch.stack(stack).to(dtype) for name, stack in stacks.items()}


@dataclass(frozen=True)
class FFN(Stacked):
    """f = U σ(Σ_i E_{x_i}), or U σ(W Σ_i E_{x_i}) with a hidden width: blind to order.

    Parameters with a "scale" (R, 1, 1) stand for rows "scale" times E: freeze E, and only the
    length of its rows is learned.

    >>> model = FFN(5, 3, d=4)
    >>> model(model.init([0.5, 0.8], [0]), torch.tensor([[0, 1], [2, 2]])).shape
    torch.Size([2, 2, 3])
    """

    vocabulary: int
    labels: int
    d: int = 128
    activation: str = "relu"
    width: int | None = None

    def __post_init__(self) -> None:
        activation(self.activation)  # refuses an unknown name

    def shapes(self) -> Shapes:
        """E (V, d), with a hidden width W (m, d), and U (K, m or d)."""
        V, d, m = self.vocabulary, self.d, self.width
        hidden = {} if m is None else {"W": (m, d, d)}
        return {"E": (V, d, d), **hidden, "U": (self.labels, m or d, m or d)}

    def rows(self, params: Params) -> Float[Tensor, "R V h"]:
        """E, or W E: what is summed."""
        E = params["E"] * params["scale"] if "scale" in params else params["E"]
        return E if self.width is None else E @ params["W"].mT

    def __call__(self, params: Params, sequences: Sequences) -> Float[Tensor, "R N K"]:
        """Logits."""
        sigma, _ = activation(self.activation)
        return read_out(sigma(sum_rows(self.rows(params), sequences)), params["U"])


@dataclass(frozen=True)
class Attention(Stacked):
    """f = U O V Σ_s a_s h_s read at the last position; a = softmax(h_s^T K^T Q h_L / √d).

    h = E + positions P. Paper: no residual, norm, FFN, bias. `residual` adds h_L (ours).

    >>> model = Attention(5, 3, length=2, d=4, d_k=2)
    >>> model(model.init([0.8], [0, 1]), torch.tensor([[0, 1]])).shape
    torch.Size([2, 1, 3])
    """

    vocabulary: int
    labels: int
    length: int
    d: int = 128
    d_k: int = 64
    positions: bool = True
    residual: bool = False

    def shapes(self) -> Shapes:
        """E (V, d), with positions P (L, d), Q, K and V (k, d), O (d, k), U (K, d)."""
        d, k = self.d, self.d_k
        places = {"P": (self.length, d, d)} if self.positions else {}
        heads = {"Q": (k, d, d), "K": (k, d, d), "V": (k, d, d), "O": (d, k, k)}
        return {"E": (self.vocabulary, d, d), **places, **heads, "U": (self.labels, d, d)}

    def stream(self, params: Params, sequences: Sequences) -> Float[Tensor, "R N L d"]:
        """h_s = E_{x_s} + P_s."""
        h = rows_of(params["E"], sequences)
        return h + params["P"][:, None] if self.positions else h

    def scores(self, params: Params, h: Float[Tensor, "R N L d"]) -> Float[Tensor, "R N L"]:
        """a_s of the last position's query."""
        query = h[:, :, -1] @ params["Q"].mT @ params["K"]  # K^T Q h_L, (R, N, d)
        return ((h @ query[..., None])[..., 0] / math.sqrt(self.d)).softmax(-1)

    def __call__(self, params: Params, sequences: Sequences) -> Float[Tensor, "R N K"]:
        """Logits at the last position."""
        h = self.stream(params, sequences)
        mean = (self.scores(params, h)[..., None, :] @ h)[..., 0, :]  # (R, N, d)
        out = mean @ params["V"].mT @ params["O"].mT
        if self.residual:
            out = out + h[:, :, -1]
        return read_out(out, params["U"])


Model = FFN | Attention


def rows_of(table: Float[Tensor, "R V d"], index: Sequences) -> Float[Tensor, "R N L d"]:
    """table[r, index[r]], or table[r, index] when the index has no leading run axis.

    >>> rows_of(torch.eye(2)[None], torch.tensor([[1, 0]])).tolist()
    [[[[0.0, 1.0], [1.0, 0.0]]]]
    """
    R, V, _ = table.shape
    return F.embedding(index + _starts(R, V, index)[:, :, None], table.flatten(0, 1))


def sum_rows(table: Float[Tensor, "R V d"], index: Sequences) -> Float[Tensor, "R N d"]:
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
