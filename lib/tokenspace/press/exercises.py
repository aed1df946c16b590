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
    if isinstance(expected, bool):
        told = f"{label}: your answer doesn't pass the check"
    shape, other = np.shape(got), np.shape(expected)
    if shape != other:
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
    got, expected = _plain(got), _plain(expected)
    if np.shape(got) != np.shape(expected):
        return False
    if isinstance(expected, str):
        return str(got).strip().casefold() == expected.casefold()
    if isinstance(expected, bool):
        return bool(got == expected)
    try:
        gap = np.abs(np.asarray(got, float) - np.asarray(expected, float))
    except (TypeError, ValueError):  # a word where a number belongs
        return False
    return bool((gap <= within).all())


def _plain(value: Any) -> Any:
    """Take a tensor off its graph and its device, where numpy can read it."""
    return value.detach().cpu() if hasattr(value, "detach") else value


def _shown(got: Any) -> str:
    got = _plain(got)
    if got is None:
        return "None (is a `return` missing?)"
    if isinstance(got, str | bool):
        return repr(got)
    try:
        values = np.asarray(got, float)
    except (TypeError, ValueError):
        return repr(got)
    some = values.flatten()[:4].tolist()
    first = ", ".join(f"{v:.0f}" if v.is_integer() and abs(v) < 1e9 else f"{v:.4g}" for v in some)
    return first if values.ndim == 0 else f"[{first}{', …' if values.size > 4 else ''}]"
