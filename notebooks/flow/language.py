# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown] slideshow={"slide_type": "slide"}
# # A flow trained on language
#
# {doc}`The previous page <vertices>` had the exact answer to every question, because nothing on it was trained. Here networks take the oracle's place. The theory said nothing about that step: a predictor in the hull ends on tokens even when it is wrong. **How good does it become, what do its mechanisms repair, and what do they only seem to repair?**

# %% [markdown]
# We train on a source whose likelihood is known, so the network has an upper limit, the oracle, and every sample has a true score. Next to the paper's method stand its rivals, at the same number of parameters and steps: the same network trained with cross entropy, an unconstrained head, masked diffusion, and an autoregressive model. At the end comes a real text, where no oracle helps.
#
# You need {doc}`the page before this one <vertices>` and some experience of training networks. Symbols are listed in the {doc}`/glossary`.

# %% [markdown] slideshow={"slide_type": "subslide"}
# ```{admonition} What the paper says
# :class: paper
# {cite:t}`li2026convergeflow` take LangFlow, a flow model with frozen embeddings that was trained with cross entropy for a million steps, and train on with the squared error for 200,000 steps more, on OpenWebText (GPT-2 byte pairs, 1,024 tokens, about 130 million parameters).
#
# - A **squared error alone** is enough: perplexity falls from LangFlow's, at the entropy of real text.
# - Three **mechanisms** trade perplexity for entropy: self-conditioning guidance, iterative refinement, unconditional guidance. Larger $K$ with guidance shifts the trade-off; unconditional guidance moves along it.
# - States of the hull model **converge to embeddings**; those of a direct head do not.
# - Embeddings are **frozen**: trained along with the squared error they would collapse.
# ```

# %% tags=["parameters"]
seed: int = 0
device: str = "auto"
seeds: int = 1  # runs of each kind
workers: int = 2  # runs at a time
V: int = 8  # the known source
L: int = 16
components: int = 2
branching: int = 2
floor: float = 0.15
levels: int = 48  # noise levels of every error curve
held_out: int = 256  # sequences of every error curve
width: int = 64  # the network
depth: int = 4
heads: int = 4
rotary: float = 100.0  # base of the rotary angles
steps: int = 2400
batch: int = 64
rate: float = 3e-3
free_steps: int = 500  # with trainable embeddings
n: int = 400  # sequences the samplers make
nfes: list[int] = [4, 8, 16, 32, 64]
refinements: list[int] = [0, 3, 7]
strengths: list[float] = [2.0, 3.0]  # of self-conditioning guidance
guidances: list[float] = [0.1, 0.2, 0.4, 0.8]  # unconditional
paths: int = 64  # sequences followed to the end
corpus: str = "shakespeare"  # or a text file, or the id of a dataset on the Hub
pieces: int = 0  # byte pairs to learn from the text; 0: letters
text_length: int = 32
text_width: int = 64
text_steps: int = 200
text_n: int = 256
text_judge: str = "smollm2"  # a causal model: packaged, a folder, an id on the Hub; "": none
text_judged: int = 96  # samples it reads
checkpoint: str = ""  # a folder that interrupted trainings go on from
released: str = ""  # a file of published LangFlow or ConvergeFlow weights
tokenizer: str = "openai-community/gpt2"  # of the released model
scorer: str = "openai-community/gpt2-large"  # judge of its samples
released_n: int = 1024
released_length: int = 1024

# %%
from tokenspace.press import Page

page = Page("flow/language", seed=seed, device=device)

# %% tags=["hide-input"]
import math
import re
from concurrent.futures import ThreadPoolExecutor
from copy import deepcopy
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import torch
from tokenizers import Regex, Tokenizer
from tokenizers.models import BPE
from tokenizers.pre_tokenizers import Split
from tokenizers.trainers import BpeTrainer
from torch.nn.functional import cross_entropy, normalize

from tokenspace import flow
from tokenspace.flow.judges import (
    bigrams,
    generative_perplexity,
    judge,
    reencode,
    unigram_entropy,
)
from tokenspace.flow.models import released as read_released
from tokenspace.flow.network import size_of
from tokenspace.flow.predictor import trainable_embeddings
from tokenspace.flow.sampling import Mechanism, plan, sample
from tokenspace.flow.theory import squared_distances
from tokenspace.flow.training import Sequences, Settings, Windows, train
from tokenspace.format import reach
from tokenspace.press.exercises import expect
from tokenspace.press.figures import AMBER, BLUE, INK, MUTED, PINK, RED, TEAL
from tokenspace.sources import load_causal, load_corpus, load_tokenizer

# %% tags=["hide-input"]
run_seeds = list(range(seed, seed + seeds))
on = {"device": page.device}


def fresh(which=0):
    """A generator of its own for each use, so that no result depends on the order of cells."""
    return torch.Generator().manual_seed(1000 * seed + which)


def each(function, items):
    """The function of every item, `workers` at a time."""
    with ThreadPoolExecutor(workers) as pool:
        return list(pool.map(function, items))


# %% [markdown]
# ## The paper's numbers
#
# Samples are judged by GPT-2 Large, which gives their perplexity, and by the entropy of a sample's own tokens, since a model that repeats itself has a fine perplexity ({ref}`an exercise <ex-lang-cheat>` cheats in this way). The table is the paper's first; the figure draws its tables 5 to 9 in one plane.

# %% tags=["hide-input"]
table_1 = """AR 35.90 5.58 170; MDLM 104.85 5.63 170; Duo 77.69 5.55 170; SEDD, uniform 99.90 5.56 170
SEDD, absorbing 105.03 5.62 170; FLM 62.23 5.33 179; LangFlow 60.09 5.43 130; ELF 65.30 5.40 105
ConvergeFlow, NFE 64 33.17 5.44 130""".replace("\n", "; ").split("; ")
strengths_of = {"A": "1.5 2 2.5 3 3.5", "B": "6 8 10 15", "C": "10 15 20 25 30 40"}
# schedule, NFE, w_ug, K, then perplexity/entropy at each strength w_scg
joint = """C 64 0 25 96.5033/5.5532 76.8682/5.5299 64.2796/5.5109 55.8742/5.4922 51.1444/5.4794 45.0416/5.4549
C 64 0 50 97.3557/5.5654 69.4861/5.5341 53.9569/5.5050 45.1607/5.4796 40.1334/5.4592 35.6910/5.4306
C 64 0 100 118.1948/5.5909 74.3155/5.5579 52.0762/5.5237 41.6154/5.4914 36.5026/5.4634 32.5312/5.4274
C 64 .25 50 88.4084/5.5428 64.1003/5.5135 50.0962/5.4867 42.6205/5.4638 37.9129/5.4432 33.7868/5.4155
C 64 .25 100 108.3142/5.5693 69.4401/5.5411 49.1897/5.5081 40.0159/5.4796 34.9445/5.4520 31.2325/5.4161
C 64 .5 50 80.6113/5.5206 59.0871/5.4935 46.8084/5.4682 39.8520/5.4451 35.8997/5.4274 32.1812/5.3999
C 64 .5 100 100.4747/5.5507 64.9446/5.5237 46.4663/5.4933 37.8119/5.4643 33.4694/5.4401 30.0821/5.4074
C 128 0 50 79.8379/5.5191 57.2238/5.4771 44.7869/5.4430 37.8605/5.4145 33.7153/5.3898 29.8325/5.3587
C 128 0 100 85.1575/5.5417 54.8722/5.4906 39.9296/5.4453 32.6275/5.4049 28.7678/5.3741 25.5304/5.3379
C 128 0 200 103.3736/5.5743 59.3922/5.5226 40.3115/5.4712 32.0478/5.4286 27.9034/5.3937 24.9250/5.3448
A 64 0 4 45.7076/5.4124 32.4898/5.3412 26.1870/5.2835 22.6047/5.2272 20.7017/5.1831
A 64 0 6 42.8333/5.4107 29.9203/5.3332 24.1211/5.2610 20.8427/5.1853 19.2514/5.1118
A 64 0 8 39.4945/5.3929 26.9691/5.3014 21.1209/5.1909 18.1815/5.0784 16.7697/4.9710
A 128 0 4 36.0510/5.3282 25.1186/5.2313 19.9984/5.1521 17.1249/5.0747 15.3786/5.0131
A 128 0 6 31.0520/5.3032 21.3595/5.1938 17.2039/5.0999 14.6103/4.9871 13.3592/4.8959
A 128 0 8 28.6775/5.2882 19.4933/5.1598 15.2157/5.0118 12.9933/4.8618 11.5411/4.6964
B 64 0 10 54.4313/5.4732 43.7583/5.4399 38.1201/5.4151 32.4360/5.3710
B 64 0 15 48.0552/5.4593 37.5346/5.4161 32.1775/5.3818 27.5590/5.3216
B 64 0 20 44.6766/5.4545 34.0579/5.4040 29.1159/5.3662 25.1861/5.2994
B 64 0 25 42.7540/5.4520 32.1617/5.3987 27.5400/5.3569 24.4351/5.2904
B 128 0 10 45.4814/5.4142 36.4717/5.3748 31.7101/5.3485 26.5305/5.2930
B 128 0 20 35.2302/5.3741 26.7910/5.3149 22.5727/5.2624 18.6685/5.1597
B 128 0 30 31.6256/5.3633 23.6132/5.2928 20.0410/5.2321 17.2126/5.1147
B 128 0 40 30.7218/5.3640 22.6761/5.2884 19.3316/5.2264 17.0313/5.1022"""

# %% tags=["hide-input"]
rows = [line.rsplit(" ", 3) for line in table_1]
page.table(
    pd.DataFrame(
        [(name, float(a), float(b), f"{size}M") for name, a, b, size in rows],
        columns=["model", "generative perplexity", "entropy", "parameters"],
    ),
    name="tbl-paper",
    caption=(
        "The paper's Table 1: 1,024 samples of 1,024 tokens, entropy in nats; real text has 5.44. "
        "Evaluations per sample are not stated for the others and differ, so do protocols."
    ),
)
DATA_H = 5.44  # entropy of real text
curves = []
for line in joint.splitlines():
    schedule, nfe, w_ug, K, *cells = line.split()
    points = [tuple(map(float, cell.split("/"))) for cell in cells]
    curves.append((schedule, int(nfe), float(w_ug), int(K), np.array(points)))


