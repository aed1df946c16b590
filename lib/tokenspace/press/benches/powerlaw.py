"""How a time or a size grows: a power law through measurements, and how far it can be trusted."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy import stats

from tokenspace.errors import ParameterError

Numbers = Sequence[float | int]  # beartype takes `float` alone to shut out whole numbers

LEAST = 4  # sizes that a fit keeps: a line, and two more to see how well it does
BEND = 0.1  # change of the exponent over the fitted sizes that is still called a straight line


@dataclass(frozen=True)
class PowerLaw:
    """y = exp(intercept) x^exponent: least squares on logarithms, with the line's own scatter."""

    exponent: float
    se: float
    """Standard error of the exponent, from how far the points lie off the line."""
    intercept: float
    scatter: float
    """Standard deviation of log y about the line."""
    sizes: int
    centre: float
    extent: float
    """Sum of squares of log x about its mean, `centre`."""
    first: float
    """Smallest x that was fitted."""

    def at(self, x: float | int, level: float = 0.95) -> tuple[float, float, float]:
        """Give y at x with the interval that one more measurement falls into, by Student's t.

        The interval holds if the law goes on: it knows of scatter, not of a bend further out.

        >>> law = fit([1, 2, 4, 8], [3, 6, 12, 24])
        >>> [round(y, 6) for y in law.at(1000)]
        [3000.0, 3000.0, 3000.0]
        """
        log_y = self.intercept + self.exponent * np.log(x)
        variance = 1 + 1 / self.sizes + (np.log(x) - self.centre) ** 2 / self.extent
        t = stats.t.ppf((1 + level) / 2, self.sizes - 2)
        reach = t * self.scatter * np.sqrt(variance)
        return float(np.exp(log_y)), float(np.exp(log_y - reach)), float(np.exp(log_y + reach))


def fit(x: Numbers, y: Numbers) -> PowerLaw:
    """Fit a power law to measurements y > 0 at three sizes x > 0 or more.

    Raises ParameterError for fewer sizes, or numbers that have no logarithm.

    >>> round(fit([1, 10, 100], [2, 200, 20000]).exponent, 9)
    2.0
    """
    if len(x) != len(y) or len(set(x)) < 3 or min(*x, *y) <= 0:
        raise ParameterError(
            f"a power law needs three sizes or more and numbers above 0, got x = {list(x)}, "
            f"y = {list(y)}; measure more sizes."
        )
    log_x, log_y = np.log(np.asarray(x, np.float64)), np.log(np.asarray(y, np.float64))
    line = stats.linregress(log_x, log_y)
    left = log_y - line.intercept - line.slope * log_x
    return PowerLaw(
        exponent=float(line.slope),
        se=float(line.stderr),
        intercept=float(line.intercept),
        scatter=float(np.sqrt((left**2).sum() / (len(x) - 2))),
        sizes=len(x),
        centre=float(log_x.mean()),
        extent=float(((log_x - log_x.mean()) ** 2).sum()),
        first=float(min(x)),
    )


def bend(x: Numbers, y: Numbers) -> float:
    """How much the exponent changes from the smallest size to the largest: 0 for a power law.

    By a parabola through the logarithms.

    >>> x = [1.0, 2.0, 4.0, 8.0]
    >>> abs(bend(x, [v**2 for v in x])) < 1e-6, bend(x, [1 + v for v in x]) > 0.3
    (True, True)
    """
    log_x = np.log(np.asarray(x, np.float64))
    square = np.polyfit(log_x, np.log(np.asarray(y, np.float64)), 2)[0]
    return float(2 * square * (log_x.max() - log_x.min()))


def fit_tail(x: Numbers, y: Numbers) -> PowerLaw:
    """Fit from the larger sizes only, where the smaller ones bend: the smallest go, one by one.

    What is left is straight by `BEND`, or has `LEAST` sizes. x ascends.

    >>> x = [1.0, 10.0, 100.0, 1e3, 1e4, 1e5]
    >>> law = fit_tail(x, [50 + v for v in x])
    >>> law.first, round(law.exponent, 2)
    (100.0, 0.95)
    """
    start = 0
    while len(x) - start > LEAST and abs(bend(x[start:], y[start:])) > BEND:
        start += 1
    return fit(x[start:], y[start:])
