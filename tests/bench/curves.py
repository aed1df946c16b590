"""How time and memory grow: sizes, exponents fitted and counted, and larger scales on paper."""

from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

from tests.bench import counts, curvature, hub, training
from tests.bench.measure import Call

from tokenspace.press.benches.powerlaw import bend, fit, fit_tail

MILLION, V70, D70 = 1_000_000, 128_256, 8192  # a large table; rows and width of a 70B model


@dataclass(frozen=True)
class Series:
    """A call at sizes that double; each size is measured in processes of its own."""

    call: Callable[[int], Call]
    sizes: tuple[int, ...]

    @property
    def warm(self) -> int:
        """A size to call first, so that what every size needs once is on no point of the curve."""
        return max(1, self.sizes[0] // 4)


@dataclass(frozen=True)
class Far:
    """A scale that isn't run: at `size` of the curve, with the count of what else differs."""

    what: str
    size: int
    count: float
    assumes: str


@dataclass(frozen=True)
class Curve:
    """What a series' `unit` ("s" or "MB") does as `variable` grows, beside what is counted."""

    part: str
    series: str
    unit: str
    variable: str
    counted: str
    count: Callable[[int], float]
    far: tuple[Far, ...]


def powers(first: int, last: int) -> tuple[int, ...]:
    """Doubling sizes.

    >>> powers(2, 8)
    (2, 4, 8)
    """
    return (first,) if first >= last else (first, *powers(2 * first, last))


SERIES = {
    "neighbours": Series(
        lambda n: hub.our_neighbours(hub.random_table(n, 384)), powers(2048, 32_768)
    ),
    "flow": Series(training.step_of_vocabulary, powers(1024, 32_768)),
    "curvature": Series(curvature.vectors_of_width, powers(256, 4096)),
    "dense": Series(curvature.matrices_of_width, powers(128, 2048)),
    "seeds": Series(training.train_seeds, powers(1, 32)),
}
HULL_SHARE = 1 - counts.hull_step(0, D70, network=70e9) / counts.hull_step(V70, D70, network=70e9)
SAME_RATE = "the rate of operations stays that of the largest size measured"
CURVES = {
    "neighbours: time": Curve(
        "hub",
        "neighbours",
        "s",
        "rows of width 384, self-join",
        "operations of the distance matrix's lower half",
        counts.self_join,
        (
            Far(
                "1M rows of width 384",
                MILLION,
                counts.self_join(MILLION),
                "the prepared copy of the table still fits the memory; " + SAME_RATE,
            ),
            Far(
                "the table of a 70B model, 128,256 rows of width 8,192",
                V70,
                counts.self_join(V70, D70),
                "by the curve to 128,256 rows, and in proportion to the width, as counted",
            ),
        ),
    ),
    "neighbours: memory": Curve(
        "hub",
        "neighbours",
        "MB",
        "rows of width 384, self-join",
        "bytes of the table, its copy, a part being centred, candidates and answer",
        lambda n: counts.self_join_mb(n, part=n),
        (
            Far(
                "1M rows of width 384",
                MILLION,
                counts.self_join_mb(MILLION),
                "the curve centres all rows at once, a larger table 65,536 at a time: scaled by "
                "the counts of both; what Python and PyTorch hold comes on top",
            ),
            Far(
                "the table of a 70B model, 128,256 rows of width 8,192",
                V70,
                counts.self_join_mb(V70, D70),
                "as above, in proportion to the width; fp32 rows",
            ),
        ),
    ),
    "flow: training step": Curve(
        "flow",
        "flow",
        "s",
        "tokens in the vocabulary, d = 128",
        "operations of the network, its head, the kernel and the mean over E",
        counts.hull_step,
        (
            Far(
                "1M tokens, the same small network",
                MILLION,
                counts.hull_step(MILLION),
                "logits of 2 GB a tensor still fit the memory; " + SAME_RATE,
            ),
            Far(
                "a 70B network, V = 128,256, d = 8,192",
                V70,
                counts.hull_step(V70, D70, network=70e9),
                "512 tokens a step as here; by the curve to 128,256 tokens, and by the operations "
                f"counted from there, of which head, kernel and mean are {HULL_SHARE:.0%}",
            ),
        ),
    ),
    "curvature: by vectors": Curve(
        "curvature",
        "curvature",
        "s",
        "width n of 2,000 points",
        "numbers in the points' vectors",
        counts.vectors,
        (
            Far(
                "2,000 points of a 70B model, n = 8,192",
                D70,
                counts.vectors(D70),
                "reading the model is not in it; " + SAME_RATE,
            ),
            Far(
                "1M points of a 70B model",
                D70,
                counts.vectors(D70, MILLION),
                "in proportion to the points, in parts that fit the memory",
            ),
        ),
    ),
    "curvature: dense": Curve(
        "curvature",
        "dense",
        "s",
        "width n of 10 points, an n × n matrix each",
        "numbers in the matrices",
        counts.matrices,
        (
            Far(
                "2,000 points of a 70B model, n = 8,192",
                D70,
                counts.matrices(D70, 2000),
                "in proportion to the points, each matrix (0.5 GB) dropped before the next; "
                + SAME_RATE,
            ),
        ),
    ),
    "staircase: seeds": Curve(
        "staircase",
        "seeds",
        "s",
        "runs in a batch, 50 steps",
        "operations of the products, forward and back",
        counts.batch_of_runs,
        (
            Far("1,000 runs", 1000, counts.batch_of_runs(1000), SAME_RATE),
            Far(
                "12 runs with the table of a 70B model, V = 128,256, d = 8,192",
                12,
                counts.batch_of_runs(12, V70, D70),
                "the task's 243 rows, 128 hidden units; products only, while Adam's passes over "
                "the 12.6 billion numbers of E (and as much again for each moment) come on top",
            ),
        ),
    ),
}


def record(name: str, curve: Curve, points: list[dict[str, Any]]) -> dict[str, Any]:
    """Fit a curve and extrapolate it; `points` ascend, each {size, median, least, greatest}."""
    x = [point["size"] for point in points]
    y = [point["median"] for point in points]
    law = fit_tail(x, y)
    tail = [size for size in x if size >= law.first]
    counted = [curve.count(size) for size in tail]
    before = fit(x[-len(tail) : -1], y[-len(tail) : -1])
    far = []
    for each in curve.far:
        share = each.count / curve.count(each.size)
        value, low, high = (share * v for v in law.at(each.size))
        by_count = y[-1] * each.count / counted[-1]
        far.append({**asdict(each), "value": value, "low": low, "high": high, "by_count": by_count})
    return {
        "name": name,
        "part": curve.part,
        "unit": curve.unit,
        "variable": curve.variable,
        "points": [{**p, "count": curve.count(size)} for p, size in zip(points, x, strict=True)],
        "fitted_from": law.first,
        "exponent": law.exponent,
        "intercept": law.intercept,
        "se": law.se,
        "bend": bend(tail, y[-len(tail) :]),
        "counted": curve.counted,
        "counted_exponent": fit(tail, counted).exponent,
        "held_out": y[-1] / before.at(x[-1])[0],
        "far": far,
    }
