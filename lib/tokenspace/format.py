"""Numbers as text: with their uncertainty, as intervals, over several runs."""

import math
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

Real = float | int  # beartype takes `float` alone to shut out whole numbers


def number(value: Real | None, uncertainty: Real | None = None) -> str:
    """Write a number of ours: four significant digits, or as many as its uncertainty carries.

    >>> number(13.6021, 0.112), number(0.25), number(30522), number(None)
    ('13.60 ± 0.11', '0.25', '30522', '–')
    """
    if value is None:
        return "–"
    if uncertainty is None or uncertainty <= 0:
        return f"{value:.0f}" if value == round(value) and abs(value) < 1e15 else f"{value:.4g}"
    digits = max(0, 1 - math.floor(math.log10(uncertainty)))
    return f"{value:.{digits}f} ± {uncertainty:.{digits}f}"


def interval(band: Sequence | None) -> str:
    """Write a band.

    >>> interval((0.5, 1.5)), interval((3, None)), interval((None, 0.1)), interval(None)
    ('0.5 to 1.5', 'at least 3', 'at most 0.1', '–')
    """
    if band is None:
        return "–"
    low, high = band
    if low is None:
        return f"at most {number(high)}"
    return f"at least {number(low)}" if high is None else f"{number(low)} to {number(high)}"


def span(values: Iterable[Any], digits: int = 2) -> str:
    """Least to greatest of some numbers; one number where they print alike.

    >>> span([0.5, -1.234]), span([0.501, 0.502])
    ('−1.23 to 0.50', '0.50')
    """
    found = _numbers(values)
    low, high = (_number(x, digits) for x in (found.min(), found.max()))
    return low if low == high else f"{low} to {high}"


def reach(values: Iterable[Any], digits: int = 2) -> str:
    """Mean, and least to greatest in brackets where there is more than one number.

    >>> reach([1, 2, 6], 1), reach([0.25])
    ('3.0 (1.0 to 6.0)', '0.25')
    """
    found = _numbers(values)
    mean = _number(found.mean(), digits)
    return f"{mean} ({span(found, digits)})" if found.size > 1 else mean


def _numbers(values: Any) -> np.ndarray:
    return np.ravel(values if hasattr(values, "shape") else list(values)).astype(float)


def _number(value: float, digits: int) -> str:
    return f"{value:.{digits}f}".replace("-", "\u2212")
