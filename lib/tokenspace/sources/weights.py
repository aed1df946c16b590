"""The tensors of a checkpoint by name: which file holds each, and which is the embedding table."""

import difflib
import json
import re
from abc import ABC, abstractmethod
from collections.abc import Iterable
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from tokenspace.errors import SourceError, TableError
from tokenspace.sources.files import MAX_HEADER, Entry, not_a, parse_header, torch_dtype

SINGLE = "model.safetensors"
PART = re.compile(r"(.*)-(\d{5})-of-(\d{5})(\.\w+)")  # of a model split into several files
PICKLED = (".bin", ".pt", ".pth", ".ckpt", ".pkl")
# The ends of the names that public checkpoints use, most particular first.
ENDINGS = {
    "input": (
        "shared.weight",  # T5
        "embed_tokens.weight",  # Llama and most others
        "wte.weight",  # GPT-2, OLMo
        "embed_in.weight",  # GPT-NeoX, Pythia
        "word_embeddings.weight",  # BERT, BLOOM, Falcon, ChatGLM
        "tok_embeddings.weight",  # Meta's own Llama, InternLM
        "backbone.embedding.weight",  # Mamba
        "backbone.embeddings.weight",
        "token_embedding.weight",  # CLIP's text side
        "token_embd.weight",  # GGUF
    ),
    "output": (
        "lm_head.weight",
        "embed_out.weight",  # GPT-NeoX, Pythia
        "output_layer.weight",  # ChatGLM
        "cls.predictions.decoder.weight",  # BERT
        "output.weight",  # Meta's own Llama, GGUF
    ),
}
# Copies inside a layer belong to extra heads that predict several tokens at once.
IN_A_LAYER = re.compile(r"(^|\.)(layers?|h|blocks?|blk)\.\d+\.")


class Store(ABC):
    """Where a model's files lie: a folder, or a repository of Hugging Face (`hf.HfRepo`)."""

    where: str  # how messages name it
    files: list[str]
    local: bool  # whole files are here, so that reading a second tensor costs nothing

    @abstractmethod
    def small(self, name: str) -> Path:
        """A whole small file (configuration, index, tokenizer) on disk."""

    @abstractmethod
    def at(self, name: str, start: int, end: int) -> tuple[Path, int]:
        """A file on disk that holds bytes [start, end) of the named one, and where they begin."""

    def json(self, name: str) -> dict:
        """A small file of JSON; raises SourceError when it isn't an object."""
        raw = self.small(name).read_bytes()
        try:
            return dict(json.loads(raw))
        except (ValueError, TypeError) as error:
            raise SourceError(
                f"{self.where}: {name} isn't JSON (first bytes {raw[:20]!r}, size {len(raw)} "
                "bytes). Download it again."
            ) from error

    def header(self, name: str) -> dict[str, Entry]:
        """The tensors that a safetensors file lists; raises SourceError for a damaged file."""
        first = self._bytes(name, 0, 8).tobytes()
        length = int.from_bytes(first, "little")
        if not 2 <= length <= MAX_HEADER:
            raise not_a("safetensors", self._named(name), first)
        entries = parse_header(self._bytes(name, 8, 8 + length).tobytes(), self._named(name))
        if self.local:  # to see that the file was not cut off
            self._bytes(name, 0, max((entry.end for entry in entries.values()), default=0))
        return entries

    def tensor(self, name: str, entry: Entry) -> Tensor:
        """One of them, memory-mapped: nothing is read until it is used, nothing else at all."""
        dtype = torch_dtype(entry, self._named(name))
        raw = torch.from_numpy(self._bytes(name, entry.start, entry.end))
        if raw.data_ptr() % dtype.itemsize:  # torch reads aligned numbers only
            raw = raw.clone()
        return raw.view(dtype).view(entry.shape)

    def _bytes(self, name: str, start: int, end: int) -> np.ndarray:
        path, offset = self.at(name, start, end)
        size, count = path.stat().st_size, end - start
        if offset + count > size:
            raise SourceError(
                f"{self._named(name)} is truncated: bytes {start} to {end} were needed, it has "
                f"{size}. Download it again."
            )
        return np.memmap(path, np.uint8, "c", offset, (count,)) if count else np.empty(0, np.uint8)

    def _named(self, name: str) -> str:
        return self.where if self.where.endswith(name) else f"{self.where}/{name}"


class Folder(Store):
    """A model folder on disk, or the part of it beside one given safetensors file."""

    local = True

    def __init__(self, path: Path, only: str | None = None) -> None:
        self.path = path
        self.where = str(path / only if only else path)
        try:
            names = sorted(p.name for p in path.iterdir() if p.is_file())
        except OSError as error:
            raise SourceError(f"{path} can't be read: {error.strerror}.") from error
        weights = (".safetensors", ".safetensors.index.json")
        self.files = [n for n in names if only in (None, n) or not n.endswith(weights)]

    def small(self, name: str) -> Path:
        return self.path / name

    def at(self, name: str, start: int, end: int) -> tuple[Path, int]:
        return self.path / name, start


