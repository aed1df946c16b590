"""How far embeddings agree with a signature: Grams, the fitted probe, shares of variance.

The paper's measure is Pearson over pairs of *uncentred* cosines (arXiv:2608.30315, section 3);
the centred Gram and the share of variance inside a signature's span are ours. Every function
takes any leading dimensions (steps, runs) before the tokens.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Float, Float64, Int64
from torch import Tensor

from tokenspace.errors import ParameterError

TINY = 1e-12  # a length this small beside the largest is rounding
LEAST = 0.5  # correlation under which the best order is noise: random rows of 27 tokens reach .3

Rows = Float[Tensor, "... T d"]
Gram = Float[Tensor, "... T T"]


@dataclass(frozen=True)
class Probe:
    """Agreement of φ^{y;1} v with E on what each of F folds held out, and each fold's v."""

    held_out: Float64[Tensor, "*batch"]  # Pearson's correlation, averaged over folds
    mse: Float64[Tensor, "*batch"]  # squared difference of cosines, averaged over folds
    v: Float64[Tensor, "*batch F C"]


def cosine_gram(E: Rows, centred: bool = False) -> Float64[Tensor, "... T T"]:
    """Cosines between the rows of E, less their mean when `centred`. A zero row has cosine 0.

    >>> cosine_gram(torch.tensor([[1.0, 0.0], [2.0, 0.0], [0.0, 3.0]]))[0].round().abs().tolist()
    [1.0, 1.0, 0.0]
    """
    rows = E.double()
    size = rows.norm(dim=-1, keepdim=True).amax(-2, keepdim=True)
    if centred:
        rows = rows - rows.mean(-2, keepdim=True)
    length = rows.norm(dim=-1, keepdim=True)
    unit = torch.where(length > TINY * size, rows / length.clamp_min(1e-300), 0.0)
    return unit @ unit.mT


def pairs(gram: Gram) -> Float64[Tensor, "... P"]:
    """The entries a < b.

    >>> pairs(torch.tensor([[1.0, 2.0, 3.0], [0.0, 1.0, 4.0], [0.0, 0.0, 1.0]])).tolist()
    [2.0, 3.0, 4.0]
    """
    a, b = torch.triu_indices(gram.shape[-1], gram.shape[-1], 1)
    return gram[..., a, b].double()


def alignment(A: Gram, B: Gram) -> Float64[Tensor, "..."]:
    """ρ, Pearson's correlation of two Grams over a < b; nan where one of them is constant.

    >>> gram = cosine_gram(torch.tensor([[1.0, 0.0], [1.0, 1.0], [0.0, 1.0]]))
    >>> round(float(alignment(gram, 2 - gram)), 6)
    -1.0
    """
    return _pearson(pairs(A), pairs(B))


def partial_alignment(A: Gram, B: Gram, given: Sequence[Gram]) -> Float64[Tensor, "..."]:
    """ρ of what a least-squares fit on `given` Grams and a constant leaves of A and B. Ours.

    >>> A, B, C = (cosine_gram(torch.randn(9, 4)) for _ in range(3))
    >>> round(float(partial_alignment(A + 5 * C, A - 3 * C, [C])), 6)
    1.0
    """
    known = torch.stack([torch.ones_like(pairs(B)), *(pairs(g) for g in given)], dim=1)
    basis = torch.linalg.qr(known).Q
    return _pearson(*(x - (x @ basis) @ basis.T for x in (pairs(A), pairs(B))))


def probe(
    phi: Float64[Tensor, "T K C"],
    E: Rows,
    *,
    folds: int = 5,
    seed: int = 0,
    by: str = "pairs",
    steps: int = 300,
) -> Probe:
    """Fit v so that the rows φ_α v have E's cosines; score Pearson on what the fit didn't see.

    `by="pairs"` (the controlled tasks): maximises ρ, folds over pairs a < b. `by="tokens"` (text):
    least squares between cosines of training tokens, scored on pairs of held-out tokens. Adam,
    v ~ N(0, 1/C) (the paper's N(0, C^-0.5), read as a standard deviation).
    Raises `ParameterError` for fewer than 2 folds, or too many to hold out a correlation.

    >>> from tokenspace.staircase import arithmetic, signature_tensor
    >>> phi = signature_tensor(arithmetic("add", 8), 1)
    >>> float(probe(phi, phi.sum(2)).held_out) > 0.9  # order 0 is the case v = 1
    True
    """
    T, _, C = phi.shape
    fit, score = _folds(T, folds, by, seed)
    wanted = pairs(cosine_gram(E)).unsqueeze(-2)  # (*batch, 1, P)
    g = torch.Generator().manual_seed(seed)
    v = torch.randn(*E.shape[:-2], folds, C, generator=g, dtype=torch.float64) / C**0.5
    v.requires_grad_()
    adam = torch.optim.Adam([v], lr=0.01)

    def cosines() -> Tensor:
        rows = torch.einsum("tkc,...c->...tk", phi, v)  # (*batch, F, T, K)
        return pairs(cosine_gram(rows))

    for _ in range(steps):
        found = cosines()
        if by == "pairs":
            loss = -_pearson(found, wanted, fit).sum()
        else:
            loss = (fit * (found - wanted) ** 2).sum() / fit[0].sum()
        adam.zero_grad()
        loss.backward()
        adam.step()
    with torch.no_grad():
        found = cosines()
        mse = (score * (found - wanted) ** 2).sum(-1) / score.sum(-1)
    return Probe(_pearson(found, wanted, score).mean(-1), mse.mean(-1), v.detach())