def perplexity_at(H, schedule, nfe):
    """Least perplexity at an entropy, log-linear between neighbouring strengths of one K."""
    found = []
    for name, evaluations, _, _, xy in curves:
        if (name, evaluations) == (schedule, nfe) and xy[:, 1].min() <= H <= xy[:, 1].max():
            found.append(math.exp(np.interp(H, xy[::-1, 1], np.log(xy[::-1, 0]))))
    return min(found)


# %% slideshow={"slide_type": "subslide"} tags=["hide-input"]
figure, panels = plt.subplots(1, 2, figsize=(9.2, 3.6), sharex=True, sharey=True)
for axes, evaluations in zip(panels, (64, 128), strict=True):
    for colour, schedule in zip((RED, AMBER, BLUE), "ABC", strict=True):
        mine = [c for c in curves if c[:2] == (schedule, evaluations)]
        for i, (_, _, w_ug, _, xy) in enumerate(mine):
            label = f"schedule {schedule}" if i == 0 else None
            style = {"ls": ":"} if w_ug else {}
            axes.plot(*xy.T, marker="o", ms=3, lw=1.2, color=colour, label=label, **style)
    axes.axhline(DATA_H, color=MUTED, ls="--", lw=1)
    axes.plot(35.90, 5.58, "s", color=INK, ms=6)
    axes.annotate("AR", (35.90, 5.58), xytext=(6, -3), textcoords="offset points")
    axes.plot(60.09, 5.43, "^", color=INK, ms=6)
    axes.annotate("LangFlow", (60.09, 5.43), xytext=(6, -8), textcoords="offset points")
    axes.set(xscale="log", xlabel="generative perplexity", title=f"NFE {evaluations}")
    axes.set_xticks([12, 20, 40, 80], ["12", "20", "40", "80"])
    axes.minorticks_off()
panels[0].set_ylabel("entropy of a sample, nats")
panels[0].legend(loc="lower right")
page.show(
    figure,
    name="fig-paper",
    caption=(
        "The paper's tables 5 to 9: each line is one $K$, each point a strength $w_{scg}$; dotted: "
        "with unconditional guidance. Dashed: entropy of real text. AR and LangFlow are from its "
        "Table 1, with other numbers of evaluations."
    ),
    alt=(
        "Two scatter plots of entropy against perplexity with lines that rise to the right. The "
        "lines of schedule C reach the dashed entropy of real text; those of schedule A lie "
        "below it throughout, down to small perplexities."
    ),
)
below = sum(int((xy[:, 1] < DATA_H).sum()) for *_, xy in curves)
same = perplexity_at(DATA_H, "C", 64) / perplexity_at(DATA_H, "C", 128)
at_64, at_128 = (c[-1][-1, 0] for c in curves if c[0] == "C" and c[2:4] == (0, 50))

# %% slideshow={"slide_type": "subslide"} tags=["hide-input"]
page.say(
    f"**{below} of the {sum(len(c[-1]) for c in curves)} points have less entropy than real text.** "
    "Their perplexities cannot be compared with anything above the dashed line. Schedule A never "
    "reaches that line."
)
page.claim(
    "flow-paper-nfe",
    statement="At the entropy of real text, 128 evaluations give the paper's model no lower "
    "perplexity than 64.",
    source="reconstructed",
    paper="tables 5 to 7",
    ours=same,
    band=(0.95, 1.05),
    control=f"at equal settings (K = 50, w = 40) and unequal entropy: {at_64 / at_128:.2f}",
    scale=f"perplexity at NFE 64 over that at 128, schedule C at {DATA_H}, interpolated in the tables",
)

# %% [markdown]
# ## Source, oracle, schedule
#
# The source is a mixture of Markov chains as on {doc}`vertices`, with its exact denoiser, but a smaller one: eight tokens and two chains, so that a small network gets close to the oracle in a minute. What such a network can reach is now a number: **the oracle's loss is the least that any network can have.** Rows of the embedding table are orthonormal times $\sqrt d$, with $d = V$, and frozen. Training times follow a Gumbel density fitted to the oracle's information curve.

# %%
source = flow.MarkovMixture.random(V, components, seed, branching, floor)
E = flow.embeddings(V, V, seed).to(page.device)
oracle = source.oracle(E)
entropy, _ = source.entropy(L, 2000, fresh())
gammas = torch.linspace(-10, 11, levels, dtype=torch.float64)
held = source.sample(held_out, L, fresh(1)).to(page.device)
exact = flow.squared_errors(oracle, E, held, gammas, fresh(2)).cpu()
fitted = flow.fit_gumbel(gammas, flow.information_density(gammas, exact.mean(1)))
real = judge(source.sample(n, L, fresh(3)), source)

# %% tags=["hide-input"]
page.say(
    f"Entropy {entropy:.4f} nats a token, perplexity {math.exp(entropy):.2f}. Schedule: loc "
    f"{fitted.loc:.3f}, scale {fitted.scale:.3f}. A finite sample of the source itself, {n:,} "
    f"sequences, scores {real.nll:.3f} ± {real.error:.3f} nats, with a token entropy of "
    f"{real.entropy:.3f} and a divergence of pairs of {real.bigram_kl:.4f}: **that is what perfect "
    "samples look like**, and we draw it in every comparison."
)

# %% [markdown]
# ## Training
#
# One network shape for all, a small diffusion transformer. What differs is what it reads, what its outputs mean, and the loss:
#
# | kind | reads | outputs | loss |
# |:--|:--|:--|:--|
# | hull, MSE: **the paper's** | noisy rows | logits, plus the exact kernel | $(1 + \alpha/\sigma)^2\,\lvert\mu - x^\star\rvert^2$ |
# | hull, cross entropy | noisy rows | the same | $-\log w_{s}$ |
# | unconstrained, MSE | noisy rows | $\mu$ itself, rounded at the end | $(1 + \alpha/\sigma)^2\,\lvert\mu - x^\star\rvert^2$ |
# | masked diffusion {cite:p}`sahoo2024mdlm` | rows, some masked | logits of the masked | $\frac1t \sum -\log p$ over masked |
# | autoregressive | rows to the left | logits of the next | $-\log p$ |
#
# The first three are *self-conditioned* {cite:p}`chen2023bits`: for a quarter of the examples the network also reads its own first prediction. All start from zero. The paper starts from a model trained with cross entropy, so its "solely with a squared error" is about fine-tuning; here the squared error is alone from the first step.

# %%
names = {
    "hull": "hull, MSE",
    "hull-ce": "hull, cross entropy",
    "unconstrained": "unconstrained, MSE",
    "masked": "masked diffusion",
    "autoregressive": "autoregressive",
}
flows = list(names)[:3]
shape = {"width": width, "depth": depth, "heads": heads, "conditioning": 32, "base": rotary}


def fit(job):
    """Train one kind from one seed; with `checkpoint`, go on from where it was left."""
    kind, s = job
    model = flow.build(kind, E, fitted, s, **shape)
    settings = Settings(
        steps, rate, batch=batch, warmup=50, schedule="linear", decay=0.999, seed=s, save_every=300
    )
    file = Path(checkpoint) / f"{kind}-{s}.safetensors" if checkpoint else None
    return train(model, Sequences(source, L), settings, checkpoint=file, **on)


