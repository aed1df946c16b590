"""The page on the connection with another model: of another family, from a folder."""

import shutil
from pathlib import Path

import yaml
from tests.curvature.tiny import neox

from tokenspace.curvature import untrained_reader
from tokenspace.press import layout
from tokenspace.press.runner import run_notebooks
from tokenspace.press.sync import twin

ROOT = layout.find_root(Path(__file__).parent)
NAME = "curvature/connection"
SOURCE = layout.source(ROOT, NAME)


def test_another_model_takes_one_parameter(tmp_path: Path) -> None:
    root, model = tmp_path / "root", tmp_path / "model"
    page, profile = SOURCE.relative_to(ROOT), Path("notebooks", "profiles", "smoke.yaml")
    for path in (page, profile):
        (root / path).parent.mkdir(parents=True)
    (root / "pyproject.toml").touch()
    shutil.copy(ROOT / page, root / page)
    smoke = yaml.safe_load((ROOT / profile).read_text())[NAME]
    (root / profile).write_text(yaml.safe_dump({NAME: smoke}))
    tokenizer = untrained_reader([SOURCE.read_text()]).tokenizer
    tokenizer.save_pretrained(model)
    neox(words=len(tokenizer)).save_pretrained(model)

    (run,) = run_notebooks([NAME], root=root, profile="smoke", given={"model": str(model)})
    assert "gpt_neox.final_layer_norm" in (run.folder / "executed.ipynb").read_text()
    assert sum(claim["scale"].startswith(str(model)) for claim in run.claims()) == 4


def test_the_model_is_loaded_in_one_place() -> None:
    cells = twin(SOURCE.read_text()).cells
    assert sum(c.cell_type == "code" and "load_reader(" in c.source for c in cells) == 1
