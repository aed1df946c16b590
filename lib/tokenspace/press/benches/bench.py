"""The bench's page, from what `make bench` measured: ratios, missed targets, growth, paper scale.

The page is MyST, for the book; `standalone` makes it a file that opens alone.
"""

import json
from pathlib import Path

import pandas as pd
from markdown_it import MarkdownIt

from tokenspace.errors import PageError
from tokenspace.press.benches.benchfigures import Record, curve_figure, label, ratio_figure
from tokenspace.press.benches.powerlaw import BEND
from tokenspace.press.figures import DARK
from tokenspace.press.inline import variable
from tokenspace.press.sweeps.sweep_results import literal
from tokenspace.press.tables import markdown

ABOUT = ("machine", "versions", "commit", "measured", "threads", "runs")
ROW = (
    *("name", "part", "unit", "ours_s", "peer", "peer_s", "ratio", "target", "lower_is_better"),
    *("spread", "peak_mb", "why", *ABOUT),
)
CURVE = (
    *("name", "part", "unit", "variable", "points", "fitted_from", "exponent", "intercept", "se"),
    *("bend", "counted", "counted_exponent", "held_out", "far", *ABOUT),
)
STEPS = {"min": 60, "h": 60, "days": 24, "years": 365.25}
STYLE = """
:root { color-scheme: light dark; --ts-line: #8888 }
body { font: 16px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem;
  background: var(--ts-ffffff); color: var(--ts-262626) }
table { border-collapse: collapse; display: block; overflow-x: auto }
td, th { padding: .3rem .7rem; vertical-align: top } tr { border-bottom: 1px solid var(--ts-line) }
figure { margin: 1rem 0 } svg { width: 100%; height: auto }
"""


def pages(root: Path) -> dict[str, str]:
    """Give the bench's page by its name in the book; none where nothing was measured.

    >>> pages(Path("/nowhere"))
    {}
    """
    folder = root / "build" / "bench"
    if not (folder / "bench.json").is_file():
        return {}
    return {"bench": page(*measured(folder))}


def measured(folder: Path) -> tuple[list[Record], list[Record]]:
    """Read rows and curves; a file that isn't there is empty. Raises `PageError` for a broken one.

    >>> measured(Path("/nowhere"))
    ([], [])
    """
    return _read(folder / "bench.json", ROW), _read(folder / "curves.json", CURVE)


def _read(path: Path, keys: tuple[str, ...]) -> list[Record]:
    again = "measure again with `make bench`, or delete the file to build the book without it"
    if not path.is_file():
        return []
    try:
        found = json.loads(path.read_text())
    except ValueError as error:
        raise PageError(f"{path} is not JSON ({error}): {again}") from error
    if not isinstance(found, list) or not all(isinstance(record, dict) for record in found):
        raise PageError(f"{path} is not a list of measurements: {again}")
    for number, record in enumerate(found):
        if missing := [key for key in keys if key not in record or _empty(key, record[key])]:
            name = record.get("name", f"number {number}")
            raise PageError(f"{path}: {name} has no {', '.join(missing)}: {again}")
    return found


def _empty(key: str, value: object) -> bool:
    return value is None and key != "peer_s"  # a row against a limit has no peer to time


def page(rows: list[Record], curves: list[Record]) -> str:
    """Write the page as MyST. Raises `PageError` where there is nothing to show."""
    if not rows and not curves:
        raise PageError("the bench holds no row and no curve: measure some with `make bench`")
    parts = ["# Bench", _about([*rows, *curves])]
    if rows:
        parts += [
            "Each row times a call of ours and one of a peer that does the same, in turn, in "
            "processes of their own with the same number of threads. Below 1 we are faster, or "
            "hold less. Where a row has no peer it is memory against a limit.",
            _raw(ratio_figure(rows)),
            markdown(pd.DataFrame([_row(row) for row in rows])),
            "## Missed targets",
            "\n".join(_missed(row) for row in rows if row["ratio"] > row["target"])
            or "No target was missed.",
        ]
    if curves:
        parts += [
            "## How it grows",
            "An exponent is the slope of a line through logarithms, fitted by least squares to "
            "medians; its standard error comes from the points' distance to the line. Where the "
            "small sizes bend, because starting a call costs what its size does not, the smallest "
            "are left out one by one until the line is straight or four are left. *Counted* is the "
            "slope of the arithmetic at the same sizes. *Held out* is the largest size measured, "
            "over what a line through the others foretold.",
            _raw(curve_figure(curves)),
            markdown(pd.DataFrame([_growth(curve) for curve in curves])),
            "## On paper",
            "None of these was run. The fit carries its line on, and its 95 % interval holds one "
            "more measurement if the line stays a line; the count scales the largest measurement "
            "by the arithmetic. Where the two differ, trust neither to better than their ratio.",
            markdown(pd.DataFrame([_far(curve, far) for curve in curves for far in curve["far"]])),
        ]
    return "\n\n".join(parts) + "\n"


