"""Logits and probabilities, told apart before anything is drawn from them."""

import math

from jaxtyping import Float
from torch import Tensor

from tokenspace.errors import ParameterError


def check_logits(logits: Float[Tensor, "*N V"]) -> Float[Tensor, "*N V"]:
    """The logits as they are, if a softmax of each row is a law.

    Raises ParameterError for a row with NaN or +inf, a row that is -inf everywhere, and where
    every row is a law already: probabilities passed for logits.

    >>> import torch
    >>> check_logits(torch.tensor([[0.3, 0.7]]))
    Traceback (most recent call last):
    ...
    tokenspace.errors.ParameterError: These logits, shape (1, 2), are probabilities ...
    """
    top = logits.detach().amax(-1)  # NaN where the row has one
    if not bool(top.isfinite().all()):
        masked, bad = top == -math.inf, ~top.isfinite()
        what = "-inf everywhere" if bool(masked.any()) else "NaN or +inf"
        rows = (masked if bool(masked.any()) else bad).nonzero().tolist()
        raise ParameterError(
            f"{len(rows)} of {top.numel()} rows of logits, shape {tuple(logits.shape)}, are "
            f"{what}: at {rows[:5]}. No token can be drawn from them."
        )
    if bool((logits >= 0).all()) and bool(((logits.sum(-1) - 1).abs() < 1e-5).all()):
        raise ParameterError(
            f"These logits, shape {tuple(logits.shape)}, are probabilities (every row is >= 0 and "
            "sums to 1); pass their logarithm."
        )
    return logits


def check_simplex(p: Float[Tensor, "*N V"]) -> Float[Tensor, "*N V"]:
    """The probabilities as they are, if each row is >= 0 and sums to 1 within 1e-5.

    Raises ParameterError with the first bad row and its sum otherwise.

    >>> import torch
    >>> check_simplex(torch.tensor([1.0, 2.0, 3.0]))
    Traceback (most recent call last):
    ...
    tokenspace.errors.ParameterError: 1 of 1 rows of probabilities, shape (3,), ...
    """
    total = p.sum(-1)
    good = (p >= 0).all(-1) & ((total - 1).abs() <= 1e-5)
    if not bool(good.all()):
        at = (~good).nonzero()
        first = tuple(at[0].tolist())
        raise ParameterError(
            f"{len(at)} of {good.numel()} rows of probabilities, shape {tuple(p.shape)}, are off "
            f"the simplex: row {list(first)} sums to {float(total[first]):.6g} and its least entry "
            f"is {float(p[first].min()):.6g}. If these are logits, take their softmax first."
        )
    return p
