"""One call for every place an embedding table, a tokenizer or a causal model can come from."""

import difflib
import re
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from tokenizers import Tokenizer

from tokenspace.errors import SourceError, TableError
from tokenspace.sources.files import load_npy
from tokenspace.sources.gguf import read_gguf
from tokenspace.sources.model import read_model
from tokenspace.sources.packaged import PackagedTable, load_glove, offline_hint, packaged_tables
from tokenspace.sources.table import EmbeddingTable
from tokenspace.sources.text import read_tokenizer
from tokenspace.sources.weights import PART, PICKLED, Folder

# An id, with or without the address before it and a revision behind it.
HF_ID = re.compile(
    r"(?:https?://[^/]+/)?(?P<repo>[\w.-]+(?:/[\w.-]+)?)(?:@(?P<revision>.+)|/tree/(?P<branch>.+))?"
)
KINDS = (".gguf", ".safetensors", ".npy")
OTHER_FILES = (".csv", ".h5", ".json", ".npz", ".onnx", ".parquet", ".txt", ".zip")
TOKENIZERS = ("tokenizer*", "vocab*", "spiece*", "*.tiktoken")  # files that transformers reads


class HfId(NamedTuple):
    """A repository of Hugging Face and the revision to read, None for its main branch."""

    repo: str
    revision: str | None


def resolve(spec: str | Path, revision: str | None = None) -> PackagedTable | Path | HfId:
    """What a name stands for: a packaged model, a path that exists, or an id of Hugging Face.

    Raises SourceError for a path that isn't there, and for a name close to a packaged one.

    >>> resolve("https://huggingface.co/openai-community/gpt2/tree/main")
    HfId(repo='openai-community/gpt2', revision='main')
    """
    text, path = str(spec), Path(spec).expanduser()
    packaged = {entry.name: entry for entry in packaged_tables()}
    found = packaged.get(text) or (path if text and path.exists() else None)
    if found is not None:
        if revision is not None:
            raise SourceError(
                f"{spec} has no revision {revision}: only ids of Hugging Face (org/name) have one."
            )
        return found
    near = difflib.get_close_matches(text, packaged, n=1)
    file = text.startswith((".", "/", "~")) or path.suffix in (*KINDS, *PICKLED, *OTHER_FILES)
    named = HF_ID.fullmatch(text) if isinstance(spec, str) and not file else None
    if named and ("/" in named["repo"] or not near):
        return HfId(named["repo"], revision or named["revision"] or named["branch"])
    hint = f" Did you mean {near[0]}?" if near else ""
    raise SourceError(
        f"{spec or 'an empty name'}: no such file, folder or packaged table.{hint} A model of "
        f"Hugging Face is written org/name. {offline_hint()}"
    )


def load_table(
    spec: str | Path,
    *,
    side: str = "input",
    tensor: str | None = None,
    revision: str | None = None,
) -> EmbeddingTable:
    """The embedding table of a packaged model, a file, a folder, or a model of Hugging Face.

    `spec` is a name from `packaged_tables()`; a path to .gguf, .safetensors, .npy or a model
    folder; or an id of Hugging Face, "org/name" or "org/name@revision" or its address, of which
    only the one tensor is read. `side` is "input" (embedding) or "output" (unembedding); `tensor`
    names one outright.
    Raises SourceError when it can't be had and TableError when it isn't a table.

    >>> load_table("minilm").rows.shape
    torch.Size([30522, 384])
    """
    if side not in ("input", "output"):
        raise TableError(f"side is 'input' or 'output', not {side!r}.")
    found = resolve(spec, revision)
    if isinstance(found, HfId):
        from tokenspace.sources.hf import HfRepo  # imports an HTTP client

        return read_model(HfRepo(*found), str(spec), side, tensor)
    if isinstance(found, Path):
        return _load_path(found, side, tensor)
    load = load_glove if found.name == "glove" else _load_path
    table = load(found.model_file(), side, tensor)
    which = table.origin.rpartition(": ")[2].rpartition("/")[2]
    origin = f"package {found.package}, {found.model}: {which} ({found.licence})"
    return replace(table, name=found.name, origin=origin)


