"""Which tensor of a checkpoint is the embedding table, and what to say when none is."""

import difflib
import re
from collections.abc import Iterable

from tokenspace.errors import TableError

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
_IN_A_LAYER = re.compile(r"(^|\.)(layers?|h|blocks?|blk)\.\d+\.")


def find_table(names: Iterable[str], side: str, where: str) -> str | None:
    """The name of the input or output matrix, or None when no name is known to be one.

    Raises TableError when several are equally likely.

    >>> find_table(["gpt_neox.embed_in.weight", "embed_out.weight"], "output", "pythia")
    'embed_out.weight'
    """
    outside = [n for n in names if not _IN_A_LAYER.search(n)]
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


def no_such_tensor(wanted: str, names: Iterable[str], where: str) -> TableError:
    """The error for a tensor name that a checkpoint doesn't have; it lists likely ones."""
    every = list(names)
    near = difflib.get_close_matches(wanted, every, n=5, cutoff=0.5)
    return TableError(
        f"{where} has no tensor {wanted}. {_candidates(near + _likely(every), every)}"
    )


def no_table(side: str, names: Iterable[str], where: str) -> TableError:
    """The error for a checkpoint none of whose names is known to be a table."""
    every = list(names)
    return TableError(
        f"{where}: none of its {len(every)} tensors has the name of an {side} table. "
        f"{_candidates(_likely(every), every)} Name one with tensor=."
    )


def _likely(names: list[str]) -> list[str]:
    known = [n for ends in ENDINGS.values() for n in names if n.endswith(ends)]
    return known + [n for n in names if re.search(r"emb|wte|head|vocab", n)]


def _candidates(first: list[str], every: list[str]) -> str:
    listed = list(dict.fromkeys(first or every))
    if not listed:
        return "It has no tensors at all."
    more = f" and {len(listed) - 8} more" if len(listed) > 8 else ""
    return f"Candidates: {', '.join(listed[:8])}{more}."
