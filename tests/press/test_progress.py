"""Bars on a terminal; lines, and few of them, anywhere else."""

import io

import pytest
from rich.console import Console

from tokenspace.press.progress import Report

QUARTERS = ["hub/a: 40 cells", *(f"hub/a: cell {i} of 40" for i in (10, 20, 30))]


@pytest.mark.parametrize("terminal", [True, False])
def test_a_terminal_gets_bars_and_a_log_gets_a_line_at_every_quarter(terminal: bool) -> None:
    stream = io.StringIO()
    with Report(2, Console(file=stream, force_terminal=terminal)) as report:
        for name in ("hub/a", "hub/b"):
            report.begin(name, 40)
            for index in range(40):
                report.cell(name, index)
            report.end(name, "done in 3 s")
    text = stream.getvalue()
    assert "hub/b: done in 3 s" in text
    assert ("\x1b[" in text) == ("notebooks" in text) == terminal
    if not terminal:
        assert text.splitlines()[:5] == [*QUARTERS, "hub/a: done in 3 s"]
