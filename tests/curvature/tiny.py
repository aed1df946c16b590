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


def llama(tied: bool = False, layers: int = 2, seed: int = 0) -> LlamaForCausalLM:
    torch.manual_seed(seed)
    config = LlamaConfig(
        hidden_size=12,
        intermediate_size=16,
        num_hidden_layers=layers,
        num_attention_heads=2,
        vocab_size=len(WORDS),
        tie_word_embeddings=tied,
        initializer_range=0.5,
    )
    return LlamaForCausalLM(config).eval()


def gpt2(seed: int = 0) -> GPT2LMHeadModel:
    torch.manual_seed(seed)
    config = GPT2Config(
        n_embd=12,
        n_layer=2,
        n_head=2,
        n_positions=64,
        vocab_size=len(WORDS),
        initializer_range=0.5,
    )
    return GPT2LMHeadModel(config).eval()


def neox(tied: bool = False, words: int = len(WORDS), seed: int = 0) -> GPTNeoXForCausalLM:
    torch.manual_seed(seed)
    config = GPTNeoXConfig(
        hidden_size=16,
        intermediate_size=16,
        num_hidden_layers=2,
        num_attention_heads=2,
        vocab_size=words,
        tie_word_embeddings=tied,
        initializer_range=0.5,
    )
    return GPTNeoXForCausalLM(config).eval()


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
