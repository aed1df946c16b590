"""The text in a file: plain, JSON lines or Parquet."""

import gzip
import json
from pathlib import Path

from tokenspace.errors import SourceError

KINDS = (".txt", ".jsonl", ".parquet", ".txt.gz", ".jsonl.gz")


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
        f"{name} can't be read: {error}. Give a text file, 'shakespeare', or a dataset on the "
        f"Hub (org/name)."
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
