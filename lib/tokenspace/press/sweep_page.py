"""What a sweep found: one tidy table of claims with provenance, the pages' tables, a summary."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pandas as pd

from tokenspace.errors import RunError
from tokenspace.files import write
from tokenspace.format import interval, number
from tokenspace.press.claims import VERDICTS
from tokenspace.press.layout import unwritable
from tokenspace.press.results import read_about
from tokenspace.press.sweep import Outcome, Sweep
from tokenspace.press.tables import cell, markdown

NUMBERS = ("ours", "uncertainty", "band_low", "band_high", "seconds")
TEXTS = (
    *("run", "notebook", "profile", "status", "error", "claim", "source", "verdict", "scale"),
    *("commit", "versions", "device", "finished"),
)


def save(root: Path, sweep: Sweep, outcomes: list[Outcome]) -> Path:
    """Write `results.parquet`, `tables/*.parquet` and `summary.md`; returns the first's path.

    Each is written whole or not at all, and only when it says something new. Raises `RunError`
    where nothing can be written.
    """
    place, frame = sweep.folder(root), table(outcomes)
    files = {
        place.with_name("spec"): f"{sweep.path.resolve()}\n".encode(),
        place / "results.parquet": frame.to_parquet(index=False),
        place / "summary.md": summary(sweep, outcomes, frame).encode(),
    }
    for name, joined in page_tables(outcomes).items():
        files[place / "tables" / name] = joined.to_parquet(index=False)
    try:
        for path, content in files.items():
            _write(path, content)
    except OSError as error:
        raise RunError(f"sweep {sweep.name}: {unwritable(place, error)}") from None
    return place / "results.parquet"


def _write(path: Path, content: bytes) -> None:
    if not path.is_file() or path.read_bytes() != content:
        path.parent.mkdir(parents=True, exist_ok=True)
        write(path, content)


def pages(root: Path) -> dict[str, str]:
    """Give the summaries of all sweeps as pages of the book, by name.

    >>> pages(Path("/nowhere"))
    {}
    """
    found = sorted((root / "build" / "sweeps").glob("*/*/summary.md"))
    return {f"sweeps/{p.parts[-3]}-{p.parts[-2]}": p.read_text("utf-8") for p in found}


def table(outcomes: list[Outcome]) -> pd.DataFrame:
    """Give a row for each claim of each run; a run without claims, or that failed, has one row.

    Columns: the run's key, its parameters as `parameter.NAME` (lists as JSON), the claim, and
    where it comes from.
    """
    frame = pd.DataFrame([row for outcome in outcomes for row in _rows(outcome)])
    frame = frame.reindex(columns=list(dict.fromkeys([*frame, *TEXTS, *NUMBERS])))
    kinds = dict.fromkeys(TEXTS, "string") | dict.fromkeys(NUMBERS, "float64")
    return frame.astype(kinds)


def _rows(outcome: Outcome) -> Iterator[dict[str, Any]]:
    plan = outcome.plan
    row: dict[str, Any] = {
        "run": plan.key,
        "notebook": plan.notebook,
        "profile": plan.profile,
        **_parameters({**outcome.point, **plan.parameters}),  # what varies comes first
    }
    if outcome.error is not None:
        yield {**row, "status": "failed", "error": outcome.error}
        return
    about = read_about(plan.folder)
    row |= {
        "status": "done",
        "seconds": about["seconds"],
        "finished": about["finished"],
        "commit": about["commit"],
        "versions": ", ".join(f"{name} {v}" for name, v in about["versions"].items()),
        "device": about["footer"].get("device"),
    }
    for claim in outcome.claims or [{}]:
        low, high = claim.get("band") or (None, None)
        same = ("source", "scale", "ours", "uncertainty", "verdict")
        found = {name: claim[name] for name in same if name in claim}
        yield {**row, "claim": claim.get("id"), **found, "band_low": low, "band_high": high}


def _parameters(values: dict[str, Any]) -> dict[str, Any]:
    return {
        f"parameter.{name}": json.dumps(v) if isinstance(v, list | dict) else v
        for name, v in values.items()
    }


def page_tables(outcomes: list[Outcome]) -> dict[str, pd.DataFrame]:
    """Join the pages' own tables of the same name over runs, each row with its run's values."""
    parts: dict[str, list[pd.DataFrame]] = {}
    for outcome in outcomes:
        if outcome.error is None:
            given = {name: outcome.plan.parameters[name] for name in outcome.point}
            about = {"run": outcome.plan.key, **_parameters(given)}
            for path in sorted((outcome.plan.folder / "tables").glob("*.parquet")):
                rows = pd.read_parquet(path).rename(columns={"run": "page.run"})
                parts.setdefault(path.name, []).append(
                    pd.concat([pd.DataFrame(about, index=rows.index), rows], axis=1)
                )
    return {name: _plain(pd.concat(frames)) for name, frames in parts.items()}


def _plain(frame: pd.DataFrame) -> pd.DataFrame:
    """Turn columns whose kind differs from run to run into text, so that they can be written."""
    for name in frame:
        if pd.api.types.infer_dtype(frame[name], skipna=True).startswith("mixed"):
            frame[name] = frame[name].map(str)
    return frame


def summary(sweep: Sweep, outcomes: list[Outcome], frame: pd.DataFrame) -> str:
    """Write a page of MyST: how the sweep went, each claim over its runs, what failed."""
    failed = [o for o in outcomes if o.error is not None]
    facts = "\n\n".join(_facts(sweep, outcomes, frame))
    lines = [f"# {literal(sweep.title)} ({sweep.profile})", "", facts, ""]
    if frame["claim"].notna().any():
        lines += ["## Claims over runs", "", markdown(_overview(frame)), ""]
    first = {claim["id"]: claim for o in reversed(outcomes) for claim in o.claims}
    for name in dict.fromkeys(frame["claim"].dropna()):
        about = first[name]
        rows = frame[frame["claim"] == about["id"]]
        paper = (about["paper"] or "–").rstrip(".")
        lines += [f"## {about['id']}", "", literal(about["statement"]), ""]
        lines += [f"Holds if {interval(about['band'])}. Paper: {literal(paper)}."]
        lines += ["", markdown(_shown(rows, outcomes)), ""]
    if failed:
        lines += ["## Failed runs", ""]
        rows = pd.DataFrame(
            [{**_labels(o.point), "error": literal(last_line(o.error))} for o in failed]
        )
        lines += [markdown(rows), ""]
    return "\n".join(lines)


def _facts(sweep: Sweep, outcomes: list[Outcome], frame: pd.DataFrame) -> Iterator[str]:
    runs = frame.drop_duplicates("run")
    done = runs[runs["status"] == "done"]
    yield (
        f"{len(done)} of {len(outcomes)} runs of `{sweep.notebook}` at profile `{sweep.profile}` "
        f"are done, in {done['seconds'].sum():.0f} s of runs together."
    )
    done = done.assign(commit=done["commit"].str.replace(r"^(\w{12})\w+", r"\1", regex=True))
    for name in ("commit", "versions", "device"):
        if values := [f"`{v}`" for v in dict.fromkeys(done[name].dropna())]:
            yield f"{name.capitalize()}: {', '.join(values)}."


def _overview(frame: pd.DataFrame) -> pd.DataFrame:
    """Count each claim's verdicts over the runs, and say from where to where our number goes."""
    rows = []
    for claim, group in frame.dropna(subset="claim").groupby("claim", sort=False):
        counts = {text: int((group["verdict"] == v).sum()) for v, text in VERDICTS.items()}
        ours = group["ours"].dropna()
        least, most = (number(float(x)) if len(ours) else "–" for x in (ours.min(), ours.max()))
        rows.append({"claim": claim, **counts, "least": least, "greatest": most})
    return pd.DataFrame(rows)


