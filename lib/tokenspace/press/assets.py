"""Scripts of others that pages and slides bring along, so that neither asks the network."""

import shutil
from importlib.metadata import distribution
from pathlib import Path

# Of MathJax 1.9 of 24 MB: tex-chtml.js reads TeX and writes HTML; it loads the rest when a formula
# needs it. Of reveal.js all but its themes and plugins.
PARTS = {
    "mathjax": (
        *("sphinx-mathjax-offline", "sphinx-mathjax-offline/static/mathjax"),
        *("tex-chtml.js", "a11y/assistive-mml.js"),
        *("input/tex/extensions", "output/chtml/fonts/woff-v2"),
    ),
    "reveal": (
        *("sphinx-revealjs", "sphinx_revealjs/_static/revealjs/dist"),
        *("reveal.js", "reveal.css", "reset.css"),
    ),
}


def copy(name: str, target: Path) -> None:
    """Copy what is needed of `mathjax` or `reveal` from the package that has it into a folder."""
    package, inside, *parts = PARTS[name]
    source = Path(str(distribution(package).locate_file(inside)))
    for part in parts:
        place = target / part
        place.parent.mkdir(parents=True, exist_ok=True)
        if (source / part).is_dir():
            shutil.copytree(source / part, place, dirs_exist_ok=True)
        else:
            shutil.copy2(source / part, place)
