"""Text to count and to train on: the packaged Shakespeare, or a file of the reader's."""

import gzip
import hashlib
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path

from tokenspace.errors import SourceError

SHA256 = "a4d82dbed62b3013719134e363efce8a541f53ef0c16cb89b71a5b6ee169403f"


@dataclass(frozen=True)
class Corpus:
    """A text, what the reader called it, and where it comes from."""

    name: str
    text: str
    origin: str


def load_corpus(spec: str | Path = "shakespeare", *, least: int = 1) -> Corpus:
    """The packaged "shakespeare", or a UTF-8 text file (gzipped when its name ends in .gz).

    Raises `SourceError` for a text that is missing, empty, binary, not UTF-8, or shorter than
    `least` characters (a window).

    >>> load_corpus().text[:10]
    "ALL'S WELL"
    """
    if spec == "shakespeare":
        packed = files("tokenspace.sources").joinpath("data/shakespeare.txt.gz").read_bytes()
        if hashlib.sha256(packed).hexdigest() != SHA256:
            raise SourceError("the packaged shakespeare.txt.gz is damaged: reinstall tokenspace.")
        name, origin = "shakespeare", "42 plays and poems, Open Shakespeare 0.6 (public domain)"
        return Corpus(name, _decoded(gzip.decompress(packed), name, least), origin)
    path = Path(spec)
    try:
        raw = path.read_bytes()
        raw = gzip.decompress(raw) if path.suffix == ".gz" else raw
    except (OSError, EOFError) as error:
        raise SourceError(
            f"{path} can't be read: {error}. Give a text file, or 'shakespeare'."
        ) from error
    return Corpus(path.stem, _decoded(raw, str(path), least), f"file {path.name}")


def _decoded(raw: bytes, name: str, least: int) -> str:
    if b"\0" in raw:
        where = raw.index(b"\0")
        raise SourceError(
            f"{name} is binary: a zero byte at {where:,} of {len(raw):,}. Give UTF-8 text."
        )
    try:
        text = raw.decode("utf-8-sig").replace("\r\n", "\n")
    except UnicodeDecodeError as error:
        raise SourceError(
            f"{name} is not UTF-8: byte 0x{raw[error.start]:02x} at {error.start:,}. Convert it, "
            f"for example with: iconv -f latin1 -t utf-8."
        ) from error
    if not text.strip():
        raise SourceError(f"{name} is empty: {len(raw):,} bytes and no text. Give another file.")
    if len(text) < least:
        raise SourceError(
            f"{name} has {len(text):,} characters, fewer than a window of {least:,}. "
            f"Give a longer text or a shorter window."
        )
    return text
