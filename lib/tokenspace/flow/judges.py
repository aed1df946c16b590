"""What a model and its samples are worth: likelihoods, bounds, entropies, divergences.

Of samples no one judge is enough: a perplexity below the data's, with entropy below the data's, is
worse than the data, not better. Of a model, squared errors are enough: H = ½ ∫ mmse dSNR (Guo,
Shamai and Verdú 2005), so ½ ∫ mse dSNR bounds its negative log-likelihood from above without a
cross entropy: as a diffusion that draws fresh noise; its deterministic flow has a law of its own.
Integrals run over γ, with dSNR = -SNR dγ; errors are |e - D|² summed over a token's d coordinates.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Float, Float64, Int64
from scipy.special import rel_entr
from torch import Tensor, nn
from torch.nn.functional import cross_entropy
from torch.nn.utils.rnn import pad_sequence

from tokenspace.errors import ParameterError
from tokenspace.flow.exact import MarkovMixture
from tokenspace.flow.path import Gumbel, corrupt, snr
from tokenspace.flow.predictor import Prediction, check_logits, check_simplex

EULER_GAMMA = 0.5772156649015329  # the mean of a standard Gumbel
NOT_SCORED = -100  # PyTorch's own mark of a target that isn't scored


def draw(
    logits: Float[Tensor, "*N V"], generator: torch.Generator | None = None
) -> Int64[Tensor, "*N"]:
    """Tokens from softmax(logits), by an exponential race in fp64.

    fp32 noise draws a tail of 1e-3 at under 2e-4, which lowers the entropy.
    Raises ParameterError for logits that aren't any.

    >>> draw(torch.tensor([[-torch.inf, 2.0]])).tolist()
    [1]
    """
    p = check_logits(logits).double().softmax(-1)
    return (p / torch.empty_like(p).exponential_(generator=generator)).argmax(-1)


def unigram_entropy(tokens: Int64[Tensor, "n L"]) -> Float64[Tensor, " n"]:
    """Entropy of each sequence's own token counts, nats; the papers average it over sequences.

    >>> unigram_entropy(torch.tensor([[0, 0, 0], [4, 4, 4]])).abs().tolist()
    [0.0, 0.0]
    """
    counts = [row.unique(return_counts=True)[1].double() for row in tokens]
    return torch.stack([torch.special.entr(c / c.sum()).sum() for c in counts])


def distinct(tokens: Int64[Tensor, "n L"], n: int = 2) -> float:
    """Different n-grams over all n-grams of the sequences. Raises for n outside 1..L."""
    if not 1 <= n <= tokens.shape[1]:
        raise ParameterError(f"{n}-grams of sequences of {tokens.shape[1]} tokens.")
    grams = tokens.unfold(1, n, 1).flatten(0, 1)  # (n-grams of all sequences, n)
    return len(grams.unique(dim=0)) / len(grams)


def bigrams(tokens: Int64[Tensor, "n L"], V: int) -> Float64[Tensor, "V V"]:
    """Shares of neighbouring pairs."""
    pairs = tokens[:, :-1] * V + tokens[:, 1:]
    counts = torch.bincount(pairs.flatten(), minlength=V * V).reshape(V, V)  # (first, second)
    return counts.double() / pairs.numel()


def bigram_kl(tokens: Int64[Tensor, "n L"], law: Float[Tensor, "V V"]) -> float:
    """KL(pairs of the samples ‖ law), nats; inf for a pair that the law excludes.

    Real data isn't at 0: N pairs on a support of m read about (m - 1)/2N.

    >>> abs(bigram_kl(torch.tensor([[0, 1, 0]]), torch.tensor([[0.0, 0.5], [0.5, 0.0]]))) < 1e-9
    True
    """
    found, expected = bigrams(tokens, len(law)), check_simplex(law.flatten()).double()
    return float(rel_entr(found.flatten().numpy(), expected.numpy()).sum())


@dataclass(frozen=True)
class SampleScores:
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

    def degenerate(self, data: "SampleScores", slack: float = 0.05) -> bool:
        """Likelier than the data and less varied, by more than `slack` nats of entropy.

        >>> data = SampleScores(1.2, 0.01, 2.0, 0.1, 0.01)
        >>> SampleScores(0.9, 0.01, 1.2, 0.1, 1.1).degenerate(data)
        True
        """
        return self.nll < data.nll and self.entropy < data.entropy - slack


def judge(tokens: Int64[Tensor, "n L"], source: MarkovMixture) -> SampleScores:
    """Samples under the source that they should come from."""
    nll = source.nll(tokens)
    return SampleScores(
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
    cut = [torch.tensor(list(s)[:context], dtype=torch.int64) for s in sequences]
    V = model(torch.zeros(1, 1, dtype=torch.int64, device=device)).logits.shape[-1]
    top = max((int(s.max()) for s in cut if len(s)), default=0)
    if top >= V:  # on a GPU the model itself would end the process
        raise ParameterError(
            f"Token {top} for a judge of {V} tokens: decode with the generator's tokenizer and "
            "encode with the judge's (`reencode`)."
        )
    total, scored = 0.0, 0
    for at in range(0, len(cut), batch):
        ids = pad_sequence(cut[at : at + batch], batch_first=True, padding_value=NOT_SCORED)
        if ids.shape[1] < 2:
            continue
        ids = ids.to(device)  # (batch, longest)
        logits = model(ids.clamp(min=0)).logits  # causal: padding changes nothing before it
        nll = cross_entropy(
            logits[:, :-1].mT.float(), ids[:, 1:], reduction="none", ignore_index=NOT_SCORED
        )
        total += float(nll.double().sum())
        scored += int((ids[:, 1:] != NOT_SCORED).sum())
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


@torch.no_grad()
def squared_errors(
    denoiser: Callable[[Tensor, Tensor, Tensor], Prediction],
    E: Float[Tensor, "V d"],
    tokens: Int64[Tensor, "n L"],
    gammas: Float[Tensor, " G"],
    generator: torch.Generator,
    passes: int = 1,
) -> Float64[Tensor, "G n"]:
    """|e - D|² of each sequence at each γ, a mean over its L tokens, with fresh noise each time.

    From the second of `passes` on, the mean before it is the self-conditioning.

    >>> still = lambda x, gamma, c: Prediction(x, torch.zeros_like(x))
    >>> ids, at = torch.zeros(1, 3, dtype=torch.long), torch.zeros(2)
    >>> squared_errors(still, 2 * torch.eye(3), ids, at, torch.Generator()).tolist()
    [[4.0], [4.0]]
    """
    e, rows = E[tokens], []
    for gamma in gammas.to(e):
        noise = torch.randn(e.shape, generator=generator, dtype=e.dtype).to(e.device)
        x = corrupt(e, gamma, noise)
        mean = torch.zeros_like(x)
        for _ in range(passes):
            mean = denoiser(x, gamma.expand(len(x)), mean).mean.to(x)
        rows.append((e - mean).double().square().sum(-1).mean(-1))
    return torch.stack(rows)  # (G, n)


def information_density(
    gammas: Float64[Tensor, " G"], errors: Float64[Tensor, "G *n"]
) -> Float64[Tensor, "G *n"]:
    """½ SNR mse: nats a token that are learned per unit of γ."""
    scale = snr(gammas).reshape(-1, *[1] * (errors.ndim - 1))  # (G, 1, ...)
    return scale * errors / 2


def nll_bound(
    gammas: Float64[Tensor, " G"], errors: Float64[Tensor, "G *n"]
) -> Float64[Tensor, "*n"]:
    """½ ∫ mse dSNR in nats a token, by trapezes over ascending γ and a constant beyond the last.

    Below the first γ nothing is added: an exact or hull predictor has no error left there, and of
    one that has, the bound grows for ever. Raises ParameterError unless γ ascends.
    """
    if len(gammas) < 2 or not bool((gammas.diff() > 0).all()):
        raise ParameterError(f"γ must ascend and have 2 values at least; it is {gammas.tolist()}.")
    density = information_density(gammas, errors)
    return torch.trapezoid(density, gammas, dim=0) + density[-1]


def fit_gumbel(gammas: Float64[Tensor, " G"], density: Float64[Tensor, " G"]) -> Gumbel:
    """The schedule whose γ has this density's mean and variance, so that times fall on it.

    >>> gammas = torch.linspace(-8, 20, 2000, dtype=torch.float64)
    >>> z = (gammas - 1.5) / 0.8
    >>> schedule = fit_gumbel(gammas, torch.exp(-z - torch.exp(-z)))
    >>> round(schedule.loc, 3), round(schedule.scale, 3)
    (1.5, 0.8)
    """
    total = torch.trapezoid(density, gammas)
    mean = torch.trapezoid(density * gammas, gammas) / total
    variance = torch.trapezoid(density * (gammas - mean) ** 2, gammas) / total
    scale = math.sqrt(6 * float(variance)) / math.pi
    return Gumbel(float(mean) - EULER_GAMMA * scale, scale)
