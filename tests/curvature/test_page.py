"""The page on the connection with another model, from a folder: in a run of its own, and on a GPU
that isn't there."""

import shutil
from pathlib import Path
from typing import Any
from unittest.mock import MagicMock

import pytest
import yaml
from tests.curvature.tiny import neox
from tests.pretended import pretended

from tokenspace.curvature import Reader, reader_of, untrained_reader
from tokenspace.files import find_root
from tokenspace.press import layout
from tokenspace.press.runner import run_notebooks
from tokenspace.press.sync import twin

ROOT = find_root(Path(__file__).parent)
NAME = "curvature/connection"
SOURCE = layout.source(ROOT, NAME)
SMOKE = Path("notebooks", "profiles", "smoke.yaml")


def test_another_model_takes_one_parameter(tmp_path: Path) -> None:
    root, model = tmp_path / "root", tmp_path / "model"
    page = SOURCE.relative_to(ROOT)
    for path in (page, SMOKE):
        (root / path).parent.mkdir(parents=True)
    (root / "pyproject.toml").touch()
    shutil.copy(ROOT / page, root / page)
    smoke = yaml.safe_load((ROOT / SMOKE).read_text())[NAME]
    (root / SMOKE).write_text(yaml.safe_dump({NAME: smoke}))
    tokenizer = untrained_reader([SOURCE.read_text()]).tokenizer
    tokenizer.save_pretrained(model)
    neox(words=len(tokenizer)).save_pretrained(model)

    (run,) = run_notebooks([NAME], root=root, profile="smoke", given={"model": str(model)})
    assert "gpt_neox.final_layer_norm" in (run.folder / "executed.ipynb").read_text()
    assert sum(claim["scale"].startswith(str(model)) for claim in run.claims()) == 4


def test_no_cell_mixes_devices(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MPLBACKEND", "agg")
    tokenizer = untrained_reader([SOURCE.read_text()]).tokenizer
    model = neox(words=len(tokenizer))

    def load_reader(spec: str, device: str) -> Reader:
        return reader_of(model.to(device), tokenizer)

    given = {"prompts_used": 4, "length": 3, "draws": 5, "loops": 5}
    cells = [cell for cell in twin(SOURCE.read_text()).cells if cell.cell_type == "code"]
    assert sum("load_reader(" in cell.source for cell in cells) == 1  # the model is loaded once
    space: dict[str, Any] = {}
    with pretended() as device:
        monkeypatch.setattr("tokenspace.press.Page", lambda *a, **k: MagicMock(device=device))
        monkeypatch.setattr("tokenspace.curvature.load_reader", load_reader)
        for cell in cells:
            exec(cell.source, space)
            space |= given if "parameters" in cell.metadata.get("tags", []) else {}
    assert type(space["everything"].z).__name__ == "Pretended"
