# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown] slideshow={"slide_type": "slide"}
# # Where a row comes from: signatures, one context order at a time
#
# Before training, a token's row is noise. After training, similar tokens have similar rows, and one likes to say that the model has *understood* something about them. This page asks for something that can be checked: **which table of probabilities, counted from the training data alone, does the geometry of the rows reproduce, and at what time?**

# %% [markdown]
# The answer that {cite:t}`yao2026staircase` propose is a staircase. A network that starts from very small weights first arranges its rows by how often each label goes with a token, whatever stands around it. Then it arranges them by what one more token of context adds, then two. Each step is a known table, a *signature*, so a picture of the rows can be predicted before training has begun.
#
# We follow the paper first: its signatures, its theorem, its tasks. Its tasks leave a doubt, and the second half of the page is our answer to it: a task whose orders can be told apart exactly, controls, and numbers that could refute the claim. You need gradients, cross entropy, and conditional probability. Symbols are listed in the {doc}`/glossary`.

# %% [markdown] slideshow={"slide_type": "subslide"}
# ```{admonition} What the paper says
# :class: paper
# - The **signature of order** $m$ of a token is the joint law of the label and $m$ tokens of its context, given the token.
# - The gradient that reaches a token's row is a sum of its signatures, each contracted with a tensor made of the weights. Under small initialization order 0 is largest, and each further order is smaller by a power of the width.
# - Late in training, when embeddings are large, **all** orders act with the same power of the scale. High orders then join low ones; they do not replace them.
# - In arithmetic tasks, early rows agree with order 0 and late rows with order 1. A network whose activation has degree $K$ learns modular addition of $L$ numbers only if $K \ge L$.
# - Attention alone shows the geometry and still fails at modular addition: structure is not enough.
# ```

# %% tags=["parameters"]
seed: int = 0
device: str = "auto"
seeds: int = 3  # runs of each experiment
gamma: float = 0.8  # initialization of the paper's tasks, which the paper doesn't state
n: int = 20  # numbers of the arithmetic tasks
epochs: int = 100
n_late: int = 40  # numbers of the tasks that are followed to their late geometry
epochs_late: int = 900
law_epochs: int = 200  # Task 1
lengths: list[int] = [2, 3, 4]  # sequence lengths, and numbers at each
numbers: list[int] = [20, 12, 8]
length_steps: int = 400
moduli: list[int] = [4, 7, 13]
modulus_epochs: int = 800
fixed_epochs: int = 400
attention_steps: int = 1000
parity_epochs: int = 5
anchors: int = 20  # Task 4
others: int = 40
three_epochs: int = 100
gammas: list[float] = [0.3, 0.5, 0.8, 1.0]  # our task; the first is the large initialization
steps: int = 1500
pointer_steps: int = 2200

# %%
from tokenspace.press import Page

page = Page("staircase/signatures", seed=seed, device=device)

# %% tags=["hide-input"]
import math
from dataclasses import replace

import matplotlib.pyplot as plt
import pandas as pd
import seaborn as sns
import torch

from tokenspace import staircase as st
from tokenspace.format import span
from tokenspace.press.exercises import expect
from tokenspace.press.figures import AMBER, BLUE, CMAP, INK, MUTED, PALETTE, PAPER, RED, TEAL
from tokenspace.press.live import Live, Slider
from tokenspace.staircase import theory

assert gamma in gammas, f"gamma = {gamma} is not one of gammas = {gammas}: put it there"
run_seeds = list(range(seed, seed + seeds))


def fit(task, steps, gammas=(gamma,), model=None, params=None, callback=None, **settings):
    """Every seed at every γ, trained together."""
    model = model or st.FFN(task.vocabulary, task.labels.shape[1])
    params = params or model.init(gammas, run_seeds)
    how = st.Settings(steps, seeds=run_seeds * len(gammas), **settings)
    return st.train(model, params, task, how, callback=callback, device=page.device)


# %% [markdown]
# ## A signature by hand
#
# Take the smallest arithmetic task: two numbers from $\{1, 2, 3\}$, and the label is their sum. All nine pairs are equally likely. A sequence is $x_1 x_2$, its label is $y$.

# %% [markdown] slideshow={"slide_type": "subslide"}
# Pick a token $\alpha$, go to a random place where it stands, and ask what the label is. That law is the signature of **order 0**:
#
# $$
# \varphi^{0}_\alpha(\nu) = P(y = \nu \mid x_I = \alpha), \qquad I \text{ uniform in } 1..L .
# $$ (eq-order-zero)

# %% [markdown] slideshow={"slide_type": "subslide"}
# Ask also what stands in $m$ other places, drawn at random without repetition, and you have **order** $m$:
#
# $$
# \varphi^{m}_\alpha(\nu, \beta_1, \dots, \beta_m) = P(y = \nu,\; x_{J_1} = \beta_1, \dots, x_{J_m} = \beta_m \mid x_I = \alpha).
# $$ (eq-order-m)

# %% [markdown]
# Summing {eq}`eq-order-m` over a context gives the order below, so higher orders contain lower ones.

# %%
tiny = st.arithmetic("add", 3)
zero = st.label_signature(tiny, 0)
first = st.signature_tensor(tiny, 1)  # (token, label, context)
assert torch.allclose(first.sum(dim=2), zero)

# %% tags=["hide-input"]
labels = st.label_ids(tiny).tolist()
page.table(
    pd.DataFrame(
        [
            (a, *[f"{x:.3f}" if x else "·" for x in row])
            for a, row in zip(tiny.targets.tolist(), zero.tolist(), strict=True)
        ],
        columns=["token", *[f"y = {y}" for y in labels]],
    ),
    name="tbl-hand",
    caption="Order 0 of the addition of two numbers from 1 to 3. Dots are zeros.",
)

# %% slideshow={"slide_type": "subslide"} tags=["hide-input"]
figure, panels = plt.subplots(1, 4, figsize=(9.2, 2.5), width_ratios=[3, 3, 3, 3])
for axes, a, part in zip(panels, tiny.targets.tolist(), first, strict=False):
    sns.heatmap(part, ax=axes, cbar=False, square=True, cmap=CMAP, linewidths=1)
    axes.set(title=rf"$\varphi^1$ of token {a}", xlabel="other number")
    axes.set_xticklabels(tiny.targets.tolist())
    axes.set_yticklabels(labels, rotation=0)
panels[0].set_ylabel("label")
gram = st.cosine_gram(zero)
sns.heatmap(gram, ax=panels[3], cbar=False, square=True, cmap=CMAP, linewidths=1)
for i, j in torch.cartesian_prod(torch.arange(3), torch.arange(3)).tolist():
    shade = "#101010" if gram[i, j] > 0.6 else "#fafafa"  # on the map's colours, light or dark page
    panels[3].text(j + 0.5, i + 0.5, f"{gram[i, j]:.2f}", color=shade, ha="center", va="center")
panels[3].set(title=r"cosines of $\varphi^0$", xlabel="token")
panels[3].set_xticklabels(tiny.targets.tolist())
panels[3].set_yticklabels(tiny.targets.tolist(), rotation=0)
page.show(
    figure,
    name="fig-hand",
    caption=(
        "Order 1 of the three tokens (light: one third, dark: zero), and the cosines between "
        "their signatures of order 0. Numbers that are close have similar sums, so the cosines "
        "fall with distance: the number line is in the counts already."
    ),
    alt=(
        "Three small matrices with a bright diagonal that moves down by one row from token to "
        "token, and a three by three matrix of cosines that falls away from its diagonal."
    ),
)

# %% [markdown]
# The last panel of {numref}`fig-hand` is how geometry is compared throughout. For rows $e_a$ and for signatures $\varphi_a$, take the matrix of cosines between tokens. Their **agreement** $\rho$ is the correlation of the two matrices over the pairs $a < b$. Lengths, rotations and the number of coordinates drop out, and a signature of 400 entries can be compared with a row of 128. For addition the cosines have a formula: {ref}`an exercise <ex-number-line>`.
#
# ## Why order 0 is first
#
# The paper's network adds rows up, bends the sum, and reads it out:
#
# $$
# f(X) = U\, \sigma\Big(\sum_{i=1}^{L} e_{x_i}\Big), \qquad \text{every entry of } E, U \text{ drawn from } N(0, d^{-2\gamma}).
# $$ (eq-ffn)
#
# An initialization is called *small* when $\gamma > \tfrac12$. Under gradient flow on the cross entropy, with $p$ the model's own law of labels and $u_\nu$ the rows of $U$,
#
# $$
# \dot e_\alpha = L\, r_\alpha\; \mathrm{E}\big[\, \sigma'(\textstyle\sum_i e_{x_i}) \odot U^\top (\delta_y - p(X)) \,\big|\, x_I = \alpha \,\big],
# $$ (eq-flow)
#
# where $r_\alpha = P(x_I = \alpha)$. At the start $e \approx 0$ and $p \approx 1/V$, so $\sigma'$ is the constant $\sigma'(0)$ and leaves the expectation:
#
# $$
# \dot e_\alpha \approx L\, r_\alpha\, \sigma'(0)\; U^\top \big(\varphi^0_\alpha - \tfrac1V \mathbf 1\big).
# $$ (eq-order-zero-flow)
#
# **The first thing a row learns is a random projection of its signature of order 0.** Expanding $\sigma'$ further brings one more factor $e_\beta$ per order, and with it one more context token $\beta$ inside the expectation. That is the paper's Theorem 1:

# %% [markdown] slideshow={"slide_type": "subslide"}
# $$
# \dot e^{\,y}_\alpha = L\, r_\alpha \sum_{m=0}^{L-1} A_{\alpha,m} \cdot \varphi^m_\alpha ,
# $$ (eq-theorem-one)

# %% [markdown]
# where the tensor $A_{\alpha,m}$ holds products of weights. It is exact, at all times. We evaluate every term and compare their sum with what automatic differentiation finds.

# %%
addition = st.arithmetic("add", n)
model = st.FFN(addition.vocabulary, addition.vocabulary, d=64, activation="silu")
params = model.init([0.3, 0.8], run_seeds, torch.float64)
label_part = sum(theory.order_terms(model, params, addition))
predicted_part = torch.cat(
    [
        sum(theory.order_terms(model, one, theory.predicted(model, one, addition)))
        for one in ({k: v[r : r + 1] for k, v in params.items()} for r in range(2 * seeds))
    ]
)
exact = theory.velocity(model, params, addition)
gap = float(theory.relative_error(label_part - predicted_part, exact).max())
assert gap < 1e-6

# %% tags=["hide-input"]
page.say(
    f"Largest relative difference between {{eq}}`eq-theorem-one`, less the same sum for the "
    f"model's own labels, and the gradient: {gap:.1e}, over {2 * seeds} initializations."
)

# %% [markdown]
# How much smaller is order $m$? Each context token brings a factor $e_\beta$, of size $d^{-\gamma}$ an entry. Proposition 1 says just that: at initialization the root mean square of order $m$ over that of order 0 is $O(d^{-m\gamma})$. And {eq}`eq-order-zero-flow` should become exact as $\gamma$ grows. Both can be measured without training.

# %%
widths, sigmas = (64, 256, 1024), ("silu", "gelu", "relu")
ratio = []
for d in widths:
    model = st.FFN(17, 17, d, "silu")
    low, high = theory.order_terms(
        model, model.init([gamma], run_seeds, torch.float64), st.arithmetic("add", 8, 17)
    )
    ratio.append(float(high.norm() / low.norm()))
slope = math.log(ratio[-1] / ratio[0]) / math.log(widths[-1] / widths[0])

