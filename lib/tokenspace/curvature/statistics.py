"""Rank correlation, with intervals and chance levels for rows that aren't independent."""

from collections.abc import Callable

import numpy as np
import pandas as pd
from scipy.stats import rankdata


def rank_correlation(x: np.ndarray, y: np.ndarray, given: np.ndarray | None = None) -> float:
    """Spearman's ρ; with `given`, the partial one: what is left when ranks of `given` are fitted.

    >>> round(rank_correlation(np.array([1, 2, 3]), np.array([2, 4, 5])), 9)
    1.0
    """
    columns = [rankdata(column) for column in (x, y)]
    columns = [column - column.mean() for column in columns]
    if given is not None:
        other = rankdata(given) - (len(x) + 1) / 2
        columns = [c - other * (c @ other) / (other @ other) for c in columns]
    lengths = np.prod([np.linalg.norm(column) for column in columns])
    return float(columns[0] @ columns[1] / lengths) if lengths > 0 else float("nan")


def interval_over_texts(
    table: pd.DataFrame, statistic: Callable[[pd.DataFrame], float], draws: int, seed: int
) -> tuple[float, float, float]:
    """A statistic and its 95 % interval when whole texts are drawn again, with replacement.

    Points of one text aren't independent, so drawing points would make the interval too narrow.

    >>> table = pd.DataFrame({"text": [0, 0, 1], "x": [1.0, 1.0, 1.0]})
    >>> interval_over_texts(table, lambda t: t.x.mean(), draws=5, seed=0)
    (1.0, 1.0, 1.0)
    """
    texts = [group for _, group in table.groupby("text")]
    generator = np.random.default_rng(seed)
    drawn = [
        statistic(pd.concat([texts[i] for i in generator.integers(0, len(texts), len(texts))]))
        for _ in range(draws)
    ]
    low, high = np.nanquantile(drawn, [0.025, 0.975])
    return float(statistic(table)), float(low), float(high)


def shift_null(
    table: pd.DataFrame,
    statistic: Callable[[pd.DataFrame], float],
    column: str,
    draws: int,
    seed: int,
) -> float:
    """How large |statistic| gets by chance: its 95 % point when `column` is moved along the rows.

    A rotation of the whole column by a random number of rows keeps neighbours together, so points
    of one text stay alike; shuffling single rows would make chance look smaller than it is.

    >>> table = pd.DataFrame({"x": [1.0, 2.0, 3.0, 4.0], "y": [1.0, 2.0, 3.0, 4.0]})
    >>> rho = lambda t: rank_correlation(t.x.to_numpy(), t.y.to_numpy())
    >>> shift_null(table, rho, "y", draws=20, seed=0) < 0.9
    True
    """
    generator = np.random.default_rng(seed)
    shifts = generator.integers(1, len(table), draws)
    found = [
        statistic(table.assign(**{column: np.roll(table[column].to_numpy(), shift)}))
        for shift in shifts
    ]
    return float(np.nanquantile(np.abs(found), 0.95))
