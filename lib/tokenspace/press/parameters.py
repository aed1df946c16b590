"""A notebook's parameters: one tagged cell of typed literals, read without running it.

papermill lets a misspelt name through, injects into notebooks without the cell, and guesses types
from the text; its reader drops lines with a second `=`, a union or `Literal[...]`. Here the cell
is read with `ast`, and a value is what the declaration says it is.
"""

import ast
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from tokenspace.errors import ParameterError
from tokenspace.press.kinds import Kind, common_kind, conform, declared_kind, kind_of, parse
from tokenspace.press.layout import nearest

TAG = "parameters"


@dataclass(frozen=True)
class Parameter:
    """A declared parameter and its default."""

    name: str
    kind: Kind
    default: Any

    def __str__(self) -> str:
        return f"{self.name}: {self.kind} = {self.default!r}"


def read(notebook: Any, name: str) -> dict[str, Parameter]:
    """Read the parameters of a notebook; raises `ParameterError` when its cell can't be used."""
    cells = [
        c
        for c in notebook.cells
        if c.cell_type == "code" and TAG in c.metadata.get("tags", [])
    ]  # fmt: skip
    if len(cells) != 1:
        count = "no cell" if not cells else f"{len(cells)} cells"
        raise ParameterError(
            f'{name} has {count} tagged "{TAG}": tag one, `# %% tags=["{TAG}"]`, so that '
            "values given to a run aren't overwritten by the page's own"
        )
    try:
        tree = ast.parse(cells[0].source)
    except SyntaxError as error:
        raise ParameterError(f"{name}: parameters cell, line {error.lineno}: {error.msg}") from None
    found: dict[str, Parameter] = {}
    for node in tree.body:
        parameter = _declared(node, name)
        if parameter is None:
            continue
        if parameter.name in found:
            raise ParameterError(f"{name}: parameter {parameter.name!r} is declared twice")
        found[parameter.name] = parameter
    return found


def _declared(node: ast.stmt, notebook: str) -> Parameter | None:
    """Read one statement: a declaration, or a comment or import that declares nothing."""
    where = f"{notebook}: parameters cell, line {node.lineno}"
    if isinstance(node, ast.Import | ast.ImportFrom):  # Literal is imported
        return None
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
        return None
    target: ast.expr
    value: ast.expr | None
    if isinstance(node, ast.AnnAssign):
        target, value = node.target, node.value
    elif isinstance(node, ast.Assign) and len(node.targets) == 1:
        target, value = node.targets[0], node.value
    else:
        raise ParameterError(f"{where}: only `name: type = value` belongs here")
    if not isinstance(target, ast.Name) or value is None:
        raise ParameterError(f"{where}: only `name: type = value` belongs here")
    try:
        default = ast.literal_eval(value)
    except ValueError:
        raise ParameterError(
            f"{where}: the default of {target.id!r} is not a literal: {ast.unparse(value)}"
        ) from None
    kind = declared_kind(node.annotation, where) if isinstance(node, ast.AnnAssign) else Kind("any")
    if kind.name == "any":
        kind = kind_of(default)
    if kind.name == "any":
        raise ParameterError(
            f"{where}: say what {target.id} may be, such as {target.id}: str | None"
        )
    if kind.name == "list" and kind.item is None and default:
        kind = Kind("list", common_kind(default), optional=kind.optional)
    try:
        return Parameter(target.id, kind, conform(kind, default))
    except ValueError:
        raise ParameterError(f"{where}: {target.id} = {default!r} is not {kind}") from None


def split(words: Iterable[str]) -> dict[str, str]:
    """Split `NAME=VALUE` words; raises `ParameterError` for one that isn't, or a name twice.

    >>> split(["seed=1", "name=a=b"])
    {'seed': '1', 'name': 'a=b'}
    """
    given: dict[str, str] = {}
    for word in words:
        name, equals, value = word.partition("=")
        if not equals or not name.isidentifier():
            raise ParameterError(f"-p {word!r}: write NAME=VALUE")
        if name in given:
            raise ParameterError(f"-p {name} is given twice")
        given[name] = value
    return given


def resolve(
    declared: Mapping[str, Parameter], given: Mapping[str, Any], notebook: str, *, origin: str
) -> dict[str, Any]:
    """Check what is given against what is declared; texts are read by their declared type.

    Raises one `ParameterError` that lists everything wrong: unknown names and wrong types.
    """
    wrong, values = [], {}
    for name, value in given.items():
        if name not in declared:
            wrong.append(f"unknown parameter {name!r}{nearest(name, declared)}")
            continue
        kind = declared[name].kind
        try:
            values[name] = parse(kind, value) if isinstance(value, str) else conform(kind, value)
        except ValueError:
            hint = f", such as {name}='{json.dumps(_example(declared[name]))}'" * (
                kind.name == "list"
            )
            wrong.append(f"{name} = {value!r} is not {kind}{hint}")
    if wrong:
        known = "\n  ".join(map(str, declared.values())) or "none"
        raise ParameterError(
            f"{notebook} ({origin}): "
            + "; ".join(wrong)
            + f"\nparameters of {notebook}:\n  {known}"
        )
    return values


def _example(parameter: Parameter) -> Any:
    return parameter.default[:2] if isinstance(parameter.default, list) else []
