"""A page shows the same under a run and by hand; only a run writes, and only a run names it."""

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from IPython.core.displaypub import CapturingDisplayPublisher
from matplotlib.figure import Figure

from tokenspace.errors import PageError
from tokenspace.press import Page


class Shell:
    """The two things a page asks of IPython's shell."""

    def __init__(self) -> None:
        self.execution_count = 1
        self.display_pub = CapturingDisplayPublisher()

    @property
    def outputs(self) -> list[dict[str, Any]]:
        return self.display_pub.outputs


@pytest.fixture
def shell(monkeypatch: pytest.MonkeyPatch) -> Shell:
    shell = Shell()
    monkeypatch.setattr("tokenspace.press.page.get_ipython", lambda: shell)
    monkeypatch.delenv("TOKENSPACE_RUN", raising=False)
    return shell


@pytest.fixture
def run(shell: Shell, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Shell:
    monkeypatch.setenv("TOKENSPACE_RUN", str(tmp_path))
    monkeypatch.setenv("TOKENSPACE_PROFILE", "smoke")
    monkeypatch.setenv("TOKENSPACE_COMMAND", "tokenspace run hub/toy")
    return shell


def page() -> Page:
    return Page("hub/toy", device="cpu")


def test_a_figure_carries_label_caption_and_alt_text(run: Shell) -> None:
    page().show(Figure(), "fig-a", "The *caption*.", "What one sees,\n   in words")
    (output,) = run.outputs
    assert output["data"]["image/svg+xml"].startswith("<svg")
    assert output["metadata"] == {
        "tokenspace": {
            "figure": {
                "name": "fig-a",
                "caption": "The *caption*.",
                "alt": "What one sees, in words",
            }
        }
    }


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("fig-a", "caption", " "), "figure 'fig-a' has no alt text"),
        (("fig-a", "", "alt"), "figure 'fig-a' has no caption"),
        (("switch", "caption", "alt"), "start with 'fig-'"),
        (("fig-A", "caption", "alt"), "small letters"),
    ],
)
def test_a_figure_without_words_is_refused(run: Shell, words: Any, message: str) -> None:
    with pytest.raises(PageError, match=message):
        page().show(Figure(), *words)


def test_two_figures_in_a_cell_are_refused(run: Shell) -> None:
    shown = page()
    shown.show(Figure(), "fig-a", "caption", "alt")
    with pytest.raises(PageError, match="one figure a cell"):
        shown.show(Figure(), "fig-b", "caption", "alt")


def test_a_label_used_twice_is_refused_in_a_run(run: Shell) -> None:
    shown = page()
    shown.show(Figure(), "fig-a", "caption", "alt")
    run.execution_count = 2
    with pytest.raises(PageError, match="shown twice"):
        shown.show(Figure(), "fig-a", "caption", "alt")


def test_by_hand_the_caption_is_seen_and_nothing_written(
    shell: Shell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    shown = page()
    for shell.execution_count in (1, 2):  # a cell can be run again
        shown.show(Figure(), "fig-a", "The caption.", "alt")
    shown.table(pd.DataFrame({"a": [1.5]}), "tbl-a", "A table.")
    said = [o["data"].get("text/markdown", "") for o in shell.outputs]
    assert "*The caption.*" in said
    assert not any("{table}" in text for text in said)  # Jupyter shows directives raw
    assert not list(tmp_path.iterdir())


def test_a_run_keeps_its_tables(run: Shell, tmp_path: Path) -> None:
    frame = pd.DataFrame({"table": ["minilm"], "mle": [13.602134]})
    page().table(frame, "tbl-a", "What was read.")
    pd.testing.assert_frame_equal(pd.read_parquet(tmp_path / "tables" / "tbl-a.parquet"), frame)
    (output,) = run.outputs
    assert ":::{table} What was read.\n:name: tbl-a" in output["data"]["text/markdown"]
    assert "| minilm | 13.6 |" in output["data"]["text/markdown"]


def test_a_claim_shows_its_verdict_and_travels_in_metadata(run: Shell) -> None:
    claim = page().claim(
        "toy",
        statement="1 < 2 & so on",
        source="stated",
        scale="one",
        ours=np.float32(1.5),
        uncertainty=torch.tensor(0.25),
        band=(np.float64(1.0), None),
        control="none: 0.0",
    )
    (output,) = run.outputs
    html = output["data"]["text/html"]
    assert 'class="ts-claim" id="claim-toy" data-verdict="holds"' in html
    assert "1 &lt; 2 &amp; so on" in html
    assert "at least 1" in output["data"]["text/plain"]
    record = json.loads(json.dumps(output["metadata"]["tokenspace"]["claim"]))
    assert record == claim.record()
    assert (record["ours"], record["uncertainty"], record["band"]) == (1.5, 0.25, [1.0, None])


def test_the_footer_says_what_it_ran_on(run: Shell) -> None:
    page().footer(distances="float64")
    facts = run.outputs[0]["metadata"]["tokenspace"]["footer"]
    assert facts["torch"] == torch.__version__
    assert facts["command"] == "tokenspace run hub/toy"
    assert facts["profile"] == "smoke"
    assert facts["distances"] == "float64"
    assert facts["device"].startswith("cpu (")
    assert re.fullmatch(r"\d+\.\d\d GB", facts["peak memory"])
    assert {"dtype", "threads", "wall time", "seed", "numpy", "python"} <= set(facts)


def test_the_same_seed_gives_the_same_draws(shell: Shell) -> None:
    def draws() -> list[float]:
        Page("hub/toy", seed=3, device="cpu")
        return [float(torch.rand(())), float(np.random.rand())]

    assert draws() == draws()


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
def test_a_missing_gpu_is_said_not_worked_around() -> None:
    with pytest.raises(PageError, match="sees no GPU"):
        Page("hub/toy", device="cuda")


def test_auto_picks_what_there_is() -> None:
    expected = "cuda" if torch.cuda.is_available() else "cpu"
    assert Page("hub/toy", device="auto").device == expected
