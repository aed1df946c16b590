"""The tensors of a checkpoint: one file, or shards and the index that says what is where."""

import json
from functools import cached_property

from torch import Tensor

from tokenspace.errors import SourceError
from tokenspace.sources.names import no_such_tensor
from tokenspace.sources.safetensors_file import Entry, torch_dtype
from tokenspace.sources.store import Store

SINGLE = "model.safetensors"
PICKLED = (".bin", ".pt", ".pth", ".ckpt", ".pkl")


class Weights:
    """All tensor names of a store and the file that holds each; nothing else is read yet.

    Raises SourceError when the store has no safetensors, or an index that names a missing shard.
    """

    def __init__(self, store: Store) -> None:
        self.store = store

    @cached_property
    def files(self) -> dict[str, str]:
        """File by tensor name."""
        top = [n for n in self.store.files if "/" not in n] or list(self.store.files)
        names = [n for n in top if n.endswith(".safetensors")]
        indexes = [n for n in top if n.endswith(".safetensors.index.json")]
        if SINGLE in names:  # as transformers does, whatever an index says
            names = [SINGLE]
        elif f"{SINGLE}.index.json" in indexes:
            return self._from_index(f"{SINGLE}.index.json")
        elif len(indexes) == 1:
            return self._from_index(indexes[0])
        if not names:
            raise self._nothing_to_read()
        found: dict[str, str] = {}
        for name in names:
            for tensor in self.store.header(name):
                found.setdefault(tensor, name)
        return found

    def _from_index(self, index: str) -> dict[str, str]:
        try:
            content = json.loads(self.store.small(index).read_text("utf-8"))
            return {str(tensor): str(file) for tensor, file in content["weight_map"].items()}
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise SourceError(
                f"{self.store.where}: {index} isn't a shard index ({error!r}). Download it again."
            ) from error

    def _nothing_to_read(self) -> SourceError:
        pickled = [n for n in self.store.files if n.endswith(PICKLED)]
        gguf = [n for n in self.store.files if n.endswith(".gguf")]
        if pickled:
            return SourceError(
                f"{self.store.where} has only pickled weights ({', '.join(pickled[:3])}), which "
                "can run code when opened and are never loaded here. Look for a safetensors "
                "revision (revision='refs/pr/N'), or save the state dict with "
                "safetensors.torch.save_file."
            )
        if gguf:
            return SourceError(
                f"{self.store.where} has no safetensors, only GGUF: {', '.join(gguf[:5])}. "
                "Pass the path of one such file on disk."
            )
        return SourceError(
            f"{self.store.where} has no safetensors. Its files: "
            f"{', '.join(list(self.store.files)[:10]) or 'none'}."
        )

    def locate(self, name: str) -> tuple[str, Entry]:
        """The file and the place of one tensor, checked against that file's own header.

        Raises TableError for an unknown name, SourceError for a shard that doesn't hold it.
        """
        if name not in self.files:
            raise no_such_tensor(name, self.files, self.store.where)
        shard = self.files[name]
        if shard not in self.store.files:
            raise SourceError(
                f"{self.store.where}: the index puts {name} in {shard or 'an empty name'}, which "
                "isn't among its files. The checkpoint is incomplete: download it again."
            )
        header = self.store.header(shard)
        if name not in header:
            raise SourceError(
                f"{self.store.where}: the index puts {name} in {shard}, whose header doesn't "
                f"list it ({len(header)} tensors: {', '.join(list(header)[:5])}). The index and "
                "the shards are from different checkpoints."
            )
        return shard, header[name]

    def read(self, name: str) -> tuple[Tensor, Entry]:
        """One tensor as stored, memory-mapped, and its entry."""
        shard, entry = self.locate(name)
        torch_dtype(entry, f"{self.store.where}/{shard}")
        return self.store.tensor(shard, entry), entry
