"""A causal model of transformers, and the generation points of texts that it reads.

z is the state that the output matrix reads: after the final norm and its gain. It is taken where
it is read, so no family of models needs a rule of its own; the final norm is found among the
model's norms as the one whose output this is, or named by the caller.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import torch
from jaxtyping import Float, Int64
from torch import Tensor, nn

from tokenspace.curvature.points import Points, join, points_of
from tokenspace.errors import ParameterError
from tokenspace.sources import load_causal

NO_NORM = "none"  # what the caller says of a model that has no final norm


@dataclass(frozen=True)
class Reader:
    """A causal model of transformers, with where its final norm is and whether its tables are one.

    `logits_error` is max |V z - logits| over max |logits| on a few tokens: about 1e-7, and more
    when the model scales or caps its logits after the output matrix, which keeps their order.
    """

    model: Any
    tokenizer: Any
    norm: str
    tied: bool
    logits_error: float

    @property
    def rows(self) -> Float[Tensor, "V n"]:
        """The unembedding."""
        return self.model.get_output_embeddings().weight.detach()


def load_reader(
    spec: str | Path, *, norm: str | None = None, device: str = "cpu", **options: Any
) -> Reader:
    """A packaged model by its name, a model folder, or an id on the Hub, ready to be read.

    `options` go to `AutoModelForCausalLM.from_pretrained` (revision, dtype, device_map).
    Raises SourceError when the model can't be had, ParameterError as `reader_of` does.

    >>> load_reader("glove")
    Traceback (most recent call last):
    tokenspace.errors.SourceError: glove holds a table and no causal language model...
    """
    model, tokenizer = load_causal(spec, device=device, **options)
    return reader_of(model, tokenizer, norm=norm)


def reader_of(model: Any, tokenizer: Any = None, *, norm: str | None = None) -> Reader:
    """Find the final norm of a model, or check the one named `norm`.

    Raises ParameterError when none of the model's norms feeds the output matrix, or when the
    named one doesn't; the message lists what could be meant. And for an output matrix that isn't
    in memory.

    >>> untrained_reader(["Hello world!"]).norm
    'model.norm'
    """
    model.eval()
    head = model.get_output_embeddings()
    if head is None or not hasattr(head, "weight"):
        raise ParameterError(f"{type(model).__name__} has no output matrix: it isn't causal.")
    if getattr(getattr(head, "_hf_hook", None), "offload", False):
        raise ParameterError(
            f"The output matrix of {type(model).__name__} was left on the disk or in the memory of "
            "the CPU (offloaded), and its rows can't be read. Take a smaller model, more memory, "
            "or a device_map that keeps the output matrix on a device."
        )
    norms = {name: m for name, m in model.named_modules() if "norm" in type(m).__name__.lower()}
    norms |= {name: m for name, m in model.named_modules() if name == norm}
    if norm not in (None, NO_NORM, *norms):
        raise ParameterError(f"{type(model).__name__} has no module {norm!r}. {_asks(norms)}")
    few = min(4, len(head.weight))  # tokens are enough to tell which norm the state comes from
    ids = torch.arange(few, device=model.device)[None]  # (1, few)
    outputs: dict[str, Tensor] = {}

    def keep(name: str, module: nn.Module, inputs: Any, output: Any) -> None:
        if isinstance(output, Tensor):
            outputs[name] = output.detach()

    hooks = [m.register_forward_hook(partial(keep, name)) for name, m in norms.items()]
    try:
        state, logits = run(model, ids)
    finally:
        for hook in hooks:
            hook.remove()
    last = [name for name, output in outputs.items() if torch.equal(output.to(state.device), state)]
    if norm not in (None, NO_NORM) and norm not in last:
        raise ParameterError(
            f"The output of {norm} isn't what the output matrix reads. {_asks(norms)}"
        )
    if norm is None and not last:
        raise ParameterError(
            f"The final norm of {type(model).__name__} wasn't found. {_asks(norms)}"
        )
    with torch.no_grad():
        gap = (head(state) - logits).abs().max() / logits.abs().max()
    tied = head.weight is model.get_input_embeddings().weight
    return Reader(model, tokenizer, norm or last[-1], tied, float(gap))


def _asks(norms: dict[str, nn.Module]) -> str:
    return (
        "Give norm='path.of.the.module' as in model.named_modules(), or norm='none' if the model "
        f"has none. Its norms: {', '.join(list(norms)[-5:]) or 'no module is named so'}."
    )


@torch.no_grad()
def run(model: Any, ids: Tensor, mask: Tensor | None = None) -> tuple[Tensor, Tensor]:
    """What the output matrix reads (N L n), and the model's own logits (N L V), on one device."""
    seen: list[Tensor] = []
    head = model.get_output_embeddings()
    hook = head.register_forward_pre_hook(lambda module, inputs: seen.append(inputs[0]))
    try:
        logits = model(input_ids=ids, attention_mask=mask, use_cache=False).logits
    finally:
        hook.remove()
    if len(seen) != 1:
        raise ParameterError(
            f"{type(model).__name__} called its output matrix {len(seen)} times in one pass; its "
            "states can't be read there."
        )
    return seen[0], logits.to(seen[0].device)  # a sharded model gives them back where it began


