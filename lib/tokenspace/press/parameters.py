"""A notebook's parameters: one tagged cell of typed literals, read without running it.

papermill lets a misspelt name through, injects into notebooks without the cell, and guesses types
from the text; its reader drops lines with a second `=`, a union or `Literal[...]`. Here the cell
is read with `ast`, and a value is what its annotation says it is.
"""

import ast
import json
import types
import typing
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, get_args, get_origin

from beartype.door import is_bearable

from tokenspace.errors import ParameterError
from tokenspace.press.layout import nearest

TAG = "parameters"
NONE = type(None)
SCALARS = (int, float, str, bool, dict)
ANNOTATIONS = {  # the names that an annotation may use
    **{kind.__name__: kind for kind in (*SCALARS, list)},
    "None": None,
    "Literal": Literal,
    "Optional": typing.Optional,
    "typing": typing,
}
WORDS = {"true": True, "false": False, "yes": True, "no": False, "1": True, "0": False}


@dataclass(frozen=True)
class Parameter:
    """A declared parameter: what it may be, and its default."""

    name: str
    annotation: Any
    default: Any

    def __str__(self) -> str:
        return f"{self.name}: {described(self.annotation)} = {self.default!r}"


def described(annotation: Any) -> str:
    """Write an annotation in words.

    >>> described(list[str]), described(int | None), described(Literal["a", "b"])
    ('list[str]', 'int or None', "one of 'a', 'b'")
    """
    if get_origin(annotation) in (types.UnionType, typing.Union):
        return " or ".join(map(described, get_args(annotation)))
    if get_origin(annotation) is Literal:
        return "one of " + ", ".join(map(repr, get_args(annotation)))
    if annotation is NONE:
        return "None"
    return annotation.__name__ if isinstance(annotation, type) else str(annotation)


def conform(annotation: Any, value: Any) -> Any:
    """Check a value against an annotation and return it, an int as a float where that is declared.

    >>> conform(float, 3), conform(list[float], [1, 2.5])
    (3.0, [1.0, 2.5])

    Raises `ValueError`: a bool is no int, a float is no int, `"3"` is no int, a set is in no dict.
    """
    if get_origin(annotation) in (types.UnionType, typing.Union):
        return _first(get_args(annotation), lambda each: conform(each, value))
    if isinstance(value, list | tuple) and (get_origin(annotation) or annotation) is list:
        items = get_args(annotation)
        value = [conform(items[0], each) if items else each for each in value]
    if annotation is float and type(value) is int:
        value = float(value)
    if annotation is int and isinstance(value, bool):  # to Python a bool is an int
        raise ValueError
    if not is_bearable(value, annotation):
        raise ValueError
    try:
        json.dumps(value, sort_keys=True)  # runs are told apart by it
    except TypeError:
        raise ValueError from None
    return value


def parse(annotation: Any, text: str) -> Any:
    """Read a value from the command line as its annotation says.

    >>> parse(str, "1e-3"), parse(float, "1e-3"), parse(bool, "no"), parse(int | None, "none")
    ('1e-3', 0.001, False, None)

    Lists and dicts are JSON or Python literals. Raises `ValueError`.
    """
    options = get_args(annotation)
    if get_origin(annotation) in (types.UnionType, typing.Union):
        first = sorted(options, key=lambda each: each is not NONE)
        return _first(first, lambda each: parse(each, text))
    if get_origin(annotation) is Literal:
        return _first({type(each) for each in options}, lambda each: parse(each, text), annotation)
    if annotation is NONE:
        return conform(annotation, None if text.strip().lower() in ("none", "null") else text)
    if annotation is bool:
        return conform(bool, WORDS.get(text.strip().lower()))
    if annotation in (int, float, str):
        return annotation(text)
    try:
        return conform(annotation, json.loads(text))
    except json.JSONDecodeError:
        try:
            return conform(annotation, ast.literal_eval(text))
        except (SyntaxError, TypeError, MemoryError, RecursionError):  # no literal of Python's
            raise ValueError from None


