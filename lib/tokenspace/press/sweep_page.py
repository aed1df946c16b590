"""What a sweep found: one tidy table of claims with provenance, the pages' tables, a summary."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pandas as pd

from tokenspace.errors import RunError
from tokenspace.files import unwritable, write
from tokenspace.format import interval
from tokenspace.press.claims import VERDICTS
from tokenspace.press.results import read_about, read_claims
from tokenspace.press.sweep import Sweep, SweepRun
from tokenspace.press.tables import markdown

TEXTS = (
    *("run", "notebook", "profile", "status", "error", "claim", "statement", "source", "paper"),
    *("verdict", "scale", "commit", "versions", "device", "finished"),
)
NUMBERS = ("ours", "uncertainty", "band_low", "band_high", "seconds")
KINDS = dict.fromkeys(TEXTS, "string") | dict.fromkeys(NUMBERS, "float64")


def save(root: Path, sweep: Sweep, runs: list[SweepRun]) -> Path:
    """Write `results.parquet`, `tables/*.parquet` and `summary.md`; returns the first's path.

    Each is written whole or not at all, and only when it says something new. Raises `RunError`
    where nothing can be written.
    """
    place, frame = root / "build" / "sweeps" / sweep.name / sweep.profile, table(runs)
    files = {place / "tables" / name: joined for name, joined in page_tables(runs).items()}
    files[place / "results.parquet"] = frame
    contents = {path: joined.to_parquet(index=False) for path, joined in files.items()}
    contents[place / "summary.md"] = summary(sweep, frame).encode()
    try:
        for path, content in contents.items():
            if not path.is_file() or path.read_bytes() != content:
                path.parent.mkdir(parents=True, exist_ok=True)
                write(path, content)
    except OSError as error:
        raise RunError(f"sweep {sweep.name}: {unwritable(place, error)}") from None
    return place / "results.parquet"


def pages(root: Path) -> dict[str, str]:
    """Give the summaries of all sweeps as pages of the book, by name."""
    found = sorted((root / "build" / "sweeps").glob("*/*/summary.md"))
    return {f"sweeps/{p.parts[-3]}-{p.parts[-2]}": p.read_text("utf-8") for p in found}


def table(runs: list[SweepRun]) -> pd.DataFrame:
    """Give a row for each claim of each run; a run without claims, or that failed, has one row.

    Columns: the run's key, its parameters as `parameter.NAME` (lists as JSON), the claim, and
    where it comes from.
    """
    frame = pd.DataFrame([row for run in runs for row in _rows(run)])
    return frame.reindex(columns=list(dict.fromkeys([*frame, *KINDS]))).astype(KINDS)


def _rows(run: SweepRun) -> Iterator[dict[str, Any]]:
    plan = run.plan
    row: dict[str, Any] = {"run": plan.key, "notebook": plan.notebook, "profile": plan.profile}
    row |= _parameters({**run.point, **plan.parameters})  # what varies comes first
    if run.error is not None:
        yield {**row, "status": "failed", "error": run.error}
        return
    about = read_about(plan.folder)
    row |= {name: about[name] for name in ("seconds", "finished", "commit")}
    row["versions"] = ", ".join(f"{name} {v}" for name, v in about["versions"].items())
    row |= {"status": "done", "device": about["footer"].get("device")}
    for claim in read_claims(plan.folder) or [{}]:
        low, high = claim.get("band") or (None, None)
        facts = {name: value for name, value in claim.items() if name in KINDS}
        yield {**row, **facts, "claim": claim.get("id"), "band_low": low, "band_high": high}


def _parameters(values: dict[str, Any]) -> dict[str, Any]:
    named = ((f"parameter.{name}", value) for name, value in values.items())
    return {name: json.dumps(v) if isinstance(v, list | dict) else v for name, v in named}


def page_tables(runs: list[SweepRun]) -> dict[str, pd.DataFrame]:
    """Join the pages' own tables of the same name over runs, each row with its run's values."""
    parts: dict[str, list[pd.DataFrame]] = {}
    for run in (each for each in runs if each.error is None):
        given = {name: run.plan.parameters[name] for name in run.point}
        about = {"run": run.plan.key, **_parameters(given)}
        for path in sorted((run.plan.folder / "tables").glob("*.parquet")):
            rows = pd.read_parquet(path).rename(columns={"run": "page.run"})
            beside = pd.DataFrame(about, index=rows.index)
            parts.setdefault(path.name, []).append(pd.concat([beside, rows], axis=1))
    joined = {name: pd.concat(frames) for name, frames in parts.items()}
    for frame in joined.values():
        for name in frame:  # whose kind differs from run to run can be written as text only
            if pd.api.types.infer_dtype(frame[name], skipna=True).startswith("mixed"):
                frame[name] = frame[name].map(str)
    return joined


def summary(sweep: Sweep, frame: pd.DataFrame) -> str:
    """Write a page of MyST: how the sweep went, each claim over its runs, what failed."""
    runs, claims = frame.drop_duplicates("run"), frame.dropna(subset="claim")
    done, failed = runs[runs["status"] == "done"], runs[runs["status"] == "failed"]
    lines = [
        f"# {_literal(sweep.title or sweep.name)} ({sweep.profile})",
        f"{len(done)} of {len(runs)} runs of `{sweep.notebook}` at profile `{sweep.profile}` are "
        f"done, in {done['seconds'].sum():.0f} s of runs together.",
    ]
    for name in ("commit", "versions", "device"):
        if values := [f"`{v}`" for v in done[name].dropna().unique()]:
            said = re.sub(r"`(\w{12})\w+", r"`\1", ", ".join(values))  # a commit is too wide
            lines.append(f"{name.capitalize()}: {said}.")
    if len(claims):
        counts = pd.crosstab(claims["claim"], claims["verdict"].map(VERDICTS))
        counts = counts.reindex(columns=list(VERDICTS.values()), fill_value=0)
        ours = claims.groupby("claim")["ours"].agg(least="min", greatest="max")
        overview = counts.join(ours).loc[claims["claim"].unique()].reset_index()
        lines += ["## Claims over runs", markdown(overview)]
    shown = {f"parameter.{name}": name for point in sweep.varied() for name in point}
    for name, rows in claims.groupby("claim", sort=False):
        claim = rows.astype(object).where(rows.notna(), None).iloc[0]
        band = None if claim["ours"] is None else (claim["band_low"], claim["band_high"])
        paper = _literal(claim["paper"] or "–").rstrip(".")
        lines += [f"## {name}", _literal(claim["statement"])]
        lines += [f"Holds if {interval(band)}. Paper: {paper}."]
        rows = rows.assign(verdict=rows["verdict"].map(VERDICTS))
        lines += [
            _by_point(rows, {**shown, "ours": "ours", "uncertainty": "±", "verdict": "verdict"})
        ]
    if len(failed):
        rows = failed.assign(error=failed["error"].map(last_line))
        lines += ["## Failed runs", _by_point(rows, {**shown, "error": "error"})]
    return "\n\n".join(lines) + "\n"


def _by_point(rows: pd.DataFrame, columns: dict[str, str]) -> str:
    """Show columns under other names, as text that Markdown leaves alone."""
    frame = rows[list(columns)].rename(columns=columns)
    return markdown(frame.map(lambda value: _literal(value) if isinstance(value, str) else value))


def _literal(text: str) -> str:
    return re.sub(r"([\\`*_{}\[\]<>#$])", r"\\\1", text.replace("\n", " "))


def last_line(error: str) -> str:
    """Give an error's line that says most: a traceback's last, not where the notebook is kept."""
    lines = [line for line in error.splitlines() if line.strip()]
    return next(line for line in reversed(lines) if not line.startswith("kept as far as"))
