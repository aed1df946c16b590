"""The bench page: one figure, one table, and by how much a target was missed."""

from html import escape
from typing import Any

import pandas as pd
from matplotlib.figure import Figure

from tokenspace.press import figures

STYLE = """
body { font: 16px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem }
table { border-collapse: collapse } td, th { padding: .3rem .7rem; text-align: right }
td:first-child, th:first-child { text-align: left } tr { border-bottom: 1px solid #ddd }
div { overflow-x: auto } svg { max-width: 100%; height: auto }
"""

WHY = {
    "neighbours": "half the products of the distance matrix are the floor of any exact self-join; "
    "what is above it goes to keeping candidates (row minima, top-k) and to the fp64 answer, "
    "which the peer doesn't give.",
    "TwoNN": "the time goes to the neighbours.",
    "training": "a batch saves what each operation costs to start, not the arithmetic: it gains "
    "until the products themselves fill the cores.",
    "curvature": "a block of points fits the cache, where a second thread gains little and, on a "
    "busy machine, waits for the first.",
    "memory": "the table, its centred copy and PyTorch itself are held.",
}


def write_page(rows: list[dict[str, Any]]) -> str:
    """A page that stands alone, from the rows of bench.json."""
    missed = [row for row in rows if row["ratio"] > row["target"]]
    parts = [
        "<!doctype html><html lang=en><meta charset=utf-8>",
        "<meta name=viewport content='width=device-width'>",
        f"<title>Bench</title><style>{STYLE}</style><h1>Bench</h1>",
        f"<p>Ours over the peer's, in turn within one run on {escape(rows[0]['machine'])}, each in "
        "a process of its own with the same threads. Below 1 we are faster; the mark is the "
        "target, the bar the median over pairs, the line its range.</p>",
        _figure(rows),
        "<div>" + _table(rows).to_html(index=False, float_format=short, border=0),
        "</div><h2>Missed</h2>",
        "<ul>" + "".join(f"<li>{_missed(row)}</li>" for row in missed) + "</ul>"
        if missed
        else "<p>No target was missed.</p>",
    ]
    return "\n".join(parts)


def short(number: float) -> str:
    """Two decimals, or two digits of what would vanish in them."""
    return f"{number:.2f}" if abs(number) >= 0.1 else f"{number:.2g}"


def _missed(row: dict[str, Any]) -> str:
    over = row["ratio"] / row["target"] - 1
    why = WHY.get(row["name"].split(":")[0], "")
    where = f"{row['name']}, {row['threads']} thread(s)"
    return escape(f"{where}: {short(row['ratio'])}, {over:.0%} above {short(row['target'])}; {why}")


def _table(rows: list[dict[str, Any]]) -> pd.DataFrame:
    columns = {
        "name": "row",
        "peer": "peer",
        "threads": "threads",
        "ours_s": "ours, s",
        "peer_s": "peer, s",
        "ratio": "ratio",
        "target": "target",
        "runs": "pairs",
        "peak_mb": "our peak, MB",
    }
    return pd.DataFrame(rows)[list(columns)].rename(columns=columns)


def _figure(rows: list[dict[str, Any]]) -> str:
    figures.use()
    figure = Figure(figsize=(8, 0.55 * len(rows) + 1))
    axes = figure.subplots()
    labels = [f"{row['name']} ({row['threads']})" for row in rows]
    axes.barh(labels, [row["ratio"] for row in rows], color=figures.BLUE)
    axes.hlines(
        labels,
        [row["spread"][0] for row in rows],
        [row["spread"][1] for row in rows],
        color=figures.INK,
    )
    axes.plot([row["target"] for row in rows], labels, "|", color=figures.RED, ms=18, mew=2.5)
    axes.set(xlabel="ratio, ours over the peer's (threads in brackets)", xlim=(0, None))
    axes.invert_yaxis()
    told = "; ".join(
        f"{label}: {short(row['ratio'])}" for label, row in zip(labels, rows, strict=True)
    )
    return figures.svg(figure, "fig-bench", told)
