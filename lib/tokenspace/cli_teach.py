"""The commands for teaching: `tokenspace handout`, `tokenspace slides` and `tokenspace pdf`."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from tokenspace.options import Force, Jobs, Place, Profile, Timeout

Quiet = Annotated[bool, typer.Option("--quiet", help="Hide Sphinx's own lines.")]


@dataclass(frozen=True)
class Material:
    """What every edition is made of: the book's current runs, and the pages made from them."""

    root: Path
    runs: dict[str, Path]
    scoreboard: str
    pages: dict[str, str]


def material(
    profile: str, device: str | None, timeout: float | None, force: bool, jobs: int | None
) -> Material:
    """Run what changed, as `tokenspace book` does, and give what an edition needs."""
    from tokenspace.press import layout
    from tokenspace.press.runner import run_notebooks
    from tokenspace.press.scoreboard import scoreboard
    from tokenspace.press.sweeps.sweep_results import pages

    root = layout.find_root()
    runs = run_notebooks(
        list(layout.chapters(root)),
        root=root,
        profile=profile,
        device=device,
        timeout=timeout,
        force=force,
        jobs=jobs,
    )
    folders = {run.notebook: run.folder for run in runs}
    page = scoreboard(folders, layout.part_titles(root))
    return Material(root, folders, page, pages(root))


def handout(
    profile: Profile = "classroom",
    device: Place = None,
    timeout: Timeout = None,
    force: Force = False,
    jobs: Jobs = None,
    quiet: Quiet = False,
) -> None:
    """Write the student and the teacher edition; prints their folder as the last line.

    student/ holds the notebooks and the site without solutions, teacher/ the notebooks with them.
    """
    from tokenspace.press.teach.handout import build_handout

    book = material(profile, device, timeout, force, jobs)
    out = book.root / "build" / "handout"
    typer.echo(
        build_handout(book.root, book.runs, book.scoreboard, out, pages=book.pages, quiet=quiet)
    )


def pdf(
    profile: Profile = "classroom",
    device: Place = None,
    timeout: Timeout = None,
    force: Force = False,
    jobs: Jobs = None,
    quiet: Quiet = False,
) -> None:
    """Build the site and print all of it as one PDF; prints its path as the last line.

    It needs a Chromium, and some minutes on a slow machine.
    """
    from tokenspace.press.book import build_book
    from tokenspace.press.teach.pdf import build_pdf

    book = material(profile, device, timeout, force, jobs)
    built = book.root / "build" / "book"
    build_book(book.root, book.runs, book.scoreboard, built, pages=book.pages, quiet=quiet)
    typer.echo(build_pdf(built, book.root / "build" / "pdf"))


def slides(
    profile: Profile = "classroom",
    device: Place = None,
    timeout: Timeout = None,
    force: Force = False,
    jobs: Jobs = None,
) -> None:
    """Write a deck of slides for each part; prints the page that lists them as the last line.

    Decks need no network. They hold no solutions.
    """
    from tokenspace.press import layout
    from tokenspace.press.teach.deck import build_slides

    book = material(profile, device, timeout, force, jobs)
    out = book.root / "build" / "slides"
    typer.echo(build_slides(book.root, book.runs, layout.chapters(book.root), out))


COMMANDS = (handout, slides, pdf)
