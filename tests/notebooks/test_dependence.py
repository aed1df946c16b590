"""An edit re-runs the notebooks that depend on what was edited, and no other."""

import ast
import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tokenspace.files import find_root
from tokenspace.press import keys, layout
from tokenspace.press.plan import plans
from tokenspace.press.sync import twin

ROOT = find_root(Path(__file__).parent)
NAMES = layout.notebooks(ROOT)
IMPORT = re.compile(r"^ *from (tokenspace[\w.]*) import \(?(\w*(?:, \w+)*)", re.M)
LOAD = """
import json, os, sys
import matplotlib.pyplot, pandas, torch, transformers  # what all notebooks share
for imports in json.load(sys.stdin):
    sys.stdout.flush()
    if os.fork() == 0:
        exec(imports, {})
        ours = [m.__file__ for n, m in sys.modules.items() if n.split(".")[0] == "tokenspace"]
        print(json.dumps(ours), flush=True)
        os._exit(0)
    if os.wait()[1]:
        sys.exit(imports)
"""


def code(name: str) -> str:
    return keys.code(twin(layout.source(ROOT, name).read_text()))


@pytest.fixture(scope="module")
def loaded() -> dict[str, set[Path]]:
    """The package's files that Python itself loads when a notebook's imports are carried out."""
    found = [
        [
            node
            for node in ast.walk(ast.parse(code(name)))
            if isinstance(node, ast.Import | ast.ImportFrom)
        ]
        for name in NAMES
    ]
    lines = json.dumps(["\n".join(map(ast.unparse, nodes)) for nodes in found])
    command = [sys.executable, "-c", LOAD]
    done = subprocess.run(command, input=lines, capture_output=True, text=True, check=True)
    files = [set(map(Path, json.loads(line))) for line in done.stdout.splitlines()]
    return dict(zip(NAMES, files, strict=True))


def lazily(files: set[Path]) -> set[Path]:
    """These files and what they import, functions when they are called too, and so on."""
    found, waiting = set(files), list(files)
    while waiting:
        for base, names in IMPORT.findall(waiting.pop().read_text()):
            modules = [base, *(f"{base}.{name}" for name in names.split(", "))]
            paths = [keys.PACKAGE.parent / module.replace(".", "/") for module in modules]
            new = {p.with_suffix(".py") for p in paths if p.with_suffix(".py").is_file()} - found
            found |= new
            waiting += new
    return found


@pytest.mark.parametrize("name", NAMES)
def test_a_key_covers_what_python_loads_and_nothing_else(
    name: str, loaded: dict[str, set[Path]]
) -> None:
    counted = {path for path in keys.modules(code(name)) if path.suffix == ".py"}
    assert loaded[name] <= counted
    assert counted <= lazily(loaded[name])
    press = {path.stem for path in counted if "press" in path.parts}
    assert not press & {"runner", "sweep", "job", "site", "results", "plan", "keys", "layout"}


EVERY = {"hub", "staircase", "flow", "curvature"}
EDITS = {
    "hub/dimension.py": {"hub"},
    "staircase/training.py": {"staircase"},
    "flow/network.py": {"flow"},
    "curvature/chess/chess-0.safetensors.sha256": set(),
    "errors.py": EVERY,
    "press/page.py": EVERY,
    "press/sweep.py": set(),
    "cli/runs.py": set(),
}


def test_an_edit_makes_stale_what_imports_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    some = ["hub/models", "staircase/signatures", "flow/vertices", "curvature/connection"]
    package = tmp_path / "tokenspace"
    shutil.copytree(keys.PACKAGE, package, ignore=shutil.ignore_patterns("__pycache__"))
    monkeypatch.setattr(keys, "PACKAGE", package)
    before = {name: plans(ROOT, name, [{}], profile="smoke")[0].folder for name in some}
    for file, parts in EDITS.items():
        with (package / file).open("a") as edited:
            edited.write("\n# edited\n")
        after = {name: plans(ROOT, name, [{}], profile="smoke")[0].folder for name in some}
        stale = {name.split("/")[0] for name in some if before[name] != after[name]}
        assert stale == parts, file
        before = after


def test_data_that_a_module_names_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package = tmp_path / "tokenspace"  # found by its name, as Python finds it
    for name in ("sources/data", "sources/templates", "hub/data"):
        (package / name).mkdir(parents=True)
    for name in ("__init__", "sources/__init__", "sources/sizes", "hub/b"):
        (package / f"{name}.py").touch()
    (package / "sources" / "texts.py").write_text("NAME = 'data/text.gz'")
    for name in ("data/text.gz", "data/sizes.yaml", "templates/c.css", "ids.yaml"):
        (package / "sources" / name).touch()
    (package / "hub" / "data" / "text.gz").touch()
    monkeypatch.setattr(keys, "PACKAGE", package)
    found = {str(p.relative_to(package)) for p in keys.modules("import tokenspace.sources.texts")}
    code = {"__init__.py", "sources/__init__.py", "sources/texts.py"}
    assert found == code | {"sources/data/text.gz", "sources/ids.yaml"}


def test_a_packaged_text_counts_and_what_only_plans_does_not() -> None:
    found = {path.name for path in keys.modules(code("staircase/language"))}
    assert "shakespeare.txt.gz" in found
    assert not found & {"sizes.yaml", "sizes.py", "deck.css"}
