"""A plan in words: what each run needs here, what it would take on a GPU, what doesn't fit."""

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from tokenspace.press.costs import cost, fit
from tokenspace.press.costs.cost import UNCERTAINTY, Costs, Estimate, Sizes
from tokenspace.press.costs.fit import size
from tokenspace.press.costs.machine import Machine, this_machine
from tokenspace.press.parameters import split
from tokenspace.press.plan import Plan, plan

LONG = 3600.0  # seconds on a CPU from which a GPU is worth asking for


@dataclass(frozen=True)
class Forecast:
    """What one run would need; `change` is the smallest that would make it fit, if it doesn't."""

    notebook: str
    profile: str
    costs: Costs
    machine: Machine
    at_once: int
    here: Estimate
    on_gpu: Estimate
    problems: list[str]
    change: dict[str, Any] | None

    def lines(self) -> list[str]:
        """Write the report, a fact a line."""
        here, machine = self.here, self.machine
        free = f"{size(machine.memory)} here, {size(machine.free)} of it free"
        facts = [
            ("hardware", hardware(here, self.on_gpu, self.costs)),
            ("memory", f"about {size(here.memory)} ({free})"),
            ("GPU memory", f"about {size(here.gpu_memory)}" if machine.gpu_memory else ""),
            ("disk", f"about {size(here.disk)} ({size(machine.disk)} free)"),
            ("time here", self._time()),
            ("most of it", leading(here)),
            ("on a GPU", self._gpu() if gpu_matters(here, self.on_gpu) else ""),
            *(("download", line) for line in self._downloads()),
        ]
        named = [f"  {name:<11} {text}" for name, text in facts if text]
        return [f"{self.notebook}, profile {self.profile}", *named, *self._notes()]

    def _time(self) -> str:
        low, high = (duration(self.here.time * f) for f in (1 / UNCERTAINTY, UNCERTAINTY))
        return (
            f"about {duration(self.here.time)} ({low} to {high}), {pages(self.machine.cores)}; "
            f"a core measured at {self.machine.gflops:.0f} GFLOP/s"
        )

    def _gpu(self) -> str:
        gpu, name, assumed = self.on_gpu, self.costs.gpu["name"], ", ".join(shares(self.costs))
        return (
            f"about {duration(gpu.time)} and {size(gpu.gpu_memory)} of its memory. An estimate, "
            f"never measured: it assumes {name} that does {assumed}"
        )

    def _downloads(self) -> list[str]:
        if not self.here.downloads:
            return ["nothing"]
        return [
            f"{'' if item.known else 'assumed '}{size(item.gigabytes)}: {item.what}, {item.origin}"
            for item in self.here.downloads
        ]

    def _notes(self) -> list[str]:
        notes = [f"does not fit: {problem}" for problem in self.problems]
        if not self.problems and self.here.memory > self.machine.free:
            notes.append("more memory than is free at this moment: close something first")
        if self.problems and self.change:
            notes.append(f"would fit   {words(self.change)}")
        return [f"  {note}" for note in notes]

    def refusal(self) -> str:
        """Say in one sentence why this machine can't run it, and what to change."""
        change = words(self.change) if self.change else "no single parameter is enough"
        return (
            f"{self.notebook} (profile {self.profile}) needs {'; '.join(self.problems)}. "
            f"Smallest change that fits: {change}"
        )

    def record(self) -> dict[str, Any]:
        """Give the report as plain JSON data, in seconds and GB."""
        return {
            "notebook": self.notebook,
            "profile": self.profile,
            "fits": not self.problems,
            "problems": self.problems,
            "smallest_change": self.change,
            "machine": vars(self.machine),
            **_numbers(self.here),
            "uncertainty": UNCERTAINTY,
            "assumed_gpu": {**self.costs.gpu, **_numbers(self.on_gpu)},
        }


def _numbers(needed: Estimate) -> dict[str, Any]:
    return {
        "seconds": round(needed.time, 1),
        "seconds_by_term": {name: round(s, 2) for name, s in needed.seconds.items()},
        "memory": round(needed.memory, 3),
        "gpu_memory": round(needed.gpu_memory, 3),
        "disk": round(needed.disk, 3),
        "download": [vars(item) for item in needed.downloads],
    }


