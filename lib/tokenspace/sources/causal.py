"""A causal language model of transformers, with its tokenizer."""

from pathlib import Path
from typing import Any

from tokenspace.errors import SourceError
from tokenspace.sources.catalogue import packaged_tables
from tokenspace.sources.packaged import model_file


def load_causal(spec: str | Path, *, device: str = "cpu", **options: Any) -> tuple[Any, Any]:
    """A packaged model by its name, a model folder, or an id on the Hub: model and tokenizer.

    `options` go to `AutoModelForCausalLM.from_pretrained` (revision, dtype); with `device_map`
    among them the model lies where that says. Raises SourceError when the model can't be had.

    >>> load_causal("glove")
    Traceback (most recent call last):
    tokenspace.errors.SourceError: glove holds a table and no causal language model...
    """
    from transformers import AutoModelForCausalLM, AutoTokenizer  # takes seconds to import

    packaged = {entry.name: entry for entry in packaged_tables()}
    where: str | Path = spec
    if spec in packaged and not Path(spec).exists():
        path = model_file(packaged[str(spec)])
        if path.suffix != ".gguf":
            raise SourceError(
                f"{spec} holds a table and no causal language model. Take smollm2, a model "
                "folder or an id on the Hub."
            )
        where, options = path.parent, {"gguf_file": path.name, **options}
    folder = Path(where)
    if folder.is_dir() and "gguf_file" not in options and not _has_tokenizer(folder):
        raise SourceError(
            f"{spec} holds no tokenizer, so it can't read a text: save the model's own there, with "
            "tokenizer.save_pretrained(folder)."
        )
    files = {key: options[key] for key in ("gguf_file", "revision") if key in options}
    try:
        tokenizer = AutoTokenizer.from_pretrained(where, **files)
        model: Any = AutoModelForCausalLM.from_pretrained(where, **options)
    except (OSError, ValueError, LookupError, ImportError) as error:
        raise SourceError(f"{spec} can't be loaded as a causal model: {error}") from error
    return (model if "device_map" in options else model.to(device)).eval(), tokenizer


def _has_tokenizer(folder: Path) -> bool:
    return any(any(folder.glob(name)) for name in ("tokenizer*", "vocab*", "spiece*", "*.tiktoken"))
