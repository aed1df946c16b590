"""The velocity of embeddings under gradient flow, split by context order and by path.

arXiv:2608.30315, Theorems 1 to 3; every function keeps the runs' axis R and returns one row a
target token. Ours: the same split for any σ, and the lowest-degree form of U σ(W Σ E).
"""

import math
import warnings
from dataclasses import replace
from itertools import combinations

import torch
from jaxtyping import Float
from torch import Tensor

from tokenspace.errors import ParameterError
from tokenspace.staircase.models import FFN, Attention, Model, Params, activation
from tokenspace.staircase.signatures import context_ids, label_ids, signature_tensor
from tokenspace.staircase.tasks import Task
from tokenspace.staircase.training import cross_entropy, refuse_misfit

Rows = Float[Tensor, "*R T d"]  # one row a target


def velocity(model: Model, params: Params, task: Task) -> Rows:
    """Ė = -∂(cross entropy)/∂E of the targets, by autograd: the oracle of all that follows."""
    refuse_misfit(model, task)
    E = params["E"].detach().requires_grad_()
    logits = model(params | {"E": E}, task.sequences)
    loss = cross_entropy(logits, task.labels.to(E.dtype)) @ task.weights.to(E.dtype)
    return -torch.autograd.grad(loss.sum(), E)[0][:, task.targets]


def predicted(model: Model, params: Params, task: Task, run: int = 0) -> Task:
    """The task with one run's p(y | X) as its labels: its terms are the prediction part, Ė^p."""
    with torch.no_grad():
        probabilities = model(params, task.sequences)[run].double().softmax(-1)
    return replace(task, labels=probabilities, blocks={})


def uniform(task: Task) -> Task:
    """The task with labels 1/K: its terms are Theorem 2's, U_ν -> b0 and φ^{y;m} -> φ^m."""
    return replace(task, labels=torch.full_like(task.labels, 1 / task.labels.shape[1]), blocks={})


def order_terms(model: FFN, params: Params, task: Task) -> list[Rows]:
    """Theorem 1: the label part Ė^y by order m = 0..L-1; the terms sum to it, at any time.

    Term m is L r_α binom(L-1, m) Σ φ^{y;m}_α(ν, β) U_ν ⊙ Δ_β σ'(E_α), Δ the m-fold difference
    Σ_{S ⊆ β} (-1)^(m-|S|) σ'(E_α + Σ_S E_β). For a polynomial σ that is the paper's multinomial
    sum; for any other it is as exact. With a hidden W, E stands for its rows W E, and the term is
    taken back by W^T.

    >>> from tokenspace.staircase import FFN, arithmetic
    >>> task, model = arithmetic("add", 3, vocabulary=7), FFN(7, 7, d=4, activation="z^2")
    >>> len(order_terms(model, model.init([0.5], [0], torch.float64), task))
    2
    """
    H = model.rows(params)
    U = params["U"][:, label_ids(task)]  # (R, K, h)
    rate = task.rate.to(H.dtype)[:, None]
    contexts = H[:, context_ids(task)]
    (R, C, h), T = contexts.shape, len(task.targets)
    terms = []
    for m in range(task.length):
        phi = signature_tensor(task, m).to(H.dtype).reshape(T, -1, C**m)  # (T, K, C^m)
        pushed = torch.einsum("tkc,rkh->rtch", phi, U)  # (R, T, C^m, h)
        base = H[:, task.targets].reshape(R, T, *[1] * m, h)
        shift = [  # context j varies along an axis of its own
            contexts.reshape(R, 1, *[C if i == j else 1 for i in range(m)], h) for j in range(m)
        ]
        change = torch.zeros(R, T, *[C] * m, h, dtype=H.dtype)
        for size in range(m + 1):
            for S in combinations(range(m), size):
                z = base + sum((shift[j] for j in S), torch.zeros((), dtype=H.dtype))
                change = change + (-1) ** (m - size) * slope(model.activation, z)
        change = change.reshape(R, T, -1, h)  # (R, T, C^m, h)
        term = math.comb(task.length - 1, m) * (pushed * change).sum(2)  # (R, T, h)
        terms.append(_back(model, params, rate * term))
    return terms


