"""The common ground knows no paper, no source and no page."""

import ast
from pathlib import Path

import tokenspace.nn

GROUND = {"tokenspace.errors", "tokenspace.files"}


def test_it_imports_only_itself_and_the_ground():
    for path in Path(tokenspace.nn.__file__).parent.glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            names = [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            names += [each.name for each in node.names] if isinstance(node, ast.Import) else []
            ours = {name for name in names if name.startswith("tokenspace")}
            assert all(n in GROUND or n.startswith("tokenspace.nn.") for n in ours), path.name