@dataclass(frozen=True)
class Reading:
    """The points of some texts: of point i among all read, `text[i]` and `position[i]`.

    `ids` are the token ids as the model saw them, so that a BOS can be seen or missed.
    `points.kept` numbers the points that have a curvature. All tensors lie on one device.
    """

    points: Points
    ids: list[list[int]]
    text: Int64[Tensor, " M"]
    position: Int64[Tensor, " M"]


def read(
    reader: Reader, ids: Sequence[Sequence[int]], *, centre: bool = False, tokens: int = 128
) -> Reading:
    """The generation points of texts in token ids: one a position, in the order of the texts.

    `tokens` bounds how many are run at once (more for one longer text): their logits are
    tokens × V numbers. `centre` takes the mean row off the candidates' rows.

    >>> from tokenspace.curvature import untrained_reader
    >>> len(read(untrained_reader(["the cat sat"]), [[1, 2, 3], [2, 1]]).points)
    5
    """
    if not ids or not all(len(row) for row in ids):
        raise ParameterError(f"{len(ids)} texts, of which some have no tokens: nothing to read.")
    parts, device = [], reader.model.device
    for batch in _batches(ids, tokens):
        width = max(map(len, batch))
        padded = torch.tensor([[*row, *[0] * (width - len(row))] for row in batch], device=device)
        real = torch.arange(width)[None] < torch.tensor([len(row) for row in batch])[:, None]
        state, logits = run(reader.model, padded, real.to(device).long())  # (N, L, n), (N, L, V)
        real = real.to(state.device)
        # a few at a time, since fp64 copies of the logits are made: of one long text there are many
        for some, theirs in zip(state[real].split(tokens), logits[real].split(tokens), strict=True):
            parts.append(points_of(some, theirs, reader.rows, centre=centre))
    points = join(parts)
    text = torch.cat([torch.full((len(row),), i) for i, row in enumerate(ids)])
    position = torch.cat([torch.arange(len(row)) for row in ids])
    there = points.kept.device
    return Reading(points, [list(row) for row in ids], text.to(there), position.to(there))


def _batches(ids: Sequence[Sequence[int]], tokens: int) -> Iterator[Sequence[Sequence[int]]]:
    """Consecutive texts whose padded size stays within `tokens`; one text at least."""
    start = 0
    while start < len(ids):
        end, width = start + 1, len(ids[start])
        while end < len(ids) and max(width, len(ids[end])) * (end + 1 - start) <= tokens:
            width, end = max(width, len(ids[end])), end + 1
        yield ids[start:end]
        start = end


def untrained_reader(texts: Sequence[str], *, seed: int = 0) -> Reader:
    """A Llama with random weights over the words and marks of `texts`: a control, quick to make.

    >>> untrained_reader(["Hello world!"]).rows.shape
    torch.Size([4, 32])
    """
    from tokenizers import Tokenizer, models, pre_tokenizers
    from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

    split = pre_tokenizers.Whitespace()
    words = sorted({word for text in texts for word, _ in split.pre_tokenize_str(text)})
    tokenizer = Tokenizer(models.WordLevel({w: i for i, w in enumerate(["<s>", *words])}, "<s>"))
    tokenizer.pre_tokenizer = split
    torch.manual_seed(seed)
    config = LlamaConfig(
        hidden_size=32,
        intermediate_size=64,
        num_hidden_layers=2,
        num_attention_heads=2,
        vocab_size=len(words) + 1,
        initializer_range=0.5,  # wide, so that the logits differ though nothing was learned
    )
    wrapped = PreTrainedTokenizerFast(tokenizer_object=tokenizer, bos_token="<s>")
    return reader_of(LlamaForCausalLM(config), wrapped)
