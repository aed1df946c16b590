"""Tiny causal models and a tokenizer of words, built on the spot."""

import torch
from tokenizers import Regex, Tokenizer, models, pre_tokenizers, processors
from transformers import (
    GPT2Config,
    GPT2LMHeadModel,
    GPTNeoXConfig,
    GPTNeoXForCausalLM,
    LlamaConfig,
    LlamaForCausalLM,
    PreTrainedTokenizerFast,
)

from tokenspace.curvature.reader import Reader, reader_of

WORDS = ["<s>", "hello", "world", "!", "the", "cat", "sat", "on", "mat"]


SIZES = {"intermediate_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2}
WIDE = {"initializer_range": 0.5}  # so that the logits differ though nothing was learned


def llama(tied: bool = False) -> LlamaForCausalLM:
    torch.manual_seed(0)
    sizes = {"hidden_size": 12, "vocab_size": len(WORDS), **SIZES}
    return LlamaForCausalLM(LlamaConfig(tie_word_embeddings=tied, **sizes, **WIDE)).eval()


def gpt2() -> GPT2LMHeadModel:
    torch.manual_seed(0)
    sizes = {"n_embd": 12, "n_layer": 2, "n_head": 2, "n_positions": 64, "vocab_size": len(WORDS)}
    return GPT2LMHeadModel(GPT2Config(**sizes, **WIDE)).eval()


def neox(tied: bool = False, words: int = len(WORDS)) -> GPTNeoXForCausalLM:
    torch.manual_seed(0)
    sizes = {"hidden_size": 16, "vocab_size": words, **SIZES}
    return GPTNeoXForCausalLM(GPTNeoXConfig(tie_word_embeddings=tied, **sizes, **WIDE)).eval()


def tokenizer(adds_bos: bool = True, has_bos: bool = True) -> PreTrainedTokenizerFast:
    """A tokenizer that writes its BOS by itself, as those of Llama do."""
    found = Tokenizer(models.WordLevel({w: i for i, w in enumerate(WORDS)}, unk_token="!"))
    found.pre_tokenizer = pre_tokenizers.Whitespace()
    found.add_special_tokens(["<s>"])
    if adds_bos:
        found.post_processor = processors.TemplateProcessing("<s> $A", special_tokens=[("<s>", 0)])
    return PreTrainedTokenizerFast(tokenizer_object=found, bos_token="<s>" if has_bos else None)


SIGNS = ["?", "<s>", *" .+#=0123456789abcdefghBKNOQRx-"]


def letter_reader() -> Reader:
    """A model that reads single characters, as most do with the squares of chess."""
    found = Tokenizer(models.WordLevel({sign: i for i, sign in enumerate(SIGNS)}, "?"))
    found.pre_tokenizer = pre_tokenizers.Split(Regex("."), "isolated")
    wrapped = PreTrainedTokenizerFast(tokenizer_object=found, bos_token="<s>", unk_token="?")
    torch.manual_seed(0)
    sizes = {"hidden_size": 16, "intermediate_size": 16, "num_attention_heads": 2}
    model = LlamaForCausalLM(LlamaConfig(num_hidden_layers=1, vocab_size=len(SIGNS), **sizes))
    ranks = torch.tensor([sign in set("12345678") for sign in SIGNS])
    model.lm_head.weight.data[~ranks] = 0  # so that the likeliest tokens are mostly ranks
    return reader_of(model, wrapped)