wide = (0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0)
cosines = {}
for sigma in sigmas:
    model = st.FFN(addition.vocabulary, addition.vocabulary, 128, sigma)
    params = model.init(wide, run_seeds, torch.float64)
    found = theory.cosine(
        theory.velocity(model, params, addition), theory.lowest_degree(model, params, addition, 0)
    )
    cosines[sigma] = found.reshape(len(wide), seeds)

# %% slideshow={"slide_type": "subslide"} tags=["hide-input"]
figure, (left, right) = plt.subplots(1, 2, figsize=(9.2, 3.2))
for sigma, colour in zip(sigmas, (BLUE, TEAL, RED), strict=True):
    c = cosines[sigma]
    left.fill_between(wide, c.min(1).values, c.max(1).values, color=colour, alpha=0.2, lw=0)
    left.plot(wide, c.mean(1), color=colour, marker="o", ms=4, label=sigma)
left.axvline(0.5, color=MUTED, ls=":")
left.set(xlabel="γ", ylabel="cosine with the order-0 form", ylim=(0.5, 1.03))
left.legend(loc="center right")
right.plot(widths, ratio, color=BLUE, marker="o", label="measured")
right.plot(
    widths, [ratio[0] * (d / widths[0]) ** -gamma for d in widths], color=MUTED, ls="--",
    label=rf"$d^{{-{gamma}}}$",
)  # fmt: skip
right.set(xscale="log", yscale="log", xlabel="width d", ylabel="order 1 over order 0")
right.legend()
page.show(
    figure,
    name="fig-initial",
    caption=(
        f"At initialization, addition of two numbers up to {n}, {seeds} seeds. Left: cosine of "
        "the embeddings' velocity with {eq}`eq-order-zero-flow`; dotted: where initialization "
        f"begins to be small. Right: size of order 1 over order 0 at γ = {gamma}, SiLU."
    ),
    alt=(
        "Left: SiLU and GELU rise to a cosine of one as gamma grows; ReLU stays near two thirds "
        "at every gamma. Right: on logarithmic axes the ratio falls along the line of the theory."
    ),
)

# %% slideshow={"slide_type": "subslide"} tags=["hide-input"]
page.claim(
    "staircase-initial-order",
    statement="Under small initialization the first motion of the embeddings is their order-0 "
    "signature.",
    source="stated",
    paper="order m over order 0 is O(d^(-mγ))",
    ours=cosines["silu"][wide.index(0.8)].mean(),
    uncertainty=cosines["silu"][wide.index(0.8)].std() if seeds > 1 else None,
    band=(0.99, None),
    control=f"γ = 0.3: {span(cosines['silu'][0])}; ReLU at γ = 0.8: "
    f"{span(cosines['relu'][wide.index(0.8)])}",
    scale=f"addition up to {n}, d = 128, SiLU, γ = 0.8, {seeds} seeds",
)
page.claim(
    "staircase-order-scale",
    statement="At initialization order 1 is smaller than order 0 by d to the power -γ.",
    source="stated",
    paper="exponent -γ",
    ours=slope + gamma,
    band=(-0.15, 0.15),
    control=f"γ itself, {gamma}; the number shown is the measured exponent, {slope:.2f}, plus γ",
    scale=f"addition up to 8, widths {widths[0]} to {widths[-1]}, γ = {gamma}, {seeds} seeds",
)

# %% [markdown]
# ```{admonition} Differs from the paper
# :class: differs
# **ReLU, the paper's own activation, is outside its theorem.** The expansion needs derivatives at zero. ReLU has none there: it is homogeneous, $\sigma(cz) = c\,\sigma(z)$, so making the weights smaller changes the scale of everything and the *shape* of nothing. The red line of {numref}`fig-initial` is flat. The order-0 form still explains about two thirds of the first motion, since half of the units are open, at random, for each sequence. The paper's experiments use ReLU and show early alignment with order 0 all the same; the reason is not the proposition as stated. We use ReLU where we repeat the paper, and SiLU where we test the theory.
# ```

# %% tags=["hide-input"]
page.claim(
    "staircase-relu-outside",
    statement="With ReLU, smaller initialization does not make order 0 more exact.",
    source="ours",
    paper="assumes a polynomial activation, uses ReLU",
    ours=(cosines["relu"][-1] - cosines["relu"][wide.index(0.5)]).mean(),
    band=(-0.1, 0.1),
    control="the same difference, SiLU: "
    f"{float((cosines['silu'][-1] - cosines['silu'][0]).mean()):.2f} from γ = 0.3 to 1",
    scale=f"cosine at γ = 1 less that at γ = 0.5; addition up to {n}, d = 128, {seeds} seeds",
)

# %% [markdown]
# ## Task 1: a label law that is given
#
# The simplest test of order 0. Every sequence is $(a, x_1, x_2)$ with the same first token $a$ and two context tokens from $\{0, \dots, 50\}$; its label is drawn from a law $p_a$ and has nothing to do with the context. Then $\varphi^0_a = p_a$ up to the luck of 2,601 draws, and {eq}`eq-order-zero-flow` says that the row of $a$ should point where the network answers $p_a$. So read the row alone: compare $p_a$ with $\mathrm{softmax}(U e_a)$.
#
# ```{admonition} Our reconstruction
# :class: reconstructed
# The paper states neither optimizer, learning rate, batch size, initialization nor vocabulary of its small tasks. We take γ = 0.8 and a vocabulary of 200 throughout. Here: gradient descent on the whole task with rate 1. Adam fits the labels as well, but lets the context tokens take over a part of the logits, and the row alone then reads worse.
# ```

# %%
laws = {}
for law in st.LAWS:
    h = fit(
        st.prescribed(law, seed).merged(), law_epochs, optimizer="sgd", lr=1.0, logged=[law_epochs]
    )
    logits = (h.params["E"][:, 100:101] @ h.params["U"].mT)[:, 0, :51]
    laws[law] = st.LAWS[law], logits.double().softmax(dim=-1)


def divergence(p, q):
    """KL(p ‖ q), nats."""
    return float(torch.special.entr(p).neg().sum() - (p * q.clamp_min(1e-300).log()).sum())


table = []
for law, (p, q) in laws.items():
    r = [float(torch.corrcoef(torch.stack([p, one]))[0, 1]) for one in q]
    kl = [divergence(p, one) for one in q]
    js = [(divergence(p, (p + one) / 2) + divergence(one, (p + one) / 2)) / 2 for one in q]
    table.append((law, r, kl, js))

# %% tags=["hide-input"]
figure, panels = plt.subplots(1, 4, figsize=(9.2, 2.5))
for axes, (law, (p, q)) in zip(panels, laws.items(), strict=True):
    axes.bar(range(51), p, color=MUTED, alpha=0.4, width=1, lw=0, label=r"$p_a$")
    axes.plot(range(51), q.mean(dim=0), color=BLUE, label="from the row")
    axes.set(title=law, xlabel="label", ylim=(0, 1.15 * float(max(p.max(), q.max()))))
    axes.locator_params(axis="y", nbins=4)
panels[0].set_ylabel("probability")
panels[1].legend(fontsize=8, handlelength=1.2, loc="upper left")
page.show(
    figure,
    name="fig-laws",
    caption=(
        f"Task 1 after {law_epochs} epochs: the law that labels were drawn from (bars), and what "
        f"the token's row alone says (line, mean of {seeds} seeds)."
    ),
    alt=(
        "Four label laws as bars: flat, a narrow bell, a Poisson hump, a steep fall. The line "
        "read from the embedding follows each of them."
    ),
)

# %% tags=["hide-input"]
page.table(
    pd.DataFrame(
        [
            (law, "–" if law == "uniform" else span(r, 3), span(kl, 3), span(js, 4))
            for law, r, kl, js in table
        ],
        columns=["law", "Pearson r", "KL, nats", "Jensen–Shannon, nats"],
    ),
    name="tbl-laws",
    caption=(f"How well the row tells the law, over {seeds} seeds. A flat law has no correlation."),
)

other = laws["normal"][1].mean(dim=0)
page.claim(
    "staircase-label-law",
    statement="The row of a token, read through the output matrix, gives the law of its labels.",
    source="stated",
    paper="shown for four laws, no numbers",
    ours=min(min(r) for law, r, _, _ in table if law != "uniform"),
    band=(0.95, None),
    control="correlation of the row of the normal law with the Poisson law: "
    f"{float(torch.corrcoef(torch.stack([laws['poisson'][0], other]))[0, 1]):.2f}",
    scale=f"worst of three laws and {seeds} seeds after {law_epochs} epochs",
)

# %% [markdown]
# ## Task 2: arithmetic
#
# All pairs of numbers from 1 to $N$; the label is their sum, their distance, or their product. Nothing is held out: the question is not whether the network generalizes but what its rows look like on the way. {ref}`An exercise <ex-products>` predicts the brightest spots of the product, {ref}`another <ex-own-operation>` takes an operation of yours.

# %%
early = {}
for operation in ("add", "sub", "mul"):
    task = st.arithmetic(operation, n)
    last = round(epochs * n * n / 64)
    h = fit(task, last, batch=64, logged=[last])
    signature, learned = (
        st.cosine_gram(st.label_signature(task, 0)),
        st.cosine_gram(h.embeddings[-1]),
    )
    shuffle = torch.randperm(n, generator=torch.Generator().manual_seed(seed))
    mixed = st.alignment(learned, signature[shuffle][:, shuffle])
    early[operation] = signature, learned, st.alignment(learned, signature), mixed

# %% slideshow={"slide_type": "subslide"} tags=["hide-input"]
names = {"add": "$x_1 + x_2$", "sub": "$|x_1 - x_2|$", "mul": r"$x_1 \cdot x_2$"}
figure, panels = plt.subplots(2, 3, figsize=(8.2, 5.4), sharex=True, sharey=True)
for column, (operation, (signature, learned, _, _)) in zip(panels.T, early.items(), strict=True):
    for axes, gram in zip(column, (signature, learned[0]), strict=True):
        low = float(gram.min())
        image = axes.imshow(gram, vmin=low, vmax=1, extent=(0.5, n + 0.5, n + 0.5, 0.5))
        axes.grid(visible=False)
        axes.set(xticks=range(5, n + 1, 5), yticks=range(5, n + 1, 5))
    column[0].set_title(names[operation])
    column[1].set_xlabel("number")
panels[0, 0].set_ylabel("signature of order 0")
panels[1, 0].set_ylabel("trained rows")
page.show(
    figure,
    name="fig-arithmetic",
    caption=(
        f"Cosines between the numbers 1 to {n}. Above: between their signatures, counted without "
        f"any network. Below: between the network's rows after {epochs} epochs, one seed. Light is "
        "1, dark the least of each panel. In the product, pairs like 6 and 12 stand out."
    ),
    alt=(
        "Two rows of three matrices. Addition: a broad band along the diagonal. Distance: a band "
        "with a second diagonal. Product: bright lines at multiples. Below, the trained rows show "
        "the same three patterns."
    ),
)

# %% tags=["hide-input"]
bands = {"add": ("addition", 0.99), "sub": ("distance", 0.95), "mul": ("multiplication", 0.88)}
for operation, (word, least) in bands.items():
    _, _, rho, mixed = early[operation]
    page.claim(
        f"staircase-order-zero-{operation}",
        statement=f"Early rows of the numbers agree with order 0: {word}.",
        source="stated",
        paper="shown as a matrix, no number",
        ours=rho.mean(),
        uncertainty=rho.std() if seeds > 1 else None,
        band=(least, None),
        control=f"numbers shuffled: {span(mixed)}",
        scale=f"N = {n}, ReLU, d = 128, Adam, batch 64, epoch {epochs}, {seeds} seeds",
    )