def forecasts(
    root: Path,
    notebooks: Sequence[str],
    profile: str,
    given: Sequence[str],
    device: str | None,
    sizes: Sizes,
    machine: Machine | None = None,
) -> list[Forecast]:
    """Plan notebooks on this machine, or another; as `run` would, one a core side by side."""
    costs = cost.read(root)
    plans = [plan(root, n, profile=profile, given=split(given), device=device) for n in notebooks]
    whole = machine or this_machine(root / "build", device=device)
    at_once = max(1, min(len(plans), whole.cores))
    here = replace(whole, cores=max(1, whole.cores // at_once))
    found = []
    for p in plans:
        needed, fast = (
            cost.estimate(costs, p.notebook, p.parameters, m, sizes)
            for m in (here, costs.gpu_machine(here))
        )
        wrong = fit.problems(needed, here)
        change = None
        if wrong:
            change = fit.smallest_change(costs, p.notebook, p.parameters, here, sizes)
        facts = (costs, here, at_once, needed, fast, wrong, change)
        found.append(Forecast(p.notebook, p.profile, *facts))
    return found


def together(needed: Sequence[Estimate], at_once: int, what: str = "notebooks") -> str:
    """Sum up runs of which so many go side by side."""
    times = [each.time for each in needed]
    wall = max(sum(times) / at_once, *times, 0.0)
    downloads = {item.what: item.gigabytes for each in needed for item in each.downloads}
    travels = f"{size(sum(downloads.values()))} to download" if downloads else "nothing to download"
    return f"{len(needed)} {what}, {at_once} at once: about {duration(wall)}, {travels}"


def sweep_total(root: Path, plans: Sequence[Plan], workers: int | None, sizes: Sizes) -> str:
    """Say what is left of a sweep, on machines like this one; nothing where no costs are known."""
    new = [p for p in plans if not p.folder.is_dir()]
    if not new or not (root / "notebooks" / cost.FILE).is_file():
        return ""
    costs, here = cost.read(root), this_machine(root / "build")
    if new[0].notebook not in costs.notebooks:
        return ""
    at_once = min(workers or here.cores, len(new))
    each = replace(here, cores=max(1, here.cores // at_once))
    needed = [cost.estimate(costs, p.notebook, p.parameters, each, sizes) for p in new]
    return together(needed, at_once, "runs" if len(new) > 1 else "run")


def gpu_matters(here: Estimate, on_gpu: Estimate) -> bool:
    """Whether a run is long without a GPU and much shorter with one."""
    return here.time > LONG and on_gpu.time < here.time / 2


def hardware(here: Estimate, on_gpu: Estimate, costs: Costs) -> str:
    """Name the hardware that a run asks for."""
    if not gpu_matters(here, on_gpu):
        return "CPU"
    count = max(1, math.ceil(on_gpu.gpu_memory / costs.gpu["gigabytes"]))
    return f"{'GPU' if count == 1 else f'{count} GPUs'}, {size(on_gpu.gpu_memory)}"


def shares(costs: Costs) -> list[str]:
    """Say what is assumed of the GPU: which share of its peak each kind of work reaches."""
    kinds = costs.gpu["kinds"].values()
    return [f"{k['for']} at {k['used']:.0%} of {k['tflops']} TFLOP/s" for k in kinds]


def leading(needed: Estimate, count: int = 3) -> str:
    """Name the terms that take most of the time, with their shares."""
    terms = sorted(needed.seconds.items(), key=lambda each: -each[1])[:count]
    return ", ".join(f"{name} {s / needed.time:.0%}" for name, s in terms if s > 0)


def duration(seconds: float) -> str:
    """Write a time to two digits.

    >>> duration(8.4), duration(130.0), duration(5400.0), duration(4e5)
    ('8 s', '2.2 min', '1.5 h', '4.6 days')
    """
    for unit, of, least in (("days", 86400, 86400), ("h", 3600, 3600), ("min", 60, 100)):
        if seconds >= least:
            amount = seconds / of
            return f"{amount:.1f} {unit}" if amount < 9.95 else f"{amount:.0f} {unit}"
    return f"{seconds:.0f} s"


def pages(cores: int) -> str:
    """Say what a page computes with.

    >>> pages(1), pages(4)
    ('on one core', 'on 4 cores')
    """
    return "on one core" if cores == 1 else f"on {cores} cores"


def words(change: dict[str, Any]) -> str:
    """Write a change as the command line takes it.

    >>> words({"queries": 4096}), words({"device": "cpu"})
    ('-p queries=4096', '--device cpu')
    """
    ((name, value),) = change.items()
    if name == "device":
        return f"--device {value}"
    text = f"'{json.dumps(value)}'" if isinstance(value, list) else value
    return f"-p {name}={str(text).lower() if isinstance(value, bool) else text}"