def find_table(names: Iterable[str], side: str, where: str) -> str | None:
    """The name of the input or output matrix, or None when no name is known to be one.

    Raises TableError when several are equally likely.

    >>> find_table(["gpt_neox.embed_in.weight", "embed_out.weight"], "output", "pythia")
    'embed_out.weight'
    """
    outside = [n for n in names if not IN_A_LAYER.search(n)]
    for ending in ENDINGS[side]:
        found = [n for n in outside if n == ending or n.endswith("." + ending)]
        if len(found) > 1:
            raise TableError(
                f"{where} has several tensors that may be the {side} table: "
                f"{', '.join(found)}. Name one with tensor=."
            )
        if found:
            return found[0]
    return None


def no_table(names: Iterable[str], where: str, side: str, wanted: str | None = None) -> TableError:
    """The error for a tensor, or a side, that a checkpoint doesn't have; it lists likely names."""
    every = list(names)
    likely = [n for n in every if re.search(r"emb|wte|head|vocab|output", n)]
    if wanted:
        likely = difflib.get_close_matches(wanted, every, n=5, cutoff=0.5) + likely
    listed = list(dict.fromkeys(likely or every))
    more = f" and {len(listed) - 8} more" if len(listed) > 8 else ""
    candidates = f"Candidates: {', '.join(listed[:8])}{more}."
    candidates = candidates if listed else "It has no tensors at all."
    if wanted:
        return TableError(f"{where} has no tensor {wanted}. {candidates}")
    return TableError(
        f"{where}: none of its {len(every)} tensors has the name of an {side} table. {candidates} "
        "Name one with tensor=."
    )


class Weights:
    """All tensor names of a store and the file that holds each; nothing else is read yet.

    Raises SourceError when the store has no safetensors, or an index that isn't one.
    """

    def __init__(self, store: Store) -> None:
        self.store = store
        top = [n for n in store.files if "/" not in n] or store.files
        names = [n for n in top if n.endswith(".safetensors")]
        indexes = [n for n in top if n.endswith(".safetensors.index.json")]
        if SINGLE in names:  # as transformers does, whatever an index says
            names, indexes = [SINGLE], []
        elif f"{SINGLE}.index.json" in indexes:
            indexes = [f"{SINGLE}.index.json"]
        self.whole = True  # no shard is missing
        if len(indexes) == 1:
            found = store.json(indexes[0]).get("weight_map")
            if not isinstance(found, dict):
                raise SourceError(f"{store.where}: {indexes[0]} isn't a shard index.")
            self.file_of = {str(tensor): str(file) for tensor, file in found.items()}
        else:
            parts = [part for part in map(PART.fullmatch, names) if part]
            self.whole = not parts or len(parts) >= int(parts[0][3])
            self.file_of = {n: name for name in reversed(names) for n in store.header(name)}
            if not names:
                raise self._nothing_to_read()

    def _nothing_to_read(self) -> SourceError:
        files, hint = self.store.files, ""
        if any(n.endswith(PICKLED) for n in files):
            hint = (
                " Pickled weights can run code when opened and are never loaded here: look for a "
                "safetensors revision (revision='refs/pr/N'), or save the state dict with "
                "safetensors.torch.save_file."
            )
        elif any(n.endswith(".gguf") for n in files):
            hint = " Pass the path of one GGUF file on disk."
        listed = ", ".join(files[:10]) or "none"
        return SourceError(f"{self.store.where} has no safetensors. Its files: {listed}.{hint}")

    def read(self, name: str) -> tuple[Tensor, Entry]:
        """One tensor as stored, memory-mapped, and its entry in the header of its own file.

        Raises TableError for an unknown name, SourceError for a shard that doesn't hold it.
        """
        where = self.store.where
        if name not in self.file_of:
            raise no_table(self.file_of, where, "", name)
        shard = self.file_of[name]
        if shard not in self.store.files:
            raise SourceError(
                f"{where}: the index puts {name} in {shard or 'an empty name'}, which isn't among "
                "its files. The checkpoint is incomplete: download it again."
            )
        header = self.store.header(shard)
        if name not in header:
            raise SourceError(
                f"{where}: the index puts {name} in {shard}, whose header doesn't list it "
                f"({len(header)} tensors: {', '.join(list(header)[:5])}). The index and the shards "
                "are from different checkpoints."
            )
        return self.store.tensor(shard, header[name]), header[name]