# %% [markdown]
# ## Late geometry, and a doubt about order 1
#
# Modular addition, $y = 1 + (x_1 + x_2) \bmod N$, is the interesting case: every label is equally likely whatever the first number is, so $\varphi^0$ is the *same* for all tokens. Order 0 cannot tell numbers apart ({ref}`an exercise <ex-blind>` asks when it can). By {eq}`eq-order-zero-flow` all rows should first move together, and only then should something of order 1 arrive. Since the matrix of $\varphi^0$ is constant and has no correlation with anything, the paper uses one minus the mean squared difference instead.

# %%
late = {}
modular = st.arithmetic("mod", n_late)
per_epoch = n_late * n_late / 64
marks = sorted({round(e * per_epoch) for e in (epochs, *range(0, epochs_late + 1, 25))})
late["mod"] = modular, fit(modular, marks[-1], batch=64, logged=marks)
line = st.arithmetic("add", n_late).merged()
late["add"] = line, fit(line, 1100, lr=1e-2, logged=range(0, 1101, 50))


# %%
def one_minus_mse(A, B):
    """1 less the mean squared difference of two Grams over pairs of tokens."""
    return 1 - (st.pairs(A) - st.pairs(B)).square().mean(dim=-1)


together = one_minus_mse(
    st.cosine_gram(late["mod"][1].embeddings), st.cosine_gram(st.label_signature(modular, 0))
)
at_epoch = marks.index(round(epochs * per_epoch))

short = st.arithmetic("mod", n_late, vocabulary=n_late + 1)
alone = fit(short, marks[at_epoch], batch=64, logged=[marks[at_epoch]])
apart = one_minus_mse(
    st.cosine_gram(alone.embeddings[-1]), st.cosine_gram(st.label_signature(short, 0))
)


