"""Texts to count and to train on, and the tokenizer's entries that name a table's rows."""

import gzip
import hashlib
import json
import re
import warnings
import zlib
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path

from tokenizers import Tokenizer

from tokenspace.errors import SourceError
from tokenspace.sources.files import not_a
from tokenspace.sources.table import no_token
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


def load_corpus(spec: str | Path = "shakespeare", *, least: int = 1) -> Corpus:
    """The packaged "shakespeare", a file, or a dataset of Hugging Face, "org/name[/file]".

    A file is UTF-8 text, .jsonl or .parquet (the first two also as .gz); of the last two the
    column "text", or the only one that holds text, is joined, a line each. Of a dataset one file
    is fetched: the one named, or its only one, or its only one with "train" in its path.
    Raises `SourceError` for a text that is missing, empty, binary, not UTF-8, or shorter than
    `least` characters (a window), and for a dataset in which it can't be told what to read.

    >>> load_corpus().text[:10]
    "ALL'S WELL"
    """
    path = Path(spec).expanduser()
    name, origin = path.stem, f"file {path.name}"
    dataset = None if path.exists() or not isinstance(spec, str) else DATASET.fullmatch(spec)
    if spec == "shakespeare":
        name, text = spec, _packaged()
        origin = "42 plays and poems, Open Shakespeare 0.6 (public domain)"
    elif dataset and (dataset[2] or not str(spec).lower().endswith(KINDS)):  # else a missing file
        name = dataset[1]
        path, origin = _fetched(name, dataset[2])
        text = _read(path, str(spec))
    else:
        text = _read(path, str(spec))
    if not text.strip():
        raise SourceError(f"{spec} is empty: {len(text):,} characters and no text. Give another.")
    if len(text) < least:
        raise SourceError(
            f"{spec} has {len(text):,} characters, fewer than the {least:,} needed here. "
            f"Give a longer text."
        )
    return Corpus(name, text, origin)


def _packaged() -> str:
    packed = files("tokenspace.sources").joinpath("data/shakespeare.txt.gz").read_bytes()
    if hashlib.sha256(packed).hexdigest() != SHA256:
        raise SourceError("the packaged shakespeare.txt.gz is damaged: reinstall tokenspace.")
    return gzip.decompress(packed).decode()


def _fetched(repo: str, file: str | None) -> tuple[Path, str]:
    """One file of a dataset, on disk, and its origin."""
    from tokenspace.sources.hf import HfRepo  # imports an HTTP client

    store = HfRepo(repo, kind="dataset")
    texts = [n for n in store.files if n.lower().endswith(KINDS)]
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


def _read(path: Path, name: str) -> str:
    """The whole text of a file; what isn't .jsonl or .parquet is read as UTF-8 text."""
    try:
        if path.suffix.lower() == ".parquet":
            return _joined_parquet(path, name)
        raw = path.read_bytes()
        raw = gzip.decompress(raw) if path.suffix == ".gz" else raw
    except (OSError, EOFError, ValueError, zlib.error) as error:  # ValueError: pyarrow's
        raise SourceError(
            f"{name} can't be read: {error}. Give a text file, 'shakespeare', or a dataset of "
            f"Hugging Face (org/name)."
        ) from error
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
    lines = path.name.lower().endswith((".jsonl", ".jsonl.gz"))
    return _joined_lines(text, name) if lines and text.strip() else text


def _joined_lines(text: str, name: str) -> str:
    """The texts of a file of JSON objects, a line each."""
    records = []
    for number, line in enumerate(text.split("\n"), 1):
        if not line.strip():
            continue
        try:
            records.append({k: v for k, v in json.loads(line).items() if isinstance(v, str)})
        except (ValueError, AttributeError) as error:
            where = f"{name}, line {number:,}"
            raise SourceError(f"{where} is no JSON object ({error}): {line[:40]!r}.") from error
    chosen = _choose(list(dict.fromkeys(key for each in records for key in each)), name)
    return "\n".join(each[chosen] for each in records if chosen in each)


def _joined_parquet(path: Path, name: str) -> str:
    import pyarrow as pa  # a table reader, which no other kind of text needs
    import pyarrow.parquet as pq

    file = pq.ParquetFile(path)
    kinds = (pa.string(), pa.large_string())
    chosen = _choose([field.name for field in file.schema_arrow if field.type in kinds], name)
    found = file.read([chosen]).column(0).to_pylist()
    return "\n".join(v for v in found if v is not None)


def _choose(columns: list[str], name: str) -> str:
    """Of the columns that hold text "text", or the only one."""
    if "text" in columns or len(columns) == 1:
        return "text" if "text" in columns else columns[0]
    raise SourceError(
        f"{name} has {'more than one' if columns else 'no'} column of text"
        f'{": " if columns else ""}{", ".join(columns)}. Call the one to read "text".'
    )


def read_tokenizer(store: Store) -> Tokenizer:
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


def read_tokens(store: Store) -> list[str] | None:
    """Token strings by row, from the first tokenizer file that the store has; None without one.

    The length is the tokenizer's size: its largest id plus one. A file that can't be read costs
    the labels, not the table: it is warned about.
    """
    name = next((name for name in VOCABULARIES if name in store.files), None)
    if name is None:
        return None
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
