"""A causal model of transformers as this part reads it: what its output matrix reads, and why.

z is the state that the output matrix reads: after the final norm and its gain. It is taken where
it is read, so no family of models needs a rule of its own; the final norm is found among the
model's norms as the one whose output this is, or asked for.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn

from tokenspace.errors import ParameterError
from tokenspace.sources import load_causal

NO_NORM = "none"  # said by the caller for a model that has no final norm


@dataclass(frozen=True)
class Reader:
    """A causal model of transformers, with where its final norm is and whether its tables are one.

    `lens_error` is max |V z - logits| over max |logits| on a few tokens: about 1e-7, and more when
    the model scales or caps its logits after the output matrix, which keeps the order of tokens.
    """

    model: Any
    tokenizer: Any
    norm: str
    tied: bool
    lens_error: float

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
    named one doesn't; the message lists what could be meant.

    >>> from transformers import LlamaConfig, LlamaForCausalLM
    >>> sizes = dict(hidden_size=8, intermediate_size=8, num_attention_heads=2, vocab_size=9)
    >>> reader_of(LlamaForCausalLM(LlamaConfig(num_hidden_layers=1, **sizes))).norm
    'model.norm'
    """
    model.eval()
    head = model.get_output_embeddings()
    if head is None or not hasattr(head, "weight"):
        raise ParameterError(f"{type(model).__name__} has no output matrix: it isn't causal.")
    norms = {name: m for name, m in model.named_modules() if "norm" in type(m).__name__.lower()}
    norms |= {name: m for name, m in model.named_modules() if name == norm}
    if norm not in (None, NO_NORM, *norms):
        raise ParameterError(f"{type(model).__name__} has no module {norm!r}. {_asks(norms)}")
    ids = torch.arange(min(4, len(head.weight)), device=model.device)[None]
    with _Outputs(norms) as outputs:
        state, logits = run(model, ids)
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


class _Outputs(dict):
    """The tensors that modules put out while inside `with`, by name."""

    def __init__(self, modules: dict[str, nn.Module]) -> None:
        super().__init__()
        self._modules = modules

    def __enter__(self) -> "_Outputs":
        self._hooks = [
            module.register_forward_hook(partial(self._keep, name))
            for name, module in self._modules.items()
        ]
        return self

    def _keep(self, name: str, module: nn.Module, inputs: Any, output: Any) -> None:
        if isinstance(output, Tensor):
            self[name] = output.detach()

    def __exit__(self, *error: object) -> None:
        for hook in self._hooks:
            hook.remove()


@torch.no_grad()
def run(model: Any, ids: Tensor, mask: Tensor | None = None) -> tuple[Tensor, Tensor]:
    """What the output matrix reads (N L n), and the model's own logits (N L V), on one device.

    >>> from transformers import LlamaConfig, LlamaForCausalLM
    >>> sizes = dict(hidden_size=8, intermediate_size=8, num_attention_heads=2, vocab_size=9)
    >>> model = LlamaForCausalLM(LlamaConfig(num_hidden_layers=1, **sizes))
    >>> run(model, torch.ones(2, 3).long())[0].shape
    torch.Size([2, 3, 8])
    """
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


@torch.no_grad()
def lens(reader: Reader, ids: Sequence[int]) -> Float[Tensor, "layers L V"]:
    """Logits read from every layer's output, the norm computed anew from that layer's own state.

    The first is the embedding's, the last the model's own (up to a scaling of logits).

    >>> from transformers import LlamaConfig, LlamaForCausalLM
    >>> sizes = dict(hidden_size=8, intermediate_size=8, num_attention_heads=2, vocab_size=9)
    >>> lens(reader_of(LlamaForCausalLM(LlamaConfig(num_hidden_layers=1, **sizes))), [1, 2]).shape
    torch.Size([2, 2, 9])
    """
    model, head = reader.model, reader.model.get_output_embeddings()
    row = torch.tensor([list(ids)], device=model.device)
    if reader.norm == NO_NORM:
        states = model(input_ids=row, output_hidden_states=True, use_cache=False).hidden_states
        return torch.stack([head(state)[0] for state in states])
    norm, before = model.get_submodule(reader.norm), []
    hook = norm.register_forward_pre_hook(lambda module, inputs: before.append(inputs[0]))
    try:
        passed = model(input_ids=row, output_hidden_states=True, use_cache=False)
    finally:
        hook.remove()
    # the last of hidden_states is normed already, in most models
    states = (*passed.hidden_states[:-1], before[0])
    return torch.stack([head(norm(state))[0] for state in states])
