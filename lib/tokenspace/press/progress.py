"""Progress of runs: a bar per notebook on a terminal, plain lines anywhere else."""

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TimeElapsedColumn


class Report(Progress):
    """Tells how far each notebook is: bars over notebooks and cells where there is a terminal.

    Else a line when a notebook starts, at each quarter of its cells, and when it ends.
    """

    def __init__(self, total: int, console: Console | None = None) -> None:
        console = console or Console(stderr=True)
        columns = ("{task.description}", BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
        super().__init__(*columns, console=console, disable=not console.is_terminal)
        self._all = self.add_task("notebooks", total=total, visible=total > 1)
        self._notebooks: dict[str, tuple[TaskID, int]] = {}

    def line(self, text: str) -> None:
        """Say something, above the bars where there are any."""
        self.console.print(text, highlight=False, markup=False, soft_wrap=True)

    def begin(self, notebook: str, cells: int) -> None:
        """Begin a notebook of so many cells."""
        self._notebooks[notebook] = self.add_task(notebook, total=cells), cells
        if self.disable:
            self.line(f"{notebook}: {cells} cells")

    def cell(self, notebook: str, index: int) -> None:
        """Begin a cell of a notebook."""
        task, total = self._notebooks[notebook]
        self.update(task, completed=index)
        if self.disable and index and 4 * index // total > 4 * (index - 1) // total:
            self.line(f"{notebook}: cell {index} of {total}")

    def end(self, notebook: str, text: str) -> None:
        """End a notebook and say how it went."""
        if notebook in self._notebooks:
            self.remove_task(self._notebooks.pop(notebook)[0])
        self.advance(self._all)
        self.line(f"{notebook}: {text}")
