"""Exercises that check an answer: what the last line of a solution's cell calls."""

import os
from collections.abc import Mapping
from typing import Any

import numpy as np

from tokenspace.errors import ExerciseError


def expect(
    label: str,
    got: Any,
    expected: Any,
    *,
    hint: str,
    within: float = 0.0,
    mistakes: Mapping[str, Any] | None = None,
) -> None:
    """Say that an answer is right, or raise `ExerciseError`: what it was, and what to do next.

    In a run of the whole page it is said and the page goes on: a reader's own table or parameters
    may make another answer right than the page's.

    `got` is a number, an array or a word, `expected` the same by another route; numbers may differ
    by `within`. `mistakes` says what leads to a wrong answer: `{"the share below t": 0.9}`. The
    expected value is never shown, so that it can't be copied.

    >>> expect("ex-tail", 0.0951, 1 - 0.9048, within=0.01, hint="Put t = 10 d into the law.")
    ex-tail: right.
    """
    if _agree(got, expected, within):
        print(f"{label}: right.")
        return
    told = f"{label}: your answer is {_shown(got)}, and the check finds another"
    shape, other = np.shape(got), np.shape(expected)
    if isinstance(expected, bool):
        told = f"{label}: your answer doesn't pass the check"
    elif shape != other:
        told += f": yours has the shape {shape}, it takes {other}"
    elif within:
        told += f", further than {within:.3g} from it"
    leads = [why for why, value in (mistakes or {}).items() if _agree(got, value, within)]
    told += f". That is {leads[0]}" if leads else ""
    told += f". Next: {hint}"
    if "TOKENSPACE_RUN" not in os.environ:
        raise ExerciseError(told)
    print(told)


def _agree(got: Any, expected: Any, within: float) -> bool:
    got = _numbers(got)
    if np.shape(got) != np.shape(expected):
        return False
    if isinstance(expected, bool):
        return bool(got == expected)
    expected = _numbers(expected)
    if isinstance(got, np.ndarray) and isinstance(expected, np.ndarray):
        return bool((np.abs(got - expected) <= within).all())
    return str(got).strip().casefold() == str(expected).casefold()


def _numbers(value: Any) -> Any:
    """Take a tensor off its graph and its device; what isn't made of numbers stays as it is."""
    value = value.detach().cpu() if hasattr(value, "detach") else value
    if value is None or isinstance(value, str | bool):
        return value
    try:
        return np.asarray(value, float)
    except (TypeError, ValueError):
        return value


def _shown(got: Any) -> str:
    if got is None:
        return "None (is a `return` missing?)"
    values = _numbers(got)
    if not isinstance(values, np.ndarray):
        return repr(got)
    some = values.flatten()[:4].tolist()
    first = ", ".join(f"{v:.0f}" if v.is_integer() and abs(v) < 1e9 else f"{v:.4g}" for v in some)
    return first if values.ndim == 0 else f"[{first}{', …' if values.size > 4 else ''}]"
