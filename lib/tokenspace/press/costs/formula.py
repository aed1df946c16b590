"""Arithmetic over a notebook's parameters, written in a file: evaluated, and nothing else."""

import ast
import math
from collections.abc import Iterable, Mapping
from functools import cache
from types import CodeType
from typing import Any

from tokenspace.errors import ParameterError
from tokenspace.press.layout import nearest

FUNCTIONS = {
    "sum": sum,
    "len": len,
    "min": min,
    "max": max,
    "abs": abs,
    "ceil": math.ceil,
    "log2": math.log2,
    "zip": zip,
}
# No attribute, no lambda, no keyword: what is left can only compute.
ALLOWED = (
    *(ast.Expression, ast.Constant, ast.Name, ast.Load, ast.Store, ast.List, ast.Tuple, ast.Call),
    *(ast.BinOp, ast.UnaryOp, ast.BoolOp, ast.Compare, ast.IfExp, ast.operator, ast.unaryop),
    *(ast.boolop, ast.cmpop, ast.Subscript, ast.ListComp, ast.GeneratorExp, ast.comprehension),
)


def evaluate(text: str, names: Mapping[str, Any]) -> Any:
    """Evaluate an expression over names; raises `ParameterError` for what isn't arithmetic.

    >>> evaluate("sum(rows * k for k in widths)", {"rows": 2, "widths": [3, 4]})
    14
    """
    code, needed = _compiled(text)
    known = {**FUNCTIONS, **names}
    for name in sorted(needed - set(known)):
        raise ParameterError(f"{text!r}: unknown name {name!r}{nearest(name, known)}")
    try:
        return eval(code, {"__builtins__": {}, **known})
    except (ArithmeticError, TypeError, ValueError) as error:
        raise ParameterError(f"{text!r}: {error}") from None


@cache
def _compiled(text: str) -> tuple[CodeType, frozenset[str]]:
    tree = parse(text)
    return compile(tree, text, "eval"), frozenset(free_names(tree))


def parse(text: str) -> ast.Expression:
    """Read an expression; raises `ParameterError` for syntax that isn't arithmetic.

    >>> parse("().__class__")
    Traceback (most recent call last):
    tokenspace.errors.ParameterError: '().__class__': Attribute is not arithmetic
    """
    try:
        tree = ast.parse(text, mode="eval")
    except SyntaxError as error:
        raise ParameterError(f"{text!r}: {error.msg}") from None
    for node in ast.walk(tree):
        if not isinstance(node, ALLOWED):
            raise ParameterError(f"{text!r}: {type(node).__name__} is not arithmetic")
    return tree


def free_names(tree: ast.AST) -> set[str]:
    """Name what an expression needs from outside, its own loop variables left out.

    >>> sorted(free_names(parse("sum(a * t for t in tables)")))
    ['a', 'sum', 'tables']
    """
    used = {n.id for n in ast.walk(tree) if isinstance(n, ast.Name)}
    return used - {n.id for n in ast.walk(tree) if isinstance(n, ast.Name) and _stores(n)}


def _stores(node: ast.Name) -> bool:
    return isinstance(node.ctx, ast.Store)


def names_of(texts: Iterable[str]) -> set[str]:
    """Name what several expressions need, functions left out."""
    return set().union(*(free_names(parse(text)) for text in texts)) - set(FUNCTIONS)
