"""What a notebook shows: figures, tables, sentences, claims, and the footer of its run.

The same notebook runs under `tokenspace run`, which gives it a folder, and opened by hand in
Jupyter, where everything is shown and nothing is written.
"""

import os
import random
import re
import time
from collections.abc import Mapping, Sequence
from html import escape
from inspect import cleandoc
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from IPython.core.getipython import get_ipython
from matplotlib import pyplot as plt
from matplotlib.figure import Figure

from tokenspace.errors import PageError
from tokenspace.files import placing
from tokenspace.format import interval, number
from tokenspace.press import environment, figures
from tokenspace.press.claims import SOURCES, VERDICTS, Claim
from tokenspace.press.live import Live, Slider, draw
from tokenspace.press.tables import markdown


def _publish(data: dict[str, str], **about: Any) -> None:
    """Show something, and say in the output's metadata what it is."""
    shell = get_ipython()
    if shell is None:  # run as a script
        print(data["text/plain"])
    else:
        shell.display_pub.publish(data=data, metadata={"tokenspace": about})


class Page:
    """A notebook's page: sets the style, seeds Python, NumPy and torch, starts the clock.

    `name` is the notebook's, `part/notebook`; `device` is `auto`, `cpu` or `cuda`, and the
    attribute of that name is the one to compute on. Outside Jupyter it prints.

    >>> page = Page("hub/models", seed=0, device="cpu")
    >>> page.say("The reading is {:.2f}.".format(13.6))
    The reading is 13.60.
    """

    def __init__(self, name: str, *, seed: int = 0, device: str = "auto") -> None:
        import torch

        self.name, self.seed = name, seed
        self._started = time.perf_counter()
        folder = os.environ.get("TOKENSPACE_RUN")
        self._folder = Path(folder) if folder else None
        self._cells: dict[str, object] = {}
        if device == "auto":
            device = "cuda" if torch.cuda.is_available() else "cpu"
        elif device.startswith("cuda") and not torch.cuda.is_available():
            raise PageError(
                f"device is {device!r}, but torch {torch.__version__} sees no GPU: use 'cpu'"
            )
        self.device: str = device
        random.seed(seed)
        np.random.seed(seed)
        torch.manual_seed(seed)
        figures.use()

    def _check_label(self, name: str, prefix: str) -> None:
        """Refuse a label that can't be referred to: malformed, used twice, or two to a cell."""
        if not re.fullmatch(prefix + r"[a-z0-9]+(-[a-z0-9]+)*", name):
            raise PageError(f"name {name!r}: start with {prefix!r}, then small letters and hyphens")
        shell = get_ipython()
        cell = getattr(shell, "execution_count", object())
        if self._cells.get(name, cell) != cell and self._folder:
            raise PageError(f"{name!r} is shown twice on this page: give the second its own name")
        other = next((n for n, c in self._cells.items() if c == cell and n != name), None)
        if other and prefix == "fig-" and other.startswith(prefix):
            raise PageError(f"{other!r} and {name!r} share a cell: one figure a cell")
        self._cells[name] = cell

    def show(
        self,
        figure: Figure | Sequence[Figure] | Mapping[str, Figure],
        name: str,
        caption: str,
        alt: str,
        *,
        live: Live | None = None,
    ) -> None:
        """Show a figure as SVG under a numbered caption, and close it.

        `live` makes it answer to sliders and a script. Several figures are the states of one, for
        the positions of the first slider; `{"step 0": …, "step 10": …}` alone has a slider too.
        `name` (`fig-…`) is its label for `{numref}`; `caption` is MyST text; `alt` says what the
        figure shows to someone who cannot see it. Raises `PageError` when one is missing.
        """
        for what, text in (("caption", caption), ("alt text", alt)):
            if not text.strip():
                raise PageError(f"figure {name!r} has no {what}")
        self._check_label(name, "fig-")
        caption, alt = cleandoc(caption), " ".join(alt.split())
        if isinstance(figure, Mapping):
            live = live or Live("frames", [Slider("Frame", list(figure), play=True)])
            figure = list(figure.values())
        states = [figure] if isinstance(figure, Figure) else figure
        drawn = draw(states, name, alt, live)
        for state in states:
            plt.close(state)
        about = {"name": name, "caption": caption, "alt": alt}
        _publish({"image/svg+xml": drawn, "text/plain": f"[figure: {alt}]"}, figure=about)
        if self._folder is None:
            self.say(f"*{caption}*")

    def table(self, frame: pd.DataFrame, name: str, caption: str) -> None:
        """Show a table under a numbered caption; a run keeps it as `tables/<name>.parquet`.

        Its columns are shown as they are, its index is not; numbers with four significant digits.
        """
        if not caption.strip():
            raise PageError(f"table {name!r} has no caption")
        self._check_label(name, "tbl-")
        caption = " ".join(caption.split())  # a directive has its title on one line
        if self._folder:
            path = self._folder / "tables" / f"{name}.parquet"
            path.parent.mkdir(parents=True, exist_ok=True)
            with placing(path) as part:
                frame.to_parquet(part)
        rows = markdown(frame)
        text = f":::{{table}} {caption}\n:name: {name}\n\n{rows}\n:::" if self._folder else rows
        about = {"name": name, "caption": caption}
        _publish({"text/markdown": text, "text/plain": rows}, table=about)
        if self._folder is None:
            self.say(f"*{caption}*")

    def say(self, text: str) -> None:
        """Say something in Markdown (MyST), with numbers of this run."""
        text = cleandoc(text)
        _publish({"text/markdown": text, "text/plain": text}, say=True)

    def claim(self, id: str, **facts: Any) -> Claim:
        """State a claim and show its verdict; `facts` are the fields of `press.claims.Claim`.

        >>> claim = Page("hub/toy", device="cpu").claim(
        ...     "toy", statement="two is even", source="ours", scale="1 row",
        ...     ours=2, band=(2, 2), control="3 is odd",
        ... )  # doctest: +ELLIPSIS
        [holds] two is even (our addition)
        ...
        """
        claim = Claim(id=id, **facts)
        shown = {"text/html": _claim_html(claim), "text/plain": _claim_text(claim)}
        _publish(shown, claim=claim.record())
        return claim

    def footer(self, **more: str) -> None:
        """Close the page: what it ran on, how long and in how much memory; `more` adds lines."""
        memory = f"{environment.peak_memory():.2f} GB"
        if self.device.startswith("cuda"):
            import torch

            memory += f", {torch.cuda.max_memory_allocated(self.device) / 1e9:.2f} GB on the device"
        facts = {
            **environment.facts(self.device),
            "wall time": f"{time.perf_counter() - self._started:.1f} s",
            "peak memory": memory,
            "seed": str(self.seed),
            "profile": os.environ.get("TOKENSPACE_PROFILE", "none: opened by hand"),
            "command": os.environ.get("TOKENSPACE_COMMAND", "none: opened by hand"),
            "commit": os.environ.get("TOKENSPACE_COMMIT", "unknown"),
            **more,
        }
        html = f'<dl class="ts-footer">{_pairs(facts)}</dl>'
        lines = (f"{name}: {value}" for name, value in facts.items())
        _publish({"text/html": html, "text/plain": "\n".join(lines)}, footer=facts)


