"""Tables as text."""

import math
from typing import Any

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
    """Write a table's columns as Markdown, numbers to the right."""
    marks = ["--:" if pd.api.types.is_numeric_dtype(kind) else ":--" for kind in frame.dtypes]
    rows = [frame.columns, *frame.itertuples(index=False, name=None)]
    head, *body = ["| " + " | ".join(map(cell, row)) + " |" for row in rows]
    return "\n".join([head, f"|{'|'.join(marks)}|", *body])