def _load_path(path: Path, side: str, tensor: str | None) -> EmbeddingTable:
    if path.is_dir():
        folder = Folder(path)
        gguf = [n for n in folder.files if n.endswith(".gguf")]
        one = len(gguf) == 1 or all(map(PART.fullmatch, gguf))
        if gguf and one and not any(n.endswith(".safetensors") for n in folder.files):
            return read_gguf(path / gguf[0], side, tensor)
        return read_model(folder, str(path), side, tensor)
    if path.suffix in PICKLED:
        raise SourceError(
            f"{path} is a pickle, which can run code when opened and is never loaded here. Save "
            "its state dict with safetensors.torch.save_file."
        )
    try:
        if path.suffix == ".safetensors":
            return read_model(Folder(path.parent, only=path.name), str(path), side, tensor)
        if path.suffix == ".gguf":
            return read_gguf(path, side, tensor)
        if path.suffix == ".npy":
            return load_npy(path, side, tensor)
    except OSError as error:
        raise SourceError(f"{path} can't be read: {error.strerror or error}.") from error
    raise SourceError(f"{path}: unknown kind of file. Readable: {', '.join(KINDS)}, a folder.")


def load_tokenizer(spec: str | Path, *, revision: str | None = None) -> Tokenizer:
    """The tokenizer of a packaged model, a model folder, or a public model of Hugging Face.

    Raises SourceError for a model whose tokenizer.json isn't there or can't be read.

    >>> load_tokenizer("minilm").get_vocab_size()
    30522
    """
    found = resolve(spec, revision)
    if isinstance(found, HfId):
        from tokenspace.sources.hf import HfRepo  # imports an HTTP client

        return read_tokenizer(HfRepo(*found))
    path = found.model_file() if isinstance(found, PackagedTable) else found
    if not path.is_dir():
        raise SourceError(
            f"{spec} is no model folder and no id of Hugging Face (org/name): a tokenizer is read "
            "from a model's tokenizer.json."
        )
    return read_tokenizer(Folder(path))


def load_causal(spec: str | Path, *, device: str = "cpu", **options: Any) -> tuple[Any, Any]:
    """A packaged model by its name, a model folder, or an id of Hugging Face: model and tokenizer.

    `options` go to `AutoModelForCausalLM.from_pretrained` (revision, dtype); with `device_map`
    among them the model lies where that says. Raises SourceError when the model can't be had.
    """
    found = resolve(spec)
    where: str | Path = found if isinstance(found, Path) else str(spec)
    if isinstance(found, HfId):
        where, options = found.repo, {"revision": found.revision or "main", **options}
    elif isinstance(found, PackagedTable):
        path = found.model_file()
        if path.suffix != ".gguf":
            raise SourceError(
                f"{spec} holds a table and no causal language model. Take smollm2, a model "
                "folder or an id of Hugging Face."
            )
        where, options = path.parent, {"gguf_file": path.name, **options}
    elif "gguf_file" not in options and not any(any(found.glob(name)) for name in TOKENIZERS):
        raise SourceError(
            f"{spec} holds no tokenizer, so it can't read a text: save the model's own there, with "
            "tokenizer.save_pretrained(folder)."
        )
    from transformers import AutoModelForCausalLM, AutoTokenizer  # takes seconds to import

    files = {key: options[key] for key in ("gguf_file", "revision") if key in options}
    try:
        tokenizer = AutoTokenizer.from_pretrained(where, **files)
        model: Any = AutoModelForCausalLM.from_pretrained(where, **options)
    except (OSError, ValueError, LookupError, ImportError) as error:
        raise SourceError(f"{spec} can't be loaded as a causal model: {error}") from error
    return (model if "device_map" in options else model.to(device)).eval(), tokenizer
