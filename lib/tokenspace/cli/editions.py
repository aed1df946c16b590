"""What is made of the whole book: `tokenspace book`, `handout`, `slides` and `pdf`."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from tokenspace.cli.options import Force, Jobs, Place, Profile, Timeout


@dataclass(frozen=True)
class Material:
    """What every edition is made of: the book's current runs; `quiet` hides Sphinx's own lines."""

    root: Path
    runs: dict[str, Path]
    quiet: bool

    def scoreboard(self) -> str:
        """Write the scoreboard."""
        from tokenspace.press import layout
        from tokenspace.press.scoreboard import scoreboard

        return scoreboard(self.runs, layout.part_titles(self.root))

    def pages(self) -> dict[str, str]:
        """Give the other pages that no notebook makes: the sweeps' summaries, the bench's table."""
        from tokenspace.press import sweep_page

        bench = self.root / "build" / "bench" / "bench.md"
        measured = {"bench": bench.read_text("utf-8")} if bench.is_file() else {}
        return measured | sweep_page.pages(self.root)


def book(made: Material) -> Path:
    """Run what changed and build the site; prints its first page as the last line."""
    from tokenspace.press.site import build_book

    out, pages = made.root / "build" / "book", made.pages()
    return build_book(made.root, made.runs, made.scoreboard(), out, pages=pages, quiet=made.quiet)


def handout(made: Material) -> Path:
    """Write the student and the teacher edition; prints their folder as the last line.

    student/ holds the notebooks and the site without solutions, teacher/ the notebooks with them.
    """
    from tokenspace.press.handout import build_handout

    out, pages = made.root / "build" / "handout", made.pages()
    board = made.scoreboard()
    return build_handout(made.root, made.runs, board, out, pages=pages, quiet=made.quiet)


def pdf(made: Material) -> Path:
    """Build the site and print all of it as one PDF; prints its path as the last line.

    It needs a Chromium, and some minutes on a slow machine.
    """
    from tokenspace.press.pdf import build_pdf

    book(made)
    return build_pdf(made.root / "build" / "book", made.root / "build" / "pdf")


def slides(made: Material) -> Path:
    """Write a deck of slides for each part; prints the page that lists them as the last line.

    Decks need no network. They hold no solutions.
    """
    from tokenspace.press import layout
    from tokenspace.press.slides import build_slides

    out = made.root / "build" / "slides"
    return build_slides(made.root, made.runs, layout.chapters(made.root), out)


def _command(make: Callable[[Material], Path]) -> Callable[..., None]:
    """A command that runs what changed, makes an edition of it, and prints where it lies."""

    def command(
        profile: Profile = "classroom",
        device: Place = None,
        timeout: Timeout = None,
        force: Force = False,
        jobs: Jobs = None,
        quiet: Annotated[bool, typer.Option("--quiet", help="Hide Sphinx's own lines.")] = False,
    ) -> None:
        from tokenspace.files import find_root
        from tokenspace.press import layout
        from tokenspace.press.runner import run_notebooks

        root = find_root()
        runs = run_notebooks(
            list(layout.chapters(root)),
            root=root,
            profile=profile,
            device=device,
            timeout=timeout,
            force=force,
            jobs=jobs,
        )
        typer.echo(make(Material(root, {run.notebook: run.folder for run in runs}, quiet)))

    command.__name__, command.__doc__ = make.__name__, make.__doc__
    return command


COMMANDS = tuple(map(_command, (book, handout, slides, pdf)))