def _shown(rows: pd.DataFrame, outcomes: list[Outcome]) -> pd.DataFrame:
    names = dict.fromkeys(f"parameter.{name}" for o in outcomes for name in o.point)
    frame = rows[list(names)].rename(columns=lambda name: name.removeprefix("parameter."))
    frame = frame.map(lambda value: literal(cell(value)))
    pairs = zip(rows["ours"], rows["uncertainty"], strict=True)
    frame["ours"] = [number(*(None if pd.isna(x) else float(x) for x in pair)) for pair in pairs]
    frame["verdict"] = [VERDICTS[verdict] for verdict in rows["verdict"]]
    return frame


def _labels(point: dict[str, Any]) -> dict[str, str]:
    return {name: literal(str(value)) for name, value in point.items()}


def last_line(error: str | None) -> str:
    """Give an error's line that says most: a traceback's last, not where the notebook is kept.

    >>> last_line("hub/toy, cell 3 failed\\nValueError: no\\nkept as far as it got: executed.ipynb")
    'ValueError: no'
    """
    lines = [line for line in (error or "").splitlines() if line.strip()]
    said = [line for line in lines if not line.startswith("kept as far as")]
    return (said or [""])[-1]


def literal(text: str) -> str:
    r"""Keep Markdown from reading a text as markup.

    >>> print(literal("a_b < [c]"))
    a\_b \< \[c\]
    """
    return re.sub(r"([\\`*_{}\[\]<>#$])", r"\\\1", text.replace("\n", " "))