def _claim_facts(claim: Claim) -> dict[str, str]:
    facts = {
        "paper": claim.paper or "no number",
        "ours": number(claim.ours, claim.uncertainty),
        "holds if": interval(claim.band),
        "control": claim.control,
        "scale": claim.scale,
        "why": claim.why,
    }
    return {name: value for name, value in facts.items() if value}


def _pairs(facts: dict[str, str]) -> str:
    return "".join(f"<dt>{escape(k)}</dt><dd>{escape(v)}</dd>" for k, v in facts.items())


def _claim_html(claim: Claim) -> str:
    return (
        f'<div class="ts-claim" id="claim-{claim.id}" data-verdict="{claim.verdict}"'
        f' data-source="{claim.source}">'
        f'<p class="ts-claim-head"><span class="ts-verdict">{VERDICTS[claim.verdict]}</span> '
        f'<span class="ts-source">{SOURCES[claim.source]}</span></p>'
        f'<p class="ts-claim-statement">{escape(claim.statement)}</p>'
        f'<dl class="ts-claim-facts">{_pairs(_claim_facts(claim))}</dl></div>'
    )


def _claim_text(claim: Claim) -> str:
    head = f"[{VERDICTS[claim.verdict]}] {claim.statement} ({SOURCES[claim.source]})"
    return "\n".join([head, *(f"  {k}: {v}" for k, v in _claim_facts(claim).items())])
