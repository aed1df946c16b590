"""Progress of runs: a bar per notebook on a terminal, plain lines anywhere else."""

from contextlib import AbstractContextManager
from types import TracebackType

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TaskID,
    TextColumn,
    TimeElapsedColumn,
)


class Report(AbstractContextManager["Report"]):
    """Tells how far each notebook is.

    On a terminal: bars over notebooks and cells. Else: a line when a notebook starts, at each
    quarter of its cells, and when it ends.
    """

    def __init__(self, total: int, console: Console | None = None) -> None:
        console = console or Console(stderr=True)
        self._bar: Progress | None = None
        self._console = console
        self._tasks: dict[str, TaskID] = {}
        self._cells: dict[str, int] = {}
        if console.is_terminal:
            self._bar = Progress(
                TextColumn("{task.description}"),
                BarColumn(),
                MofNCompleteColumn(),
                TimeElapsedColumn(),
                console=console,
            )
            if total > 1:
                self._tasks[""] = self._bar.add_task("notebooks", total=total)

    def __enter__(self) -> "Report":
        if self._bar:
            self._bar.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._bar:
            self._bar.stop()

    def line(self, text: str) -> None:
        """Say something, above the bars where there are any."""
        self._console.print(text, highlight=False, markup=False, soft_wrap=True)

    def start(self, notebook: str, cells: int) -> None:
        """Begin a notebook of so many cells."""
        self._cells[notebook] = cells
        if self._bar:
            self._tasks[notebook] = self._bar.add_task(notebook, total=cells)
        else:
            self.line(f"{notebook}: {cells} cells")

    def cell(self, notebook: str, index: int) -> None:
        """Begin a cell of a notebook."""
        total = self._cells[notebook]
        if self._bar:
            self._bar.update(self._tasks[notebook], completed=index)
        elif index and 4 * index // total > 4 * (index - 1) // total:
            self.line(f"{notebook}: cell {index} of {total}")

    def end(self, notebook: str, text: str) -> None:
        """End a notebook and say how it went."""
        if self._bar:
            if notebook in self._tasks:
                self._bar.remove_task(self._tasks.pop(notebook))
            if "" in self._tasks:
                self._bar.advance(self._tasks[""])
        self.line(f"{notebook}: {text}")
