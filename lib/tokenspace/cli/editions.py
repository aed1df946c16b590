"""What is made of the whole book: `tokenspace book`, `handout`, `slides` and `pdf`."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from tokenspace.cli.options import Force, Jobs, Place, Profile, Timeout

Quiet = Annotated[bool, typer.Option("--quiet", help="Hide Sphinx's own lines.")]


@dataclass(frozen=True)
class Material:
    """What every edition is made of: the book's current runs, and the pages made from them."""

    root: Path
    runs: dict[str, Path]

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


def material(
    profile: str, device: str | None, timeout: float | None, force: bool, jobs: int | None
) -> Material:
    """Run what changed, and give what an edition needs."""
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
    return Material(root, {run.notebook: run.folder for run in runs})


def book(
    profile: Profile = "classroom",
    device: Place = None,
    timeout: Timeout = None,
    force: Force = False,
    jobs: Jobs = None,
    quiet: Quiet = False,
) -> None:
    """Run what changed and build the site; prints its first page as the last line."""
    typer.echo(_site(material(profile, device, timeout, force, jobs), quiet))


def _site(made: Material, quiet: bool) -> Path:
    from tokenspace.press.site import build_book

    out = made.root / "build" / "book"
    return build_book(made.root, made.runs, made.scoreboard(), out, pages=made.pages(), quiet=quiet)


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
    from tokenspace.press.handout import build_handout

    made = material(profile, device, timeout, force, jobs)
    out = made.root / "build" / "handout"
    typer.echo(
        build_handout(made.root, made.runs, made.scoreboard(), out, pages=made.pages(), quiet=quiet)
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
    from tokenspace.press.pdf import build_pdf

    made = material(profile, device, timeout, force, jobs)
    _site(made, quiet)
    typer.echo(build_pdf(made.root / "build" / "book", made.root / "build" / "pdf"))


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
    from tokenspace.press.slides import build_slides

    made = material(profile, device, timeout, force, jobs)
    out = made.root / "build" / "slides"
    typer.echo(build_slides(made.root, made.runs, layout.chapters(made.root), out))


COMMANDS = (book, handout, slides, pdf)
