"""What the bench counts is what torch counts; what it extrapolates is closed-form arithmetic."""

import pytest
import torch
from tests.bench import counts, training
from tests.bench.curves import CURVES, SERIES, Curve, Far, record
from tests.bench.rows import ROWS
from torch.utils.flop_counter import FlopCounterMode

from tokenspace.hub import nearest

SQUARE = Curve(
    part="hub",
    series="neighbours",
    unit="s",
    variable="rows",
    counted="pairs",
    count=lambda n: float(n**2),
    far=(Far("more rows", 1000, 1000.0**2, "x"), Far("wider too", 1000, 3 * 1000.0**2, "x")),
)


def points(sizes: list[int], y: list[float]) -> list[dict[str, float]]:
    return [
        {"size": n, "median": v, "least": v, "greatest": v} for n, v in zip(sizes, y, strict=True)
    ]


def operations(call: object) -> int:
    with FlopCounterMode(display=False) as counter:
        call()  # type: ignore[operator]
    return counter.get_total_flops()


def test_a_known_law_is_carried_on_by_fit_and_by_count_alike() -> None:
    sizes = [10, 20, 40, 80, 160]
    found = record("toy", SQUARE, points(sizes, [2e-6 * n**2 for n in sizes]))
    assert found["exponent"] == pytest.approx(2)
    assert found["counted_exponent"] == pytest.approx(2)
    assert found["held_out"] == pytest.approx(1)
    assert found["fitted_from"] == 10
    rows, wide = found["far"]
    for key in ("value", "low", "high", "by_count"):
        assert rows[key] == pytest.approx(2.0)
        assert wide[key] == pytest.approx(6.0), "three times the work at the same size"


def test_fit_and_count_part_where_the_rate_changes() -> None:
    """Time n^1.5 beside a count of n²: from 160 to 1000 rows the fit grows by less."""
    sizes = [10, 20, 40, 80, 160]
    far = record("toy", SQUARE, points(sizes, [n**1.5 for n in sizes]))["far"][0]
    assert far["value"] == pytest.approx(1000**1.5)
    assert far["by_count"] == pytest.approx(160**1.5 * (1000 / 160) ** 2)


def test_the_held_out_size_is_measured_over_foretold() -> None:
    sizes = [10, 20, 40, 80, 160]
    y = [float(n**2) for n in sizes]
    found = record("toy", SQUARE, points(sizes, [*y[:-1], 1.05 * y[-1]]))
    assert found["fitted_from"] == 10
    assert found["held_out"] == pytest.approx(1.05)
    assert found["far"][0]["low"] < found["far"][0]["value"] < found["far"][0]["high"]


@pytest.mark.parametrize("n", [640, 1500])
def test_the_self_join_multiplies_what_is_counted(n: int) -> None:
    rows = torch.randn(n, 8, generator=torch.Generator().manual_seed(0))
    assert operations(lambda: nearest(rows)) == counts.self_join(n, 8)


def test_each_token_of_the_vocabulary_costs_what_is_counted() -> None:
    few, many = (operations(training.step_of_vocabulary(V)) for V in (256, 512))
    counted = [counts.hull_step(V) for V in (256, 512)]
    assert many - few == pytest.approx(counted[1] - counted[0], rel=1e-9)
    assert few == pytest.approx(counted[0], rel=0.05), "but for the noise level's small maps"


def test_each_run_costs_what_is_counted() -> None:
    one, three = (operations(training.train_seeds(R, steps=1)) for R in (1, 3))
    assert three == pytest.approx(3 * one)
    more = operations(training.train_seeds(1, steps=2)) - one
    assert more == pytest.approx(counts.batch_of_runs(1), rel=0.01)


def test_counts_of_larger_scales_are_the_curve_s_own_where_nothing_else_differs() -> None:
    for name, curve in CURVES.items():
        far = curve.far[0]
        assert far.count > 0, name
        assert far.assumes, name
        assert curve.series in SERIES, name
    assert CURVES["neighbours: time"].far[0].count == counts.self_join(1_000_000)
    wide = CURVES["neighbours: time"].far[1]
    assert wide.count / counts.self_join(wide.size) == pytest.approx(8194 / 386)


def test_a_row_that_can_miss_says_why() -> None:
    """Rows with a target below the peer's own, or a limit, must be able to explain a miss."""
    silent = [name for name, row in ROWS.items() if not row.why and row.unit != "memory"]
    assert not silent
