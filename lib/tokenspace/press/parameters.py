"""A notebook's parameters: one tagged cell of typed literals, read without running it.

papermill lets a misspelt name through, injects into notebooks without the cell, and guesses types
from the text; its reader drops lines with a second `=`, a union or `Literal[...]`. Here the cell
is read with `ast`, and a value is what its annotation says it is, by pydantic's strict rules.
"""

import ast
import json
import typing
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from pydantic import PydanticSchemaGenerationError, TypeAdapter

from tokenspace.errors import ParameterError, nearest

TAG = "parameters"
NAMES: dict[str, Any] = {each.__name__: each for each in (int, float, str, bool, dict, list)}
NAMES |= {"None": None, "Literal": Literal, "Optional": typing.Optional}  # what types are made of
NONE = dict.fromkeys(("none", "null"))
WORDS = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}
READERS = (
    lambda text: NONE[text.strip().lower()],
    *(str, int, float, json.loads, ast.literal_eval),
    lambda text: WORDS[text.strip().lower()],
)
UNREADABLE = (ValueError, KeyError, SyntaxError, TypeError, MemoryError, RecursionError)


@dataclass(frozen=True)
class Parameter:
    """A declared parameter: what it may be, and its default."""

    name: str
    type: str  # as it is written: `int`, `list[str]`, `float | None`
    annotation: Any
    default: Any

    def __str__(self) -> str:
        return f"{self.name}: {self.type} = {self.default!r}"


def conform(annotation: Any, value: Any) -> Any:
    """Check a value against an annotation and return it, an int as a float where that is declared.

    >>> conform(float, 3), conform(list[float], [1, 2.5])
    (3.0, [1.0, 2.5])

    Raises `ValueError`: a bool is no int, a float is no int, `"3"` is no int, a set is in no dict.
    """
    value = TypeAdapter(annotation).validate_python(value, strict=True)
    try:
        json.dumps(value, sort_keys=True)  # runs are told apart by it
    except TypeError:
        raise ValueError from None
    return value


def parse(annotation: Any, text: str) -> Any:
    """Read a value from the command line as its annotation says; raises `ValueError`.

    >>> parse(str, "1e-3"), parse(float, "1e-3"), parse(bool, "no"), parse(int | None, "none")
    ('1e-3', 0.001, False, None)
    """
    for reader in READERS:
        try:
            return conform(annotation, reader(text))
        except UNREADABLE:
            continue
    raise ValueError


def read(notebook: Any, name: str) -> dict[str, Parameter]:
    """Read the parameters of a notebook; raises `ParameterError` when its cell can't be used."""
    code = (c for c in notebook.cells if c.cell_type == "code")
    cells = [c for c in code if TAG in c.metadata.get("tags", [])]
    if len(cells) != 1:
        count = f"{len(cells)} cells" if cells else "no cell"
        raise ParameterError(
            f'{name} has {count} tagged "{TAG}": tag one, `# %% tags=["{TAG}"]`, so that values '
            "given to a run aren't overwritten by the page's own"
        )
    try:
        tree = ast.parse(cells[0].source)
    except SyntaxError as error:
        raise ParameterError(f"{name}: parameters cell, line {error.lineno}: {error.msg}") from None
    found: dict[str, Parameter] = {}
    for node in tree.body:
        comment = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
        if comment or isinstance(node, ast.Import | ast.ImportFrom):  # Literal is imported
            continue
        try:
            parameter = _declared(node)
        except ParameterError as error:
            where = f"{name}: parameters cell, line {node.lineno}"
            raise ParameterError(f"{where}: {error}") from None
        if parameter.name in found:
            raise ParameterError(f"{name}: parameter {parameter.name!r} is declared twice")
        found[parameter.name] = parameter
    return found


def _declared(node: ast.stmt) -> Parameter:
    """Read one declaration, `name: type = value` or `name = value`."""
    match node:
        case ast.AnnAssign(ast.Name(name), annotation, value) if value:
            kind = ast.unparse(annotation)
        case ast.Assign([ast.Name(name)], value):
            kind = ""
        case _:
            raise ParameterError("only `name: type = value` belongs here")
    try:
        default = ast.literal_eval(value)
    except ValueError:
        text = ast.unparse(value)
        raise ParameterError(f"the default of {name!r} is not a literal: {text}") from None
    if kind in ("", "list"):  # the default says more
        kind = type(default).__name__
        if isinstance(default, list) and len(items := {type(x).__name__ for x in default}) == 1:
            kind = f"list[{items.pop()}]"
    try:
        annotation = eval(kind, {"__builtins__": {}}, NAMES)  # no other names
        return Parameter(name, kind, annotation, conform(annotation, default))
    except ValueError:
        raise ParameterError(f"{name} = {default!r} is not {kind}") from None
    except (NameError, TypeError, AttributeError, SyntaxError, PydanticSchemaGenerationError):
        raise ParameterError(
            f"{name}: type {kind} can't be checked; use int, float, str, bool, dict, "
            "list[...], Literal[...] or one of these | None"
        ) from None


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
        parameter = declared[name]
        try:
            check = parse if isinstance(value, str) else conform
            values[name] = check(parameter.annotation, value)
        except ValueError:
            example = parameter.default[:2] if isinstance(parameter.default, list) else None
            hint = f", such as {name}='{json.dumps(example)}'" if example else ""
            wrong.append(f"{name} = {value!r} is not {parameter.type}{hint}")
    if wrong:
        known = "\n  ".join(map(str, declared.values())) or "none"
        raise ParameterError(
            f"{notebook} ({origin}): {'; '.join(wrong)}\nparameters of {notebook}:\n  {known}"
        )
    return values
