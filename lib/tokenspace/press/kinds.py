"""What a parameter may be, and how a value is checked or read as that."""

import ast
import json
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from tokenspace.errors import ParameterError

SCALARS: dict[str, type] = {"int": int, "float": float, "str": str, "bool": bool, "dict": dict}
WORDS = {"true": True, "false": False, "yes": True, "no": False, "1": True, "0": False}


@dataclass(frozen=True)
class Kind:
    """What a parameter may be: a type's name, a list's items, literals to choose from, or None."""

    name: str
    item: "Kind | None" = None
    choices: tuple[Any, ...] = ()
    optional: bool = False

    def __str__(self) -> str:
        text = f"{self.name}[{self.item}]" if self.item else self.name
        if self.choices:
            text = "one of " + ", ".join(map(repr, self.choices))
        return text + (" or None" if self.optional else "")


def declared_kind(node: ast.expr, where: str) -> Kind:
    """Turn an annotation into a kind: int, list[str], float | None, Optional[int], Literal[...]."""
    text = ast.unparse(node)
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return declared_kind(ast.parse(node.value, mode="eval").body, where)
    if isinstance(node, ast.Name) and node.id in (*SCALARS, "list"):
        return Kind(node.id)
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitOr):
        sides = [s for s in (node.left, node.right) if ast.unparse(s) != "None"]
        if len(sides) == 1:
            inner = declared_kind(sides[0], where)
            return Kind(inner.name, inner.item, inner.choices, optional=True)
    if isinstance(node, ast.Subscript):
        outer = ast.unparse(node.value).rsplit(".", 1)[-1]
        if outer == "list":
            return Kind("list", declared_kind(node.slice, where))
        if outer == "Optional":
            inner = declared_kind(node.slice, where)
            return Kind(inner.name, inner.item, inner.choices, optional=True)
        if outer == "Literal":
            value = ast.literal_eval(node.slice)
            choices = value if isinstance(value, tuple) else (value,)
            return Kind(kind_of(choices[0]).name, choices=choices)
    raise ParameterError(
        f"{where}: type {text} can't be checked; use int, float, str, bool, dict, list[...], "
        "Literal[...] or one of these | None"
    )


def kind_of(value: Any) -> Kind:
    """Give the kind of a value; `any` for one that says too little, such as None."""
    if isinstance(value, list | tuple):
        return Kind("list", common_kind(value))
    return Kind(type(value).__name__ if type(value).__name__ in SCALARS else "any")


def common_kind(values: Iterable[Any]) -> Kind | None:
    """Give the kind that all items share, if they share one."""
    kinds = {kind_of(value) for value in values}
    return kinds.pop() if len(kinds) == 1 and Kind("any") not in kinds else None


def conform(kind: Kind, value: Any) -> Any:
    """Check a value against a kind and return it, an int as a float where that is declared.

    >>> conform(Kind("float"), 3)
    3.0

    Raises `ValueError`: a bool is no int, a float is no int, `"3"` is no int.
    """
    if value is None and kind.optional:
        return value
    if kind.name == "list":
        if not isinstance(value, list | tuple):
            raise ValueError
        return [conform(kind.item, item) if kind.item else item for item in value]
    if kind.name == "float" and type(value) is int:
        value = float(value)
    if type(value) is not SCALARS[kind.name] or (kind.choices and value not in kind.choices):
        raise ValueError
    return value


def parse(kind: Kind, text: str) -> Any:
    """Read a value from the command line as its kind says.

    >>> parse(Kind("str"), "1e-3"), parse(Kind("float"), "1e-3"), parse(Kind("bool"), "no")
    ('1e-3', 0.001, False)

    Lists and dicts are JSON or Python literals. Raises `ValueError`.
    """
    if kind.optional and text.strip().lower() in ("none", "null"):
        return None
    if kind.name == "str":
        return conform(kind, text)
    if kind.name in ("int", "float"):
        return conform(kind, SCALARS[kind.name](text))
    if kind.name == "bool":
        return conform(kind, WORDS.get(text.strip().lower()))
    try:
        return conform(kind, json.loads(text))
    except json.JSONDecodeError:
        try:
            return conform(kind, ast.literal_eval(text))
        except SyntaxError:
            raise ValueError from None
