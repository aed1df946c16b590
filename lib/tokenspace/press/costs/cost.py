"""What a run would cost, from its parameters alone: time, memory, disk, and what is downloaded.

`notebooks/costs.yaml` lists for each notebook where its time and memory go, each a term with a
unit cost that was measured once, on the machine that the file names, and a formula in the
notebook's own parameters. On another machine times are scaled by the speed of one core.
"""

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

import yaml

from tokenspace.errors import ParameterError
from tokenspace.press.costs.formula import evaluate
from tokenspace.press.costs.machine import Machine
from tokenspace.press.layout import nearest

FILE = "costs.yaml"
UNCERTAINTY = 2.0  # estimates are within this factor where they were compared with runs
KINDS = {
    "names": dict,
    **dict.fromkeys(("seconds", "megabytes", "disk"), list),
    **dict.fromkeys(("tables", "models"), str),
    "shrink": dict,
}
TERM = {"what", "each", "of", "threads", "gpu"}


@runtime_checkable
class Size(Protocol):
    """What `tokenspace.sources` knows of a table or a model without fetching it."""

    @property
    def origin(self) -> str: ...
    @property
    def known(self) -> bool: ...
    @property
    def table_bytes(self) -> float: ...
    @property
    def model_bytes(self) -> float: ...


@runtime_checkable
class Sizes(Protocol):
    """Looks sizes up by name, and gives the functions that formulas call."""

    def __call__(self, spec: str) -> Size: ...
    def functions(self) -> dict[str, Callable[..., Any]]: ...


@dataclass(frozen=True)
class Download:
    """What would travel: a table or a whole model, in GB, and from where."""

    what: str
    gigabytes: float
    origin: str
    known: bool


@dataclass(frozen=True)
class Estimate:
    """A run's cost: seconds by where they go, GB of memory, of a GPU's memory, and of disk."""

    seconds: dict[str, float]
    memory: float
    gpu_memory: float
    disk: float
    downloads: tuple[Download, ...]

    @property
    def time(self) -> float:
        """Seconds in all, downloads left out."""
        return sum(self.seconds.values())

    @property
    def download(self) -> float:
        """GB that would travel."""
        return sum(item.gigabytes for item in self.downloads)


@dataclass(frozen=True)
class Costs:
    """The content of `notebooks/costs.yaml`: the machine of its numbers, and each notebook's."""

    reference: Mapping[str, Any]
    gpu: Mapping[str, Any]
    notebooks: Mapping[str, Mapping[str, Any]]

    def machine(self, cores: int = 1) -> Machine:
        """Give the machine that the unit costs were measured on, with so many cores."""
        about = self.reference
        memory = float(about["gigabytes"])
        return Machine(about["name"], cores, float(about["gflops"]), memory, memory, math.inf)

    def gpu_machine(self, here: Machine) -> Machine:
        """Give this machine as it would be with the assumed GPU in it."""
        name, memory = str(self.gpu["name"]), float(self.gpu["gigabytes"])
        return replace(here, name=name, gpu_memory=memory)

    def of(self, notebook: str) -> Mapping[str, Any]:
        """Give a notebook's terms; raises `ParameterError` when it has none."""
        if notebook not in self.notebooks:
            hint = nearest(notebook, self.notebooks)
            raise ParameterError(f"{FILE} says nothing of {notebook!r}{hint}: add what it costs")
        return self.notebooks[notebook]


def read(root: Path) -> Costs:
    """Read the costs; raises `ParameterError` naming the notebook whose entry can't be used."""
    path = root / "notebooks" / FILE
    try:
        found = yaml.safe_load(path.read_text())
    except (OSError, yaml.YAMLError) as error:
        raise ParameterError(f"{path}: {error}") from None
    for notebook, about in found["notebooks"].items():
        for field, value in about.items():
            if field not in KINDS or not isinstance(value, KINDS[field]):
                known = ", ".join(KINDS)
                raise ParameterError(f"{path}: {notebook}: can't use {field!r} (known: {known})")
        for term in _terms(about):
            if wrong := set(term) - TERM:
                raise ParameterError(f"{path}: {notebook}: {term}: unknown {sorted(wrong)}")
            if (kind := term.get("gpu")) not in (None, *found["gpu"]["kinds"]):
                raise ParameterError(f"{path}: {notebook}: no GPU kind {kind!r}")
    return Costs(found["reference"], found["gpu"], found["notebooks"])


def _terms(about: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    for field in ("seconds", "megabytes", "disk"):
        yield from about.get(field, [])


def formulas(about: Mapping[str, Any]) -> Iterator[str]:
    """List every formula of a notebook's entry."""
    yield from (str(text) for text in about.get("names", {}).values())
    yield from (str(term.get("of", 1)) for term in _terms(about))
    yield from (about[field] for field in ("tables", "models") if field in about)


def estimate(
    costs: Costs, notebook: str, parameters: Mapping[str, Any], machine: Machine, sizes: Sizes
) -> Estimate:
    """Work out what a run would cost on a machine; raises `ParameterError` for a bad formula."""
    about = costs.of(notebook)
    names = {**sizes.functions(), **parameters, "cores": machine.cores}
    names["cuda"] = on_gpu = machine.gpu_memory > 0 and parameters.get("device") != "cpu"
    for name, text in about.get("names", {}).items():
        names[name] = evaluate(str(text), names)

    def amounts(field: str) -> Iterator[tuple[dict[str, Any], float]]:
        for term in about.get(field, []):
            amount = float(evaluate(str(term.get("of", 1)), names))
            yield term, float(term["each"]) * max(0.0, amount)

    seconds = {
        term["what"]: amount / quicker(costs, machine, term, on_gpu)
        for term, amount in amounts("seconds")
    }
    held = {True: 0.0, False: 0.0}
    for term, amount in amounts("megabytes"):
        held[on_gpu and "gpu" in term] += amount / 1e3
    downloads = tuple(_downloads(about, names, sizes))
    kept = sum(amount for _, amount in amounts("disk")) / 1e3
    disk = kept + sum(item.gigabytes for item in downloads)
    return Estimate(seconds, held[False], held[True], disk, downloads)


def quicker(costs: Costs, machine: Machine, term: Mapping[str, Any], on_gpu: bool) -> float:
    """How many times quicker than on the reference core a term is."""
    if on_gpu and term.get("gpu"):
        kind = costs.gpu["kinds"][term["gpu"]]
        return float(kind["tflops"] * kind["used"] * 1e3 / costs.reference["gflops"])
    more = (machine.cores - 1) * costs.reference["second_core"] if term.get("threads") else 0
    return float(machine.gflops / costs.reference["gflops"] * (1 + more))


def _downloads(
    about: Mapping[str, Any], names: Mapping[str, Any], sizes: Sizes
) -> Iterator[Download]:
    for field in ("tables", "models"):
        listed = evaluate(about[field], names) if field in about else []
        for spec in dict.fromkeys(listed):
            size = sizes(spec)
            each = size.table_bytes if field == "tables" else size.model_bytes
            total = each * listed.count(spec) / 1e9  # more than once: at several revisions
            if total or not size.known:
                yield Download(f"{spec}, {field[:-1]}", total, size.origin, size.known)
