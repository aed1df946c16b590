"""The bench's page says what was measured, on what, what was missed and why."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from tokenspace.errors import PageError
from tokenspace.press.benches import bench
from tokenspace.press.figures import DARK

ABOUT: dict[str, Any] = {
    "machine": "Some CPU, 2 cores",
    "versions": {"python": "3.11.7", "torch": "2.13.0"},
    "commit": "0123456789abcdef-dirty",
    "measured": "2026-01-02T03:04+00:00",
    "threads": 2,
    "runs": 3,
}
ROW: dict[str, Any] = {
    "name": "neighbours: a table",
    "part": "hub",
    "unit": "ratio",
    "ours_s": 0.0125,
    "peer": "a_peer",
    "peer_s": 90.0,
    "ratio": 0.5,
    "target": 0.7,
    "lower_is_better": True,
    "spread": [0.41, 0.63],
    "peak_mb": 512.0,
    "why": "",
    **ABOUT,
}
MISSED = {**ROW, "name": "flow: slow", "ratio": 0.98, "why": "two more products"}
LIMIT = {
    **ROW,
    "name": "memory: held",
    "peer": "2,500 MB",
    "peer_s": None,
    "ratio": 0.8,
    "target": 1.0,
}
CURVE: dict[str, Any] = {
    "name": "neighbours: time",
    "part": "hub",
    "unit": "s",
    "variable": "rows",
    "points": [
        {"size": 10 * 2**k, "median": 4.0**k, "least": 4.0**k / 2, "greatest": 4.0**k * 2}
        | {"count": 4.0**k}
        for k in range(5)
    ],
    "fitted_from": 20.0,
    "exponent": 1.987,
    "intercept": -4.6,
    "se": 0.034,
    "bend": 0.21,
    "counted": "pairs of rows",
    "counted_exponent": 2.0,
    "held_out": 1.07,
    "far": [
        {"what": "1M rows", "size": 10**6, "count": 1e12, "assumes": "the rate stays"}
        | {"value": 7200.0, "low": 5400.0, "high": 10800.0, "by_count": 9000.0}
    ],
    **ABOUT,
}


def save(folder: Path, rows: Any, curves: Any = None) -> Path:
    place = folder / "build" / "bench"
    place.mkdir(parents=True, exist_ok=True)
    (place / "bench.json").write_text(rows if isinstance(rows, str) else json.dumps(rows))
    if curves is not None:
        (place / "curves.json").write_text(json.dumps(curves))
    return place


def test_the_page_joins_the_book_where_a_bench_was_measured(tmp_path: Path) -> None:
    assert bench.pages(tmp_path) == {}
    save(tmp_path, [ROW], [CURVE])
    assert bench.pages(tmp_path) == {"bench": bench.page([ROW], [CURVE])}


def test_machine_versions_commit_and_time_are_said_once() -> None:
    page = bench.page([ROW, MISSED], [CURVE])
    assert page.count("Some CPU") == 1
    for text in ("`python 3.11.7, torch 2.13.0`", "`0123456789ab-dirty`", "`2026-01-02T03:04"):
        assert text in page
    other = {**CURVE, "machine": "Another, 8 cores"}
    assert "Machine: `Some CPU, 2 cores`, `Another, 8 cores`." in bench.page([ROW], [other])


def test_a_row_has_times_ratio_spread_threads_and_memory() -> None:
    page = bench.page([ROW, LIMIT], [])
    assert (
        r"| neighbours: a table | a\_peer | 2 | 12 ms | 1.5 min | 0.5 (0.41 to 0.63) | 0.7 | 3 "
        "| 512 MB |" in page
    )
    assert "| memory: held | 2,500 MB | 2 | 12 ms | – |" in page
    assert "## How it grows" not in page


def test_every_missed_target_is_listed_with_why_and_no_other() -> None:
    barely = {**MISSED, "name": "flow: barely", "ratio": 1.01, "target": 1.0, "why": "noise"}
    page = bench.page([ROW, MISSED, LIMIT, barely], [])
    listed = page[page.index("## Missed targets") :].splitlines()[2:]
    assert listed == [
        "- flow: slow (2): 0.98, 40% above 0.7: two more products.",
        "- flow: barely (2): 1, 1% above 1: noise.",
    ]
    assert "No target was missed." in bench.page([ROW, LIMIT], [])


def test_a_curve_has_its_exponent_its_count_and_where_it_bends() -> None:
    page = bench.page([], [CURVE])
    assert "| rows, 10 to 160 | 2 | 1.99 ± 0.03 | 20, still bending by +0.21 | 2.00, pairs" in page
    assert "| 1.07 |" in page
    assert "still bending" not in bench.page([], [{**CURVE, "bend": -0.05}])


def test_a_scale_on_paper_has_interval_count_and_assumption() -> None:
    page = bench.page([], [CURVE])
    assert "| 1M rows | 2 h (1.5 h to 3 h) | 2.5 h | the rate stays |" in page
    memory = {**CURVE, "unit": "MB"}
    assert "| 7.2 GB (5.4 GB to 11 GB) | 9 GB |" in bench.page([], [memory])


def test_figures_say_their_numbers_and_take_the_page_s_colours() -> None:
    page = bench.page([ROW, MISSED], [CURVE])
    figures = re.findall(r"<figure>.*?</figure>", page, re.DOTALL)
    assert len(figures) == 2
    assert (
        'aria-label="neighbours: a table (2): 0.5, target 0.7; flow: slow (2): 0.98' in figures[0]
    )
    assert 'aria-label="neighbours: time: exponent 1.99, counted 2.00.' in figures[1]
    assert not any(colour in figure.lower() for colour in DARK for figure in figures)
    assert page == bench.page([ROW, MISSED], [CURVE]), "the same bytes, so nothing is rebuilt"


def test_the_page_also_opens_alone() -> None:
    html = bench.standalone(bench.page([ROW, MISSED], [CURVE]))
    for text in ("<h1>Bench</h1>", "<figure>", "<svg", ">a_peer</td>", "two more products"):
        assert text in html
    assert html.count("<figure>") == 2
    assert "{raw}" not in html
    assert "http" not in html.replace("http://www.w3.org/", ""), "nothing is fetched"


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ('[{"name": "x"', r"bench.json is not JSON \(Expecting .*\): measure again with `make "),
        ('{"name": "x"}', "bench.json is not a list of measurements: measure again"),
        ("[1]", "bench.json is not a list of measurements"),
        (
            json.dumps([ROW, {"name": "x: y", **ABOUT}]),
            "bench.json: x: y has no part, unit",
        ),
        (json.dumps([{**ROW, "spread": None}]), "bench.json: neighbours: a table has no spread"),
        ("[]", "holds no row and no curve: measure some with `make bench`"),
    ],
)
def test_a_broken_file_is_said_with_the_next_step(tmp_path: Path, text: str, error: str) -> None:
    save(tmp_path, text)
    with pytest.raises(PageError, match=error):
        bench.pages(tmp_path)


def test_a_half_written_curve_is_named(tmp_path: Path) -> None:
    save(tmp_path, [ROW], [{k: v for k, v in CURVE.items() if k not in ("se", "far")}])
    with pytest.raises(PageError, match=r"curves.json: neighbours: time has no se, far: measure"):
        bench.pages(tmp_path)
