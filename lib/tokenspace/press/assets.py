"""Scripts of others that pages and slides bring along, so that neither asks the network."""

import shutil
from importlib.metadata import distribution
from pathlib import Path

# tex-chtml.js holds the TeX reader and the HTML writer; it loads the rest when a formula needs it.
MATHJAX = (
    "tex-chtml.js",
    "a11y/assistive-mml.js",
    "input/tex/extensions",
    "output/chtml/fonts/woff-v2",
)
REVEAL = ("reveal.js", "reveal.css", "reset.css")


def copy_mathjax(target: Path) -> None:
    """Copy the parts of MathJax that are loaded (1.9 of 24 MB) into a folder."""
    _copy("sphinx-mathjax-offline", "sphinx-mathjax-offline/static/mathjax", MATHJAX, target)


def copy_reveal(target: Path) -> None:
    """Copy reveal.js, without its themes and plugins, into a folder."""
    _copy("sphinx-revealjs", "sphinx_revealjs/_static/revealjs/dist", REVEAL, target)


def _copy(package: str, inside: str, parts: tuple[str, ...], target: Path) -> None:
    source = Path(str(distribution(package).locate_file(inside)))
    for part in parts:
        place = target / part
        place.parent.mkdir(parents=True, exist_ok=True)
        if (source / part).is_dir():
            shutil.copytree(source / part, place, dirs_exist_ok=True)
        else:
            shutil.copy2(source / part, place)
