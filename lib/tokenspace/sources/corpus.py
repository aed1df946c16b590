"""Text to count and to train on: the packaged Shakespeare, the reader's file, a Hub dataset."""

import gzip
import hashlib
import re
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path

from tokenspace.errors import SourceError
from tokenspace.sources.suspect import not_a
from tokenspace.sources.texts import KINDS, kind_of, read_text

SHA256 = "a4d82dbed62b3013719134e363efce8a541f53ef0c16cb89b71a5b6ee169403f"
DATASET = re.compile(r"([\w-][\w.-]*/[\w.-]+)(?:/(.+))?")

PRETENDERS = (b"<!doctype html", b"<html", b"version https://git-lfs")  # saved in a text's place


@dataclass(frozen=True)
class Corpus:
    """A text, what the reader called it, and where it comes from."""

    name: str
    text: str
    origin: str


def load_corpus(
    spec: str | Path = "shakespeare",
    *,
    least: int = 1,
    column: str | None = None,
    revision: str | None = None,
) -> Corpus:
    """The packaged "shakespeare", a file, or a dataset on the Hub: "org/name", "org/name/file".

    A file is UTF-8 text, .jsonl or .parquet (the first two also as .gz); of the last two the texts
    in `column` (default: "text", or the only one) are joined, a line each. Of a dataset one file is
    fetched: the one named, or its only one, or its only one with "train" in its path.
    Raises `SourceError` for a text that is missing, empty, binary, not UTF-8, or shorter than
    `least` characters (a window), and for a dataset in which it can't be told what to read.

    >>> load_corpus().text[:10]
    "ALL'S WELL"
    """
    if spec == "shakespeare":
        packed = files("tokenspace.sources").joinpath("data/shakespeare.txt.gz").read_bytes()
        if hashlib.sha256(packed).hexdigest() != SHA256:
            raise SourceError("the packaged shakespeare.txt.gz is damaged: reinstall tokenspace.")
        text = gzip.decompress(packed).decode()
        origin = "42 plays and poems, Open Shakespeare 0.6 (public domain)"
        return Corpus("shakespeare", _long_enough(text, "shakespeare", least), origin)
    path, name, origin = Path(spec), Path(spec).stem, f"file {Path(spec).name}"
    dataset = None if path.exists() or not isinstance(spec, str) else DATASET.fullmatch(spec)
    if dataset and (dataset[2] or not kind_of(spec)):  # else a missing folder/file.txt
        name = dataset[1]
        path, origin = _fetched(name, dataset[2], revision)
    elif revision is not None:
        raise SourceError(f"{spec} has no revision {revision}: only datasets on the Hub have one.")
    text = read_text(path, str(spec), column)
    return Corpus(name, _long_enough(text, str(spec), least), origin)


def _fetched(repo: str, file: str | None, revision: str | None) -> tuple[Path, str]:
    """One file of a dataset, on disk, and its origin."""
    from tokenspace.sources.remote import HubRepo  # imports an HTTP client

    store = HubRepo(repo, revision, "dataset")
    texts = [n for n in store.files if kind_of(n)]
    training = [n for n in texts if "train" in n.lower()]
    if file is None and 1 in (len(texts), len(training)):
        file = texts[0] if len(texts) == 1 else training[0]
    if file not in store.files:
        wrong = f"no file {file}" if file else f"{len(texts)} files of text"
        more = f" and {len(texts) - 8} more" if len(texts) > 8 else ""
        raise SourceError(
            f"dataset {store.where} has {wrong}; name one as {repo}/FILE. It has "
            f"{', '.join(texts[:8]) or 'none'}{more} ({', '.join(KINDS)})."
        )
    path = store.small(str(file))
    with path.open("rb") as opened:
        first = opened.read(64).lstrip()
    if first.lower().startswith(PRETENDERS):
        raise not_a("text", f"{repo}/{file}", first, path.stat().st_size)
    return path, f"dataset {store.where}, file {file}"


def _long_enough(text: str, name: str, least: int) -> str:
    if not text.strip():
        raise SourceError(f"{name} is empty: {len(text):,} characters and no text. Give another.")
    if len(text) < least:
        raise SourceError(
            f"{name} has {len(text):,} characters, fewer than the {least:,} needed here. "
            f"Give a longer text."
        )
    return text