def components(task, embeddings):
    """Agreement with each Fourier component of order 1: (component, step, run)."""
    learned = st.cosine_gram(embeddings)
    return torch.stack(
        [
            st.alignment(learned, st.cosine_gram(st.fourier(task, k)))
            for k in range(len(task.targets) // 2 + 1)
        ]
    ).nan_to_num(0)


waves = {name: components(task, h.embeddings) for name, (task, h) in late.items()}

# %% [markdown]
# Order 1 has a probe of its own. Every token's $\varphi^1$ is a matrix, labels by contexts; contracting the contexts with a cosine wave,
#
# $$
# h_{\alpha,k} = \sum_j \varphi^1_\alpha(\cdot, j) \cos\frac{2\pi k j}{p},
# $$ (eq-fourier)
#
# gives one candidate geometry per frequency $k$. At $k = 0$ it is order 0 again. In modular addition, frequency $k$ arranges the numbers on a ring on which $a$ stands at angle $2\pi k a / N$; {ref}`an exercise <ex-ring>` derives it.

# %% slideshow={"slide_type": "subslide"} tags=["hide-input"]
figure, panels = plt.subplots(2, 2, figsize=(9.2, 5.4), height_ratios=[1, 1.25], sharex="col")
for column, (name, (_, h)) in zip(panels.T, late.items(), strict=True):
    x = h.steps / (per_epoch if name == "mod" else 1)
    measure, word = (together, "1 − MSE") if name == "mod" else (waves["add"][0], "ρ")
    column[0].plot(x, h.accuracy, color=MUTED, lw=1)
    column[0].plot(x, measure, color=BLUE, lw=1)
    column[0].plot([], [], color=MUTED, label="accuracy, each seed")
    column[0].plot([], [], color=BLUE, label=f"{word} with order 0")
    column[0].set(title={"mod": "modular addition", "add": "addition"}[name])
    column[0].legend(fontsize=8.5)
    half = waves[name].shape[0]
    shown = column[1].imshow(
        waves[name][..., 0], aspect="auto", origin="lower", vmin=0, vmax=1,
        extent=(float(x[0]), float(x[-1]), -0.5, half - 0.5),
    )  # fmt: skip
    column[1].grid(visible=False)
    column[1].set(xlabel="epoch", yticks=range(0, half, 5))
panels[1, 0].set_ylabel("frequency k")
figure.colorbar(shown, ax=panels[1, :], label="agreement ρ", shrink=0.9)
page.show(
    figure,
    name="fig-late",
    caption=(
        f"Two tasks with {n_late} numbers. Above: accuracy and agreement with order 0, "
        f"{seeds} seeds. Below: agreement of the rows with each frequency of order 1, first seed. "
        "Left, nothing but the common direction is visible for hundreds of epochs; then one "
        "frequency appears, and the task is solved. Right, order 0 is there at once and fades."
    ),
    alt=(
        "Left: accuracy stays at chance for hundreds of epochs while all rows are parallel, then "
        "rises; a single bright frequency appears at that time. Right: frequency zero and one are "
        "bright from the start and slowly fade."
    ),
)

# %%
_, h = late["mod"]
solved = [int((h.accuracy[:, r] >= 0.95).int().argmax()) for r in range(seeds)]
reached = [bool((h.accuracy[:, r] >= 0.95).any()) for r in range(seeds)]
star = [int(waves["mod"][1:, i, r].argmax()) + 1 for r, i in enumerate(solved)]
strength = [float(waves["mod"][k, i, r]) for r, (k, i) in enumerate(zip(star, solved, strict=True))]

# %% slideshow={"slide_type": "subslide"} tags=["hide-input"]
best = max(range(seeds), key=strength.__getitem__)
E = h.embeddings[solved[best], best].double()
flat = torch.pca_lowrank(E, q=4, niter=8)[0] * torch.pca_lowrank(E, q=4, niter=8)[1]
order = torch.tensor([star[best] * a % n_late for a in range(1, n_late + 1)])
figure, axes = plt.subplots(figsize=(4.8, 4.4))
axes.scatter(flat[:, 0], flat[:, 1], c=order, cmap=CMAP, s=24, lw=0)
for a in range(n_late):
    outwards = torch.nn.functional.normalize(flat[a, :2], dim=0) * 9
    axes.annotate(
        str(a + 1), flat[a, :2].tolist(), outwards.tolist(), textcoords="offset points",
        fontsize=7.5, color=INK, ha="center", va="center",
    )  # fmt: skip
axes.set(xlabel="component 1", ylabel="component 2")
axes.margins(0.12)
around = "Several numbers share each point of the ring."
if math.gcd(star[best], n_late) == 1:
    inverse = pow(star[best], -1, n_late)
    around = (
        f"From one to the next around the ring, numbers change by {min(inverse, n_late - inverse)}."
    )
page.show(
    figure,
    name="fig-ring",
    caption=(
        f"Principal components of the {n_late} rows when modular addition is first solved (seed "
        f"{run_seeds[best]}). Shade: the angle at which frequency k = {star[best]} puts the number. "
        f"{around}"
    ),
    alt="Numbers arranged in a ring; their shade changes steadily around it.",
)

# %% tags=["hide-input"]
page.claim(
    "staircase-mod-together",
    statement="In modular addition all rows first move together, as their equal order-0 "
    "signatures demand.",
    source="stated",
    paper="shown, no number",
    ours=together[at_epoch].min(),
    band=(0.99, None),
    control=f"the same with a vocabulary of {n_late + 1}, no label unused: {span(apart)}",
    scale=f"1 - MSE at epoch {epochs}, worst of {seeds} seeds; N = {n_late}, vocabulary 200",
)
page.claim(
    "staircase-mod-ring",
    statement="Modular addition is solved when one frequency of order 1 governs the rows: a ring.",
    source="stated",
    paper="shown, no number",
    ours=min(strength) if all(reached) else None,
    band=(0.7, None),
    control=f"at epoch {epochs}, any frequency: {span(waves['mod'][1:, at_epoch].amax(0))}",
    why=None if all(reached) else f"not every run reaches 95 % by epoch {epochs_late}",
    scale=f"least agreement with the best frequency, when accuracy first reaches 95 % (epochs "
    f"{', '.join(f'{float(h.steps[i]) / per_epoch:.0f}' for i in solved)}); N = {n_late}, "
    f"{seeds} seeds",
)
page.claim(
    "staircase-mod-frequency",
    statement="The ring has a high frequency, which differs from run to run.",
    source="stated",
    paper="k* = 19 in one run; others differ",
    ours=torch.tensor(star).double().median() if all(reached) else None,
    band=(11, None),
    control=f"uniform over 1 to {n_late // 2} would have its median at {(n_late // 2 + 1) / 2}",
    why=None if all(reached) else f"not every run reaches 95 % by epoch {epochs_late}",
    scale=f"median of k* = {', '.join(map(str, star))}, the best of all frequencies (the paper "
    f"looks above 10 only); N = {n_late}",
)

# %% tags=["hide-input"]
parity_wave = waves["add"][n_late // 2]
page.claim(
    "staircase-odd-even",
    statement="Late in addition the rows of odd and of even numbers part.",
    source="stated",
    paper="shown at epoch 1,100; k = N/2",
    ours=parity_wave[-1].mean(),
    uncertainty=parity_wave[-1].std() if seeds > 1 else None,
    band=(0.3, None),
    control=f"order 0 at that time: {span(waves['add'][0, -1])}; frequency N/2 at the start: "
    f"{span(parity_wave[0])}",
    scale=f"agreement with frequency N/2 of order 1 after 1,100 steps, N = {n_late}, all pairs in "
    f"every step; each seed: {', '.join(f'{float(v):.2f}' for v in parity_wave[-1])}",
)

# %% [markdown]
# How addition ends depends on settings that the paper doesn't state. With all pairs in every step the number line fades and little takes its place; in small batches at a higher rate we have seen the split into odd and even in some seeds and not in others.
#
# The control of the first claim on modular addition deserves a second look. **The early common direction is not a property of the task.** The vocabulary has 200 entries, of which most are never a label; what all rows learn first is to avoid them. With a vocabulary that has no unused label, nothing pulls the rows together.
#
# ```{admonition} Our addition: why order 1 fits so well
# :class: ours
# To test order 1 the paper does not use $\varphi^1$ itself but $\varphi^1_\alpha v$, with a vector $v$ *fitted to the rows* and scored on pairs of tokens that were held out. Two facts make this weak evidence.
#
# - In addition and in modular addition, given $\alpha$, the context decides the label. So $\varphi^1$ of two different tokens have no entry in common, and the matrix of their cosines is the identity: on its own, order 1 predicts nothing at all.
# - Once $v$ is free, the matrix can be *any* positive one that depends on $a - b$ only. Order 0 is the case $v = 1$. A probe of order 1 can therefore always do at least as well as order 0.
#
# Held-out pairs guard against fitting noise. They don't guard against a family that is too rich.
# ```

# %%
generator = torch.Generator().manual_seed(seed)
shuffle = torch.randperm(n_late, generator=generator)
ring = torch.arange(n_late)[:, None] * torch.tensor([0.3, 1.7, 2.9])
made_up = {
    "noise": torch.randn(seeds, n_late, 128, generator=generator),
    "a made-up geometry of a − b": torch.cat([ring.cos(), ring.sin()], dim=1)[None],
}
rows = []
for name, (task, h) in late.items():
    phi, zero = st.signature_tensor(task, 1), st.cosine_gram(st.label_signature(task, 0))
    own = st.cosine_gram(st.label_signature(task, 1))
    assert torch.allclose(own, torch.eye(n_late, dtype=own.dtype))
    final = h.embeddings[-1]
    cases = {"late rows": final, "the same, shuffled": final[:, shuffle], **made_up}
    for what, E in cases.items():
        rho = st.alignment(st.cosine_gram(E), zero)
        held = st.probe(phi, E, seed=seed).held_out
        rows.append((name, what, "–" if name == "mod" else span(rho), span(held)))

# %% tags=["hide-input"]
page.table(
    pd.DataFrame(rows, columns=["task", "rows", "ρ, order 0", "ρ, fitted probe, held out"]),
    name="tbl-probe",
    caption=(
        "The fitted probe of order 1, five folds over pairs. It is right to find nothing in "
        "shuffled rows and in noise. But it also fits a geometry that no network made, as long as "
        "that depends on the difference of the numbers."
    ),
)

# %% [markdown]
# ## How long a context can be learned
#
# Theorem 1 has a prediction with teeth. Give the network an activation of degree $K$, $\sigma(z) = z^K$. Its gradient then holds the orders $0, \dots, K-1$ and no others. Modular addition of $L$ numbers says nothing at any order below $L - 1$: knowing all numbers but one leaves the label as likely as before. So the network can learn it **only if $K \ge L$**.

# %%
grid = []
for L, N in zip(lengths, numbers, strict=True):
    task = st.modular(N, L, vocabulary=N + 1)
    for K in (L - 1, L, L + 1):
        model = st.FFN(N + 1, N + 1, activation=f"z^{K}")
        h = fit(
            task, length_steps, gammas=(0.5,), model=model, logged=range(0, length_steps + 1, 20)
        )
        grid.append((L, N, K, h.accuracy.amax(dim=0)))

# %% tags=["hide-input"]
figure, axes = plt.subplots(figsize=(5.2, 2.6))
for L, _, K, accuracy in grid:
    value = float(accuracy.mean())
    colour = BLUE if K >= L else RED
    axes.add_patch(
        plt.Rectangle((K - 0.5, L - 0.5), 1, 1, color=colour, alpha=0.12 + 0.3 * value, lw=0)
    )
    axes.text(K, L, f"{value:.2f}", ha="center", va="center")
axes.set(
    xlim=(min(lengths) - 1.5, max(lengths) + 1.5), ylim=(max(lengths) + 0.5, min(lengths) - 0.5),
    xlabel="degree K of the activation", ylabel="numbers added, L",
    xticks=range(min(lengths) - 1, max(lengths) + 2), yticks=lengths,
)  # fmt: skip
axes.grid(visible=False)
page.show(
    figure,
    name="fig-degree",
    caption=(
        "Best accuracy of modular addition, mean of "
        f"{seeds} seeds, with {', '.join(map(str, numbers))} numbers for L = "
        f"{', '.join(map(str, lengths))}. Blue: K ≥ L. Red: K = L − 1."
    ),
    alt="A staircase of cells: accuracy is one wherever the degree is at least the length, near chance below.",
)

# %% tags=["hide-input"]
learned = torch.stack([a for L, _, K, a in grid if K >= L])
failed = torch.stack([a for L, _, K, a in grid if K < L])
page.claim(
    "staircase-degree",
    statement="Modular addition of L numbers is learned exactly when the activation's degree is at "
    "least L.",
    source="stated",
    paper="K ≥ L",
    ours=learned.min() - failed.max(),
    band=(0.7, None),
    control=f"K = L - 1: best accuracy {span(failed)}; K ≥ L: {span(learned)}",
    scale=f"least accuracy with K ≥ L minus greatest with K = L - 1, {seeds} seeds, "
    f"{length_steps} steps",
)

# %% [markdown]
# ## What the geometry is good for
#
# Is the order-1 geometry a by-product of learning, or its cause? The paper fixes the directions of the rows, and trains everything else. If rows are made from order 1 by a random contraction, $\lambda R \varphi^1_\alpha v$ with only the length $\lambda$ left to train, the waiting time should be gone.

# %%
task = st.arithmetic("mod", n)
phi = st.signature_tensor(task, 1).float()
draw = torch.Generator().manual_seed(seed)
model = st.FFN(task.vocabulary, task.vocabulary)
total = round(fixed_epochs * n * n / 64)
made = {
    "fixed, of order 1": lambda: (
        phi
        @ torch.randn(phi.shape[2], generator=draw)
        @ torch.randn(phi.shape[1], 128, generator=draw)
    ),
    "fixed, random": lambda: torch.randn(n, 128, generator=draw),
}
speed = {"trained": fit(task, total, batch=64, logged=range(0, total + 1, max(1, total // 24)))}
for name, rows_of in made.items():
    params = model.init([gamma], run_seeds)
    length = params["E"].norm(dim=-1).mean()
    params["scale"] = length * torch.ones(seeds, 1, 1)  # rows are this times E
    for r in range(seeds):
        params["E"][r, task.targets] = torch.nn.functional.normalize(rows_of())
    speed[name] = fit(
        task, total, model=model, params=params, batch=64, freeze={"E": 0},
        logged=speed["trained"].steps.tolist(),
    )  # fmt: skip

# %% tags=["hide-input"]
figure, axes = plt.subplots(figsize=(6.2, 3.0))
for (name, h), colour in zip(speed.items(), (MUTED, BLUE, AMBER), strict=True):
    x = h.steps * 64 / n**2
    axes.fill_between(x, h.accuracy.amin(1), h.accuracy.amax(1), color=colour, alpha=0.2, lw=0)
    axes.plot(x, h.accuracy.mean(1), color=colour, label=name)
axes.set(xlabel="epoch", ylabel="accuracy", ylim=(0, 1.05))
axes.legend()
page.show(
    figure,
    name="fig-fixed",
    caption=(
        f"Modular addition of two numbers up to {n}: rows that are trained, and rows whose "
        f"directions are fixed and only their length is trained; {seeds} seeds. Rows that cannot "
        "move learn sooner."
    ),
    alt="Accuracy over epochs: fixed order-1 rows rise first, fixed random rows next, trained rows stay at chance.",
)

# %% tags=["hide-input"]
end = {name: h.accuracy[-1] for name, h in speed.items()}
page.claim(
    "staircase-fixed-rows",
    statement="Rows fixed at a geometry of order 1 learn modular addition far sooner than rows "
    "that are trained.",
    source="stated",
    paper="by far, no number",
    ours=(end["fixed, of order 1"] - end["trained"]).mean(),
    uncertainty=(end["fixed, of order 1"] - end["trained"]).std() if seeds > 1 else None,
    band=(0.5, None),
    control=f"accuracy of fixed random rows: {span(end['fixed, random'])}; of order 1: "
    f"{span(end['fixed, of order 1'])}",
    scale=f"difference in accuracy at epoch {fixed_epochs}, N = {n}, batch 64, {seeds} seeds",
)

# %% [markdown]
# Read {numref}`fig-fixed` with its control. Order 1 helps, and so, nearly as much, does *any* set of rows that are already apart. What holds the trained rows back is that they spend their time on the common direction of order 0.
#
# That is also the paper's reading of the **modulus sweep**. Take $y = (x_1 + x_2) \bmod M$. When $M$ divides $N$ every label is equally likely given one number, all $\varphi^0$ are equal, and learning has to wait. When it does not divide, $\varphi^0$ differs a little from number to number, and that is enough to begin with.

# %%
sweep = []
for M in moduli:
    task = st.arithmetic("mod", n, modulus=M)
    last = round(modulus_epochs * n * n / 64)
    h = fit(task, last, batch=64, logged=range(0, last + 1, max(1, last // 40)))
    first = [h.steps[h.accuracy[:, r] >= 0.95][:1] * 64 / n**2 for r in range(seeds)]
    sweep.append((M, n % M == 0, [float(e[0]) if len(e) else math.inf for e in first]))

# %% tags=["hide-input"]
page.table(
    pd.DataFrame(
        [
            (
                M,
                "yes" if divides else "no",
                *[f"{e:.0f}" if e < math.inf else "not reached" for e in when],
            )
            for M, divides, when in sweep
        ],
        columns=["modulus M", f"divides {n}", *[f"seed {s}" for s in run_seeds]],
    ),
    name="tbl-moduli",
    caption=(
        f"Epoch at which accuracy first reaches 95 %, of {modulus_epochs}: (x₁ + x₂) mod M, "
        f"numbers up to {n}."
    ),
)

slow = [e for _, divides, when in sweep if divides for e in when]
fast = [e for _, divides, when in sweep if not divides for e in when]
page.claim(
    "staircase-modulus",
    statement="A modulus that divides N is learned much later, since order 0 tells numbers apart "
    "only otherwise.",
    source="stated",
    paper="thousands of epochs against a few hundred",
    ours=min(min(slow), modulus_epochs) / max(fast)
    if fast and slow and max(fast) < math.inf
    else None,
    band=(1.5, None),
    control="moduli that do not divide N: "
    + (span(fast, 0) if fast and max(fast) < math.inf else "not all learned")
    + " epochs",
    why=None if fast and slow and max(fast) < math.inf else "needs both kinds of modulus, learned",
    scale=f"earliest epoch over latest; runs not done by {modulus_epochs} count as that; N = {n}, "
    f"M = {', '.join(map(str, moduli))}, {seeds} seeds",
)

# %% [markdown]
# One task needs no training at all. In **min–max**, $(c, x_1, x_2)$, a command $c$ asks for the larger or the smaller of two numbers. Add the three signatures of order 0 of the tokens and take the largest entry: the sum is right for every input. Order 0 alone can carry a comparison.


# %%
def largest_sum(task):
    """What the sum of the tokens' signatures of order 0 answers, for targets 1, 2, 3, ..."""
    added = st.label_signature(task, 0)[task.sequences - 1].sum(dim=1)  # (sequences, labels)
    return st.label_ids(task)[added.argmax(dim=1)]


comparison = st.minmax(n)
answer = largest_sum(comparison) == comparison.labels.argmax(dim=1)
without = replace(comparison, sequences=comparison.sequences[:, 1:])
blind = largest_sum(replace(without, targets=torch.arange(1, n + 1)))

# %% tags=["hide-input"]
page.claim(
    "staircase-min-max",
    statement="Adding the order-0 signatures of the three tokens answers min-max without error.",
    source="stated",
    paper="always right (derived)",
    ours=answer.double().mean(),
    band=(1.0, 1.0),
    control="without the command's signature: "
    f"{float((blind == comparison.labels.argmax(dim=1)).double().mean()):.2f}",
    scale=f"share of {len(answer)} inputs, N = {n}",
)

# %% [markdown]
# ## Attention alone
#
# Take away the activation and let the network attend: $f(X) = U\, O V \sum_s a_s e_{x_s}$ with scores $a_s$ from a query at the last position. Theorem 3 splits the gradient of a row by the role in which the token was used: as **value** it receives its order-0 signature, weighted by the attention it gets; as **key** and as **query** it receives orders up to 2, through differences between the tokens of a sequence.

# %%
pairs = st.arithmetic("add", n)
attending = st.Attention(pairs.vocabulary, pairs.vocabulary, pairs.length)
params = attending.init([gamma], run_seeds, torch.float64)
roles = theory.attention_terms(attending, params, pairs)
exact = theory.velocity(attending, params, pairs)
gap = float(theory.relative_error(sum(roles.values()), exact).max())
assert gap < 1e-6
size = {name: float(part.norm()) for name, part in roles.items()}

# %%
attention = {}
for operation in ("add", "mod"):
    task = st.arithmetic(operation, n)
    start = attending.init([gamma], run_seeds[:1])
    h = st.train(
        attending,
        start,
        task,
        st.Settings(attention_steps, logged=[0, attention_steps]),
        device=page.device,
    )
    rho = st.alignment(
        st.cosine_gram(h.embeddings[-1]), st.cosine_gram(st.label_signature(task, 0))
    )
    attention[operation] = float(h.accuracy[-1, 0]), float(rho[0])

# %% tags=["hide-input"]
page.say(
    f"The roles add up to the gradient (relative difference {gap:.1e}). At the start the value "
    f"role has norm {size['value']:.1e}; key and query have {size['key']:.1e} and "
    f"{size['query']:.1e}. After {attention_steps} steps on all pairs, addition has accuracy "
    f"{attention['add'][0]:.2f} and agreement {attention['add'][1]:.2f} with order 0; modular "
    f"addition has accuracy {attention['mod'][0]:.2f}."
)

page.claim(
    "staircase-attention-mod",
    statement="Attention alone learns addition and not modular addition.",
    source="stated",
    paper="fails at modular addition after 10,000 epochs",
    ours=attention["mod"][0],
    band=(None, 0.5),
    control=f"addition, same network and time: {attention['add'][0]:.2f}",
    scale=f"accuracy, N = {n}, {attention_steps} full-batch steps, one seed",
)

# %% [markdown]
# The value role explains where attention goes. A token whose presence says nothing about the label has a flat $\varphi^0$, receives no gradient, and stays small; a token that decides the label grows. In **anchor–noise parity**, one of eight tokens is an anchor whose parity is the label, and the other seven are noise.

# %%
task = st.parity(seed=seed)
model = st.Attention(task.vocabulary, task.vocabulary, task.length)
passes = len(task.sequences) / 64
marks = [round(e * passes) for e in range(parity_epochs + 1)]


def on_anchor(step, params):
    scores = model.scores(params, model.stream(params, task.sequences.to(page.device)))
    anchor = torch.isin(task.sequences, task.targets).to(scores)
    norms = params["E"].norm(dim=-1)
    return {
        "attention": (scores * anchor).sum(-1).mean(1),
        "anchor": norms[:, task.targets].mean(1),
        "noise": norms[:, 21:].mean(1),
    }


h = fit(task, marks[-1], model=model, batch=64, logged=marks, callback=on_anchor)
parity = h.records

# %% tags=["hide-input"]
figure, panels = plt.subplots(1, 2, figsize=(8.2, 2.9), sharex=True)
panels[0].plot(range(parity_epochs + 1), parity["attention"], color=BLUE)
panels[0].plot(range(parity_epochs + 1), h.accuracy, color=MUTED, ls="--")
panels[0].plot([], [], color=BLUE, label="attention on the anchor")
panels[0].plot([], [], color=MUTED, ls="--", label="accuracy")
panels[1].plot(range(parity_epochs + 1), parity["anchor"], color=BLUE)
panels[1].plot(range(parity_epochs + 1), parity["noise"], color=RED)
panels[1].plot([], [], color=BLUE, label="anchors")
panels[1].plot([], [], color=RED, label="noise tokens")
panels[1].set(ylabel="mean length of rows", ylim=(0, None))
for axes in panels:
    axes.set(xlabel="epoch")
    axes.legend()
page.show(
    figure,
    name="fig-parity",
    caption=(
        f"Anchor–noise parity, {seeds} seeds. Left: attention that the last position pays to the "
        "anchor, and accuracy. Right: mean length of the rows. Chance for the attention is 1/8."
    ),
    alt="Attention and accuracy jump to one within a few epochs while the anchors' rows grow longer than the noise rows.",
)

# %% tags=["hide-input"]
last = parity["attention"][-1]
page.claim(
    "staircase-parity",
    statement="Attention finds the one token that decides the label.",
    source="stated",
    paper="shown, no number",
    ours=last.mean(),
    uncertainty=last.std() if seeds > 1 else None,
    band=(0.99, None),
    control=f"before training: {span(parity['attention'][0], 3)}; each seed: "
    + ", ".join(f"{x:.3f}" for x in last.tolist()),
    scale=f"mean attention on the anchor after {parity_epochs} epochs of {len(task.sequences):,} "
    f"sequences, {seeds} seeds",
)

# %% [markdown]
# ## Three tokens
#
# Task 4 has all three orders at once: $y = (a_1 + a_2 + x) \bmod |X|$ with anchors $a$ from one set and $x$ from another. For an anchor, order 0 is flat; order 1 is a band, since knowing the other anchor leaves the label to $x$ but knowing $x$ does not decide it either; order 2 decides everything and is therefore, like the order 1 of addition, all its own for each token.

# %%
task = st.length_three(anchors, others)
named = replace(task, targets=torch.arange(1, anchors + 1))
grams = [st.cosine_gram(st.label_signature(named, m)) for m in range(2)]
per_pass = len(task.sequences) / 256
marks = sorted(
    {
        round(e * per_pass)
        for e in (0, 1, 2, 3, 5, 7, 10, 15, 20, 30, 50, 75, 100, 150, 200)
        if e <= three_epochs
    }
)
start = st.FFN(task.vocabulary, task.vocabulary)
h = st.train(
    start, start.init([gamma], run_seeds[:1]), task,
    st.Settings(marks[-1], batch=256, logged=marks), device=page.device,
)  # fmt: skip
learned = st.cosine_gram(h.embeddings[:, 0, :anchors])
flat_match = st.pairs(learned).mean(dim=-1)
band_match = st.alignment(learned, grams[1])

# %% tags=["hide-input"]
spread = st.pairs(grams[0]).max() - st.pairs(grams[0]).min()
page.say(
    f"Order-0 cosines of anchors differ by {float(spread):.1e} at most; the order-1 cosines run "
    f"from {float(grams[1].min()):.2f} to 1."
)
figure, axes = plt.subplots(figsize=(6.4, 3.0))
x = h.steps / per_pass
axes.plot(x, flat_match, color=BLUE, label="mean cosine of anchors (order 0 says 1)")
axes.plot(x, band_match, color=TEAL, label="agreement with order 1")
axes.plot(x, h.accuracy[:, 0], color=MUTED, ls="--", label="accuracy")
axes.set(xscale="symlog", xlabel="epoch", ylim=(-0.1, 1.65))
axes.legend(fontsize=8.5, loc="upper left")
page.show(
    figure,
    name="fig-three",
    caption=(
        f"Task 4 with {anchors} anchors and {others} other tokens, one seed. First all anchors "
        "are parallel, then they arrange by order 1, then the task is solved."
    ),
    alt="The mean cosine rises to one and falls; agreement with order 1 peaks later; accuracy rises last.",
)

# %% tags=["hide-input"]
peaks = int(flat_match.argmax()), int(band_match.nan_to_num(-1).argmax())
page.claim(
    "staircase-length-three",
    statement="With three tokens, rows go through order 0 and then order 1 before the task is solved.",
    source="stated",
    paper="uniform, then a band, then complex",
    ours=band_match[peaks[1]] if peaks[0] < peaks[1] else 0.0,
    band=(0.9, None),
    control=f"agreement with order 1 at the order-0 peak: {float(band_match[peaks[0]]):.2f}",
    scale=f"greatest agreement with order 1, 0 if it comes before order 0's; order 0 peaks at epoch "
    f"{float(x[peaks[0]]):.0f} with mean cosine {float(flat_match[peaks[0]]):.2f}, order 1 at "
    f"{float(x[peaks[1]]):.0f}, final accuracy {float(h.accuracy[-1, 0]):.2f}; one seed",
)

# %% [markdown]
# ## A task that can refute the claim
#
# Does the staircase hold, then? The tasks so far cannot quite say. Their order 1 predicts nothing by itself, its probe fits too much, and raw orders contain each other: rows that agree with order 0 agree with order 1 to some degree, whatever they have learned. What is missing is a task in which the orders disagree.
#
# ```{admonition} Our addition: FactorialTask
# :class: ours
# A target token is a triple $v = (a, b, c)$ of digits mod 3, so there are 27. Two context tokens $c_1, c_2$ follow. The label comes from one of five blocks, chosen by a fair five-sided die:
#
# $$
# a \quad\big|\quad b + c_1 \quad\big|\quad c + c_1 + c_2 \quad\big|\quad c_1 \quad\big|\quad c_2 \qquad (\text{sums mod } 3).
# $$
#
# The first block needs no context: it is order 0. The second says nothing about $b$ until $c_1$ is known: order 1. The third says nothing about $c$ until both are known: order 2. So **each order groups the tokens by a digit of its own**, and how far training has come can be read off the rows. The last two blocks are about the context alone. All 243 inputs are used, with their exact label laws.
# ```
#
# For every order we also take its **pure part**, which lower orders don't hold: for order 1, $\varphi^{1\perp} = P(y, c \mid v) - P(y \mid v)\,P(c)$, and for order 2 the three-way interaction of Hoeffding's decomposition. From here on Gram matrices are *centred*: the mean row is taken off first, since a common direction says nothing about how tokens differ.

# %%
task = st.factorial()
raw = [st.label_signature(task, m) for m in range(3)]
pure = [st.pure(task, m) for m in range(3)]
ranks = [st.span(signature).shape[1] for signature in (*raw, *pure)]
v = torch.arange(27)
digits = torch.stack([v // 9, v // 3 % 3, v % 3])
for digit, signature in zip(digits, pure, strict=True):
    same = (digit[:, None] == digit).double()
    assert st.alignment(st.cosine_gram(signature, centred=True), same) > 1 - 1e-9

levels = [
    st.best_loss(task, torch.cat([known, task.sequences[:, 1:]], dim=1))
    for t in [task.sequences[:, 0]]
    for known in (
        torch.zeros(len(t), 1, dtype=torch.int64),
        (t // 9)[:, None],
        (t // 3)[:, None],
        t[:, None],
    )
]

# %% slideshow={"slide_type": "subslide"} tags=["hide-input"]
figure, panels = plt.subplots(2, 3, figsize=(7.4, 5.0), sharex=True, sharey=True)
for row, group, word in zip(panels, (raw, pure), ("raw", "pure"), strict=True):
    for m, (axes, signature) in enumerate(zip(row, group, strict=True)):
        image = axes.imshow(st.cosine_gram(signature, centred=True), vmin=-0.5, vmax=1)
        axes.set(title=f"order {m}, {word}", xticks=[0, 9, 18], yticks=[0, 9, 18])
        axes.grid(visible=False)
figure.colorbar(image, ax=panels, label="centred cosine", shrink=0.6)
page.show(
    figure,
    name="fig-factorial",
    caption=(
        "Signatures of the 27 targets, ordered by a, then b, then c. Raw orders contain each "
        f"other (ranks {', '.join(map(str, ranks[:3]))}). Pure parts are three separate groupings "
        f"(ranks {', '.join(map(str, ranks[3:]))}): by a, by b, by c."
    ),
    alt=(
        "Six matrices of 27 by 27. Raw: three blocks; nine smaller blocks inside them; a full "
        "hierarchy. Pure: three blocks; a repeated pattern of three; a fine pattern of every third."
    ),
)

# %%
network = st.FFN(task.vocabulary, task.labels.shape[1], d=64, activation="silu", width=128)
climb = fit(task, steps, gammas=gammas, model=network, logged=st.log_steps(steps, 70))
names = [(value, s) for value in gammas for s in run_seeds]
centred = st.cosine_gram(climb.embeddings, centred=True)
agreement = torch.stack([st.alignment(centred, st.cosine_gram(s, centred=True)) for s in raw])
order = st.best_order(climb.embeddings, raw)
fitted = climb.fitted()[:, :3]

# %% [markdown]
# The network is $f = U \sigma(W \sum_i e_{x_i})$ with SiLU, for which $\sigma''(0) \ne 0$, so that order 1 has a term at all. All initializations and seeds train as one batch.

# %% tags=["hide-input"]
figure, panels = plt.subplots(
    2, len(gammas), figsize=(9.6, 4.6), sharex=True, sharey="row", height_ratios=[1.3, 1],
    squeeze=False,
)  # fmt: skip
x = climb.steps.clamp_min(0.7)
for g, (top, low) in enumerate(panels.T):
    at = slice(g * seeds, (g + 1) * seeds)
    for m, colour in enumerate((BLUE, TEAL, AMBER)):
        some = agreement[m, :, at]
        top.fill_between(x, some.amin(1), some.amax(1), color=colour, alpha=0.25, lw=0)
        top.plot(x, some.mean(1), color=colour, label=f"order {m}")
        block = climb.records["blocks"][:, at, m]
        low.fill_between(x, block.amin(1), block.amax(1), color=colour, alpha=0.25, lw=0)
        low.plot(x, block.mean(1), color=colour)
    top.set(title=f"γ = {gammas[g]}", xscale="log", ylim=(-0.25, 1.05))
    low.set(xlabel="step", ylim=(-0.1, 2.1))
panels[0, 0].set_ylabel("agreement of rows")
panels[1, 0].set_ylabel("block loss")
panels[0, -1].legend(fontsize=8.5, loc="lower right")
page.show(
    figure,
    name="fig-staircase",
    caption=(
        f"The staircase. Above: agreement of the 27 rows with the raw signatures of each order; "
        f"below: cross entropy of each block, 1 where nothing is known. Lines are means, bands the "
        f"range of {seeds} seeds. Adam, all inputs in every step."
    ),
    alt=(
        "Four columns for four initializations. At gamma 0.8 and 1.0 agreement with order 0 rises "
        "to one first, then order 1 takes over, then order 2, while the block losses fall one "
        "after another. At gamma 0.3 order 0 never leads, although its block loss still falls first."
    ),
)


# %%
def of(g):
    """The runs of one γ."""
    return list(range(g * seeds, (g + 1) * seeds))


share = st.variance_share(climb.embeddings, pure[0])
paths = [order[:, r][order[:, r] >= 0].unique_consecutive().tolist() for r in range(len(names))]
small, large = of(gammas.index(gamma)), of(0)


def at_half(values, runs):
    """Values of each run when its block 0 is half fitted."""
    when = [int((climb.steps == fitted[r, 0]).int().argmax()) for r in runs]
    return torch.stack([values[i, r] for i, r in zip(when, runs, strict=True)])


def told(steps):
    """Steps as text; -1 is never."""
    if steps is None:
        return "no such block"
    never = int((steps < 0).sum())
    return f"never in {never} of {len(steps)}" if never else span(steps, 0)


# %% tags=["hide-input"]
page.table(
    pd.DataFrame(
        {
            "γ": gammas,
            "order that fits best, over time": [
                "; ".join("→".join(map(str, paths[r])) or "none" for r in of(g))
                for g in range(len(gammas))
            ],
            "share in order 0": [span(at_half(share, of(g))) for g in range(len(gammas))],
            "agreement with order 0": [
                span(at_half(agreement[0], of(g))) for g in range(len(gammas))
            ],
            **{
                f"block {m}": [told(fitted[of(g), m]) for g in range(len(gammas))] for m in range(3)
            },
        }
    ),
    name="tbl-staircase",
    caption=(
        "Best raw order over time, where its agreement is at least one half; share of the rows' "
        f"variance in the pure order 0 (chance {ranks[3] / 26:.3f}) and agreement with the raw one "
        "when block 0 is half fitted; step at which each block is half fitted."
    ),
)

# %% [markdown]
# Read {numref}`tbl-staircase` from both ends. At γ = 0.3 the block *losses* still fall in the order 0, 1, 2: any network finds the easy part of a task first. What small initialization adds is that **the rows show it**. At the time when block 0 is half fitted, rows from a large initialization are still mostly the noise they started as, and rows from a small one are almost entirely order 0.
#
# {numref}`fig-climb` follows one run through the climb. **Predict first**: the large matrix holds the cosines between the 27 rows, the three small ones those between their signatures. Which of the small ones will the large one be when the blue curve stands at one, and must that pattern be wiped out before the next can be drawn? Then move the slider, or press *Play*.

# %%
watched = small[0]
frames = [0]
for s in torch.logspace(0.5, math.log10(steps), 19):
    frames.append(int((climb.steps - s).abs().argmin()))
frames = sorted(set(frames))
signature_grams = [st.cosine_gram(s, centred=True) for s in raw]
leads = [f"order {m}" if m >= 0 else "no order yet" for m in order[:, watched].tolist()]


def plane(rows, before=None):
    """Two principal components, turned to lie as close to the last frame as they can."""
    rows = rows.double() - rows.double().mean(dim=0)
    flat = torch.linalg.svd(rows, full_matrices=False)
    found = flat.U[:, :2] * flat.S[:2]
    found = found / found.norm(dim=1).max()
    if before is None:
        return found
    left, _, right = torch.linalg.svd(found.T @ before)
    return found @ left @ right


# %% tags=["hide-input"]
def draw_rows(upper, lower, i, flat):
    """The rows in a plane, and how well they agree with each order, with a mark at frame i."""
    for b, mark in enumerate("os^"):
        here = digits[1] == b
        colours = [PALETTE[k] for k in digits[0][here].tolist()]
        upper.scatter(*flat[here].T, c=colours, marker=mark, s=30, lw=0, alpha=0.75)
    upper.set(xlim=(-1.1, 1.1), ylim=(-1.1, 1.1), xticks=[], yticks=[], aspect="equal")
    upper.set_title("rows (colour: a, shape: b)")
    for m, colour in enumerate((BLUE, TEAL, AMBER)):
        y = agreement[m, :, watched]
        lower.plot(x, y, color=colour, label=f"order {m}")
        lower.plot(x[i], y[i], "o", color=colour, ms=6)
    lower.axvline(x[i], color=INK, lw=1)
    lower.set(xscale="log", xlabel="step", ylabel="agreement", ylim=(-0.25, 1.05))
    lower.legend(fontsize=8.5, loc="upper left")


def draw_grams(axes, i):
    """Cosines between rows; below, between signatures, with a frame around the best order."""
    axes["rows"].set_title("cosines between rows")
    for key, gram in (("rows", centred[i, watched]), *enumerate(signature_grams)):
        axes[key].imshow(gram, vmin=-0.5, vmax=1, interpolation="none")
        axes[key].grid(visible=False)
        axes[key].set(xticks=[], yticks=[])
    for m, colour in enumerate((BLUE, TEAL, AMBER)):
        axes[m].set_title(f"order {m}: {float(agreement[m, i, watched]):.2f}", fontsize=9.5)
        for side in axes[m].spines.values():
            shown = colour if leads[i] == f"order {m}" else PAPER
            side.set(visible=True, color=shown, linewidth=3)


# %% slideshow={"slide_type": "subslide"} tags=["hide-input"]
pictures, seen = {}, None
for i in frames:
    seen = plane(climb.embeddings[i, watched], seen)
    figure = plt.figure(figsize=(7.6, 5.2), layout="none")  # or panels would move between frames
    first_half, second_half = figure.subfigures(1, 2, wspace=0)
    second_half.set_gid("ts-second")
    place = {"left": 0.21, "right": 0.97, "top": 0.94, "bottom": 0.1, "hspace": 0.08}
    draw_rows(*first_half.subplots(2, 1, height_ratios=[1.35, 1], gridspec_kw=place), i, seen)
    place |= {"left": 0.06, "right": 0.96, "bottom": 0.02, "hspace": 0.14, "wspace": 0.1}
    grid = [["rows"] * 3, [0, 1, 2]]
    draw_grams(second_half.subplot_mosaic(grid, height_ratios=[2.2, 1], gridspec_kw=place), i)
    pictures[f"step {int(climb.steps[i])}, {leads[i]}"] = figure
page.show(
    pictures,
    name="fig-climb",
    live=Live("frames", [Slider("Training", list(pictures), play=True)]),
    caption=(
        f"One run of 27 rows, γ = {names[watched][0]}, at the step of the black line; on the page, "
        "a slider moves through training. Left: the rows in their first two principal components, "
        "and their agreement with each order. Right: centred cosines between rows (light is 1), and "
        "below between the raw signatures of each order, with the agreement; the order that fits "
        "best is framed once it reaches one half. Order 0 gathers the colours; order 1 splits each "
        "colour into shapes; order 2 tells the three tokens of one shape apart."
    ),
    alt=(
        "Left: 27 points that start as a cloud, gather into three coloured groups, and split into "
        "shapes, above curves of agreement with a line at the current step. Right: a matrix that "
        "starts as noise and comes to look like each of three small ones below it in turn: three "
        "blocks, blocks within blocks, and a fine pattern."
    ),
)


# %%
shuffles = [torch.randperm(27, generator=torch.Generator().manual_seed(k)) for k in range(20)]
shuffled = torch.stack(
    [st.alignment(centred, st.cosine_gram(s[p], centred=True)) for s in raw for p in shuffles]
)[..., small].abs()
ratios = fitted[:, 1:].double() / fitted[:, :-1]
climbed = bool((fitted[small + large] > 0).all())

# %% slideshow={"slide_type": "subslide"} tags=["hide-input"]
scale = f"FactorialTask, SiLU, d = 64, m = 128, Adam, γ = {gamma}, {seeds} seeds"
page.claim(
    "staircase-sequence",
    statement="Under small initialization the best order is exactly 0, then 1, then 2.",
    source="ours",
    paper="orders join rather than replace each other",
    ours=sum(paths[r] == [0, 1, 2] for r in small) / seeds,
    band=(1, 1),
    control=f"γ = {gammas[0]}: " + "; ".join("→".join(map(str, paths[r])) for r in large),
    scale=f"share of runs; {scale}",
)
page.claim(
    "staircase-order-zero-first",
    statement="When block 0 is half fitted the rows agree with raw order 0.",
    source="ours",
    ours=at_half(agreement[0], small).min(),
    band=(0.95, None),
    control=f"with order 2 at that time: {span(at_half(agreement[2], small))}",
    scale=f"worst run; {scale}",
)
page.claim(
    "staircase-share",
    statement="Most of the rows' variance is then in the pure order 0.",
    source="ours",
    ours=at_half(share, small).min(),
    band=(0.8, None),
    control=f"chance: {ranks[3] / 26:.3f}; γ = {gammas[0]}: {span(at_half(share, large), 3)}",
    scale=f"worst run; {scale}",
)

# %% tags=["hide-input"]
for name, m, least in (("first", 0, 2.5), ("second", 1, 2.0)):
    page.claim(
        f"staircase-{name}-stair",
        statement=f"Block {m + 1} takes more than {least} times as long as block {m}.",
        source="ours",
        ours=ratios[small, m].min() if climbed else None,
        band=(least, None),
        control=f"γ = {gammas[0]}: {span(ratios[large, m])}",
        why=None if climbed else f"not all blocks are half fitted in {steps} steps",
        scale=f"least ratio of the steps to half fit; {scale}",
    )
page.claim(
    "staircase-large-initialization",
    statement="Under large initialization the rows don't show order 0, although block 0 is fitted "
    "first.",
    source="ours",
    ours=at_half(share, large).max(),
    band=(None, 0.15),
    control=f"γ = {gamma}: {span(at_half(share, small))}",
    scale=f"greatest share of the pure order 0 at half fit, γ = {gammas[0]}, {seeds} seeds",
)
page.claim(
    "staircase-shuffled",
    statement="Shuffled signatures don't agree with the rows.",
    source="ours",
    ours=shuffled.flatten().quantile(0.95),
    band=(None, 0.3),
    control=f"unshuffled, best over time: {span(agreement[:, :, small].amax(1))}",
    scale=f"95 % quantile of |ρ|, {len(shuffles)} shuffles, three orders, all steps; {scale}",
)

# %% [markdown]
# ## Take the reason away
#
# If order 1 comes from $\sigma''(0)$, a linear network must stop at order 0. If its coming first matters for order 2, then removing its block should hurt. Each of these could have gone wrong.

# %%
FULL = "as it was"
variants = {
    FULL: (task, "silu"),
    "linear": (task, "linear"),
    "tanh, σ″(0) = 0": (task, "tanh"),
    "without block b + c₁": (st.factorial(drop=["b+c1"]), "silu"),
    "without blocks c₁, c₂": (st.factorial(drop=["c1", "c2"]), "silu"),
    "b + c₁ four times as likely": (st.factorial(weights=(1, 4, 1, 1, 1)), "silu"),
}
controls = {}
for name, (variant, sigma) in variants.items():
    at = {block: i for i, block in enumerate(variant.blocks)}
    size = st.FFN(variant.vocabulary, variant.labels.shape[1], 64, sigma, 128)
    h = fit(variant, steps, model=size, logged=st.log_steps(steps, 70))
    when = h.fitted()
    controls[name] = (
        h.losses[-1],
        st.best_loss(variant, variant.sequences),
        [when[:, at[block]] if block in at else None for block in st.BLOCKS[:3]],
    )


# %% tags=["hide-input"]
page.table(
    pd.DataFrame(
        [
            (name, *map(told, block), span(loss, 3), f"{entropy:.3f}")
            for name, (loss, entropy, block) in controls.items()
        ],
        columns=[
            "network or task",
            "block a",
            "block b + c₁",
            "block c + c₁ + c₂",
            "final loss",
            "least possible",
        ],
    ),
    name="tbl-controls",
    caption=(
        f"γ = {gamma}, {seeds} seeds, {steps} steps: step at which each block is half fitted, and "
        f"the loss at the end in nats. Knowing a alone allows {levels[1]:.3f}, a and b "
        f"{levels[2]:.3f}, everything {levels[3]:.3f}."
    ),
)

page.claim(
    "staircase-linear",
    statement="A linear network stops exactly at the loss that order 0 allows.",
    source="ours",
    ours=(controls["linear"][0] - levels[1]).abs().max(),
    band=(None, 0.005),
    control=f"SiLU ends {span(controls[FULL][0] - levels[3], 3)} above the least possible loss",
    scale=f"greatest distance to {levels[1]:.4f} nats after {steps} steps, γ = {gamma}, {seeds} seeds",
)

# %% [markdown]
# Two rows of {numref}`tbl-controls` are surprises worth keeping. Without the block $b + c_1$ there is nothing of order 1 to learn about the targets, and the block of order 2 is fitted all the same, at about its usual time: **the stairs are not steps that one must stand on.** (Can they even be turned around? That is {ref}`an open exercise <ex-turn>`.) And without the blocks about the context alone, order 2 is not fitted at all: the context tokens then have no row of their own to begin from, and the network waits at a saddle. What order 2 needs is not order 1, but contexts that can be told apart.
#
# Next, cut the rows down to what one order holds and train everything else. Rows of orders up to $k$ should reach that order's loss and not a hair less. And freeze the rows once block 0 is done: the rest of the network can still learn, but if the rows carry the next order, it should take longer.

# %%
base = {name: p[small] for name, p in climb.params.items()}
stops = []
for k in (0, 1):
    cut = {name: p.clone() for name, p in base.items()}
    cut["E"][:, :27] = st.project(cut["E"][:, :27], pure[: k + 1])
    h = fit(task, steps, model=network, params=cut, lr=3e-3, freeze={"E": 0}, logged=[0, steps])
    stops.append((k, h.losses[-1] - levels[k + 1]))

# %%
length = 2 * steps // 3
free = fit(task, length, gammas, network, logged=range(0, length + 1, 5))
ready = free.fitted(0.1)[:, 0]
held = fit(task, steps, gammas, network, freeze={"E": ready}, logged=range(0, steps + 1, 10))
delay = (held.fitted()[:, 1] - ready) / (free.fitted()[:, 1] - ready)
usable = (ready > 0) & (free.fitted()[:, 1] > ready) & (held.fitted()[:, 1] > ready)
frozen = [(value, delay[of(g)]) for g, value in enumerate(gammas) if bool(usable[of(g)].all())]

# %% tags=["hide-input"]
figure, axes = plt.subplots(figsize=(5.6, 2.8))
for i, (_, ratio) in enumerate(frozen):
    axes.bar(i, float(ratio.mean()), color=BLUE, alpha=0.35, lw=0, width=0.6)
    axes.plot([i] * len(ratio), ratio, "o", color=BLUE, ms=5)
axes.axhline(1, color=MUTED, ls="--")
axes.set_xticks(range(len(frozen)), [f"γ = {value}" for value, _ in frozen])
axes.set(ylabel="times as long")
page.show(
    figure,
    name="fig-frozen",
    caption=(
        "How much longer block 1 takes, from the time block 0 is fitted, when the rows are frozen "
        f"at that time. Dots: {seeds} seeds. Block 0 counts as fitted at a loss of 0.1."
    ),
    alt="Bars above one that grow with gamma: freezing the rows slows the next block.",
)
slowed = bool(usable[small].all())
page.claim(
    "staircase-projection",
    statement="Rows cut down to orders up to k reach the loss of order k and no further.",
    source="ours",
    ours=max(float(rest.abs().max()) for _, rest in stops),
    band=(None, 0.005),
    control=f"rows not cut end {span(climb.losses[-1, small] - levels[3], 3)} above "
    "the least possible loss",
    scale=f"greatest distance to the levels of k = 0 and 1, all but the rows trained on for {steps} "
    f"steps, γ = {gamma}, {seeds} seeds",
)
page.claim(
    "staircase-frozen",
    statement="Freezing the rows after block 0 slows block 1.",
    source="ours",
    ours=delay[small].mean() if slowed else None,
    uncertainty=delay[small].std() if slowed and seeds > 1 else None,
    band=(1.8, None),
    control=f"γ = {gammas[0]}: {span(delay[large])}",
    why=None if slowed else f"block 1 is not half fitted in {length} and {steps} steps",
    scale=f"mean ratio of waiting times, γ = {gamma}, {seeds} seeds",
)

# %% [markdown]
# ## The stairs of attention
#
# Attention has no activation to bend a sum, so its order 1 must come from the scores. **PointerTask** separates the two: a sequence holds one value in each of three slots, and its last token is a pair $(a, b)$. The label is, by a fair coin, either $a$ (order 0) or the value in slot $b$ (order 1: nothing is known about it until the context is). By Theorem 3 the query of the last token learns $b$ from a product of three small matrices, so it should take long.

# %%
pointing = st.pointer(3, 3)
reader = st.Attention(
    pointing.vocabulary, pointing.labels.shape[1], pointing.length, 64, 64, False, residual=True
)
ends = [gammas[0], gamma]
h = fit(
    pointing, pointer_steps, ends, reader, optimizer="sgd", lr=1.0,
    logged=st.log_steps(pointer_steps, 60),
)  # fmt: skip
layers = [st.label_signature(pointing, m) for m in range(2)]
best = st.best_order(h.embeddings, layers)
routes = [best[:, r][best[:, r] >= 0].unique_consecutive().tolist() for r in range(2 * seeds)]
waits = h.fitted()

# %% tags=["hide-input"]
page.table(
    pd.DataFrame(
        [
            (
                g,
                "; ".join("→".join(map(str, route)) for route in routes[at]),
                *map(told, waits[at].T),
            )
            for g, at in ((gammas[0], slice(seeds)), (gamma, slice(seeds, None)))
        ],
        columns=["γ", "order that fits best, over time", "a", "value in slot b"],
    ),
    name="tbl-pointer",
    caption=(
        f"PointerTask, attention with a residual stream and no positions, gradient descent with "
        f"rate 1: best raw order over time, and step at which each block is half fitted, {seeds} "
        "seeds."
    ),
)
page.claim(
    "staircase-attention-order",
    statement="Attention's rows too go from order 0 to order 1 under small initialization.",
    source="ours",
    ours=sum(route == [0, 1] for route in routes[seeds:]) / seeds
    if bool((waits[seeds:] > 0).all())
    else None,
    band=(1, 1),
    control=f"γ = {gammas[0]}: " + "; ".join("→".join(map(str, route)) for route in routes[:seeds]),
    why=None
    if bool((waits[seeds:] > 0).all())
    else f"the second block is not half fitted in {pointer_steps} steps",
    scale=f"share of runs; PointerTask with 3 slots, d = 64, γ = {gamma}, {seeds} seeds",
)

# %% [markdown]
# ## The equation at the start
#
# Finally the velocity itself. For $f = U\sigma(W\sum e)$ the lowest degrees of {eq}`eq-flow` in $E$ can be written down with signatures alone, and compared with the exact gradient: order 0, and order 0 and 1 together.

# %%
checks = []
for value in gammas:
    params = network.init([value], run_seeds, torch.float64)
    exact = theory.velocity(network, params, task)
    one = theory.lowest_degree(network, params, task, 0)
    two = one + theory.lowest_degree(network, params, task, 1)
    checks.append(
        (
            value,
            theory.cosine(one, exact, centred=True),
            theory.relative_error(one, exact, centred=True),
            theory.cosine(two, exact, centred=True),
            math.sqrt(3) * 64 ** (0.5 - 2 * value),
        )
    )

# %% tags=["hide-input"]
page.table(
    pd.DataFrame(
        [(g, span(a, 4), span(b, 3), f"{law:.3f}", span(c, 4)) for g, a, b, c, law in checks],
        columns=[
            "γ",
            "cosine, order 0",
            "relative error",
            "√3 d^(1/2 − 2γ)",
            "cosine, orders 0 and 1",
        ],
    ),
    name="tbl-ode",
    caption=(
        f"Predicted against exact velocity of the 27 rows at initialization, rows centred, "
        f"float64, {seeds} seeds."
    ),
)
_, big_cosine, big_error, _, _ = checks[0]
_, small_cosine, small_error, _, _ = checks[gammas.index(gamma)]
page.claim(
    "staircase-ode-small",
    statement="Under small initialization the first velocity is order 0's to a few per cent.",
    source="ours",
    ours=small_error.max(),
    band=(None, 0.03),
    control=f"γ = {gammas[0]}: {span(big_error)}",
    scale=f"greatest relative error, γ = {gamma}, d = 64, {seeds} seeds; cosine at least "
    f"{float(small_cosine.min()):.4f}",
)
page.claim(
    "staircase-ode-large",
    statement="Under large initialization order 0 alone doesn't predict the first velocity.",
    source="ours",
    ours=big_cosine.max(),
    band=(None, 0.6),
    control=f"γ = {gamma}: {span(small_cosine, 4)}",
    scale=f"greatest cosine, γ = {gammas[0]}, d = 64, {seeds} seeds",
)

# %% [markdown]
# ```{admonition} Differs from the paper
# :class: differs
# - **Settings are ours** wherever the paper leaves them open: γ, optimizer, rate, batch, vocabulary.
# - **The common early direction in modular addition comes from unused labels**, not from the task.
# - **ReLU is outside the theorem** that the experiments are meant to support.
# - **The probe of order 1 is nearly free**: it fits any geometry that depends on a difference.
# - **Replacement, not only joint influence.** The paper argues that late orders all matter together. On a task that separates orders, we see the rows of one order give way to the next, as the residual of the fitted order vanishes. The two statements don't exclude each other: raw orders contain each other.
# - **Errata.** In the paper's equation (19) the query term lacks a transpose. Its main text swaps two indices of the key tensor; the appendix is right. Theorem 2 begins at $m = 1$, its proof at 0. The coefficient printed as $(m+1)!\,S_2(K-1, m+1)$ is $m!\,S_2(K, m+1)$, with $S_2$ the Stirling numbers of the second kind; both grow alike. The tests of this book check each one.
# - **Smaller.** Activation order is run with fewer numbers, attention for a tenth of the epochs, and Task 4 with sizes that the paper doesn't state.
# ```

# %% [markdown]
# ## Exercises
#
# From ★ (predict, then run) to ★★★ (extend the paper). Predict on paper first; each cell ends in a check that says what a wrong answer may come from.

# %% [markdown] slideshow={"slide_type": "subslide"}
# ```{exercise} ★ Which products look alike
# :label: ex-products
#
# In the multiplication task, name two numbers up to 20 whose signatures of order 0 are as similar as any two get. Why is it not 19 and 20?
# ```

# %% [markdown]
# ```{solution-start} ex-products
# :class: dropdown
# ```
#
# Two numbers share a label when $a x = b y$ with $x, y \le 20$. That has many solutions when $a/b$ is a ratio of small numbers: with $a/b = p/q$ in lowest terms there are $\lfloor 20 / \max(p, q) \rfloor$ of them. So $a = 2b$ is the closest any two numbers come, and 19 and 20 share a single label.

# %%
# Your prediction `alike`: a pair of different numbers from 1 to 20, as in (3, 7).
# BEGIN SOLUTION: when do a·x = b·y have many solutions with x and y up to 20?
alike = (6, 12)
# END SOLUTION

products = st.cosine_gram(st.label_signature(st.arithmetic("mul", 20), 0))
products.fill_diagonal_(0)
first_number, second_number = alike
likeness = float(products[first_number - 1, second_number - 1])
expect(
    "ex-products",
    likeness,
    float(products.max()),
    within=1e-9,
    mistakes={"the cosine of neighbours, which share a single product": float(products[18, 19])},
    hint="count the labels that two numbers share; the answer shown is the cosine of your pair",
)
top = (products > products.max() - 1e-9).nonzero() + 1
page.say(
    f"Largest cosine {float(products.max()):.2f}, for "
    + ", ".join(f"{i} and {j}" for i, j in top.tolist() if i < j)
    + f"; 19 and 20: {float(products[18, 19]):.2f}."
)

# %% [markdown]
# ```{solution-end}
# ```
#
# ```{exercise} ★ When order 0 is blind
# :label: ex-blind
#
# Let $y = (x_1 + x_2) \bmod M$ with numbers up to $N = 20$. For which $M$ up to 20 are all signatures of order 0 equal? Say which first; then prove it.
# ```
#
# ```{solution-start} ex-blind
# :class: dropdown
# ```
#
# Exactly when $M$ divides $N$. Given $x_1 = a$, the label is $a$ plus a residue of $\{1, \dots, N\}$ mod $M$. If $M$ divides $N$ every residue occurs $N/M$ times, whatever $a$ is. If not, some residues occur once more than others; those of $a$ and $a + 1$ are the same pattern shifted by one, and a pattern that is not constant on a cycle differs from its shift.

# %%
# Your prediction `blind_at`: the list of all M from 1 to 20 at which order 0 sees no difference.
# BEGIN SOLUTION: when does every residue occur equally often among 1 to 20?
blind_at = [1, 2, 4, 5, 10, 20]
# END SOLUTION

blind = []
for M in range(1, 21):
    at_order_zero = st.label_signature(st.arithmetic("mod", 20, modulus=M), 0)
    if torch.allclose(at_order_zero, at_order_zero[:1].expand_as(at_order_zero)):
        blind.append(M)
agrees = [(M in blind_at) == (M in blind) for M in range(1, 21)]
expect(
    "ex-blind",
    sum(agrees),
    20,
    mistakes={"the even ones": sum((M % 2 == 0) == (M in blind) for M in range(1, 21))},
    hint="the answer shown is how many of the 20 cases you have right; try M = 1 and 3 by hand",
)

# %% [markdown]
# ```{solution-end}
# ```
#
# ```{exercise} ★★ The number line in the counts
# :label: ex-number-line
#
# Derive the cosine between the order-0 signatures of two numbers $a$ and $b$ in the addition task up to $N$. Check it for $N = 20$.
# ```
#
# ```{solution-start} ex-number-line
# :class: dropdown
# ```
#
# It is $1 - |a - b|/N$. $\varphi^0_a$ is uniform on the $N$ labels $a + 1, \dots, a + N$. Two such ranges share $N - |a - b|$ labels, and all lengths are equal, so the cosine is the share of labels in common.


# %%
def line_cosine(a, b, N):
    """The cosine of φ⁰ of the numbers a and b, both tensors of one shape, in addition up to N."""
    # BEGIN SOLUTION: each signature is uniform on a range of labels; which share is in both?
    return 1 - (a - b).abs() / N
    # END SOLUTION


sums = st.cosine_gram(st.label_signature(st.arithmetic("add", 20), 0))
a = torch.arange(1, 21, dtype=torch.float64)
expect(
    "ex-number-line",
    line_cosine(a[:, None], a[None], 20),
    sums,
    within=1e-5,
    mistakes={
        "the share of labels that differ": 1 - sums,
        "one label too many or too few in the count": sums - 1 / 20,
        "a formula that isn't the same for a, b as for b, a": 1 - (a[:, None] - a) / 20,
    },
    hint="number a has the labels a + 1 to a + N",
)

# %% [markdown]
# ```{solution-end}
# ```
#
# ```{exercise} ★★ One frequency, one ring
# :label: ex-ring
#
# Derive the cosine between numbers $a$ and $b$ in the geometry of {eq}`eq-fourier`, for modular addition and a frequency $k$. For which $k$ do several numbers fall on one point of the ring?
# ```
#
# ```{solution-start} ex-ring
# :class: dropdown
# ```
#
# $\varphi^1_a(\nu, j)$ is $1/N$ where $\nu - 1 = a + j \bmod N$ and 0 elsewhere, so $h_a(\nu)$ is the wave $\cos 2\pi k j / N$ shifted by $a$. The inner product of a wave of frequency $k$ with itself, shifted by $a - b$, is half its length times $\cos 2\pi k(a - b)/N$. Numbers with $k a \equiv k b \pmod N$ coincide: that happens when $k$ and $N$ have a common divisor $g > 1$, and then $g$ numbers share each point.


# %%
def ring_cosine(a, b, k, N):
    """The cosine between numbers a and b, tensors of one shape, at frequency k modulo N."""
    # BEGIN SOLUTION: a wave against itself, shifted by a - b places of N
    return torch.cos(2 * math.pi * k * (a - b) / N)
    # END SOLUTION


def share_a_point(k, N):
    """How many numbers from 1 to N fall on each point of the ring."""
    # BEGIN SOLUTION: when are k·a and k·b the same modulo N? math.gcd
    return math.gcd(k, N)
    # END SOLUTION


modulo, a = st.arithmetic("mod", 12), torch.arange(1, 13, dtype=torch.float64)
for k in range(1, 6):
    ring = st.cosine_gram(st.fourier(modulo, k))
    expect(
        "ex-ring",
        ring_cosine(a[:, None], a[None], k, 12),
        ring,
        within=1e-5,
        mistakes={"half a turn for a whole one": torch.cos(math.pi * k * (a[:, None] - a) / 12)},
        hint="at frequency k a shift by N/k places is a whole turn",
    )
    same_point = int((ring[0] > 1 - 1e-6).sum())
    expect(
        "ex-ring",
        share_a_point(k, 12),
        same_point,
        mistakes={"how many points there are, not numbers on each": 12 // same_point},
        hint="try k = 2 and k = 5 by hand",
    )

# %% [markdown]
# ```{solution-end}
# ```
#
# ```{exercise} ★★ An operation of your own
# :label: ex-own-operation
#
# Invent a label for two numbers up to 10: any function with whole values from 0 to 199. Count its signature of order 0 from the definition {eq}`eq-order-zero`, without the library, and look at the matrix of cosines. Which numbers will get similar rows early? Then train the network and see.
# ```
#
# ```{solution-start} ex-own-operation
# :class: dropdown
# ```
#
# The solution takes the larger of the two numbers. Small numbers have almost the same signature, since the other number decides; large ones differ.


# %%
def operation(x1, x2):
    """The label of two numbers from 1 to 10."""
    # BEGIN SOLUTION: anything symmetric in the two is easy to think about
    return max(x1, x2)
    # END SOLUTION


def order_zero():
    """(10, 200): the law of the label given that a number stands in a random one of two places."""
    # BEGIN SOLUTION: for each a, count labels over all sequences (a, x) and all (x, a); normalize
    counts = torch.zeros(10, 200, dtype=torch.float64)
    for a in range(1, 11):
        for other_number in range(1, 11):
            counts[a - 1, operation(a, other_number)] += 1
            counts[a - 1, operation(other_number, a)] += 1
    return counts / counts.sum(1, keepdim=True)
    # END SOLUTION


blank = st.arithmetic("add", 10)
own_labels = torch.zeros_like(blank.labels)
for row, (x1, x2) in enumerate(blank.sequences.tolist()):
    own_labels[row, operation(x1, x2)] = 1
own_task = replace(blank, name="own", labels=own_labels)
by_library = st.label_signature(own_task, 0)
expect(
    "ex-own-operation",
    order_zero()[:, st.label_ids(own_task)],
    by_library,
    within=1e-5,
    hint="each number stands in the first place ten times, in the second ten times",
)
trained = fit(own_task, 160, batch=64, logged=[160])
own_agreement = st.alignment(st.cosine_gram(trained.embeddings[-1]), st.cosine_gram(by_library))
page.say(f"Agreement of the rows with your order 0 after 160 steps: {span(own_agreement)}.")

# %% [markdown]
# ```{solution-end}
# ```
#
# ```{exercise} ★★★ Turn the stairs around
# :label: ex-turn
#
# Block $a$ is learned before block $b + c_1$ even when the latter is four times as likely ({numref}`tbl-controls`). The paper never asks how firm the order of its stairs is. Estimate from Proposition 1 how much likelier the second block must be to be learned first at width 64, then try it with the `weights` of `factorial`.
# ```
#
# ```{solution-start} ex-turn
# :class: dropdown
# ```
#
# At the start order 1 is smaller by about $d^{-\gamma}$. But both grow, and order 1 has context rows to help it that grow as well, which the estimate leaves out. So a smaller factor should do.

# %%
# Your estimate `times_smaller`: order 0 over order 1 at the start, at width 64 and this γ.
# BEGIN SOLUTION: one more factor of a context row, each entry of size d to the power -γ
times_smaller = 64**gamma
# END SOLUTION

expect(
    "ex-turn",
    math.log(times_smaller),
    -slope * math.log(64),
    within=0.15 * math.log(64),
    mistakes={"the width itself": math.log(64), "its root": math.log(8)},
    hint="the exponent was measured over widths; the answers shown and checked are logarithms",
)
turned = []
for factor in (4, 16):
    other = st.factorial(weights=(1, factor, 1, factor, 1))
    h = fit(other, steps, model=network, logged=st.log_steps(steps, 60))
    turned.append((factor, *map(told, h.fitted()[:, :2].T)))
page.table(
    pd.DataFrame(turned, columns=["times as likely", "block a", "block b + c₁"]),
    name="tbl-turned",
    caption=(
        f"Step at which a block is half fitted when blocks b + c₁ and c₁ are made likelier; "
        f"γ = {gamma}, {seeds} seeds. The estimate says {times_smaller:.0f}."
    ),
)

# %% [markdown]
# **Verdict.** The order of the stairs is a matter of degree. {numref}`tbl-turned` says whether a factor below the estimate already turns it. What the estimate leaves out, the growth of the context rows, is a second stair that climbs at the same time; a formula for the factor at which the two change places is open.
#
# ```{solution-end}
# ```
#
# ## Further reading
#
# - **Where this comes from.** {cite:t}`yao2025signature` introduce probability signatures; {cite:t}`yao2025reasoning` study small initialization in language models.
# - **Low orders first, elsewhere.** {cite:t}`belrose2024increasing` show that networks learn statistics of increasing complexity, and edit the data to prove it; {cite:t}`rende2024simplicity` find the same order in transformers on text, by clones that keep only low-order interactions. The page {doc}`language` uses such clones.
# - **The page after this one** takes signatures to text: {doc}`language`.

# %%
page.footer()