def standalone(page: str) -> str:
    """Turn the page into HTML that opens alone, in light and dark.

    >>> "<h1>Bench</h1>" in standalone("# Bench")
    True
    """
    text = MarkdownIt("commonmark", {"html": True}).enable("table")
    text.add_render_rule("fence", lambda _self, tokens, i, _options, _env: tokens[i].content)
    light = "".join(f"{variable(c)}:{c};" for c in DARK)
    dark = "".join(f"{variable(c)}:{partner};" for c, partner in DARK.items())
    colours = f":root{{{light}}}@media (prefers-color-scheme: dark){{:root{{{dark}}}}}"
    return "\n".join(
        [
            "<!doctype html><html lang=en><meta charset=utf-8>",
            "<meta name=viewport content='width=device-width'>",
            f"<title>Bench</title><style>{colours}{STYLE}</style>",
            text.render(page),
        ]
    )


def took(seconds: float | int) -> str:
    """Write a time in the unit that suits it.

    >>> took(0.0021), took(1.5), took(600), took(3e6), took(1e9)
    ('2.1 ms', '1.5 s', '10 min', '35 days', '32 years')
    """
    if seconds < 0.1:
        return f"{1000 * seconds:.2g} ms"
    unit = "s"
    for larger, many in STEPS.items():
        if seconds < 1.5 * many:
            break
        seconds, unit = seconds / many, larger
    return f"{seconds:,.0f} {unit}" if seconds >= 10 else f"{seconds:.2g} {unit}"


def amount(value: float | int, unit: str) -> str:
    """Write seconds or megabytes.

    >>> amount(90, "s"), amount(250, "MB"), amount(25000, "MB")
    ('1.5 min', '250 MB', '25 GB')
    """
    if unit == "s":
        return took(value)
    return f"{value / 1000:.2g} GB" if value >= 1000 else f"{value:.0f} MB"


def _raw(html: str) -> str:
    return f"```{{raw}} html\n{html}\n```"


def _about(records: list[Record]) -> str:
    """Say where and when it was measured, once for each that differs."""
    told = [
        {
            "Machine": record["machine"],
            "Versions": ", ".join(f"{name} {v}" for name, v in record["versions"].items()),
            "Commit": record["commit"][:12] + "-dirty" * record["commit"].endswith("-dirty"),
            "Measured": record["measured"],
        }
        for record in records
    ]
    lists = {name: dict.fromkeys(f"`{each[name]}`" for each in told) for name in told[0]}
    return " ".join(f"{name}: {', '.join(values)}." for name, values in lists.items())


def _row(row: Record) -> Record:
    low, high = row["spread"]
    return {
        "row": literal(row["name"]),
        "peer": literal(row["peer"]),
        "threads": row["threads"],
        "ours": took(row["ours_s"]),
        "peer's": "–" if row["peer_s"] is None else took(row["peer_s"]),
        "ratio": f"{row['ratio']:.2g} ({low:.2g} to {high:.2g})",
        "target": row["target"],
        "runs": row["runs"],
        "our peak": amount(row["peak_mb"], "MB"),
    }


def _missed(row: Record) -> str:
    over = row["ratio"] / row["target"] - 1
    why = f": {row['why']}" if row["why"] else ""
    numbers = f"{row['ratio']:.2g}, {over:.0%} above {row['target']:g}"
    return "- " + literal(f"{label(row)}: {numbers}{why}.")


def _growth(curve: Record) -> Record:
    sizes = [point["size"] for point in curve["points"]]
    bend = curve["bend"]
    still = f", still bending by {bend:+.2f}" if abs(bend) > BEND else ""
    return {
        "curve": literal(curve["name"]),
        "over": literal(f"{curve['variable']}, {sizes[0]:,} to {sizes[-1]:,}"),
        "threads": curve["threads"],
        "exponent": f"{curve['exponent']:.2f} ± {curve['se']:.2f}",
        "fitted from": f"{curve['fitted_from']:,.0f}{still}",
        "counted": f"{curve['counted_exponent']:.2f}, {literal(curve['counted'])}",
        "held out": f"{curve['held_out']:.2f}",
    }


def _far(curve: Record, far: Record) -> Record:
    unit = curve["unit"]
    value, low, high, by_count = (
        amount(far[k], unit) for k in ("value", "low", "high", "by_count")
    )
    return {
        "curve": literal(curve["name"]),
        "at": literal(far["what"]),
        "by the fit": f"{value} ({low} to {high})",
        "by the count": by_count,
        "assumes": literal(far["assumes"]),
    }
