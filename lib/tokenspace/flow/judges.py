"""Judges of samples: an exact likelihood, a causal model's perplexity, entropies, divergences.

No one of them is enough: a perplexity below the data's, with entropy below the data's, is worse
than the data, not better. Categorical draws are here too, since fp32 ones lower the entropy.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Float, Float64, Int64
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from tokenspace.errors import ParameterError
from tokenspace.flow.laws import check_logits, check_simplex
from tokenspace.flow.markov import MarkovMixture


def draw(
    logits: Float[Tensor, "*N V"],
    temperature: float = 1.0,
    generator: torch.Generator | None = None,
) -> Int64[Tensor, "*N"]:
    """Tokens from softmax(logits/T), in fp64: fp32 noise draws a tail of 1e-3 at under 2e-4.

    T = 0 is argmax. Raises ParameterError for T < 0, and for logits that aren't any.

    >>> draw(torch.tensor([[1.0, 2.0]]), temperature=0.0).tolist()
    [1]
    """
    if not 0 <= temperature < math.inf:
        raise ParameterError(f"temperature = {temperature}: at least 0 (0 is argmax) and finite.")
    wide = check_logits(logits).double()
    wide = wide - wide.amax(-1, keepdim=True)
    if temperature == 0:
        return wide.argmax(-1)
    return draw_from((wide / temperature).softmax(-1), generator)


def draw_from(
    p: Float[Tensor, "*N V"], generator: torch.Generator | None = None
) -> Int64[Tensor, "*N"]:
    """Tokens with probabilities p, by an exponential race in fp64. Raises off the simplex.

    >>> draw_from(torch.tensor([0.0, 1.0])).item()
    1
    """
    wide = check_simplex(p).double()
    return (wide / torch.empty_like(wide).exponential_(generator=generator)).argmax(-1)


def unigram_entropy(tokens: Int64[Tensor, "n L"]) -> Float64[Tensor, " n"]:
    """Entropy of each sequence's own token counts, nats; the papers average it over sequences.

    >>> unigram_entropy(torch.tensor([[0, 0, 0], [4, 4, 4]])).abs().tolist()
    [0.0, 0.0]
    """
    counts = [row.unique(return_counts=True)[1].double() for row in tokens]
    return torch.stack([torch.special.entr(c / c.sum()).sum() for c in counts])


def distinct(tokens: Int64[Tensor, "n L"], n: int = 2) -> float:
    """Different n-grams over all n-grams of the sequences. Raises for n outside 1..L.

    >>> distinct(torch.tensor([[0, 1, 0, 1]]), 1)
    0.5
    """
    if not 1 <= n <= tokens.shape[1]:
        raise ParameterError(f"{n}-grams of sequences of {tokens.shape[1]} tokens.")
    grams = tokens.unfold(1, n, 1).flatten(0, 1)
    return len(grams.unique(dim=0)) / len(grams)


def bigrams(tokens: Int64[Tensor, "n L"], V: int) -> Float64[Tensor, "V V"]:
    """Shares of neighbouring pairs.

    >>> bigrams(torch.tensor([[0, 1, 0]]), 2).tolist()
    [[0.0, 0.5], [0.5, 0.0]]
    """
    pairs = tokens[:, :-1] * V + tokens[:, 1:]
    return torch.bincount(pairs.flatten(), minlength=V * V).double().reshape(V, V) / pairs.numel()


def bigram_kl(tokens: Int64[Tensor, "n L"], law: Float[Tensor, "V V"]) -> float:
    """KL(pairs of the samples ‖ law), nats; inf for a pair that the law excludes.

    Real data isn't at 0: N pairs on a support of m read about (m - 1)/2N.

    >>> abs(bigram_kl(torch.tensor([[0, 1, 0]]), torch.tensor([[0.0, 0.5], [0.5, 0.0]]))) < 1e-9
    True
    """
    found, expected = bigrams(tokens, len(law)), check_simplex(law.flatten()).double()
    seen = found.flatten() > 0
    p = found.flatten()[seen]
    return float((p * (p / expected[seen]).log()).sum())


@dataclass(frozen=True)
class Verdict:
    """A judge's numbers for one set of samples; `error` is nll's standard error."""

    nll: float  # nats a token
    error: float
    entropy: float
    distinct_2: float
    bigram_kl: float

    @property
    def perplexity(self) -> float:
        """exp(nll)."""
        return math.exp(self.nll)

    def degenerate(self, data: "Verdict", slack: float = 0.05) -> bool:
        """Likelier than the data and less varied, by more than `slack` nats of entropy.

        >>> Verdict(0.9, 0.01, 1.2, 0.1, 1.1).degenerate(Verdict(1.2, 0.01, 2.0, 0.1, 0.01))
        True
        """
        return self.nll < data.nll and self.entropy < data.entropy - slack


def judge(tokens: Int64[Tensor, "n L"], source: MarkovMixture) -> Verdict:
    """Samples under the source that they should come from.

    >>> source = MarkovMixture.random()
    >>> judge(source.sample(64, 16, torch.Generator().manual_seed(0)), source).nll < 2
    True
    """
    nll = source.nll(tokens)
    return Verdict(
        float(nll.mean()),
        float(nll.std() / math.sqrt(len(nll))),
        float(unigram_entropy(tokens).mean()),
        distinct(tokens, 2),
        bigram_kl(tokens, source.bigram(tokens.shape[1])),
    )


@torch.no_grad()
def generative_perplexity(
    model: nn.Module,
    sequences: Sequence[Sequence[int]],
    *,
    context: int = 1024,
    batch: int = 4,
    device: str = "cpu",
) -> float:
    """exp(total NLL / scored tokens) of the judge's own ids, each cut to `context`.

    The first token isn't scored. `model(ids)` gives an object with `.logits`, as the causal models
    of transformers do. Raises ParameterError for ids outside the judge's vocabulary, and when no
    sequence has a second token.
    """
    cut = [list(s)[:context] for s in sequences]
    V = model(torch.zeros(1, 1, dtype=torch.int64, device=device)).logits.shape[-1]
    top = max((token for s in cut for token in s), default=0)
    if top >= V:  # on a GPU the model itself would end the process
        raise ParameterError(
            f"Token {top} for a judge of {V} tokens: decode with the generator's tokenizer and "
            "encode with the judge's (`reencode`)."
        )
    total, scored = 0.0, 0
    for at in range(0, len(cut), batch):
        part = cut[at : at + batch]
        longest = max(map(len, part))
        ids = torch.tensor([s + [0] * (longest - len(s)) for s in part], dtype=torch.int64)
        real = torch.tensor([[i < len(s) for i in range(longest)] for s in part])
        if longest < 2:
            continue
        ids, real = ids.to(device), real.to(device)
        logits = model(ids).logits  # causal: padding at the end changes nothing before it
        nll = cross_entropy(logits[:, :-1].mT.float(), ids[:, 1:], reduction="none")
        total += float(nll[real[:, 1:]].double().sum())
        scored += int(real[:, 1:].sum())
    if not scored:
        raise ParameterError(f"{len(cut)} sequences, none with a second token: nothing to score.")
    return math.exp(total / scored)


def reencode(tokens: Int64[Tensor, "n L"], generator: Any, judge: Any) -> list[list[int]]:
    """The text of the samples, in the judge's ids, as the paper scores: special tokens kept.

    Tokenizers are those of transformers or of tokenizers (`decode`, `encode`).
    """
    texts = [generator.decode(ids, skip_special_tokens=False) for ids in tokens.tolist()]
    found = [judge.encode(text, add_special_tokens=False) for text in texts]
    return [list(getattr(each, "ids", each)) for each in found]


def same_tokenizer(generator: Any, judge: Any) -> None:
    """Raise ParameterError where the ids of one aren't those of the other.

    Call it before samples' own ids are scored. Tokenizers have `get_vocab`.
    """
    ours, theirs = generator.get_vocab(), judge.get_vocab()
    if ours != theirs:
        moved = [t for t, i in ours.items() if theirs.get(t) != i]
        raise ParameterError(
            f"The generator's tokenizer ({len(ours)} tokens) isn't the judge's ({len(theirs)}): "
            f"{len(moved)} tokens have another id or none there, as {moved[:3]}. Scores of raw ids "
            "would mean nothing: use `reencode`."
        )
