"""Numbers and tables as text."""

import math
from collections.abc import Iterable
from typing import Any

import numpy as np
import pandas as pd


def cell(value: Any) -> str:
    """Write one value: four significant digits, a dash for a missing one.

    >>> cell(13.60213), cell(30522), cell(float("nan")), cell(True), cell("a|b")
    ('13.6', '30522', '–', 'yes', 'a\\\\|b')
    """
    if value is None or value is pd.NA or (isinstance(value, float) and math.isnan(value)):
        return "–"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:.0f}" if 1e4 <= abs(value) < 1e15 else f"{value:.4g}"
    return str(value).replace("|", "\\|").replace("\n", " ")


def markdown(frame: pd.DataFrame) -> str:
    """Write a table's columns as Markdown, numbers to the right.

    >>> print(markdown(pd.DataFrame({"table": ["minilm"], "mle": [13.602]})))
    | table | mle |
    |:--|--:|
    | minilm | 13.6 |
    """
    right = [pd.api.types.is_numeric_dtype(frame[column]) for column in frame]
    lines = [
        [cell(str(column)) for column in frame],
        *([cell(x) for x in row] for row in frame.itertuples(index=False, name=None)),
    ]
    text = ["| " + " | ".join(line) + " |" for line in lines]
    text.insert(1, "|" + "|".join("--:" if r else ":--" for r in right) + "|")
    return "\n".join(text)


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
