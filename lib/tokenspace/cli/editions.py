"""What is made of the whole book: `tokenspace book`, `handout`, `slides` and `pdf`."""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tokenspace.cli.options import Force, Jobs, Place, Profile, Timeout
from tokenspace.files import find_root

if TYPE_CHECKING:
    from tokenspace.press.site import Book


def book(made: "Book", build: Path, quiet: bool) -> Path:
    """Run what changed and build the site; prints its first page as the last line."""
    from tokenspace.press.site import build_book

    return build_book(made, build / "book", quiet=quiet)


def handout(made: "Book", build: Path, quiet: bool) -> Path:
    """Write the student and the teacher edition; prints their folder as the last line.

    student/ holds the notebooks and the site without solutions, teacher/ the notebooks with them.
    """
    from tokenspace.press.site import build_handout

    return build_handout(made, build / "handout", quiet=quiet)


def pdf(made: "Book", build: Path, quiet: bool) -> Path:
    """Build the site and print all of it as one PDF; prints its path as the last line.

    It needs a Chromium, and some minutes on a slow machine.
    """
    from tokenspace.press.pdf import build_pdf

    book(made, build, quiet)
    return build_pdf(build / "book", build / "pdf")


def slides(made: "Book", build: Path, quiet: bool) -> Path:
    """Write a deck of slides for each part; prints the page that lists them as the last line.

    Decks need no network. They hold no solutions.
    """
    from tokenspace.press import layout
    from tokenspace.press.slides import build_slides

    return build_slides(made, layout.part_titles(made.source), build / "slides")


def _command(make: Callable[["Book", Path, bool], Path]) -> Callable[..., None]:
    """A command that runs what changed, makes an edition of it, and prints where it lies."""

    def command(
        profile: Profile = "classroom",
        device: Place = None,
        timeout: Timeout = None,
        force: Force = False,
        jobs: Jobs = None,
        quiet: Annotated[bool, typer.Option("--quiet", help="Hide Sphinx's own lines.")] = False,
    ) -> None:
        from tokenspace.press import layout
        from tokenspace.press.runner import run_notebooks
        from tokenspace.press.site import Book

        root = find_root()
        options: dict[str, Any] = {"profile": profile, "device": device, "timeout": timeout}
        names = list(layout.chapters(root))
        runs = run_notebooks(names, root=root, force=force, jobs=jobs, **options)
        made = Book.of(root, {run.notebook: run.folder for run in runs})
        typer.echo(make(made, root / "build", quiet))

    command.__name__, command.__doc__ = make.__name__, make.__doc__
    return command


COMMANDS = tuple(map(_command, (book, handout, slides, pdf)))