def _first(options: Iterable[Any], attempt: Any, annotation: Any = Any) -> Any:
    """Give the first answer of `attempt` over options that doesn't raise `ValueError`."""
    for option in options:
        try:
            return conform(annotation, attempt(option))
        except ValueError:
            continue
    raise ValueError


def read(notebook: Any, name: str) -> dict[str, Parameter]:
    """Read the parameters of a notebook; raises `ParameterError` when its cell can't be used."""
    code = (c for c in notebook.cells if c.cell_type == "code")
    cells = [c for c in code if TAG in c.metadata.get("tags", [])]
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
        if isinstance(node, ast.Import | ast.ImportFrom):  # Literal is imported
            continue
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            continue
        parameter = _declared(node, f"{name}: parameters cell, line {node.lineno}")
        if parameter.name in found:
            raise ParameterError(f"{name}: parameter {parameter.name!r} is declared twice")
        found[parameter.name] = parameter
    return found


def _declared(node: ast.stmt, where: str) -> Parameter:
    """Read one declaration, `name: type = value` or `name = value`."""
    target: ast.expr | None = node.target if isinstance(node, ast.AnnAssign) else None
    if isinstance(node, ast.Assign) and len(node.targets) == 1:
        target = node.targets[0]
    value: ast.expr | None = getattr(node, "value", None)
    if not isinstance(target, ast.Name) or value is None:
        raise ParameterError(f"{where}: only `name: type = value` belongs here")
    try:
        default = ast.literal_eval(value)
    except ValueError:
        raise ParameterError(
            f"{where}: the default of {target.id!r} is not a literal: {ast.unparse(value)}"
        ) from None
    annotation = _annotation(node.annotation, where) if isinstance(node, ast.AnnAssign) else None
    if annotation in (None, list):  # the default says more
        annotation = _annotation_of(default) or annotation
    if annotation is None:
        raise ParameterError(
            f"{where}: say what {target.id} may be, such as {target.id}: str | None"
        )
    try:
        return Parameter(target.id, annotation, conform(annotation, default))
    except ValueError:
        raise ParameterError(
            f"{where}: {target.id} = {default!r} is not {described(annotation)}"
        ) from None


def _annotation(node: ast.expr, where: str) -> Any:
    """Turn an annotation's source into the type: int, list[str], float | None, Literal[...]."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return _annotation(ast.parse(node.value, mode="eval").body, where)
    text = ast.unparse(node)
    try:
        annotation = eval(text, {"__builtins__": {}}, ANNOTATIONS)  # the names above, no others
        _check(annotation)
    except (NameError, TypeError, AttributeError, SyntaxError, ValueError):
        raise ParameterError(
            f"{where}: type {text} can't be checked; use int, float, str, bool, dict, list[...], "
            "Literal[...] or one of these | None"
        ) from None
    return annotation


def _check(annotation: Any) -> None:
    """Raise `TypeError` for an annotation whose values can't be read from a text."""
    if get_origin(annotation) in (list, types.UnionType, typing.Union):
        for each in get_args(annotation):
            _check(each)
    elif get_origin(annotation) is not Literal and annotation not in (*SCALARS, list, NONE):
        raise TypeError


def _annotation_of(value: Any) -> Any:
    """Give the annotation that a default stands for; None where it says too little."""
    if isinstance(value, list | tuple):
        inside = {_annotation_of(each) for each in value}
        item = inside.pop() if len(inside) == 1 else None
        return list if item is None else types.GenericAlias(list, (item,))
    return type(value) if type(value) in SCALARS else None


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
        kind, default = declared[name].annotation, declared[name].default
        try:
            values[name] = parse(kind, value) if isinstance(value, str) else conform(kind, value)
        except ValueError:
            example = json.dumps(default[:2]) if isinstance(default, list) else ""
            hint = f", such as {name}='{example}'" if example else ""
            wrong.append(f"{name} = {value!r} is not {described(kind)}{hint}")
    if wrong:
        known = "\n  ".join(map(str, declared.values())) or "none"
        raise ParameterError(
            f"{notebook} ({origin}): {'; '.join(wrong)}\nparameters of {notebook}:\n  {known}"
        )
    return values
