"""Bars on a terminal; lines, and few of them, anywhere else."""

import io

from rich.console import Console

from tokenspace.press.progress import Report


class Terminal(io.StringIO):
    """A stream that says it is a terminal."""

    def isatty(self) -> bool:
        return True


def told(stream: io.StringIO) -> str:
    with Report(2, Console(file=stream)) as report:
        for name in ("hub/a", "hub/b"):
            report.begin(name, 40)
            for index in range(40):
                report.cell(name, index)
            report.end(name, "done in 3 s")
    return stream.getvalue()


def test_a_terminal_gets_bars_over_notebooks_and_cells() -> None:
    text = told(Terminal())
    assert "\x1b[" in text
    assert "notebooks" in text
    assert "hub/b: done in 3 s" in text


def test_a_log_gets_a_line_at_every_quarter() -> None:
    lines = told(io.StringIO()).splitlines()
    assert lines[:5] == [
        "hub/a: 40 cells",
        "hub/a: cell 10 of 40",
        "hub/a: cell 20 of 40",
        "hub/a: cell 30 of 40",
        "hub/a: done in 3 s",
    ]
    assert len(lines) == 10
