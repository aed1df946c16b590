"""Errors meant for people: the command line prints them without a traceback."""

import difflib
from collections.abc import Iterable


class TokenspaceError(Exception):
    """Base of every error that says what was wrong, with which value, and what to do next."""


class TableError(TokenspaceError):
    """An embedding table that can't be used as it is: its rows, its shape or its type."""


class SourceError(TokenspaceError):
    """A table that can't be had: a file, a package or a server that isn't as it should be."""


class UnreachableError(SourceError):
    """A server that can't be reached now: what was asked of it may be there the next time."""


class ParameterError(TokenspaceError):
    """A notebook parameter that is unknown, of the wrong type, or can't be set at all."""


class RunError(TokenspaceError):
    """A notebook that didn't finish; carries the command's exit code."""

    def __init__(self, message: str, exit_code: int = 1) -> None:
        super().__init__(message)
        self.exit_code = exit_code


class ClaimError(TokenspaceError):
    """A claim that can't be judged: no band, no control, no reason."""


class PageError(TokenspaceError):
    """A figure, a table or a text that a page can't show: no caption, no alt text, a name twice."""


class ExerciseError(TokenspaceError):
    """An answer to an exercise that isn't right yet: what it was, what leads there, what next."""


def nearest(name: object, known: Iterable[str]) -> str:
    """Suggest the known name that a misspelt one is closest to, if any is close.

    >>> nearest("tabels", ["tables", "seed"]), nearest("x", ["tables"])
    ("; did you mean 'tables'?", '')
    """
    close = difflib.get_close_matches(str(name), list(known), n=1)
    return f"; did you mean {close[0]!r}?" if close else ""
