"""The models of Part I as functions of stacked parameters: a leading axis R holds the runs.

Yao, Hang and Xu (arXiv:2608.30315): f = U σ(Σ E_x) and attention alone. Ours: a hidden matrix W,
the residual stream. Every matrix is drawn from N(0, d_in^(-2γ)); γ > 1/2 is small.
A run's draws depend on its seed alone, so that runs trained together equal runs trained apart.
"""

import math
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
import torch.nn.functional as F  # noqa: N812
from jaxtyping import Float, Int64
from torch import Tensor

from tokenspace.errors import ParameterError
from tokenspace.staircase.kernels import read_out, rows_of, sum_rows

Params = dict[str, Tensor]

# σ and its derivatives s_0, s_1, ... at zero; ReLU's are those of z / 2, |z| / 2 having none.
ACTIVATIONS: dict[str, tuple[Callable[[Tensor], Tensor], tuple[float, ...]]] = {
    "relu": (F.relu, (0.0, 0.5, 0.0, 0.0)),
    "gelu": (F.gelu, (0.0, 0.5, 2 / math.sqrt(2 * math.pi), 0.0)),
    "silu": (F.silu, (0.0, 0.5, 0.5, 0.0)),
    "tanh": (torch.tanh, (0.0, 1.0, 0.0, -2.0)),
    "linear": (lambda z: z, (0.0, 1.0, 0.0, 0.0)),
}


def activation(name: str) -> Callable[[Tensor], Tensor]:
    """σ by name: relu, gelu, silu, tanh, linear, or a monomial "z^K".

    >>> activation("z^3")(torch.tensor(2.0)).item()
    8.0
    """
    if name in ACTIVATIONS:
        return ACTIVATIONS[name][0]
    power = _power(name)
    return lambda z: z**power


def derivatives(name: str) -> tuple[float, ...]:
    """s_j = σ^(j)(0), j = 0..3.

    >>> derivatives("z^2"), derivatives("silu")
    ((0.0, 0.0, 2.0, 0.0), (0.0, 0.5, 0.5, 0.0))
    """
    if name in ACTIVATIONS:
        return ACTIVATIONS[name][1]
    power = _power(name)
    return tuple(float(math.factorial(j)) if j == power else 0.0 for j in range(4))


def warn_flat(name: str) -> None:
    """Warns where σ''(0) = 0, so that the expansion at zero has no label-driven order 1."""
    if derivatives(name)[2] == 0:
        warnings.warn(
            f"activation {name!r} has σ''(0) = 0: its expansion at zero has no order-1 label term; "
            f"take silu or gelu for the theory.",
            stacklevel=3,
        )


def runs(gammas: Sequence[float], seeds: Sequence[int]) -> list[tuple[float, int]]:
    """(γ, seed) of each run along the leading axis: γ outermost.

    >>> runs([0.3, 0.8], [0, 1])
    [(0.3, 0), (0.3, 1), (0.8, 0), (0.8, 1)]
    """
    return [(float(gamma), int(seed)) for gamma in gammas for seed in seeds]