def lowest_degree(model: FFN, params: Params, task: Task, order: int) -> Rows:
    """Ours: the part of Ė of degree `order` (0 or 1) in E, E small. Warns when σ''(0) = 0.

    0: s1 L r W^T U^T (φ⁰ - 1/K). 1: s2 L r Σ_c W^T [W E_c ⊙ U^T (P(y, c|v) - P(c|v)/K)]
    - (s1²/K) L r W^T U^T (I - J/K) U W Σ_c P(c|v) E_c, c over the whole sequence, v included.
    """
    if order not in (0, 1):
        raise ParameterError(f"order = {order}: the lowest-degree form is written for 0 and 1.")
    H, U = model.rows(params), params["U"]
    K = U.shape[1]
    _, (_, s1, s2, _) = activation(model.activation)
    rate = task.rate.to(H.dtype)[:, None]
    zero = torch.einsum("tk,rkh->rth", _residual(task, 0, K, H.dtype), U)  # (R, T, h)
    if order == 0:
        return _back(model, params, s1 * rate * zero)
    if s2 == 0:
        warnings.warn(
            f"activation {model.activation!r} has σ''(0) = 0: its expansion at zero has no order-1 "
            f"label term; take silu or gelu for the theory.",
            stacklevel=2,
        )
    own = H[:, task.targets]
    first = _residual(task, 1, K, H.dtype)
    around = H[:, context_ids(task)]  # (R, C, h)
    others = task.length - 1
    labels = others * torch.einsum("tkc,rch,rkh->rth", first, around, U) + own * zero
    law = signature_tensor(task, 1).sum(1).to(H.dtype)  # (T, C), P(c | v)
    total = others * torch.einsum("tc,rch->rth", law, around) + own  # (R, T, h)
    logits = total @ U.mT  # (R, T, K)
    softmax = (logits - logits.mean(-1, keepdim=True)) @ U / K
    return _back(model, params, rate * (s2 * labels - s1**2 * softmax))


def attention_terms(model: Attention, params: Params, task: Task) -> dict[str, Rows]:
    """Theorem 3 with exact scores: what E_α receives as value, key and query; they sum to Ė.

    With a residual stream it receives also directly, as the last token.

    value: L r_α (U W^OV)^T (φ^{y;0} ⊙ ψ^y); key: L r_α/√d W^QK E[a_I h_L u·(h_I - h̄)];
    query: P(x_L = α)/√d W^QK^T E[Σ_s a_s h_s u·(h_s - h̄)], u = (U W^OV)^T e_y, less that of p.
    """
    x, U = task.sequences, params["U"]
    h = model.stream(params, x)  # (R, N, L, d)
    a = model.scores(params, h)  # (R, N, L)
    g = task.labels.to(h.dtype) - model(params, x).softmax(-1)  # (R, N, K)
    g = g * task.weights.to(h.dtype)[:, None]
    OV = params["O"] @ params["V"]  # (R, d, d)
    QK = params["K"].mT @ params["Q"]  # (R, d, d)
    u = g @ U @ OV  # (R, N, d)
    mean = (a[..., None] * h).sum(2)  # (R, N, d)
    pull = a * ((h - mean[:, :, None]) * u[:, :, None]).sum(-1) / math.sqrt(model.d)  # (R, N, L)
    last = h[:, :, -1]

    def gather(rows: Tensor, at: Tensor) -> Tensor:
        """Sum the rows by the token at their place; keep the targets' sums."""
        zeros = torch.zeros(len(rows), task.vocabulary, rows.shape[-1], dtype=rows.dtype)
        return zeros.index_add_(1, at.flatten(), rows.flatten(1, -2))[:, task.targets]

    terms = {
        "value": gather(a[..., None] * g[:, :, None], x) @ U @ OV,
        "key": gather(pull[..., None] * last[:, :, None], x) @ QK.mT,
        "query": gather((pull[..., None] * h).sum(2), x[:, -1]) @ QK,
    }
    if model.residual:
        terms["direct"] = gather(g, x[:, -1]) @ U
    return terms


def slope(name: str, z: Tensor) -> Tensor:
    """σ'(z), elementwise.

    >>> slope("z^3", torch.tensor([2.0])).item()
    12.0
    """
    with torch.enable_grad():
        at = z.detach().requires_grad_()
        return torch.autograd.grad(activation(name)[0](at).sum(), at)[0]


def cosine(A: Rows, B: Rows, centred: bool = False) -> Float[Tensor, "*R"]:
    """Cosine of two velocity fields, all targets together, less their mean row when `centred`.

    >>> x = torch.eye(2)
    >>> round(float(cosine(x, 3 * x)), 5)
    1.0
    """
    return torch.cosine_similarity(_flat(A, centred), _flat(B, centred), dim=-1)


def relative_error(found: Rows, exact: Rows, centred: bool = False) -> Float[Tensor, "*R"]:
    """‖found - exact‖ / ‖exact‖, of rows less their mean when `centred`.

    >>> round(float(relative_error(1.5 * torch.eye(2), torch.eye(2))), 5)
    0.5
    """
    wanted = _flat(exact, centred)
    return (_flat(found, centred) - wanted).norm(dim=-1) / wanted.norm(dim=-1)


def _flat(rows: Rows, centred: bool) -> Float[Tensor, "*R numbers"]:
    return (rows - rows.mean(-2, keepdim=True) if centred else rows).flatten(-2)


def _back(model: FFN, params: Params, rows: Tensor) -> Tensor:
    return rows if model.width is None else rows @ params["W"]


def _residual(task: Task, order: int, K: int, dtype: torch.dtype) -> Tensor:
    """φ^{y;order} less that of labels 1/K, every label on its axis, those that never occur too."""
    parts = []
    for each in (task, uniform(task)):
        phi = signature_tensor(each, order)
        out = torch.zeros(len(phi), K, *phi.shape[2:], dtype=dtype)
        out[:, label_ids(each)] = phi.to(dtype)
        parts.append(out)
    return parts[0] - parts[1]
