"""Texts to count and to train on, and the tokenizer's entries that name a table's rows."""

import gzip
import hashlib
import json
import re
import warnings
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING

from tokenizers import Tokenizer

from tokenspace.errors import SourceError
from tokenspace.sources.files import not_a
from tokenspace.sources.table import no_token

if TYPE_CHECKING:
    from tokenspace.sources.weights import Store

TOKENIZER = "tokenizer.json"
VOCABULARIES = (TOKENIZER, "vocab.txt", "vocab.json")  # the first that a model has is read
KINDS = (".txt", ".jsonl", ".parquet", ".txt.gz", ".jsonl.gz")
SHA256 = "a4d82dbed62b3013719134e363efce8a541f53ef0c16cb89b71a5b6ee169403f"  # of Shakespeare
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
    """The packaged "shakespeare", a file, or a dataset of Hugging Face, "org/name[/file]".

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
    path = Path(spec).expanduser()
    name, origin = path.stem, f"file {path.name}"
    dataset = None if path.exists() or not isinstance(spec, str) else DATASET.fullmatch(spec)
    if dataset and (dataset[2] or not kind_of(spec)):  # else a missing folder/file.txt
        name = dataset[1]
        path, origin = _fetched(name, dataset[2], revision)
    elif revision is not None:
        raise SourceError(
            f"{spec} has no revision {revision}: only datasets of Hugging Face have one."
        )
    text = read_text(path, str(spec), column)
    return Corpus(name, _long_enough(text, str(spec), least), origin)


def _fetched(repo: str, file: str | None, revision: str | None) -> tuple[Path, str]:
    """One file of a dataset, on disk, and its origin."""
    from tokenspace.sources.hf import HfRepo  # imports an HTTP client

    store = HfRepo(repo, revision, "dataset")
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


def kind_of(name: str | Path) -> str | None:
    """The ending of a file that `read_text` knows, or None.

    >>> kind_of("data/train.jsonl.gz"), kind_of("model.bin")
    ('.jsonl.gz', None)
    """
    return next((kind for kind in KINDS if str(name).lower().endswith(kind)), None)


def read_text(path: Path, name: str, column: str | None = None) -> str:
    """The whole text of a file; what isn't .jsonl or .parquet is read as UTF-8 text.

    Raises `SourceError`, calling the file `name`, for one that can't be read, that is binary or
    not UTF-8, or whose texts can't be told from its other columns.
    """
    kind = kind_of(path) or ""
    if kind == ".parquet":
        return _joined_parquet(path, name, column)
    try:
        raw = path.read_bytes()
        raw = gzip.decompress(raw) if path.suffix == ".gz" else raw
    except (OSError, EOFError) as error:
        raise _unreadable(name, error) from error
    text = _decoded(raw, name)
    return _joined_lines(text, name, column) if kind.startswith(".jsonl") else text


def _unreadable(name: str, error: Exception) -> SourceError:
    return SourceError(
        f"{name} can't be read: {error}. Give a text file, 'shakespeare', or a dataset of "
        f"Hugging Face (org/name)."
    )


def _decoded(raw: bytes, name: str) -> str:
    if b"\0" in raw:
        where = raw.index(b"\0")
        raise SourceError(
            f"{name} is binary: a zero byte at {where:,} of {len(raw):,}. Give UTF-8 text."
        )
    try:
        return raw.decode("utf-8-sig").replace("\r\n", "\n")
    except UnicodeDecodeError as error:
        raise SourceError(
            f"{name} is not UTF-8: byte 0x{raw[error.start]:02x} at {error.start:,}. Convert it, "
            f"for example with: iconv -f latin1 -t utf-8."
        ) from error


def _joined_lines(text: str, name: str, column: str | None) -> str:
    records = [
        _record(line, f"{name}, line {number:,}")
        for number, line in enumerate(text.split("\n"), 1)
        if line.strip()
    ]
    columns = [key for each in records for key, value in each.items() if isinstance(value, str)]
    chosen = _choose(list(dict.fromkeys(columns)), name, column) if records else ""
    return "\n".join(each[chosen] for each in records if isinstance(each.get(chosen), str))


def _record(line: str, where: str) -> dict:
    try:
        found = json.loads(line)
    except ValueError as error:
        raise SourceError(f"{where} is no JSON ({error}): {line[:40]!r}.") from error
    if not isinstance(found, dict):
        raise SourceError(f"{where} is no JSON object but {line[:40]!r}.")
    return found


def _joined_parquet(path: Path, name: str, column: str | None) -> str:
    import pyarrow as pa  # a table reader, which no other kind of text needs
    import pyarrow.parquet as pq

    try:
        file = pq.ParquetFile(path)
        strings = [
            field.name
            for field in file.schema_arrow
            if pa.types.is_string(field.type) or pa.types.is_large_string(field.type)
        ]
        chosen = _choose(strings, name, column)
        found = file.read([chosen]).column(0).to_pylist()
    except (OSError, EOFError, pa.ArrowException) as error:
        raise _unreadable(name, error) from error
    return "\n".join(v for v in found if v is not None)


def _choose(strings: list[str], name: str, column: str | None) -> str:
    """The column asked for; else "text", or the only one that holds text."""
    if column is None:
        column = "text" if "text" in strings else strings[0] if len(strings) == 1 else None
    if column not in strings:
        asked = "more than one column of text" if column is None else f"no column {column} of text"
        raise SourceError(
            f"{name} has {asked if strings else 'no column of text'}: name one with column=, "
            f"of {', '.join(strings) or 'none'}."
        )
    return str(column)


def read_tokenizer(store: "Store") -> Tokenizer:
    """The tokenizer itself, from tokenizer.json; raises SourceError when that can't be had."""
    if TOKENIZER not in store.files:
        raise SourceError(
            f"{store.where} has no {TOKENIZER}, so a text can't be put in its tokens. Take another "
            f"model, or convert its tokenizer with transformers: save_pretrained writes the file."
        )
    path = store.small(TOKENIZER)
    try:
        return Tokenizer.from_file(str(path))
    except Exception as error:  # the library raises bare Exception
        raise SourceError(
            f"{store.where}: {TOKENIZER} ({path.stat().st_size:,} bytes) can't be read "
            f"({str(error)[:200]}). Download it again."
        ) from error


def read_tokens(store: "Store") -> list[str] | None:
    """Token strings by row, from the first tokenizer file that the store has; None without one.

    The length is the tokenizer's size: its largest id plus one. A file that can't be read costs
    the labels, not the table: it is warned about.
    """
    for name in VOCABULARIES:
        if name not in store.files:
            continue
        path = store.small(name)
        try:
            ids = _vocabulary(path)
            tokens = [no_token(i) for i in range(max(ids.values()) + 1)]
            for token, i in ids.items():
                tokens[i] = token
            return tokens
        except Exception as error:  # the tokenizers library raises bare Exception
            warnings.warn(
                f"{store.where}: {name} can't be read ({str(error)[:200]}). Rows stay without "
                "tokens, and padded rows can't be told from others.",
                stacklevel=2,
            )
    return None


def _vocabulary(path: Path) -> dict[str, int]:
    """Row ids by token, from any of the `VOCABULARIES`."""
    if path.name == TOKENIZER:
        return dict(Tokenizer.from_file(str(path)).get_vocab(with_added_tokens=True))
    text = path.read_text("utf-8")
    if path.suffix == ".json":
        return dict(json.loads(text))
    return {token: i for i, token in enumerate(text.removesuffix("\n").split("\n"))}
