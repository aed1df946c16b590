"""What to say about a file that isn't what its name promises."""

from __future__ import annotations

from tokenspace.errors import SourceError


def not_a(kind: str, where: str, first: bytes, size: int) -> SourceError:
    """The error for `size` bytes that begin with `first` and aren't a file of this kind.

    >>> print(not_a("GGUF", "m.gguf", b"<html><head>", 900))
    m.gguf is not a GGUF file (first bytes b'<html><h', size 900 bytes): it is a web page,
    usually a login or error page. Download it again.
    """
    hint = ""
    text = first.lstrip().lower()
    if size == 0:
        hint = " it is empty."
    elif text.startswith((b"<html", b"<!doc", b"<?xml")):
        hint = " it is a web page, usually a login or error page."
    elif text.startswith(b"version "):
        hint = " it is a Git LFS pointer; fetch the file itself with `git lfs pull`."
    return SourceError(
        f"{where} is not a {kind} file (first bytes {first[:8]!r}, size {size} bytes):"
        f"{hint} Download it again."
    )
