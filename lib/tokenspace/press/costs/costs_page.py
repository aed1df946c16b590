"""The page of the book that says what each page costs, and the comparison with runs behind it."""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pandas as pd

from tokenspace.errors import ParameterError
from tokenspace.press import layout
from tokenspace.press.costs import cost
from tokenspace.press.costs.cost import UNCERTAINTY, Costs, Sizes
from tokenspace.press.costs.fit import size
from tokenspace.press.costs.forecast import duration, gpu_matters, hardware, shares
from tokenspace.press.costs.machine import Machine
from tokenspace.press.plan import plan, profiles
from tokenspace.press.results import read_about, read_parameters
from tokenspace.press.runs import stored
from tokenspace.press.tables import markdown

SHOWN = ("classroom", "paper")
INTRO = """\
# What each page costs

Before anything is fetched or run, `tokenspace plan PART/NOTEBOOK` says what a run will need. It
counts the work from the notebook's parameters, by the formulas of `notebooks/costs.yaml`. The
tables below come from the same formulas, when the book is built. Their times are for {machine};
the command measures one core of your machine and scales them. Take every time and memory to be
right within a factor of {factor}.

The profile `paper` needs a GPU where the table says so. **We had none to try it on: those times are
estimates, not measurements.** They assume {gpu}, which does

{shares}

Sizes of public models are public knowledge. Where a download is *partly assumed*, a size is known
to the Hub alone, and `tokenspace plan` asks it.
"""
BESIDE = """
## Planned and measured

The runs that this book was built from, and what was planned for them: the time for one core of the
machine above, whatever machine they ran on. A plan doesn't know what else a machine is doing: where
other programs share its cores, runs take longer than planned.
"""


def page(root: Path, runs: Mapping[str, Path], sizes: Sizes) -> str:
    """Write the page: each notebook at the profiles classroom and paper, and the book's runs."""
    costs = cost.read(root)
    text = INTRO.format(
        machine=costs.reference["name"],
        gpu=costs.gpu["name"],
        shares="\n".join(f"- {each}" for each in shares(costs)),
        factor=f"{UNCERTAINTY:g}",
    )
    lines = [text]
    for profile in (p for p in SHOWN if p in profiles(root)):
        lines += [f"## Profile {profile}", "", _table(root, costs, profile, sizes), ""]
    measured = [
        row
        for name, folder in runs.items()
        if (row := compare(costs, name, read_about(folder), read_parameters(folder), sizes))
    ]
    if measured:
        lines += [BESIDE, markdown(pd.DataFrame([_side_by_side(row) for row in measured])), ""]
    return "\n".join(lines)


def _table(root: Path, costs: Costs, profile: str, sizes: Sizes) -> str:
    rows = []
    for name in (n for n in layout.chapters(root) if n in costs.notebooks):
        values = plan(root, name, profile=profile).parameters
        slow, fast = (
            cost.estimate(costs, name, values, machine, sizes)
            for machine in (costs.machine(), costs.gpu_machine(costs.machine()))
        )
        used = fast if gpu_matters(slow, fast) else slow
        assumed = "" if all(item.known for item in used.downloads) else ", partly assumed"
        rows.append(
            {
                "page": f"{{doc}}`/notebooks/{name}`",
                "hardware": hardware(slow, fast, costs),
                "memory": size(used.memory),
                "wall time": duration(used.time),
                "download": f"{size(used.download)}{assumed}" if used.downloads else "none",
            }
        )
    return markdown(pd.DataFrame(rows))


def compare(
    costs: Costs,
    notebook: str,
    about: Mapping[str, Any],
    parameters: Mapping[str, Any],
    sizes: Sizes,
    gflops: float | None = None,
) -> dict[str, Any] | None:
    """Set what a run took beside what would have been planned; None where that can't be said.

    `gflops` is the speed of the machine that it ran on, by default the reference's.
    """
    footer = about["footer"]
    peak = re.match(r"[\d.]+", footer.get("peak memory", ""))
    reference = costs.machine(int(footer.get("threads", 1)))
    speed = gflops or reference.gflops
    gpu = float(costs.gpu["gigabytes"]) if footer.get("device", "").startswith("cuda") else 0.0
    free = float("inf")
    machine = Machine(reference.name, reference.cores, speed, free, free, free, gpu)
    try:
        planned = cost.estimate(costs, notebook, parameters, machine, sizes)
    except ParameterError:  # a run of an older notebook, with other parameters
        return None
    if peak is None:
        return None
    return {
        "notebook": notebook,
        "profile": about["profile"],
        "key": about["key"],
        "seconds": about["seconds"],
        "planned_seconds": round(planned.time, 1),
        "memory": float(peak[0]),
        "planned_memory": round(planned.memory, 2),
    }


def _side_by_side(row: Mapping[str, Any]) -> dict[str, str]:
    return {
        "page": row["notebook"],
        "profile": row["profile"],
        "time planned": duration(row["planned_seconds"]),
        "taken": duration(row["seconds"]),
        "memory planned": size(row["planned_memory"]),
        "at the peak": size(row["memory"]),
    }


def check(root: Path, sizes: Sizes, gflops: float | None = None) -> list[dict[str, Any]]:
    """Compare every run in `build/runs` with its plan."""
    costs = cost.read(root)
    rows = [
        compare(costs, run.notebook, run.about, run.parameters(), sizes, gflops)
        for run in stored(root)
        if run.state != "failed" and run.notebook in costs.notebooks
    ]
    return [row for row in rows if row]


def check_lines(rows: list[dict[str, Any]]) -> list[str]:
    """Write the comparison, a run a line: planned, taken, and by what factor they differ."""
    lines = []
    for row in rows:
        time = row["planned_seconds"] / row["seconds"]
        memory = row["planned_memory"] / row["memory"]
        near = all(1 / UNCERTAINTY <= ratio <= UNCERTAINTY for ratio in (time, memory))
        lines.append(
            f"{row['notebook']:<22} {row['profile']:<10} {row['key'][:8]}  "
            f"time {row['planned_seconds']:>7.1f} / {row['seconds']:>7.1f} s = {time:4.2f}   "
            f"memory {row['planned_memory']:5.2f} / {row['memory']:5.2f} GB = {memory:4.2f}"
            + ("   off by more than a factor of 2" * (not near))
        )
    return lines or ["no runs in build/runs to compare with"]
