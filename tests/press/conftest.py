"""A repository of the smallest notebooks that show a fault."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

HEAD = '# %% [markdown]\n# # A page\n\n# %% tags=["parameters"]\n'

Put = Callable[..., Path]

CLAIM: dict[str, Any] = {
    "claim": {
        "id": "toy",
        "statement": "one is one",
        "source": "ours",
        "paper": None,
        "ours": 1.0,
        "uncertainty": None,
        "band": [1.0, 1.0],
        "control": "two is not",
        "scale": "one",
        "why": None,
        "verdict": "holds",
    }
}
SHOW = (
    "from IPython.display import publish_display_data\n"
    f"publish_display_data({{'text/plain': 'x'}}, {{'tokenspace': {CLAIM}}})"
)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """An empty repository with one profile."""
    (tmp_path / "pyproject.toml").touch()
    (tmp_path / "notebooks" / "profiles").mkdir(parents=True)
    (tmp_path / "notebooks" / "profiles" / "classroom.yaml").touch()
    return tmp_path


@pytest.fixture
def put(root: Path) -> Put:
    """Add a notebook: `put("hub/toy", "seed: int = 0", "print(seed)")`; more code, more cells."""

    def add(name: str, parameters: str, *cells: str) -> Path:
        path = root / "notebooks" / f"{name}.py"
        path.parent.mkdir(exist_ok=True)
        path.write_text(HEAD + parameters + "".join(f"\n\n# %%\n{cell}" for cell in cells) + "\n")
        return path

    return add


@pytest.fixture
def claim() -> dict[str, Any]:
    """What a page says of a claim, as its cell's output carries it."""
    return dict(CLAIM["claim"])


@pytest.fixture
def claiming() -> str:
    """A cell that states `claim`, without the imports that a page needs."""
    return SHOW
