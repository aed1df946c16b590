"""An untrained model over the words of some texts: a control, and quick enough for every test."""

from collections.abc import Sequence

import torch
from tokenizers import Tokenizer, models, pre_tokenizers

from tokenspace.curvature.reader import Reader, reader_of


def untrained_reader(
    texts: Sequence[str], *, width: int = 32, layers: int = 2, seed: int = 0
) -> Reader:
    """A Llama with random weights whose tokens are the words and marks of `texts`.

    >>> untrained_reader(["Hello world!"]).rows.shape
    torch.Size([4, 32])
    """
    from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

    split = pre_tokenizers.Whitespace()
    words = sorted({word for text in texts for word, _ in split.pre_tokenize_str(text)})
    tokenizer = Tokenizer(models.WordLevel({w: i for i, w in enumerate(["<s>", *words])}, "<s>"))
    tokenizer.pre_tokenizer = split
    torch.manual_seed(seed)
    config = LlamaConfig(
        hidden_size=width,
        intermediate_size=2 * width,
        num_hidden_layers=layers,
        num_attention_heads=2,
        vocab_size=len(words) + 1,
        initializer_range=0.5,
    )
    wrapped = PreTrainedTokenizerFast(tokenizer_object=tokenizer, bos_token="<s>")
    return reader_of(LlamaForCausalLM(config), wrapped)