def span(signature: Float[Tensor, "T features"]) -> Float64[Tensor, "T r"]:
    """Orthonormal basis, over tokens, of what a signature varies by (its centred columns).

    >>> span(torch.tensor([[1.0], [2.0], [3.0]])).shape
    torch.Size([3, 1])
    """
    rows = signature.double()
    values, vectors = torch.linalg.eigh((rows - rows.mean(0)) @ (rows - rows.mean(0)).T)
    return vectors[:, values > 1e-10 * float((rows**2).sum())]


def variance_share(E: Rows, signature: Float[Tensor, "T _"]) -> Float64[Tensor, "..."]:
    """Share of E's centred variance inside `span(signature)`; chance is rank / (T - 1).

    >>> x = torch.tensor([[1.0], [2.0], [3.0]])
    >>> round(float(variance_share(x, 5 - 2 * x)), 6)
    1.0
    """
    rows = E.double() - E.double().mean(-2, keepdim=True)
    inside = span(signature).T @ rows
    return (inside**2).sum((-1, -2)) / (rows**2).sum((-1, -2))


def project(E: Rows, signatures: Sequence[Float[Tensor, "T _"]]) -> Rows:
    """E with its centred part cut down to the joint span of the signatures: orders <= k.

    >>> x = torch.tensor([[1.0, 5.0], [2.0, 4.0], [3.0, 9.0]])
    >>> torch.allclose(project(x, [x]), x)
    True
    """
    mean = E.double().mean(-2, keepdim=True)
    basis = span(torch.cat([s.double() / s.double().norm() for s in signatures], dim=1))
    return (mean + basis @ (basis.T @ (E.double() - mean))).to(E.dtype)


def best_order(E: Rows, signatures: Sequence[Float[Tensor, "T _"]]) -> Int64[Tensor, "..."]:
    """The order whose centred Gram agrees best with E's; -1, none, when that is below `LEAST`.

    >>> a, b = torch.eye(4)[[0, 0, 1, 1]], torch.eye(4)[[0, 1, 0, 1]]
    >>> int(best_order(b, [a, b]))
    1
    """
    gram = cosine_gram(E, centred=True)
    scores = torch.stack([alignment(gram, cosine_gram(s, centred=True)) for s in signatures])
    value, order = scores.nan_to_num(-1).max(0)
    return torch.where(value >= LEAST, order, -1)


def _pearson(x: Tensor, y: Tensor, mask: Tensor | None = None) -> Tensor:
    """Correlation over the last axis, of the entries where `mask` is 1."""
    m = torch.ones_like(x) if mask is None else mask.expand_as(x)
    n = m.sum(-1, keepdim=True)
    x = m * (x - (m * x).sum(-1, keepdim=True) / n)
    y = m * (y - (m * y).sum(-1, keepdim=True) / n)
    xx, yy = (x * x).sum(-1), (y * y).sum(-1)
    constant = (xx / n[..., 0] < TINY**2) | (yy / n[..., 0] < TINY**2)
    return torch.where(constant, torch.nan, (x * y).sum(-1) / (xx * yy).clamp_min(1e-300).sqrt())


def _folds(T: int, folds: int, by: str, seed: int) -> tuple[Tensor, Tensor]:
    """Masks (folds, pairs) of what is fitted and what is scored."""
    g = torch.Generator().manual_seed(seed + 1)
    a, b = torch.triu_indices(T, T, 1)
    items = {"pairs": len(a), "tokens": T}.get(by, 0)
    if not items:
        raise ParameterError(f"by = {by!r}: folds are over 'pairs' or 'tokens'.")
    if not 2 <= folds <= items // 3:
        raise ParameterError(
            f"folds = {folds}: {items} {by} allow 2 to {items // 3}, each of >= 3."
        )
    fold = torch.empty(items, dtype=torch.int64)
    fold[torch.randperm(items, generator=g)] = torch.arange(items) % folds
    held = fold == torch.arange(folds)[:, None]
    if by == "pairs":
        return (~held).double(), held.double()
    return (~held[:, a] & ~held[:, b]).double(), (held[:, a] & held[:, b]).double()