@dataclass(frozen=True)
class FFN:
    """f = U σ(Σ_i E_{x_i}), or U σ(W Σ_i E_{x_i}) with a hidden width: blind to order.

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
        activation(self.activation)

    def shapes(self) -> dict[str, tuple[int, int, int]]:
        """Rows, columns and d_in of every matrix."""
        V, d, m = self.vocabulary, self.d, self.width
        hidden = {} if m is None else {"W": (m, d, d)}
        return {"E": (V, d, d), **hidden, "U": (self.labels, m or d, m or d)}

    def init(
        self, gammas: Sequence[float], seeds: Sequence[int], dtype: torch.dtype = torch.float32
    ) -> Params:
        """Parameters of runs γ × seeds, each matrix N(0, d_in^(-2γ)), stacked along axis 0."""
        return draw(self.shapes(), gammas, seeds, dtype)

    def __call__(
        self, params: Params, sequences: Int64[Tensor, "N L"] | Int64[Tensor, "R N L"]
    ) -> Float[Tensor, "R N K"]:
        """Logits; sequences (N, L) shared by the runs, or (R, N, L), each run its own."""
        rows = params["E"] if self.width is None else params["E"] @ params["W"].mT
        return read_out(activation(self.activation)(sum_rows(rows, sequences)), params["U"])


@dataclass(frozen=True)
class Attention:
    """f = U O V Σ_s a_s h_s read at the last position; a = softmax(h_s^T K^T Q h_L / √d).

    h = E + positions P. Paper: no residual, norm, FFN, bias. `residual` adds h_L (ours), and
    `width` an FFN h + W2 σ(W1 h) behind it (ours).

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
    width: int | None = None
    activation: str = "silu"

    def __post_init__(self) -> None:
        activation(self.activation)

    def shapes(self) -> dict[str, tuple[int, int, int]]:
        """Rows, columns and d_in of every matrix."""
        d, k, m = self.d, self.d_k, self.width
        out = {"E": (self.vocabulary, d, d)}
        if self.positions:
            out["P"] = (self.length, d, d)
        out |= {"Q": (k, d, d), "K": (k, d, d), "V": (k, d, d), "O": (d, k, k)}
        if m is not None:
            out |= {"W1": (m, d, d), "W2": (d, m, m)}
        return out | {"U": (self.labels, d, d)}

    def init(
        self, gammas: Sequence[float], seeds: Sequence[int], dtype: torch.dtype = torch.float32
    ) -> Params:
        """Parameters of runs γ × seeds, each matrix N(0, d_in^(-2γ)), stacked along axis 0."""
        return draw(self.shapes(), gammas, seeds, dtype)

    def stream(
        self, params: Params, sequences: Int64[Tensor, "N L"] | Int64[Tensor, "R N L"]
    ) -> Float[Tensor, "R N L d"]:
        """h_s = E_{x_s} + P_s."""
        h = rows_of(params["E"], sequences)
        return h + params["P"][:, None] if self.positions else h

    def scores(self, params: Params, h: Float[Tensor, "R N L d"]) -> Float[Tensor, "R N L"]:
        """a_s of the last position's query."""
        query = h[:, :, -1] @ params["Q"].mT @ params["K"]  # K^T Q h_L
        return ((h @ query[..., None])[..., 0] / math.sqrt(self.d)).softmax(-1)

    def __call__(
        self, params: Params, sequences: Int64[Tensor, "N L"] | Int64[Tensor, "R N L"]
    ) -> Float[Tensor, "R N K"]:
        """Logits at the last position; sequences shared by the runs or one set a run."""
        h = self.stream(params, sequences)
        mean = (self.scores(params, h)[..., None, :] @ h)[..., 0, :]
        out = mean @ params["V"].mT @ params["O"].mT
        if self.residual:
            out = out + h[:, :, -1]
        if self.width is not None:
            out = out + activation(self.activation)(out @ params["W1"].mT) @ params["W2"].mT
        return read_out(out, params["U"])


@dataclass(frozen=True)
class Scaled:
    """An FFN on rows "scale" times E: freeze E, and only the length of its rows is learned.

    >>> model = Scaled(FFN(5, 3, d=4))
    >>> model(model.init([0.5], [0]), torch.tensor([[0, 1]])).shape
    torch.Size([1, 1, 3])
    """

    model: FFN

    def init(
        self, gammas: Sequence[float], seeds: Sequence[int], dtype: torch.dtype = torch.float32
    ) -> Params:
        """The FFN's parameters, and "scale" (R, 1, 1), which is 1."""
        params = self.model.init(gammas, seeds, dtype)
        return params | {"scale": torch.ones(len(params["E"]), 1, 1, dtype=dtype)}

    def __call__(
        self, params: Params, sequences: Int64[Tensor, "N L"] | Int64[Tensor, "R N L"]
    ) -> Float[Tensor, "R N K"]:
        """Logits."""
        return self.model(params | {"E": params["E"] * params["scale"]}, sequences)


Model = FFN | Attention | Scaled


def draw(
    shapes: dict[str, tuple[int, int, int]],
    gammas: Sequence[float],
    seeds: Sequence[int],
    dtype: torch.dtype = torch.float32,
) -> Params:
    """N(0, d_in^(-2γ)) for every (rows, columns, d_in); drawn in float64, run after run.

    >>> draw({"E": (2, 3, 3)}, [0.5], [0, 1])["E"].shape
    torch.Size([2, 2, 3])
    """
    bad = [g for g in gammas if not g > 0 or math.isinf(g)]
    if bad or not gammas or not seeds:
        raise ParameterError(
            f"γ = {bad or list(gammas)}, seeds {list(seeds)}: the standard deviation d_in^(-γ) "
            f"needs γ > 0 (small above 0.5), and at least one γ and one seed."
        )
    stacks: dict[str, list[Tensor]] = {name: [] for name in shapes}
    for gamma, seed in runs(gammas, seeds):
        g = torch.Generator().manual_seed(seed)
        for name, (rows, columns, d_in) in shapes.items():
            z = torch.randn(rows, columns, generator=g, dtype=torch.float64)
            stacks[name].append(z * d_in**-gamma)
    return {name: torch.stack(stack).to(dtype) for name, stack in stacks.items()}


def _power(name: str) -> int:
    if name[:2] != "z^" or not name[2:].isdigit() or int(name[2:]) < 1:
        known = ", ".join(ACTIVATIONS)
        raise ParameterError(f"activation {name!r} is unknown; take one of {known}, or 'z^K'.")
    return int(name[2:])
