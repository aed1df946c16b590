"""The tokenizer's entries: how many rows of a table have a token, and which."""

import json
import warnings
from collections.abc import Callable
from pathlib import Path

from tokenizers import Tokenizer

from tokenspace.errors import SourceError
from tokenspace.sources.store import Store

TOKENIZER = "tokenizer.json"


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
    for name, read in READERS.items():
        if name not in store.files:
            continue
        path = store.small(name)
        try:
            return _by_id(read(path))
        except Exception as error:  # the tokenizers library raises bare Exception
            warnings.warn(
                f"{store.where}: {name} can't be read ({str(error)[:200]}). Rows stay without "
                "tokens, and padded rows can't be told from others.",
                stacklevel=2,
            )
    return None


def _by_id(ids: dict[str, int]) -> list[str]:
    tokens = [f"<row {i}: no token>" for i in range(max(ids.values()) + 1)]
    for token, i in ids.items():
        tokens[i] = token
    return tokens


def _tokenizer_json(path: Path) -> dict[str, int]:
    return dict(Tokenizer.from_file(str(path)).get_vocab(with_added_tokens=True))


def _vocab_json(path: Path) -> dict[str, int]:
    return dict(json.loads(path.read_text("utf-8")))


def _vocab_txt(path: Path) -> dict[str, int]:
    lines = path.read_text("utf-8").removesuffix("\n").split("\n")
    return {token: i for i, token in enumerate(lines)}


READERS: dict[str, Callable[[Path], dict[str, int]]] = {
    TOKENIZER: _tokenizer_json,
    "vocab.txt": _vocab_txt,
    "vocab.json": _vocab_json,
}
