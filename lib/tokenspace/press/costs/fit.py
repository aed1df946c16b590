"""Whether a run fits a machine, and if not, the smallest change of one parameter that would."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from tokenspace.press.costs.cost import Costs, Estimate, Sizes, estimate
from tokenspace.press.costs.machine import Machine

Try = Callable[[Mapping[str, Any]], bool]


def problems(needed: Estimate, machine: Machine) -> list[str]:
    """Say what a machine lacks for a run, whatever else is running on it."""
    wanted = {
        "memory": (needed.memory, machine.memory),
        "GPU memory": (needed.gpu_memory, machine.gpu_memory),
        "free disk": (needed.disk, machine.disk),
    }
    return [
        f"about {size(amount)} of {what}, and this machine has {size(there)}"
        for what, (amount, there) in wanted.items()
        if amount > there
    ]


def size(gigabytes: float) -> str:
    """Write an amount of memory to two digits.

    >>> size(0.0123), size(1.26), size(65.5)
    ('12 MB', '1.3 GB', '66 GB')
    """
    if gigabytes < 0.9995:
        return f"{gigabytes * 1e3:.2g} MB" if gigabytes < 0.0995 else f"{gigabytes * 1e3:.0f} MB"
    return f"{gigabytes:.1f} GB" if gigabytes < 9.95 else f"{gigabytes:.0f} GB"


def smallest_change(
    costs: Costs, notebook: str, parameters: Mapping[str, Any], machine: Machine, sizes: Sizes
) -> dict[str, Any] | None:
    """Find one parameter and the value nearest to its own with which the run fits.

    Only those that `shrink` lists are tried: a number down to the least value given there, a list
    item by item, a choice among the alternatives given. Numbers are compared by how many times
    smaller they get, and come before choices. None when no single change is enough.
    """

    def fits(changed: Mapping[str, Any]) -> bool:
        values = {**parameters, **changed}
        needed = estimate(costs, notebook, values, machine, sizes)
        return not problems(needed, machine)

    found: list[tuple[float, str, Any]] = []
    for name, least in costs.of(notebook).get("shrink", {}).items():
        for loss, value in _smaller(name, parameters[name], least, fits):
            found.append((loss, name, value))
    if not found:
        return None
    _, name, value = min(found, key=lambda each: each[0])
    return {name: value}


def _smaller(name: str, value: Any, least: Any, fits: Try) -> Iterator[tuple[float, Any]]:
    """Yield the nearest smaller value that fits, if any, with how much of a loss it is."""
    if isinstance(value, list):
        for number in range(len(value)):  # without one item
            shorter = value[:number] + value[number + 1 :]
            if shorter and fits({name: shorter}):
                yield 1 + 1 / len(shorter), shorter
                return
        for count in range(len(value) - 2, 0, -1):  # then only the first ones
            if fits({name: value[:count]}):
                yield len(value) / count, value[:count]
                return
    elif isinstance(least, list):
        for place, choice in enumerate(least):
            if choice != value and fits({name: choice}):
                yield 1e6 + place, choice
                return
    elif value > least and fits({name: least}):
        nearest = _greatest(name, least, value, fits)
        yield value / nearest, nearest


def _greatest(name: str, least: int, value: int, fits: Try) -> int:
    """Halve the gap between a value that fits and one that doesn't; then round down."""
    low, high = least, value
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if fits({name: middle}) else (low, middle)
    return max(least, _rounded(low))


def _rounded(value: int) -> int:
    """Round down to two digits.

    >>> _rounded(4191), _rounded(98)
    (4100, 98)
    """
    step = 10 ** max(0, len(str(value)) - 2)
    return value // step * step