torch.set_num_threads(max(1, torch.get_num_threads() // workers))
jobs = [(kind, s) for kind in names for s in run_seeds]
runs = dict(zip(jobs, each(fit, jobs), strict=True))
models = {kind: [runs[kind, s].averaged for s in run_seeds] for kind in names}
STOPPED = "; ".join(f"{k}, seed {s}: {r.stopped}" for (k, s), r in runs.items() if r.stopped)
mu = {kind: models[kind][0].predictor for kind in flows}  # denoisers of the first seed


def measured(value):
    """A claim's number; none where a run was stopped."""
    return None if STOPPED else float(value)


scale = (
    f"V = {V}, L = {L}, {steps:,} steps of {batch}, "
    f"{size_of(models['hull'][0]):,} parameters, {seeds} {'seed' if seeds == 1 else 'seeds'}"
)

# %% [markdown]
# The oracle's loss, and that of a predictor which ignores context, are computed on fresh sequences with the same stratified times as in training. A network whose outputs are zero is a hull predictor already, the kernel's own with an even $f$. So training starts at a loss that we know, too; that of knowing nothing at all is {ref}`an exercise <ex-lang-prior>`.

# %%
many = source.sample(1024, L, fresh(4)).to(page.device)
at = fitted.gamma(flow.stratified(len(many), fresh(5))).float().to(page.device)
noisy = flow.corrupt(E[many], at, torch.randn(*many.shape, V, generator=fresh(6)).to(page.device))


@torch.no_grad()
def losses(denoiser, passes=1):
    """Weighted squared error, flat squared error and cross entropy, each a coordinate or token."""
    mean = torch.zeros_like(noisy)
    for _ in range(passes):
        found = denoiser(noisy, at, mean)
        mean = found.mean
    squared = (mean - E[many]).square().mean((1, 2))
    weight = flow.loss_weight(*flow.preserving(at))
    ce = cross_entropy(found.logits.flatten(0, 1).double(), many.flatten())
    return [float((weight * squared).mean()), float(squared.mean()), float(ce)]


untrained = flow.build("hull", E, fitted, seed, **shape).to(page.device)
even = torch.full((V,), 1 / V)
zero = losses(untrained.predictor)
alone = losses(lambda x, g, c: flow.context_free(x, g, E, even))
single = losses(lambda x, g, c: flow.context_free(x, g, E, source.marginals(L).to(E)))
best = losses(oracle)
reached = {kind: [losses(m.predictor, 2) for m in models[kind]] for kind in flows}

# %% slideshow={"slide_type": "subslide"} tags=["hide-input"]
figure, panels = plt.subplots(1, 3, figsize=(9.4, 3.2))
where = {"hull": 0, "unconstrained": 0, "hull-ce": 1, "masked": 2, "autoregressive": 2}
colours = dict(zip(names, (BLUE, TEAL, RED, AMBER, PINK), strict=True))
for (kind, s), run in runs.items():
    label = names[kind] if s == seed else None
    panels[where[kind]].plot(run.steps, run.losses, color=colours[kind], lw=1.3, label=label)
for axes, low, high in zip(
    panels, (best[0], best[2], entropy), (single[0], single[2], None), strict=True
):
    axes.axhline(low, color=MUTED, ls="--", lw=1)
    if high:
        axes.axhline(high, color=MUTED, ls=":", lw=1)
    axes.set(xlabel="step")
    axes.legend(fontsize=8.5, loc="center right")
panels[0].set_title("weighted squared error")
panels[1].set_title("cross entropy")
panels[2].set_title("nats a token")
page.show(
    figure,
    name="fig-training",
    caption=(
        f"Losses of the training batches, {scale}. Dashed: the oracle's, right the entropy of the "
        "source. Dotted: the exact posterior of each position without its context."
    ),
    alt=(
        "Three panels of falling curves. Squared error and cross entropy start at the dotted "
        "line, fall below it and approach the dashed line without reaching it."
    ),
)

# %% tags=["hide-input"]
page.claim(
    "flow-starts-context-free",
    statement="An untrained hull predictor is the context-free posterior mean.",
    source="reconstructed",
    ours=abs(zero[0] - alone[0]),
    band=(0, 1e-5),
    control=f"the oracle: {alone[0] - best[0]:.3f} less",
    scale=f"difference of weighted squared errors, {len(many):,} sequences",
)
over_oracle = {kind: [r[1] / best[1] - 1 for r in reached[kind]] for kind in flows}
page.claim(
    "flow-mse-alone",
    statement="A squared error alone trains the hull from scratch to within 5 % of the oracle's error.",
    source="reconstructed",
    paper="fine-tuning with the squared error improves a model trained with cross entropy",
    ours=measured(max(over_oracle["hull"])),
    band=(0, 0.05),
    control=f"without context: {single[1] / best[1] - 1:.3f}; trained with cross entropy: "
    f"{reach(over_oracle['hull-ce'], 3)}; unconstrained: {reach(over_oracle['unconstrained'], 3)}",
    scale=f"model over oracle, less 1, of flat squared errors "
    f"{reach((r[1] for r in reached['hull']), 3)} and {best[1]:.3f}; {scale}",
    why=STOPPED or None,
)

# %% [markdown]
# ## Errors at each noise level
#
# The loss is a mean over noise levels. Taken apart, it shows where the networks fall short: at much noise nobody can know anything, at little noise the kernel tells it all, and in between the context decides.


# %%
@torch.no_grad()
def cross_entropies(denoiser, passes):
    """Mean cross entropy at each γ on the held-out sequences."""
    generator, found = fresh(2), []
    for gamma in gammas.float().to(page.device):
        noise = torch.randn(*held.shape, V, generator=generator).to(page.device)
        x = flow.corrupt(E[held], gamma, noise)
        now = flow.Prediction(x, torch.zeros_like(x))
        for _ in range(passes):
            now = denoiser(x, gamma.expand(len(x)), now.mean)
        found.append(float(cross_entropy(now.logits.mT.double(), held)))
    return found


errors = {
    kind: [
        flow.squared_errors(m.predictor, E, held, gammas, fresh(2), passes=2).cpu()
        for m in models[kind]
    ]
    for kind in flows
}
ce = {"oracle": cross_entropies(oracle, 1)}
ce |= {kind: cross_entropies(mu[kind], 2) for kind in flows[:2]}
bound = {kind: [float(flow.nll_bound(gammas, e).mean()) for e in errors[kind]] for kind in flows}
exact_bound = float(flow.nll_bound(gammas, exact).mean())
above = gammas >= -6  # the same bound, stopped earlier
short = {
    kind: [float(flow.nll_bound(gammas[above], e[above]).mean()) for e in errors[kind]]
    for kind in ("hull", "unconstrained")
}
alone_bound = float(torch.special.entr(source.marginals(L)).sum(1).mean())  # its integral is known

# %% slideshow={"slide_type": "subslide"} tags=["hide-input"]
figure, ((left, above_mse), (right, above_ce)) = plt.subplots(2, 2, figsize=(9.2, 6.2))
left.plot(gammas, exact.mean(1) / V, color=INK, label="oracle")
right.plot(gammas, flow.information_density(gammas, exact.mean(1)), color=INK)
for kind in flows:
    e = errors[kind][0].mean(1)
    left.plot(gammas, e / V, color=colours[kind], label=names[kind])
    above_mse.plot(gammas, (e - exact.mean(1)) / V, color=colours[kind])
    right.plot(gammas, flow.information_density(gammas, e), color=colours[kind])
    if kind in ce:
        lead = np.subtract(ce[kind], ce["oracle"])
        above_ce.plot(gammas, lead, color=colours[kind], label=names[kind])
for axes, title in (
    (left, "squared error a coordinate"), (above_mse, "the same, above the oracle's"),
    (above_ce, "cross entropy above the oracle's"), (right, "½ SNR · error"),
):  # fmt: skip
    axes.set(xlabel="γ (noise to the right)", title=title)
right.set(ylim=(0, 1.1))
for axes in (left, above_mse, above_ce):
    axes.set(xlim=(-2, 7))
left.legend(fontsize=8.5)
page.show(
    figure,
    name="fig-gamma",
    caption=(
        f"Errors on {held_out} held-out sequences against noise, {scale} (the first is shown). "
        "Bottom left: the integrand of {eq}`eq-area`, whose area bounds the negative log-likelihood."
    ),
    alt=(
        "Top left: four curves rise with noise and nearly coincide. At the right, what the trained "
        "ones lie above the oracle: humps at middle noise, highest for the unconstrained head. "
        "Bottom left: humps; the unconstrained curve leaves the frame at little noise, where the "
        "others are zero."
    ),
)

# %% [markdown]
# By the identity of {doc}`vertices`, the area under a model's curve at the bottom left bounds its negative log-likelihood, with no cross entropy in sight:
#
# $$
# -\frac1L \log p(x^\star) \;\le\; \frac12 \int \mathrm{SNR}(\gamma)\; |\mu - x^\star|^2 \; d\gamma \quad \text{on average, a token}.
# $$ (eq-area)
#
# For the hull it is a useful number. **For the unconstrained head it is not**, though its loss is nearly as good: an error that doesn't vanish where SNR is high costs without limit. At little noise the hull's error is gone, and its integral with it; the other one grows for ever, and the number only says where we stopped.

# %% tags=["hide-input"]
page.table(
    pd.DataFrame(
        [("oracle", best[0], best[1], best[2], exact_bound)]
        + [
            (
                f"{names[kind]}{f', seed {s}' if seeds > 1 else ''}",
                *r[:2],
                r[2] if kind in ce else None,
                b,
            )
            for kind in flows
            for s, r, b in zip(run_seeds, reached[kind], bound[kind], strict=True)
        ],
        columns=["predictor", "weighted error", "flat error", "cross entropy", "½ ∫ error dSNR"],
    ),
    name="tbl-errors-trained",
    caption=(
        f"What is reached, with self-conditioning; {scale}. The last column bounds the NLL in nats "
        f"a token; entropy of the source {entropy:.4f}. An unconstrained head has no probabilities."
    ),
)

# %% tags=["hide-input"]
page.claim(
    "flow-bound-hull",
    statement="The squared errors of a trained hull predictor bound its likelihood within an eighth "
    "of a nat of the oracle's bound.",
    source="ours",
    ours=measured(max(bound["hull"]) - exact_bound),
    band=(0, 0.125),
    control=f"without context {alone_bound - exact_bound:.3f}; trained with cross entropy "
    f"{reach((b - exact_bound for b in bound['hull-ce']), 3)}",
    scale=f"nats a token above {exact_bound:.3f}; entropy {entropy:.3f}; {scale}",
    why=STOPPED or None,
)
page.claim(
    "flow-bound-unconstrained",
    statement="The same bound of an unconstrained head says nothing.",
    source="ours",
    ours=measured(min(bound["unconstrained"])),
    band=(3, None),
    control=f"hull: {reach(bound['hull'], 3)}; an even guess among {V} tokens has {math.log(V):.2f}; "
    f"integrated from γ = -6 only: {reach(short['unconstrained'], 3)}, hull {reach(short['hull'], 3)}",
    scale=f"nats a token, integral from γ = {float(gammas[0]):g}; {scale}",
    why=STOPPED or None,
)

# %% [markdown]
# ## Where trained flows end
#
# Does a *trained* network end on tokens? We follow the flow further than any sampler needs to, down to a noise of $s = \sigma/\alpha = 10^{-4}$, in double precision. Near the data the network is asked about noise levels that training never showed it. To be fair to the unconstrained head, a third curve tells it the lowest noise level that it does know.

# %%
fine = torch.linspace(8, 2 * math.log(1e-4), 96, dtype=torch.float64)
points = flow.preserving(fine)
s = points[1] / points[0]
lowest = float(fitted.gamma(torch.tensor(fitted.eps)))
E64 = E.cpu().double()
start = points[1][0] * torch.randn(paths, L, V, generator=fresh(7), dtype=torch.float64)


@torch.no_grad()
def to_the_end(kind, clamp=False):
    """States y = x/α at every point, and the logits there; without self-conditioning."""
    predictor, logits = deepcopy(mu[kind]).cpu().double(), []

    def mean(x, point):
        gamma = 2 * (point[1] / point[0]).log().expand(len(x))
        gamma = gamma.clamp(min=lowest) if clamp else gamma
        found = predictor(x, gamma, torch.zeros_like(x))
        logits.append(found.logits)
        return found.mean

    xs, _ = flow.follow(mean, start, points)
    return xs / points[0][:, None, None, None], torch.stack(logits)


ways = {"hull": ("hull", False), "hull-ce": ("hull-ce", False)}
ways |= {"unconstrained": ("unconstrained", False), "unconstrained, held": ("unconstrained", True)}
ended = dict(zip(ways, each(lambda way: to_the_end(*way), ways.values()), strict=True))
gap = math.sqrt(2 * V)  # between any two rows
far = {
    way: torch.stack([squared_distances(y, E64).amin(-1).sqrt() for y in ys]) / gap
    for way, (ys, _) in ended.items()
}
late = [int((s - 1e-2).abs().argmin()), -1]
slope = {
    way: float(v[late].flatten(1).median(1).values.log().diff() / s[late].log().diff())
    for way, v in far.items()
}

# %% [markdown]
# Certificates can be issued for a trained hull, too. The bound on what the network adds to the kernel is not assumed but read off: for every trajectory, the largest excess $\log f_u - \log f_v$ at the points that are still to come. Such a certificate is given in hindsight. It says from which noise on nothing could have changed any more, and it must never name a wrong token.

# %%
ys, logits = ended["hull"]
excess = torch.stack([flow.excess_of(a, y, b, E64) for a, y, b in zip(logits, ys, s, strict=False)])
ahead = excess.flip(0).cummax(0).values.flip(0)
named = torch.stack([flow.certify(y, b, E64, x) for y, b, x in zip(ys, s, ahead, strict=False)])
final = flow.margin(ys[-1], E64)[0]
wrong, never = flow.audit(named, final)
nearest = torch.stack([flow.margin(y, E64)[0] for y in ys[:-1]])
changed = (nearest != final).double().flatten(1).mean(1)
certain = (named >= 0).double().flatten(1).mean(1)

# %% slideshow={"slide_type": "subslide"} tags=["hide-input"]
figure, (left, right) = plt.subplots(1, 2, figsize=(9.2, 3.4))
styles = {"unconstrained, held": {"ls": "--"}, "hull-ce": {"ls": "--"}}
for way, v in far.items():
    kind = ways[way][0]
    label = names[kind] + (", noise level held" if way.endswith("held") else "")
    left.plot(
        s, v.flatten(1).median(1).values, color=colours[kind], label=label, **styles.get(way, {})
    )
left.plot(s, s / s[0], color=MUTED, ls=":", lw=1)
left.set(xscale="log", yscale="log", xlabel="s = σ/α", ylabel="distance to a token / gap")
left.invert_xaxis()
left.legend(fontsize=8)
right.plot(fine[:-1], certain, color=BLUE, label="certified")
right.plot(fine[:-1], changed, color=RED, label="nearest token isn't yet the last one")
right.set(xlabel="γ (noise to the left)", xlim=(-5, 6), ylim=(0, 1))
right.invert_xaxis()
right.yaxis.set_major_formatter(lambda v, _: f"{v:.0%}")
right.legend(fontsize=8, loc="upper left", bbox_to_anchor=(0, 0.9))
page.show(
    figure,
    name="fig-ends",
    caption=(
        f"Left: median distance to the nearest token over the least distance between tokens, "
        f"{paths * L:,} positions; dotted: slope one. Right: share of positions of the hull model "
        "that are certified, and share whose nearest token still changes."
    ),
    alt=(
        "Left: hull curves fall with slope one on logarithmic axes; the unconstrained ones level "
        "off or rise. Right: the certified share rises from zero to all as noise falls, while the "
        "share still to change falls to zero."
    ),
)

# %% tags=["hide-input"]
when = {g: float(certain[int((fine[:-1] - g).abs().argmin())]) for g in (0, -1, -2, -3)}
page.say(
    "Certified at γ = "
    + ", ".join(f"{g}: {v:.1%}" for g, v in when.items())
    + f". The schedule's training times reach down to γ = {lowest:.2f}; "
    f"{int((fine[:-1] > lowest).sum())} of the {len(fine)} points lie above."
)

# %% slideshow={"slide_type": "subslide"} tags=["hide-input"]
page.claim(
    "flow-trained-hull-ends",
    statement="A trained hull model ends on tokens, at a distance in proportion to the noise left.",
    source="stated",
    paper="distance to the nearest embedding goes to 1 in units of the noise",
    ours=measured(max(abs(slope["hull"] - 1), abs(slope["hull-ce"] - 1))),
    band=(0, 0.02),
    control=f"unconstrained: slope {slope['unconstrained']:.2f}, noise level held "
    f"{slope['unconstrained, held']:.2f}",
    scale=f"|slope − 1| of log median distance on log s below 0.01, {paths * L:,} positions",
    why=STOPPED or None,
)
page.claim(
    "flow-trained-unconstrained-stalls",
    statement="A trained unconstrained head does not end on tokens.",
    source="stated",
    paper="both distances grow and mix under a direct head",
    ours=measured(
        min(float(far[w][-1].median()) for w in far if w.startswith("uncon"))
        / float(far["hull"][-1].median())
    ),
    band=(10, None),
    control=f"hull with cross entropy: "
    f"{float(far['hull-ce'][-1].median() / far['hull'][-1].median()):.2f}",
    scale=f"median distance to a token over the hull's, at s = {float(s[-1]):g}, smaller of the two "
    f"curves; {scale}",
    why=STOPPED or None,
)
page.claim(
    "flow-trained-certificates",
    statement="Certificates of a trained model are never wrong, and every position gets one.",
    source="ours",
    ours=measured(wrong + never),
    band=(0, 0),
    control=f"naming the nearest token at γ = 0: {float(changed[int(fine.abs().argmin())]):.1%} wrong",
    scale=f"wrong plus missing of {paths * L:,} positions, in hindsight",
    why=STOPPED or None,
)

# %% [markdown]
# ## Samples as they settle
#
# The sampler of the paper, with one refinement, on a few sequences. At every point the largest weight at each position is a guess of the whole text. The slider shows what is guessed at each noise level, and what is settled.

# %%
seen = []
how = plan(max(nfes), Mechanism(), fitted)
single_precision = {"dtype": torch.float32, **on}  # of the network; the state stays in double
sample(mu["hull"], how, (8, L, V), fresh(8), watch=seen.append, **single_precision)
guess = torch.stack([p.logits.argmax(-1).cpu() for p in seen])
weight = torch.stack([p.logits.softmax(-1).amax(-1).cpu() for p in seen])
last = guess[-1]
likelihood = torch.stack([source.nll(g) for g in guess])

# %% slideshow={"slide_type": "subslide"} tags=["hide-input"]
frames = {}
for i in sorted({round(j * (len(seen) - 1) / 7) for j in range(8)}):
    figure, axes = plt.subplots(figsize=(7.2, 3.2))
    for row in range(len(last)):
        for column in range(L):
            token = int(guess[i, row, column])
            settled = bool((guess[i:, row, column] == last[row, column]).all())
            axes.text(
                column, row, chr(ord("a") + token) if V <= 26 else str(token),
                color=BLUE if settled else RED, alpha=0.25 + 0.75 * float(weight[i, row, column]),
                ha="center", va="center", family="DejaVu Sans Mono", fontsize=11,
            )  # fmt: skip
        axes.text(L + 0.3, row, f"{float(likelihood[i, row]):.2f}", color=INK, va="center")
    axes.text(L + 0.3, -1, "NLL", color=MUTED, va="center")
    axes.set(xlim=(-0.7, L + 2), ylim=(len(last) - 0.3, -1.5))
    axes.set_title(f"γ = {seen[i].gamma:.2f}, point {i + 1} of {len(seen)}")
    axes.axis("off")
    frames[f"point {i + 1}"] = figure
page.show(
    frames,
    name="fig-settle",
    caption=(
        f"Eight sequences of the hull model at {how.nfe} evaluations; letters stand for tokens. "
        "Blue: the token that is kept from here on. Red: still to change. Faint: little weight. "
        f"Right: the guess's NLL under the source, nats a token (entropy {entropy:.2f})."
    ),
    alt=(
        "Rows of letters. In the first frame most are red and faint; frame by frame more become "
        "blue and dark, until all are, and the numbers at the right fall."
    ),
)

# %% tags=["hide-input"]
fixed = [float((guess[i:] == last).all(0).double().mean()) for i in range(len(seen))]
half = next(i for i, v in enumerate(fixed) if v >= 0.5)
page.say(
    f"Half of the positions hold their last token from point {half + 1} of {len(seen)} on, at γ = "
    f"{seen[half].gamma:.2f}. Unlike in masked diffusion, nothing forbids a token to change its "
    "mind before that."
)

# %% [markdown]
# ## How many evaluations
#
# The oracle's samples are bad for one reason only, too few steps; how many points are left of a number of evaluations is {ref}`an exercise <ex-lang-points>`. A network's samples are bad for two. {numref}`fig-nfe` tells them apart at each number of evaluations. Masked diffusion takes its own ancestral sampler; the autoregressive model needs exactly one evaluation a token.


# %%
def score(job):
    """The verdict on one kind, number of evaluations, mechanism and seed."""
    kind, nfe, mechanism, i = job
    if kind == "oracle":
        made = sample(oracle, plan(nfe, mechanism, fitted), (n, L, V), fresh(10), **on).tokens
    else:
        more = {"mechanism": mechanism} if mechanism else {}
        made = models[kind][i].generate(n, L, nfe, fresh(10), **more, **on)
    return judge(made.cpu(), source)


plain, once = Mechanism(K=0), Mechanism(K=1)
sweep = [("oracle", nfe, plain, 0) for nfe in nfes]
for i in range(seeds):
    sweep += [(kind, nfe, once, i) for kind in flows for nfe in nfes]
    sweep += [("hull", nfe, plain, i) for nfe in nfes]
    sweep += [("masked", nfe, None, i) for nfe in nfes]
    sweep += [("autoregressive", L, None, i)]
found = dict(zip(sweep, each(score, sweep), strict=True))
most = max(nfes)


def nll(kind, nfe, mechanism):
    """Over seeds."""
    return [found[kind, nfe, mechanism, i].nll for i in range(seeds)]


# %% slideshow={"slide_type": "subslide"} tags=["hide-input"]
figure, axes = plt.subplots(figsize=(6.8, 4))
lines = [("oracle", plain, INK, "oracle", "-"), ("hull", plain, BLUE, "hull, MSE, K = 0", ":")]
lines += [(kind, once, colours[kind], f"{names[kind]}, K = 1", "-") for kind in flows]
lines += [("masked", None, AMBER, names["masked"], "-")]
for kind, mechanism, colour, label, style in lines:
    several = range(1 if kind == "oracle" else seeds)
    v = [[found[kind, k, mechanism, i] for i in several] for k in nfes]
    mean = [sum(x.nll for x in group) / len(group) for group in v]
    bar = [2 * group[0].error for group in v]
    axes.errorbar(nfes, mean, bar, color=colour, ls=style, marker="o", ms=4, label=label)
ar = found["autoregressive", L, None, 0]
axes.errorbar(
    [L], [ar.nll], [2 * ar.error], color=PINK, marker="D", ms=5, label=names["autoregressive"]
)
axes.axhline(entropy, color=MUTED, ls="--")
axes.set(xscale="log", xlabel="network evaluations", ylabel="NLL of samples, nats a token")
axes.set_xticks(nfes, [str(k) for k in nfes])
axes.minorticks_off()
axes.legend(fontsize=8, ncol=2, loc="upper right")
page.show(
    figure,
    name="fig-nfe",
    caption=(
        f"True negative log-likelihood of {n:,} samples; bars: two standard errors; dashed: entropy "
        f"of the source; {scale}."
    ),
    alt=(
        "Curves fall with the number of evaluations and flatten. The oracle's reaches the dashed "
        "line; the trained flows flatten well above it; the autoregressive point lies nearest to "
        "the line among trained models."
    ),
)

# %% tags=["hide-input"]
table = [("data", "", *[getattr(real, k) for k in ("nll", "error", "entropy", "bigram_kl")], "")]
for kind, mechanism in [
    ("oracle", plain), ("hull", plain), *((kind, once) for kind in flows), ("masked", None),
    ("autoregressive", None),
]:  # fmt: skip
    evaluations = L if kind == "autoregressive" else most
    v = found[kind, evaluations, mechanism, 0]
    label = names.get(kind, kind) + (f", K = {mechanism.K}" if mechanism else "")
    table.append((
        label, str(evaluations), v.nll, v.error, v.entropy, v.bigram_kl,
        "yes" if v.degenerate(real) else "",
    ))  # fmt: skip
page.table(
    pd.DataFrame(
        table, columns=["samples", "NFE", "NLL", "± se", "entropy", "pair KL", "degenerate"]
    ),
    name="tbl-baselines",
    caption=(
        f"Equal parameters but for the unconstrained head's outputs, equal steps and batches; {scale}"
        f"{', the first is shown' if seeds > 1 else ''}. {n:,} samples each."
    ),
)

# %% tags=["hide-input"]
ranked = sorted(
    (sum(nll(kind, e, m)) / seeds, names[kind])
    for kind, e, m in [
        *((kind, most, once) for kind in flows), ("masked", most, None), ("autoregressive", L, None)
    ]
)  # fmt: skip
page.say(
    "In order of the likelihood of their samples: "
    + ", ".join(f"{name} ({value:.3f})" for value, name in ranked)
    + f". The source's entropy is {entropy:.3f}. The autoregressive model factorizes as the source "
    "does, one token from the one before, and samples each in turn; it *should* win here, and that "
    "says nothing of text."
)
gain = [
    b - a for a, b in zip(nll("hull", most, once), nll("unconstrained", most, once), strict=True)
]
noise = math.hypot(*(found[k, most, once, 0].error for k in ("hull", "unconstrained")))
model_error = [v - found["oracle", most, plain, 0].nll for v in nll("hull", most, once)]
solver_error = found["oracle", min(nfes), plain, 0].nll - found["oracle", most, plain, 0].nll
helped = [a - b for a, b in zip(nll("hull", most, plain), nll("hull", most, once), strict=True)]

# %% slideshow={"slide_type": "subslide"} tags=["hide-input"]
page.claim(
    "flow-samples-near-source",
    statement="With one refinement, samples of the hull trained with a squared error alone come "
    "within a quarter of a nat of the source.",
    source="ours",
    ours=measured(max(nll("hull", most, once)) - entropy),
    uncertainty=found["hull", most, once, 0].error,
    band=(None, 0.25),
    control=f"no refinement: {max(nll('hull', most, plain)) - entropy:.3f}; oracle: "
    f"{found['oracle', most, plain, 0].nll - entropy:+.3f}; the data's own sample: "
    f"{real.nll - entropy:+.3f}",
    scale=f"NLL of {n:,} samples less the entropy, nats a token, NFE {most}; {scale}",
    why=STOPPED or None,
)
page.claim(
    "flow-beats-unconstrained",
    statement="At equal evaluations, the hull's samples are likelier than those of the "
    "unconstrained head with rounding.",
    source="reconstructed",
    paper="a direct head does not converge; no perplexity is given",
    ours=measured(sum(gain) / seeds),
    uncertainty=noise,
    band=(2 * noise, None),
    control=f"hull with cross entropy against hull with MSE: "
    f"{sum(nll('hull-ce', most, once)) / seeds - sum(nll('hull', most, once)) / seeds:+.3f}",
    scale=f"nats a token at NFE {most}, one refinement, {n:,} samples each; {scale}",
    why=STOPPED or None,
)

# %% tags=["hide-input"]
for rival, evaluations, paper in (
    ("masked", most, "33.17 against 104.85 (MDLM), evaluations not matched"),
    ("autoregressive", L, "33.17 against 35.90"),
):
    lead = sum(nll(rival, evaluations, None)) / seeds - sum(nll("hull", most, once)) / seeds
    error = math.hypot(found[rival, evaluations, None, 0].error, found["hull", most, once, 0].error)
    page.claim(
        f"flow-beats-{rival}",
        statement=f"The hull's samples are likelier than those of the {names[rival]} model.",
        source="stated",
        paper=f"generative perplexity {paper}; with guidance",
        ours=measured(lead),
        uncertainty=error,
        band=(2 * error, None),
        control=f"unconstrained against {names[rival]}: {lead - sum(gain) / seeds:+.3f}",
        scale=f"nats a token, NFE {most} against {evaluations}, one refinement, no guidance; {scale}",
        why=STOPPED or None,
    )

# %% tags=["hide-input"]
page.claim(
    "flow-refinement-helps",
    statement="One refinement improves the samples of a trained model at equal evaluations.",
    source="stated",
    paper="larger K lowers perplexity: 105.0 to 73.3 from K = 1 to 5 at NFE 64",
    ours=measured(sum(helped) / seeds),
    uncertainty=math.hypot(*(found["hull", most, m, 0].error for m in (plain, once))),
    band=(0.05, None),
    control=f"the oracle, which needs none, at half its evaluations: "
    f"{found['oracle', most // 2, plain, 0].nll - found['oracle', most, plain, 0].nll:+.3f}"
    if most // 2 in nfes
    else f"the oracle from NFE {min(nfes)} to {most}: {-solver_error:+.3f}",
    scale=f"nats a token at NFE {most}; {scale}",
    why=STOPPED or None,
)
page.claim(
    "flow-model-error-dominates",
    statement="What separates trained samples from the source is error of the model, not of the "
    "solver.",
    source="ours",
    ours=measured(sum(model_error) / seeds / max(solver_error, 1e-3)),
    band=(1, None),
    control=f"solver's error of the oracle at NFE {min(nfes)}: {solver_error:.3f} nats",
    scale=f"(hull − oracle at NFE {most}) over (oracle at NFE {min(nfes)} − oracle at {most}); {scale}",
    why=STOPPED or None,
)

# %% [markdown]
# ## What the mechanisms do
#
# In the paper's plane each mechanism draws a line, and one would like to be far to the left. But here we know where the data are, and have a third axis: the divergence of pairs from their exact law. A mechanism that **repairs** brings samples nearer to the data in all respects; one that only **trades** passes the data's point and goes on. What guidance can do to the oracle is {ref}`an exercise <ex-lang-scg>`, and whether a plain temperature would do as well {ref}`an open one <ex-lang-temper>`.

# %%
families = {
    "refinement K": [(f"{K}", Mechanism(K=K)) for K in (0, 1, *(k for k in refinements if k > 1))],
    "guidance w_scg": [(f"{w:g}", Mechanism(K=1, w_scg=w)) for w in sorted({1.0, *strengths})],
    "unconditional w_ug": [("0", once), *((f"{w:g}", Mechanism(w_ug=w)) for w in guidances)],
    "schedule C, w_scg": [(f"{w:g}", Mechanism(K=4, w_scg=w, schedule="C")) for w in (4.0, 8.0)],
}
jobs = sorted({(f, label) for f, v in families.items() for label, _ in v})
kinds_of = {(f, label): m for f, v in families.items() for label, m in v}
oracle_jobs = [("oracle", most, Mechanism(K=0, w_ug=w), 0) for w in (0.0, *guidances)]
everything = [("hull", most, kinds_of[job], 0) for job in jobs] + oracle_jobs
everything = [job for job in dict.fromkeys(everything) if job not in found]
found |= dict(zip(everything, each(score, everything), strict=True))
frontier = {f: [(label, found["hull", most, m, 0]) for label, m in v] for f, v in families.items()}
frontier["oracle, w_ug"] = [(f"{job[2].w_ug:g}", found[job]) for job in oracle_jobs]

# %% slideshow={"slide_type": "subslide"} tags=["hide-input"]
figure, panels = plt.subplots(1, 2, figsize=(9.4, 4.0))
for colour, (family, v) in zip((BLUE, TEAL, RED, AMBER, MUTED), frontier.items(), strict=True):
    for axes, what in zip(panels, ("entropy", "bigram_kl"), strict=True):
        x, y = [a.perplexity for _, a in v], [getattr(a, what) for _, a in v]
        axes.plot(x, y, color=colour, lw=1.2, label=family)
        for (label, a), px, py in zip(v, x, y, strict=True):
            face = "none" if a.degenerate(real) else colour
            axes.plot(px, py, "o", ms=6, mfc=face, mec=colour)
            if "w_ug" in family or label in (v[0][0], v[-1][0]):
                axes.annotate(label, (px, py), (4, 4), textcoords="offset points", fontsize=7.5)
for axes, what in zip(panels, (real.entropy, real.bigram_kl), strict=True):
    axes.plot(real.perplexity, what, "*", ms=15, color=INK, zorder=5)
    axes.set(xscale="log", xlabel="perplexity under the source")
    low, high = axes.get_xlim()
    ticks = [k for k in (1.5, 2, 2.5, 3, 4, 5, 6, 8, 10, 15, 20, 30, 50) if low < k < high]
    axes.set_xticks(ticks, [f"{k:g}" for k in ticks])
    axes.minorticks_off()
panels[0].set_ylabel("entropy of a sample, nats")
panels[1].set(yscale="log", ylabel="divergence of pairs, nats")
panels[0].legend(fontsize=8, loc="lower right")
page.show(
    figure,
    name="fig-frontier",
    caption=(
        f"Samples of the hull model, and of the oracle (grey), at {most} evaluations for each "
        "mechanism; numbers: strengths, of all or of the first and last point. Star: data. Open: likelier than the data and less "
        f"varied, so *degenerate*. {n:,} samples each; {scale}."
    ),
    alt=(
        "Left: entropy against perplexity. Refinement and self-conditioning guidance move left, "
        "towards the star, at nearly constant entropy; unconditional guidance goes further and then "
        "falls steeply, as does the oracle's line beyond the star. Right: the divergence of pairs "
        "first falls, and under unconditional guidance rises by more than an order of magnitude."
    ),
)

# %% tags=["hide-input"]
likelier = [(f, label, a) for f, v in frontier.items() for label, a in v if a.nll < entropy - 0.1]
unguided = found["oracle", most, plain, 0]
strong = found["oracle", most, Mechanism(K=0, w_ug=max(guidances)), 0]
page.table(
    pd.DataFrame(
        [
            (family, label, a.perplexity, a.entropy, a.bigram_kl, a.distinct_2,
             "yes" if a.degenerate(real) else "")
            for family, v in [("data", [("", real)]), *frontier.items()]
            for label, a in v
        ],
        columns=[
            "mechanism", "strength", "perplexity", "entropy", "pair KL", "distinct pairs",
            "degenerate",
        ],
    ),
    name="tbl-frontier",
    caption=f"The points of {{numref}}`fig-frontier`; {most} evaluations, {n:,} samples.",
)  # fmt: skip

# %% tags=["hide-input"]
page.claim(
    "flow-lang-below-data",
    statement="Samples clearly likelier than the data are farther from its law.",
    source="ours",
    ours=measured(min(a.bigram_kl for *_, a in likelier) / unguided.bigram_kl)
    if likelier
    else None,
    band=(1.3, None),
    control=f"the data's own sample: {real.bigram_kl / unguided.bigram_kl:.2f}",
    scale=f"least pair divergence over that of the oracle without guidance, {len(likelier)} settings "
    f"more than 0.1 nats below the entropy; {n:,} samples",
    why=STOPPED or (None if likelier else "no setting was likelier than the data in this run"),
)
page.claim(
    "flow-oracle-guidance",
    statement="Strong unconditional guidance makes even a perfect model's samples degenerate.",
    source="ours",
    paper="perplexity 45.8, entropy 5.30 at w_ug = .08, NFE 64: below real text's 5.44",
    ours=real.entropy - strong.entropy if strong.nll < real.nll else 0.0,
    band=(0.05, None),
    control=f"without guidance: {real.entropy - unguided.entropy:+.3f}",
    scale=f"entropy of the data less that of samples that are likelier, oracle, w_ug = "
    f"{max(guidances):g}, NFE {most}; what counts as degenerate is 0.05",
)

# %% tags=["hide-input"]
weak = found["hull", most, Mechanism(w_ug=min(guidances)), 0]
bare = found["hull", most, once, 0]
page.say(
    f"The weakest unconditional guidance here, w_ug = {min(guidances):g}, takes the model's perplexity "
    f"from {bare.perplexity:.2f} to {weak.perplexity:.2f} (data: {real.perplexity:.2f}), and its "
    f"divergence of pairs from {bare.bigram_kl:.4f} to {weak.bigram_kl:.4f} (data: "
    f"{real.bigram_kl:.4f})."
)

# %% [markdown]
# Is guidance a fair tool? $K$ and $w_{scg}$ use the network's second thoughts, which are better than its first. Unconditional guidance only turns down the noise. On a model that is too timid a little of it can bring samples nearer to the data; past that the divergence of pairs in {numref}`fig-frontier` rises while the perplexity still falls. The turn cannot be seen in the perplexity, and hardly in the entropy. For the oracle there is nothing to repair: any guidance is a loss.
#
# ```{admonition} A perplexity below the data's is worse, not better
# :class: ours
# A judge's perplexity falls when samples become more typical than typical data. The paper's frontier has a data line for entropy and none for perplexity, and its best points come from guidance. Entropy alone would not show the damage early: in {numref}`tbl-frontier`, compare the divergence of pairs of points whose entropy hardly moved.
# ```
#
# ## Embeddings that train along
#
# The squared error has a trivial minimum: all rows equal. The paper therefore freezes the table. Here it is left free, under the squared error and under cross entropy, everything else equal, rows kept at their norm.

# %%


def loosen(kind):
    """Train one kind with a trainable table."""
    model = flow.build(kind, E.clone(), fitted, seed, **shape)
    trainable_embeddings(model.predictor)
    settings = Settings(free_steps, rate, batch=batch, warmup=50, decay=0.999, seed=seed)
    return train(model, Sequences(source, L), settings, **on)


free = dict(zip(flows[:2], each(loosen, flows[:2]), strict=True))


def mean_cosine(rows):
    """Over pairs of different rows."""
    unit = normalize(rows.detach(), dim=-1)
    return float(((unit @ unit.T).sum() - len(unit)) / (len(unit) * (len(unit) - 1)))


cosine = {kind: mean_cosine(run.averaged.E) for kind, run in free.items()}

# %% slideshow={"slide_type": "subslide"} tags=["hide-input"]
figure, axes = plt.subplots(figsize=(6.4, 3.2))
for kind, run in free.items():
    at_step = [0, *run.steps.tolist()]
    axes.plot(at_step, run.spread[:, 0], color=colours[kind], label=f"{names[kind]}: mean")
    axes.plot(at_step, run.spread[:, 1], color=colours[kind], ls=":", label="least")
axes.set(xlabel="step", ylabel="distance between rows", ylim=(0, None))
axes.legend(fontsize=8.5)
page.show(
    figure,
    name="fig-collapse",
    caption=(
        f"Distance between the {V} rows of a trainable table, mean and least over pairs; one seed. "
        "Training stops by itself where a tenth of the start is left."
    ),
    alt=(
        "Two pairs of curves from the same start: under the squared error distances shrink; "
        "under cross entropy they stay or grow."
    ),
)
page.say(
    "".join(
        f"Under {'the squared error' if kind == 'hull' else 'cross entropy'}: mean cosine "
        f"{cosine[kind]:.2f}, least distance {float(run.spread[-1, 1]):.2f} of "
        f"{float(run.spread[0, 1]):.2f}"
        + (
            f", **stopped**: {run.stopped} "
            if run.stopped
            else f", loss {float(run.losses[-1]):.3f}. "
        )
        for kind, run in free.items()
    )
)

# %% [markdown]
# Under the squared error the loss can fall *below the oracle's* for frozen rows. That is the sign of it: no prediction can do that, only a table that makes predicting easy. A loss that looks too good is worth a look at the rows.

# %% tags=["hide-input"]
page.claim(
    "flow-mse-collapses",
    statement="Trained along with the squared error, embeddings collapse.",
    source="stated",
    paper="a collapse solution exists, hence frozen rows",
    ours=cosine["hull"],
    band=(0.5, None),
    control=f"cross entropy: {cosine['hull-ce']:.3f}",
    scale=f"mean cosine between rows after {int(free['hull'].steps[-1])} steps; 0 for orthonormal rows",
)

# %% [markdown]
# ## A real text
#
# Now without an oracle: Shakespeare, letters and blanks. What two cores can train in a minute is small, and we show it as it is. The best exact reference that is left is a **chain of pairs**, counted from the text; it is a known source with one component, so the schedule can be fitted to it, its samples show what pairs alone look like, and its likelihood is a judge, if a blunt one ({ref}`try it on a line of yours <ex-lang-own-line>`). The share of *real words*, those that occur in the text, is another. The paper's own judge is a large language model. We ask a smaller one, but for its nats *a letter*: gibberish is cut into many small tokens, so that its perplexity *a token*, the paper's measure, can be as low as that of text.

# %%
raw = load_corpus(corpus, least=text_length + 2)
clean = re.sub("[^a-z]+", " ", raw.text.lower())
alphabet = list(" abcdefghijklmnopqrstuvwxyz")
if pieces:
    pairer = Tokenizer(BPE())
    pairer.pre_tokenizer = Split(Regex(" ?[a-z]+| "), "isolated")  # a blank opens its word
    pairer.train_from_iterator([clean], BpeTrainer(vocab_size=pieces, show_progress=False))
    alphabet = [pairer.id_to_token(i) for i in range(pairer.get_vocab_size())]
    letters = torch.tensor(pairer.encode(clean).ids)
else:
    letters = torch.tensor([alphabet.index(c) for c in clean])
words = set(clean.split())
cut = int(0.9 * len(letters))
pairs = bigrams(letters[None, :cut], len(alphabet)) + 1e-6
chain = flow.MarkovMixture(
    torch.ones(1).double(), (pairs.sum(1) / pairs.sum())[None], (pairs / pairs.sum(1, True))[None]
)
text_rows = flow.embeddings(len(alphabet), max(32, len(alphabet)), seed).to(page.device)
windows = Windows(letters[:cut], text_length)
held_text = Windows(letters[cut:], text_length)(text_n, fresh(20))
at_levels = torch.linspace(-5, 13, 30, dtype=torch.float64)
by_chain = flow.squared_errors(
    chain.oracle(text_rows), text_rows, held_text[:64].to(page.device), at_levels, fresh(21)
).cpu()
text_times = flow.fit_gumbel(at_levels, flow.information_density(at_levels, by_chain.mean(1)))


# %%
def fit_text(kind):
    """One kind on the text."""
    dit = {**shape, "width": text_width}
    model = flow.build(kind, text_rows, text_times, seed, **dit)
    settings = Settings(
        text_steps,
        rate / 2,
        batch=batch,
        warmup=50,
        schedule="linear",
        decay=0.99,
        seed=seed,
        save_every=300,
    )
    file = Path(checkpoint) / f"text-{kind}.safetensors" if checkpoint else None
    return train(model, windows, settings, checkpoint=file, **on)


text_kinds = ["hull", "masked", "autoregressive"]
text_runs = dict(zip(text_kinds, each(fit_text, text_kinds), strict=True))
TEXT_STOPPED = "; ".join(f"{k}: {r.stopped}" for k, r in text_runs.items() if r.stopped)


def spell(tokens):
    """Tokens as text."""
    return ["".join(alphabet[i] for i in row) for row in tokens.tolist()]


def real_words(tokens):
    """Share of whole words, those between two blanks, that occur in the text."""
    whole = [w for line in spell(tokens) for w in line.split(" ")[1:-1] if w]
    return sum(w in words for w in whole) / max(1, len(whole))


# %%
text_made = {
    kind: run.averaged.generate(text_n, text_length, most if kind != "autoregressive" else text_length,
                                fresh(22), **on).cpu()
    for kind, run in text_runs.items()
}  # fmt: skip
text_sets = {
    "the text, held out": held_text,
    "letters alone": letters[torch.randint(cut, (text_n, text_length), generator=fresh(23))],
    "chain of pairs": chain.sample(text_n, text_length, fresh(24)),
    **{names[kind]: tokens for kind, tokens in text_made.items()},
}
text_verdicts = {name: judge(tokens, chain) for name, tokens in text_sets.items()}
shares = {name: real_words(tokens) for name, tokens in text_sets.items()}
by_judge = dict.fromkeys(text_sets)  # nats a letter
if text_judge:
    reads, writes = load_causal(text_judge, device=page.device)
    for name, tokens in text_sets.items():
        lines = spell(tokens[:text_judged])
        ids = [writes.encode(line, add_special_tokens=False) for line in lines]
        scored = sum(len(line) - 1 for line in ids)
        total = scored * math.log(generative_perplexity(reads, ids, batch=32, **on))
        by_judge[name] = total / sum(map(len, lines))

# %% tags=["hide-input"]
page.table(
    pd.DataFrame(
        [(name, v.nll, v.entropy, v.bigram_kl, by_judge[name], shares[name],
          "`" + spell(text_sets[name][:1])[0] + "`")
         for name, v in text_verdicts.items()],
        columns=["samples", "NLL under pairs", "entropy", "pair KL", "nats a letter",
                 "real words", "the first"],
    ),
    name="tbl-text",
    caption=(
        f"{raw.name}, {len(alphabet)} symbols, windows of {text_length}; {text_n} samples each, NFE "
        f"{most} (autoregressive: one a token); {size_of(text_runs['hull'].averaged):,} parameters, "
        f"{text_steps:,} steps of {batch}, one seed. Short words are often real by accident. "
        f"Nats a letter: by {text_judge or 'no judge'}, {text_judged} samples."
    ),
)  # fmt: skip
page.say(
    f"Under the chain of pairs the flow's samples have {text_verdicts[names['hull']].nll:.2f} nats; "
    f"text has {text_verdicts['the text, held out'].nll:.2f}, letters drawn "
    f"alone {text_verdicts['letters alone'].nll:.2f}. The autoregressive model, at equal "
    f"steps, {text_verdicts[names['autoregressive']].nll:.2f}. Anything above the text's number means "
    "that not even pairs are learned. The paper profile trains longer."
)
page.claim(
    "flow-text-words",
    statement="On text, the hull model's samples have more real words than a chain of pairs.",
    source="ours",
    ours=None if TEXT_STOPPED else shares[names["hull"]] - shares["chain of pairs"],
    band=(0.05, None),
    control=f"letters alone: {shares['letters alone'] - shares['chain of pairs']:+.2f}; "
    f"autoregressive: {shares[names['autoregressive']] - shares['chain of pairs']:+.2f}; text: "
    f"{shares['the text, held out'] - shares['chain of pairs']:+.2f}",
    scale=f"share of whole words less that of the chain, {shares['chain of pairs']:.2f}; "
    f"{text_steps:,} steps, {text_length} letters",
    why=TEXT_STOPPED or None,
)

# %% [markdown]
# ## At the paper's size
#
# The network, its training and its samplers are the same code at the paper's size; what it needs is a machine. With a published file of weights, `-p released=FILE` reads it (sizes, rows and schedule are in the file), samples with schedule C, decodes with `tokenizer`, and lets `scorer` judge, as the paper does.

# %%
paper_scale = published_entropy = None
if released:
    published = read_released(Path(released)).to(page.device)
    paper_plan = plan(64, Mechanism(K=100, w_scg=36.0, schedule="C"), published.schedule)
    made = sample(
        published.predictor, paper_plan, (released_n, released_length, published.E.shape[1]),
        fresh(30), batch=16, **single_precision,
    ).tokens  # fmt: skip
    published_entropy = float(unigram_entropy(made).mean())
    writer = load_tokenizer(tokenizer)
    first = writer.decode(made[0].tolist(), skip_special_tokens=False)
    page.say(f"Entropy {published_entropy:.3f} nats. The first sample: {first[:500]}")
    from transformers import AutoModelForCausalLM  # slow to import

    ids = reencode(made, writer, load_tokenizer(scorer))
    judged_by = AutoModelForCausalLM.from_pretrained(scorer).eval().to(page.device)
    paper_scale = generative_perplexity(judged_by, ids, **on)

# %% tags=["hide-input"]
page.claim(
    "flow-paper-perplexity",
    statement="The published model samples at the paper's perplexity (NFE 64, schedule C, w = 36).",
    source="stated",
    paper="33.45 at an entropy of 5.441",
    ours=paper_scale,
    band=(31.4, 35.5),
    control=f"entropy {published_entropy:.3f}; real text {DATA_H}" if released else None,
    scale=f"{released_n:,} samples of {released_length:,} tokens, judge {scorer}"
    if released
    else "no published weights read",
    why=None if released else "needs published weights and a GPU: -p released=FILE",
)

# %% [markdown]
# Training at that size is a matter of some $10^{20}$ operations: days on one GPU, so it is a script rather than a cell. The one below runs under `torchrun` on any number of processes, which together see exactly what one would; it goes on where it was stopped.
#
# ```python
# # train_flow.py
# from pathlib import Path
# import torch
# from tokenspace import flow
# from tokenspace.flow.models import build
# from tokenspace.flow.training import Settings, Windows, train
# from tokenspace.nn.processes import processes
#
# ids = torch.load("openwebtext-gpt2.pt")                     # one row of GPT-2 ids, int64
# E = flow.embeddings(50257, 768, seed=0, kind="gaussian")    # or rows of a published model
# settings = Settings(
#     steps=200_000, batch=480, micro=20, lr=3e-4, warmup=2500, precision="bf16"
# )
# with processes() as device:
#     model = build("hull", E, flow.Gumbel(4.9563, 0.9637), depth=12, heads=12, dropout=0.1)
#     train(model, Windows(ids, 1024), settings, checkpoint=Path("run.safetensors"), device=device)
# ```
#
# ```bash
# torchrun --nproc-per-node 8 train_flow.py
# ```
#
# ```{admonition} Differs from the paper
# :class: differs
# - **Size.** A vocabulary of eight tokens and a network hundreds of times smaller. Nothing here says how well the method writes English.
# - **An easy source.** It was chosen, after trials on others, so that these few steps are enough. On that of {doc}`vertices` (`-p V=12 -p components=4 -p branching=3 -p floor=.05`) a network of three layers stayed far above the oracle after as many steps, because it takes long to tell four chains apart through noise, and there masked diffusion sampled better than the hull. The order of hull and masked diffusion on this page is one of *this* source, at *this* length of training.
# - **One seed** in the classroom. Which of squared error and cross entropy is ahead on the hull changed with the learning rate when we tried several; `-p seeds=3` trains more.
# - **From scratch.** The paper's model starts from LangFlow's weights; ours start from zero, all with the same number of steps. An order among methods at a few thousand steps need not be their order at a million.
# - **Rows.** Orthonormal, and as many dimensions as tokens. LangFlow's are learned, 50,257 in 768 dimensions.
# - **Times.** The schedule is fitted to the source, and fixed. The released one stays trainable under the loss that it weights.
# - **Learning rate, average.** A rate with warm-up and a linear fall to zero, and averaged weights; the paper fine-tunes at a constant 1e-5 and evaluates raw weights.
# - **Positions.** Rotary angles have a smaller base than the paper's 10,000: most of its angles hardly turn within sixteen tokens, and the context is learned later.
# - **Judge.** The true likelihood, and the divergence of pairs, in place of GPT-2 Large.
# ```
#
# ```{admonition} Where the paper and its released code disagree
# :class: differs
# - The paper's self-conditioning is *rolling*, with the mean of the step before; the code refines at the same step. We refine; `Mechanism(rolling=True)` is the other.
# - Self-conditioning guidance with $K = 1$ is what $K = 1$ refinement is, and the paper's two rows for it differ by 2 in perplexity at NFE 64: that much is sampling noise.
# - In the code's combination, guidance acts inside every refinement. With $K_i = 0$ the mean is left undefined there.
# - The code samples from raw weights although it saves their average.
# ```
#
# ## Exercises
#
# From ★ (predict, then run) to ★★★ (extend the paper). Predict on paper first; each cell ends in a check that says what a wrong answer may come from.

# %% [markdown] slideshow={"slide_type": "subslide"}
# ```{exercise} ★ How many points are left
# :label: ex-lang-points
#
# At 64 evaluations and schedule A, how many points does the sampler stop at with $K = 0, 1, 3, 7$? The paper's best setting has $K = 100$ in schedule C, on its released times. How many are left there, and why does the oracle care and the trained model not?
# ```

# %% [markdown]
# ```{solution-start} ex-lang-points
# :class: dropdown
# ```
#
# Each point costs $K + 1$: 64, 32, 16 and 8 points. With the released times schedule C leaves 7 points. The oracle is right at once and can only lose by larger steps; what separates the trained model from the source is its own error, and {numref}`fig-nfe` is nearly flat there.

# %%
# Your prediction `points_left`, {0: a number, 1: a number, 3: a number, 7: a number}: points of the
# sampler at each K, schedule A, 64 evaluations.
# BEGIN SOLUTION: what does one point cost, with its first guess and K refinements of it?
points_left = {0: 64, 1: 32, 3: 16, 7: 8}
# END SOLUTION

for K, left in points_left.items():
    expect(
        "ex-lang-points",
        left,
        len(plan(64, Mechanism(K=K), fitted).gammas),
        mistakes={"a point that costs K, without its first guess": 64 / K if K else -1},
        hint="divide 64 by the evaluations of one point",
    )
theirs_at = flow.Gumbel(4.9563, 0.9637)
left = len(plan(64, Mechanism(K=100, schedule="C"), theirs_at).gammas)
page.say(f"Schedule C with K = 100 on the released times: {left} points.")

# %% [markdown]
# ```{solution-end}
# ```
#
# ```{exercise} ★ Guidance that undoes itself
# :label: ex-lang-scg
#
# Self-conditioning guidance is $D = D_0 + w\,(\mu(x, D_0) - D_0)$. Up to which $w$ does $D$ stay in the hull for certain? And by how much do the means that the *oracle* ends at differ between $w = 3$ and $w = 1$?
# ```
#
# ```{solution-start} ex-lang-scg
# :class: dropdown
# ```
#
# $D$ is a mean of two points of the hull for $0 \le w \le 1$, and an extrapolation above. $w = 0$ is no self-conditioning, $w = 1$ an ordinary one. The oracle doesn't look at its condition, so $\mu(x, D_0) = D_0$ and nothing changes at any $w$.

# %%
# Your predictions `largest_w` and `change_of_oracle`, the largest difference of a coordinate.
# BEGIN SOLUTION: write D as a mean of two points; and does the exact posterior read its condition?
largest_w = 1.0
change_of_oracle = 0.0
# END SOLUTION

first_row, second_row = torch.eye(2)  # two vertices, in weights: the worst case
tried_w = torch.linspace(0, 2, 201)
inside = [bool((first_row + w * (second_row - first_row) >= 0).all()) for w in tried_w]
expect(
    "ex-lang-scg",
    largest_w,
    float(tried_w[inside].max()),
    within=0.011,
    hint="beyond which w does the first point get a negative weight?",
)
a, b = (
    sample(oracle, plan(16, Mechanism(K=1, w_scg=w), fitted), (4, L, V), fresh(40), **on).mean
    for w in (1.0, 3.0)
)
expect(
    "ex-lang-scg",
    change_of_oracle,
    float((a - b).abs().max()),
    within=1e-5,
    hint="the oracle's second guess is its first",
)

# %% [markdown]
# ```{solution-end}
# ```
#
# ```{exercise} ★★ The loss of knowing nothing
# :label: ex-lang-prior
#
# Far out in the noise every predictor can only give the mean of the data. Derive its flat squared error a coordinate, for token frequencies $p$ and orthonormal rows times $\sqrt d$, $d = V$. Compare {numref}`fig-gamma`.
# ```
#
# ```{solution-start} ex-lang-prior
# :class: dropdown
# ```
#
# A row has the squared length $d$, the mean of the rows $d \sum p^2$, and $\mathrm E\,|e - \bar e|^2 = d - d\sum p^2$. A coordinate: $1 - \sum p^2$, which is $1 - 1/V$ for even frequencies, and a little less for uneven ones.


# %%
def error_of_mean(p):
    """The squared error a coordinate of the mean row, (L,), for frequencies p of shape (L, V)."""
    # BEGIN SOLUTION: the mean square less the square of the mean; rows are orthogonal
    return 1 - (p**2).sum(1)
    # END SOLUTION


expect(
    "ex-lang-prior",
    float(error_of_mean(source.marginals(L)).mean()),
    float(exact[-1].mean()) / V,
    within=0.03,
    mistakes={
        "the whole row's error, not a coordinate's": float(exact[-1].mean()),
        "the error of rows of length 1, not √d": float(exact[-1].mean()) / V**2,
    },
    hint="try even frequencies by hand: 1 - 1/V",
)

# %% [markdown]
# ```{solution-end}
# ```
#
# ```{exercise} ★★ A sampler that cheats
# :label: ex-lang-cheat
#
# Write samples that beat the data's perplexity by far, with no model at all, and say which columns of {numref}`tbl-frontier` catch you.
# ```
#
# ```{solution-start} ex-lang-cheat
# :class: dropdown
# ```
#
# Follow one chain and always take its likeliest next token. After a few steps the sequence runs in a circle: low perplexity, little entropy, hardly any distinct pairs, a large divergence.


# %%
def likely_samples():
    """Token ids of shape (any number, L) that the source finds likelier than its own samples."""
    # BEGIN SOLUTION: source.transitions[0] holds the first chain's laws of the next token, (V, V)
    greedy = [torch.arange(V)]
    for _ in range(L - 1):
        greedy.append(source.transitions[0, greedy[-1]].argmax(-1))
    return torch.stack(greedy, 1)
    # END SOLUTION


cheat = judge(torch.as_tensor(likely_samples()).reshape(-1, L), source)
expect(
    "ex-lang-cheat",
    cheat.perplexity < 0.9 * real.perplexity,
    True,
    hint="always take the likeliest next token of one chain",
)
page.say(
    f"Perplexity {cheat.perplexity:.2f} against the data's {real.perplexity:.2f}, entropy "
    f"{cheat.entropy:.2f} against {real.entropy:.2f}, divergence of pairs {cheat.bigram_kl:.2f} "
    f"against {real.bigram_kl:.2f}: "
    + ("caught." if cheat.degenerate(real) else "not caught by perplexity and entropy.")
)

# %% [markdown]
# ```{solution-end}
# ```
#
# ```{exercise} ★★ A line of your own
# :label: ex-lang-own-line
#
# Write a line, in letters and blanks only. How many nats a token does it cost under the chain of pairs? Compute it yourself. Then shuffle its letters, and write a line that sounds like Shakespeare: which of the three does this judge prefer?
# ```
#
# ```{solution-start} ex-lang-own-line
# :class: dropdown
# ```
#
# The shuffled line is much dearer, since most pairs of letters are rare. A line by Shakespeare and one of today cost about the same: pairs know spelling, not style.

# %%
# `own_line`, a string; all but letters and blanks is left out.
# BEGIN SOLUTION: small letters and blanks
own_line = "we walked along the river and talked about the weather"
# END SOLUTION


def nats_a_token(ids):
    """The mean of -log P over ids of shape (m,): the first by itself, each next given the last."""
    # BEGIN SOLUTION: chain.initial[0] is the law of the first, chain.transitions[0] of the next
    first_cost = -chain.initial[0, ids[0]].log()
    return float((first_cost - chain.transitions[0, ids[:-1], ids[1:]].log().sum()) / len(ids))
    # END SOLUTION


def encoded(line):
    letters = "".join(c for c in line.lower() if c == " " or "a" <= c <= "z")
    ids = pairer.encode(letters).ids if pieces else [alphabet.index(c) for c in letters]
    return torch.tensor(ids)


mixed_line = "".join(own_line[i] for i in torch.randperm(len(own_line), generator=fresh(50)))
for line in (own_line, mixed_line):
    expect(
        "ex-lang-own-line",
        nats_a_token(encoded(line)),
        float(chain.nll(encoded(line)[None])),
        within=1e-6,
        hint="m tokens: one law of the first, m - 1 laws of a next, divided by m",
    )
page.say(
    f"Your line: {nats_a_token(encoded(own_line)):.2f} nats a token; shuffled: "
    f"{nats_a_token(encoded(mixed_line)):.2f}."
)

# %% [markdown]
# ```{solution-end}
# ```
#
# ```{exercise} ★★★ Guidance or temperature?
# :label: ex-lang-temper
#
# Guidance sharpens samples. So would something plainer, that the paper doesn't try: raise what the network says to a power, $f^\tau$, and leave the exact kernel alone. Build that predictor and sample with $\tau = 1$, $1.25$ and $1.5$. Does one number repair as much as guidance, or does it only trade?
# ```
#
# ```{solution-start} ex-lang-temper
# :class: dropdown
# ```


# %%
def tempered(tau):
    """The hull's denoiser (x, γ, condition) with f raised to the power tau."""

    def denoiser(x, gamma, condition):
        found_here = mu["hull"](x, gamma, condition)
        # `logits`: those of a predictor with f**tau in place of f, of the shape of found_here.logits
        # BEGIN SOLUTION: flow.leave_one_out gives log f; flow.log_kernel the kernel's logarithm
        log_f = flow.leave_one_out(found_here.logits, x, gamma, E)
        logits = tau * log_f + flow.log_kernel(x, *flow.preserving(gamma), E)
        # END SOLUTION
        return flow.Prediction(logits, logits.softmax(-1).to(E) @ E)

    return denoiser


few_noisy, few_at = noisy[:64], at[:64]
with torch.no_grad():
    as_it_is, same, never = (
        f(few_noisy, few_at, 0 * few_noisy).mean for f in (mu["hull"], tempered(1.0), tempered(0.0))
    )
    kernel_alone = flow.log_kernel(few_noisy, *flow.preserving(few_at), E).softmax(-1).to(E) @ E
expect(
    "ex-lang-temper",
    float((as_it_is - same).abs().max()),
    0,
    within=1e-2,
    hint="at τ = 1 nothing may change: is the kernel in the logits once, not twice or never?",
)
expect(
    "ex-lang-temper",
    float((never - kernel_alone).abs().max()),
    0,
    within=1e-2,
    hint="at τ = 0 the network has no say: is the kernel raised to the power too?",
)

# %% tags=["starter"]
heated = {}
for tau in (1.0, 1.25, 1.5):
    made = sample(tempered(tau), plan(16, plain, fitted), (min(n, 256), L, V), fresh(51), **on)
    heated[tau] = judge(made.tokens.cpu(), source)

# %%
page.table(
    pd.DataFrame(
        [("data", real.nll, real.entropy, real.bigram_kl)]
        + [(f"τ = {t:g}", v.nll, v.entropy, v.bigram_kl) for t, v in heated.items()],
        columns=["samples", "NLL", "entropy", "pair KL"],
    ),
    name="tbl-temper",
    caption=f"The hull with f raised to a power; 16 evaluations, {min(n, 256)} samples, first seed.",
)
# The τ whose samples are as likely as the data: `closest`.
# BEGIN SOLUTION: neither the least likely nor the likeliest; compare nll with real.nll
closest = min(heated, key=lambda t: abs(heated[t].nll - real.nll))
# END SOLUTION

away = {t: abs(v.nll - real.nll) for t, v in heated.items()}
expect(
    "ex-lang-temper",
    away[closest],
    min(away.values()),
    mistakes={"the likeliest samples": away[min(heated, key=lambda t: heated[t].nll)]},
    hint="likelier than the data is as wrong as less likely",
)
page.say(
    f"Nearest to the data's likelihood is $\\tau$ = {closest:g}; its divergence of pairs is "
    f"{heated[closest].bigram_kl:.3f}, against {heated[1.0].bigram_kl:.3f} at $\\tau = 1$."
)

# %% [markdown]
# **Verdict.** The table is one seed and few samples: read differences of the divergence that are smaller than that of the data's own as none. Where a power lowers NLL *and* divergence, it repairs, and a network that is too timid everywhere needs no guidance; where only the NLL falls, it trades. Whether guidance does more than the best power at equal entropy is open; it takes the sweep of {numref}`fig-frontier`, and at the paper's size.
#
# ```{solution-end}
# ```
#
# ## Further reading
#
# - **Flows and diffusions over embeddings.** {cite:t}`dieleman2022continuous` train a denoiser in the hull with cross entropy, and fit the noise levels to it; {cite:t}`chen2023bits` introduce self-conditioning.
# - **The discrete rival.** {cite:t}`sahoo2024mdlm` simplify masked diffusion to a weighted cross entropy.
# - **Likelihood from denoising.** {cite:t}`kingma2021variational` write a diffusion's likelihood as an integral over SNR; the identity is that of {cite:t}`guo2005mutual`.
# - **The network.** {cite:t}`peebles2023dit`.

# %%
page.footer()
