# %% [markdown] slideshow={"slide_type": "slide"}
# # A flow that lands on tokens, exactly
#
# A language model can write a text one token at a time. It can also write all of it at once: place every position somewhere in space, at random, and let the whole cloud flow until each position has reached the row of some token. A picture is made that way, and nobody minds if a pixel ends between two shades. A text has nothing between two words. **Where does such a flow end, and what makes it end on tokens?**

# %% [markdown]
# {cite:t}`li2026convergeflow` keep every prediction of the model inside the convex hull of the embedding table, and prove that the flow then ends at one of the hull's vertices. This page takes that apart with nothing trained. Every model on it is known exactly, so each effect can be laid to its cause: the flow itself, an error of the model, the size of the steps, or the mechanism that is used to sharpen the samples.
#
# The order is: two tokens on a line, five in a plane, the theorem and its gaps, the propositions, and then a source of sequences whose posterior we can compute. The page {doc}`language` trains networks on that source. You need multivariate normal distributions, Bayes' rule and ordinary differential equations. Symbols are listed in the {doc}`/glossary`.

# %% [markdown] slideshow={"slide_type": "subslide"}
# ```{admonition} What the paper says
# :class: paper
# - A predictor that is a **weighted mean of token embeddings**, with weights that contain the exact Gaussian kernel, can be trained with a squared error alone.
# - **Theorem 1.** Under three assumptions on the weights and the grid, each position of the sampled sequence converges to a token's embedding.
# - **Proposition 1.** A token's posterior is its own Gaussian kernel times what the rest of the sequence says.
# - **Proposition 2.** Without the hull, a predictor can be asymptotically right on the training path and still generate nothing but rescaled noise.
# - **Proposition 3.** For rows of one norm, a mean as long as a row needs weights that are nearly one-hot.
# ```

# %% tags=["parameters"]
seed: int = 0
device: str = "auto"
paths: int = 4000  # trajectories of the line and of the plane
steps: int = 200  # points of the plane's grid
side: int = 150  # points along one side of the map from noise to tokens
bound: float = 6.0  # logit error, nats
bounds: list[float] = [0.0, 2.0, 6.0, 12.0]
deltas: list[float] = [0.2, 0.1]  # Theorem 1's step sizes
ends: list[float] = [0.1, 0.05, 0.02]  # and how near the data it goes: 1 - t
V: int = 12  # the known source
L: int = 16
components: int = 4
levels: int = 40  # noise levels of the information curve
curve: int = 1000  # sequences of the information curve
n: int = 1024  # sequences the sampler makes
nfes: list[int] = [4, 8, 16, 32, 64]
guidances: list[float] = [0.0, 0.05, 0.1, 0.2, 0.4, 0.8]

# %%
from tokenspace.press import Page

page = Page("flow/vertices", seed=seed, device=device)

# %% tags=["hide-input"]
import math

import matplotlib.pyplot as plt
import pandas as pd
import torch
from matplotlib.collections import LineCollection
from scipy import spatial, stats
from torch.nn.functional import normalize, one_hot

from tokenspace import flow
from tokenspace.flow import toy
from tokenspace.flow.judges import judge
from tokenspace.flow.sampling import Mechanism, plan, sample
from tokenspace.flow.theory import geometry, squared_distances
from tokenspace.format import span
from tokenspace.press.exercises import expect
from tokenspace.press.figures import BLUE, INK, MUTED, PALETTE, PAPER, RED
from tokenspace.press.live import Live, Slider, places, settle

generator = torch.Generator().manual_seed(seed)


def normal(*shape):
    """Standard normal numbers in double precision."""
    return torch.randn(*shape, generator=generator, dtype=torch.float64)


# %% [markdown] slideshow={"slide_type": "subslide"}
# ## The path from data to noise
#
# A sequence of $L$ tokens is written as $L$ rows of the embedding table $E$, of $V$ rows and $d$ columns. Call these rows $x^\star$. Mixing them with noise $z \sim \mathcal N(0, I)$ gives a path
#
# $$
# x_t = \alpha_t\, x^\star + \sigma_t\, z ,
# $$ (eq-noising)

# %% [markdown]
# with pure noise at $t = 0$ and the data at $t = 1$: $\alpha$ rises from 0, $\sigma$ falls to 0, and $\alpha^2/\sigma^2$ is the *signal-to-noise ratio*, SNR. What we want is the way back. Let $\mu = \mathrm{E}[x^\star \mid x_t]$ be the best guess of the data from a noisy sequence. Then the points of {eq}`eq-noising` have, at each time, the same law as the points of an ordinary differential equation, started in noise {cite:p}`lipman2023flow`:
#
# $$
# \dot x = \frac{\dot\sigma}{\sigma}\, x + \Big(\dot\alpha - \alpha\,\frac{\dot\sigma}{\sigma}\Big)\, \mu(x, t) .
# $$ (eq-ode)
#
# A *step* from $(\alpha, \sigma)$ to $(\alpha', \sigma')$ holds $\mu$ still in between, and then {eq}`eq-ode` can be solved:
#
# $$
# x' = \frac{\sigma'}{\sigma}\, x + \Big(\alpha' - \frac{\sigma'}{\sigma}\,\alpha\Big)\, \mu .
# $$ (eq-step)
#
# Only the ratio $\alpha/\sigma$ is more than a matter of scale. The paper writes its theory with the *linear* path, $\alpha = t$, $\sigma = 1 - t$, and its code with the *variance-preserving* one, $\alpha^2 + \sigma^2 = 1$. Dividing $x$ by $\alpha + \sigma$ turns one into the other, and turns {eq}`eq-step`, which is known as DDIM {cite:p}`song2021ddim`, into Euler's step. So we index everything by
#
# $$
# \gamma = \log\frac{\sigma^2}{\alpha^2}, \qquad t = \frac{\alpha}{\alpha+\sigma} = \frac{1}{1 + e^{\gamma/2}} ,
# $$ (eq-clocks)
#
# noise at large $\gamma$, data at very negative $\gamma$.

# %%
at, then = torch.tensor(1.3, dtype=torch.float64), torch.tensor(-0.4, dtype=torch.float64)
x, mean = normal(100, 3), normal(100, 3)
by_ddim = flow.ddim_step(x, mean, flow.preserving(at), flow.preserving(then)) / sum(
    flow.preserving(then)
)
s, t = flow.time_of(at), flow.time_of(then)
x_linear = x / sum(flow.preserving(at))
by_euler = x_linear + (t - s) * (mean - x_linear) / (1 - s)
assert torch.allclose(by_ddim, by_euler, atol=1e-14)

# %% [markdown]
# Where does the paper's sampler actually go? Its code draws a uniform $u$ and sets $\gamma = \mathrm{loc} - \mathrm{scale}\,\log(-\log u)$, and its $N$ points sit at the middle of $N$ equal parts of $u$. Training draws $u$ evenly, and weights the squared error of $\mu$ by $(1 + \alpha/\sigma)^2 = (1 - t)^{-2}$.

# %% tags=["hide-input"]
released = flow.Gumbel(4.9563, 0.9637)
rows = []
for count in (8, 32, 64, 512):
    g = released.grid(count)[[0, -1]]
    right = flow.nearest_accuracy(float(flow.snr(g[-1])), 50257, 768)
    first, last = flow.time_of(g).tolist()
    weight = flow.loss_weight(*flow.preserving(g))
    rows.append((count, first, last, float(flow.snr(g[-1])), span(weight), right))
last_times = {row[0]: row[2] for row in rows}
rights = {row[0]: row[5] for row in rows}
page.table(
    pd.DataFrame(
        rows,
        columns=[
            "points",
            "first t",
            "last t",
            "SNR at the last",
            "weight (1 + α/σ)²",
            "nearest row is right",
        ],
    ),
    name="tbl-grid",
    caption=(
        "The released schedule (loc 4.9563, scale 0.9637) in the linear-equivalent time of "
        "{eq}`eq-clocks`; the weight at the first and the last point. Last column: how often the row nearest to a noisy embedding is the "
        "right one at the last point, for 50,257 orthogonal rows in 768 dimensions; an integral."
    ),
)
page.say(
    f"**The sampler never comes near $t = 1$.** With 64 points its last one is at $t$ = "
    f"{last_times[64]:.3f}, where the noise in each coordinate is still "
    f"{1 / last_times[64] - 1:.1f} times the row's; the last prediction is then read out as tokens. "
    "Over 768 coordinates that is little enough noise to tell most tokens apart, and a model also "
    "knows the context. But a theorem about $t \\to 1$ is not about this grid."
)

# %% [markdown]
# ```{admonition} Where the paper and its released code disagree
# :class: differs
# - The code's comments call $\gamma$ a log signal-to-noise ratio. It is the log of noise over signal.
# - The paper takes tokens from the row nearest to the last state $x_{t_N}$ or from the largest weight, and finds that the two agree on more than 99 % of tokens. The code's rule called "distance" takes the row nearest to the last *mean*. {numref}`tbl-grid` says why it must: under exact noise the nearest row to $x_{t_N}$ would often be wrong.
# - In both, the network also reads an earlier guess of $\mu$, which is called *self-conditioning*. In the paper the default guess is that of the previous step (*rolling*). The code asks again at the same step instead (*refinement*).
# - The schedule's two numbers stay trainable in the code, under a loss that is weighted by the schedule itself, so the loss can fall by moving them. Ours are fixed.
# - An average of the weights is saved; evaluation loads the raw ones.
# ```

# %% tags=["hide-input"]
page.claim(
    "flow-grid-stops-early",
    statement="At the last point of the released 64-point grid, under exact noise and with "
    "orthogonal rows, the row nearest to the state is the right token as often as the two "
    "decoding rules are said to agree.",
    source="reconstructed",
    paper="decoding rules agree on 99.16 % of tokens at 32 points, 99.82 % at 512",
    ours=rights[64],
    band=(0.99, None),
    control=f"at 512 points: {rights[512]:.3f}; at 32: {rights[32]:.3f}",
    scale="V = 50,257 orthogonal rows, d = 768, exact noise; real rows are not orthogonal",
)

# %% [markdown] slideshow={"slide_type": "subslide"}
# ## The hull
#
# The predictor of the paper gives token $j$ the weight
#
# $$
# w_j \;\propto\; f_j(x, t)\; \exp\Big(\!-\frac{|x^{(i)} - \alpha\, e_j|^2}{2\sigma^2}\Big),
# \qquad \mu^{(i)} = \sum_j w_j\, e_j ,
# $$ (eq-hull)

# %% [markdown]
# where $f$ is the network, positive and summing to one. The network is free to say what the context makes likely; the Gaussian factor is not learned. When all rows have one norm the exponent is $\frac{\alpha}{\sigma^2}\langle x, e_j\rangle$ up to a constant, so {eq}`eq-hull` costs one product with $E^\top$ on top of the network's logits. A network that outputs zeros *is* then the posterior mean of a model that knows nothing but the position itself.

# %%
E = flow.embeddings(V, V, seed)
hull = flow.Hull(lambda x, gamma, c: torch.zeros(*x.shape[:2], V), E)
x, gamma = normal(8, L, V).float(), torch.linspace(-3, 4, 8)
untrained = hull(x, gamma, torch.zeros_like(x)).mean
alone = flow.context_free(x, gamma, E, torch.full((V,), 1 / V)).mean
assert torch.allclose(untrained, alone, atol=1e-5)

# %% [markdown]
# ### Two tokens on a line
#
# Take $V = 2$, $d = 1$, tokens at $+1$ and $-1$, with probabilities $p$ and $1 - p$. There is no context, so the exact posterior mean is {eq}`eq-hull` with $f = (p, 1-p)$, and it is a hyperbolic tangent:
#
# $$
# \mu(x) = \tanh\Big(\frac{\alpha\, x}{\sigma^2} + \tfrac12 \log\frac{p}{1-p}\Big).
# $$ (eq-tanh)
#
# With little noise it is a sharp step. With much noise it is flat, at the mean of the two tokens.


# %%
def two_tokens(log_odds):
    """The hull predictor of the tokens ±1 on the linear path, with this log f_1/f_2 of x and t."""

    def mean(x, at):
        alpha, sigma = at
        return torch.tanh((log_odds(x, alpha) + 2 * alpha * x / sigma**2) / 2)

    return mean


p = 0.3
exact_line = two_tokens(lambda x, t: math.log(p / (1 - p)) + 0 * x)
times = flow.time_of(torch.linspace(14, -8, 1000, dtype=torch.float64))
times = torch.cat([torch.zeros(1, dtype=torch.float64), times])
start = normal(paths)
line, _ = flow.follow(exact_line, start, flow.linear(times))
landed = (line[-1] < 0).long()
expected = (torch.special.ndtr(start) <= 1 - p).long()  # order is kept: quantiles are mapped
mismatches = int((landed != expected).sum())

# %% slideshow={"slide_type": "subslide"} tags=["hide-input"]
figure, (left, right) = plt.subplots(1, 2, figsize=(9.2, 3.3))
x = torch.linspace(-2.5, 2.5, 400, dtype=torch.float64)
for colour, t in zip(PALETTE, (0.1, 0.5, 0.7, 0.9), strict=False):
    point = flow.linear(torch.tensor(t, dtype=torch.float64))
    left.plot(x, exact_line(x, point), color=colour, label=f"t = {t}")
left.set(xlabel="x", ylabel="μ(x)")
left.legend()
for i in range(min(60, paths)):
    right.plot(times, line[:, i], color=(BLUE, RED)[landed[i]], lw=0.8, alpha=0.8)
edge = stats.norm.ppf(1 - p)
right.axhline(edge, color=MUTED, ls="--")
right.set(xlabel="t", ylabel="x", ylim=(-3, 3))
page.show(
    figure,
    name="fig-line",
    caption=(
        f"Two tokens at ±1 with probabilities {p} and {1 - p}. Left: {{eq}}`eq-tanh` at four "
        "times. Right: trajectories of {eq}`eq-ode`, coloured by where they end. Dashed: the "
        f"quantile of the normal distribution above which {p:.0%} of its mass lies."
    ),
    alt=(
        "Left: four increasing curves between minus one and one, steeper at later times. Right: "
        "curves from a normal spread at time zero that all end at plus one or minus one and "
        "never cross; those that start above the dashed line end at plus one."
    ),
)

# %% [markdown]
# Trajectories of a differential equation cannot cross, and on a line that settles everything: order is kept, so the share $p$ that ends at $+1$ must be the top share $p$ of the noise. **In one dimension the flow is the quantile map.** Nothing about $\mu$ is needed to know where each path goes, which makes it a good first test of a sampler. {ref}`An exercise <ex-quantile>` changes the probability.

# %% tags=["hide-input"]
page.claim(
    "flow-quantile-map",
    statement="On a line, the exact flow takes noise to tokens by quantiles.",
    source="ours",
    ours=mismatches,
    band=(0, paths / 1000),
    control=f"by the sign of the noise alone: {int(((start < 0) != landed.bool()).sum())} of "
    f"{paths:,} would be wrong",
    scale=f"mismatches among {paths:,} paths, {len(times):,} points, p = {p}",
)

# %% [markdown]
# ### Five tokens in a plane
#
# In two dimensions there is something to see. Five tokens, of unequal probabilities; the slider of {numref}`fig-plane` follows the noise on its way. For this, and for the proofs below, the best coordinates are
#
# $$
# y = x/\alpha, \qquad s = \sigma/\alpha = \frac{1 - t}{t}, \qquad y' = \frac{s'}{s}\, y + \Big(1 - \frac{s'}{s}\Big)\, \mu :
# $$ (eq-contract)
#
# **a step moves $y$ a part of the way to $\mu$, along a straight line.**

# %%
points = toy.scales(steps)
scale = points[1]
noise = normal(paths, 2)


def run(mean, z=noise):
    """Trajectories y of the plane, and the tokens nearest to their ends."""
    ys, _ = flow.follow(mean, scale[0] * z, points)
    return ys, flow.margin(ys[-1], toy.TOKENS)[0]


exact, ended = run(toy.exact)

# %% slideshow={"slide_type": "subslide"} tags=["hide-input"]
frames = {}
shown = slice(0, min(paths, 400))
ring = toy.TOKENS[[0, 1, 2, 3, 4, 0]]
for target in (100.0, 3.0, 1.5, 0.8, 0.4, 0.1, 0.01):
    i = int((scale - target).abs().argmin())
    shrink = (1 + scale[i] ** 2).sqrt()  # back to the path of unit variance
    figure, axes = plt.subplots(figsize=(4.6, 4.2))
    cloud = exact[i][shown] / shrink
    axes.plot(*(ring / shrink).T, color=MUTED, lw=1)
    axes.scatter(*cloud.T, s=7, lw=0, c=[PALETTE[j] for j in ended[shown]])
    for j, token in enumerate(toy.TOKENS / shrink):
        axes.plot(*token, marker="*", ms=15, color=PALETTE[j], mec=INK)
    axes.set(xlim=(-3, 3), ylim=(-3, 3), aspect="equal", xlabel="$x_1$", ylabel="$x_2$")
    axes.set_title(f"σ/α = {target:g}")
    frames[f"σ/α = {target:g}"] = figure
page.show(
    frames,
    name="fig-plane",
    caption=(
        "Exact flow of five tokens (stars, at α times their place; grey: their hull), on the "
        f"variance-preserving path. Each of {len(cloud)} points has the colour of the token at "
        "which it will end."
    ),
    alt=(
        "First frame: a round cloud of points, already divided into five coloured sectors, with "
        "all five stars at its centre. In later frames the stars move outwards, the cloud splits "
        "into five groups, and each group shrinks onto its star."
    ),
)

# %% slideshow={"slide_type": "subslide"} tags=["hide-input"]
grid = torch.linspace(-3, 3, side, dtype=torch.float64)
where = torch.cartesian_prod(grid, grid)
_, cell = run(toy.exact, where)
away = squared_distances(where, toy.TOKENS)
figure, axes = plt.subplots(figsize=(4.6, 4.2))
for j, token in enumerate(toy.TOKENS):
    mine = (cell == j).reshape(side, side).T.double()
    axes.contourf(grid, grid, mine, levels=[0.5, 1.5], colors=[PALETTE[j]], alpha=0.45)
    axes.plot(*token, marker="*", ms=15, color=PALETTE[j], mec=INK)
    axes.annotate("ABCDE"[j], token.tolist(), (8, 5), textcoords="offset points")
for j in range(4):  # borders of the cells, each once
    closer = away[:, j + 1 :].amin(1) - away[:, j]
    closer[away.argmin(1) < j] = math.nan
    border = closer.reshape(side, side).T
    axes.contour(grid, grid, border, levels=[0], colors=[MUTED], linestyles="--", linewidths=1)
axes.set(aspect="equal", xlabel="noise, first coordinate", ylabel="noise, second coordinate")
page.show(
    figure,
    name="fig-map",
    caption=(
        "Which of the tokens A to E each point of the noise ends at (areas), and which it is "
        "nearest to (dashed). The areas have the tokens' probabilities under the normal law, so a likely "
        "token takes more than its cell and an unlikely one less."
    ),
    alt=(
        "Five coloured regions that meet near the origin, with curved borders. Dashed straight "
        "borders of the nearest-token cells differ from them: the area of the token in the lower "
        "right is a wedge, much smaller than its cell."
    ),
)

# %% [markdown]
# The flow's map is not the map of the nearest token. Its cells are shaped so that each has, under the normal law, exactly its token's probability. We can count:

# %%
counts = ended.bincount(minlength=5).double()
frequencies = counts / paths
deviation = (counts - paths * toy.PRIOR) / (paths * toy.PRIOR * (1 - toy.PRIOR)).sqrt()
by_nearest = (flow.margin(noise, toy.TOKENS)[0] == 4).double().mean()

# %% tags=["hide-input"]
page.claim(
    "flow-exact-frequencies",
    statement="The exact flow ends at each token as often as its probability says.",
    source="ours",
    ours=deviation.abs().max(),
    band=(0, 3.3),
    control=f"token E, of probability {float(toy.PRIOR[4])}: {float(frequencies[4]):.3f} by the "
    f"flow, {float(by_nearest):.3f} by the token nearest to the noise",
    scale=f"largest deviation of five frequencies, in standard deviations, {paths:,} paths",
)

# %% [markdown]
# ## Ending on a token takes more than a hull, and less
#
# The exact mean is a luxury. What happens with an inexact one? Four kinds of error:
#
# - **A hull with wrong logits**: {eq}`eq-hull` with the right kernel, and an $f$ whose logarithm is wrong by up to $B$, smoothly in $x$, at every noise level.
# - **A hull with bounded logits**: the exact logits, but none allowed to be more than 8 below the largest. Its kernel is not exact any more.
# - **Unconstrained**: the exact mean plus an error of length 0.2 that turns with $x$.
# - **Unconstrained, error shrinking** in proportion to $s$.

# %%
drift = toy.unconstrained(0.2, seed)


def shrinking(x, at):
    """The exact mean, plus an error that vanishes like s."""
    center = toy.exact(x, at)
    return center + at[1].clamp(max=1) * (drift(x, at) - center)


kinds = {
    "exact": toy.exact,
    f"hull, logits wrong by up to {bound:g}": toy.mistaken(bound, seed + 6),
    "hull, logits bounded": toy.clipped(8.0),
    "unconstrained": drift,
    "unconstrained, error ∝ s": shrinking,
}
few = noise[: min(1000, paths)]
flows = {name: run(mean, few) for name, mean in kinds.items()}
far = {
    name: torch.stack([squared_distances(y, toy.TOKENS).amin(-1).sqrt() for y in ys])
    for name, (ys, _) in flows.items()
}
late = (scale < 1e-2).nonzero().flatten()[[0, -1]]
slopes = {
    name: float(v[late].max(1).values.log().diff() / scale[late].log().diff())
    for name, v in far.items()
}

# %% [markdown]
# {numref}`fig-falling` follows two of them, from the same noise, on the path of {numref}`fig-plane`. **Predict first**: when almost no noise is left, which of the two sides will have its particles on the tokens? And on which side will predictions have left the hull, already while much noise is left? Then move the slider.

# %%
wrong = f"hull, logits wrong by up to {bound:g}"
watched = torch.logspace(math.log10(20), -2, 25)
rows = sorted({int((scale.log() - s.log()).abs().argmin()) for s in watched})  # few steps: fewer
noises = scale[rows]
near = 0.1  # half the length of the unconstrained predictor's error
falls = {}
for name in (wrong, "unconstrained"):
    y = flows[name][0][rows]  # (levels, N, 2)
    aims = torch.stack(
        [kinds[name](at, (torch.ones_like(s), s)) for at, s in zip(y, noises, strict=True)]
    )
    on_token = (squared_distances(y, toy.TOKENS).amin(-1) < near**2).sum(1)
    falls[name] = y, aims, on_token, toy.outside(aims).sum(1)

# %% tags=["hide-input"]
says = [
    f"Time t = {1 / (1 + s):.2f}. Hull: {fixed:,} of {len(few):,} particles on a token, {left:,} "
    f"predictions outside the hull. Unconstrained: {loose:,} on a token, {out:,} outside."
    for s, fixed, left, loose, out in zip(
        noises, *falls[wrong][2:], *falls["unconstrained"][2:], strict=True
    )
]
words = [f"σ/α = {s:.2g}" for s in noises.tolist()]
level = int((noises - 1).abs().argmin())  # the first that is shown


# %% tags=["hide-input"]
def draw_particles(axes, side, at, corners, colours):
    """Particles at the first level shown and their way to it; parts are named for the script."""
    ring = torch.cat([corners[level], corners[level, :1]])  # (V + 1, 2)
    axes.plot(*ring.T, color=MUTED, lw=1.2, gid=f"ts-ring-{side}")
    ways = at[: level + 1].swapaxes(0, 1)  # (N, levels so far, 2)
    trails = LineCollection(
        list(ways), colors=colours, linewidths=0.8, alpha=0.45, gid=f"ts-trails-{side}"
    )
    axes.add_collection(trails, autolim=False)
    dots = {"s": 13, "c": colours, "edgecolors": PAPER, "linewidths": 0.4}
    axes.scatter(*at[level].T, zorder=3, gid=f"ts-dots-{side}", **dots)
    stars = {"s": 90, "marker": "*", "c": PALETTE[: corners.shape[1]], "edgecolors": INK}
    axes.scatter(*corners[level].T, zorder=2.5, lw=0.7, gid=f"ts-stars-{side}", **stars)


def way(axes, moving):
    """Where the points of all levels lie in the drawing: x and y in turn, a list for each point."""
    return (
        places(axes, moving.swapaxes(0, 1)).reshape(moving.shape[1], -1).tolist()
    )  # (N, 2 levels)


# %% slideshow={"slide_type": "subslide"} tags=["hide-input"]
drawn = 80
shrink = (1 + noises**2).rsqrt()[:, None, None]
figure, panels = plt.subplots(1, 2, figsize=(5.8, 3.2))
for axes, name in zip(panels, falls, strict=True):
    axes.set(xlim=(-3, 3), ylim=(-3, 3), aspect="equal", xlabel="$x_1$", ylabel="$x_2$")
    axes.set(xticks=(-2, 0, 2), yticks=(-2, 0, 2), title=name)
settle(figure)
sides = []
for side, (axes, (name, fall)) in enumerate(zip(panels, falls.items(), strict=True)):
    at, aims, stars = (x * shrink for x in (fall[0][:, :drawn], fall[1][:, :drawn], toy.TOKENS))
    draw_particles(axes, side, at, stars, [PALETTE[j] for j in flows[name][1][:drawn]])
    sides.append({"dots": way(axes, at), "targets": way(axes, aims), "stars": way(axes, stars)})
page.show(
    figure,
    name="fig-falling",
    caption=(
        f"The first {drawn} of {len(few):,} trajectories and their way so far, in the colour of the "
        "token (star) they will be nearest to; grey: the hull. Tokens, hull and predictions are "
        f"drawn at α times their place, all to one scale, at first for {words[level]}. The counts "
        f"are of all trajectories; *on a token* means that $x/\\alpha$ is within {near:g} of it."
    ),
    alt=(
        "Two panels of coloured points on their way from a round cloud to five stars. At the last "
        "level all points of the left panel lie on stars, and those of the right panel beside them."
    ),
    live=Live(
        "particles",
        [
            Slider("noise that is left", words, level, play=True),
            Slider("lines", ["way so far", "prediction"]),
        ],
        says=says[level],
        data={"panels": sides, "says": says},
    ),
)

# %% slideshow={"slide_type": "subslide"} tags=["hide-input"]
figure, panels = plt.subplots(1, 3, figsize=(9.4, 3.2), width_ratios=[1, 1, 1.25])
for axes, name in zip(panels, (wrong, "unconstrained"), strict=False):
    ys, tokens = flows[name]
    for i in range(60):
        axes.plot(*ys[scale < 3, i].T, color=PALETTE[tokens[i]], lw=0.8)
        axes.plot(*ys[-1, i], ".", color=INK, ms=3)
    for j, token in enumerate(toy.TOKENS):
        axes.plot(*token, marker="*", ms=13, color=PALETTE[j], mec=INK, zorder=3, alpha=0.8)
    axes.set(xlim=(-3.2, 3.2), ylim=(-3.2, 3.2), aspect="equal")
    axes.set_title(name, fontsize=9.5)
for colour, (name, v) in zip(PALETTE, far.items(), strict=False):
    panels[2].plot(scale, v.max(1).values, color=colour, label=name)
panels[2].set(xscale="log", yscale="log", xlabel="s = σ/α", ylabel="largest distance to a token")
panels[2].set(xlim=(100, 1e-4))
panels[2].legend(fontsize=7.5, loc="lower left")
page.show(
    figure,
    name="fig-errors",
    caption=(
        "Left and middle: trajectories $y$ from $s = 3$ on, and where they end (dots). Right: the "
        f"largest distance to the nearest token among {len(few):,} trajectories, against the noise "
        "that is left."
    ),
    alt=(
        "Left: curved trajectories all end on stars. Middle: trajectories end beside the stars. "
        "Right: on logarithmic axes, three curves fall along a line of slope one; the curve of "
        "the bounded logits flattens at a few thousandths and that of the unconstrained "
        "predictor at two tenths."
    ),
)

# %% tags=["hide-input"]
ends_at = flows[wrong][1].bincount(minlength=5).double() / len(few)
page.table(
    pd.DataFrame(
        [
            (
                name,
                float(far[name][-1].max()),
                slopes[name],
                *(tokens.bincount(minlength=5).double() / len(few)).tolist(),
            )
            for name, (_, tokens) in flows.items()
        ]
        + [("probabilities", None, None, *toy.PRIOR.tolist())],
        columns=["predictor", "largest distance at the end", "slope", *"ABCDE"],
    ),
    name="tbl-errors",
    caption=(
        f"The end at $s$ = {float(scale[-1]):g}, the slope of log distance against log $s$ below "
        "$s = 0.01$, and how often each token (A to E) is the nearest at the end; "
        f"{len(few):,} trajectories each, of the same noise."
    ),
)

# %% tags=["hide-input"]
page.claim(
    "flow-hull-converges",
    statement="A hull predictor with the exact kernel converges to tokens, in proportion to the "
    "noise that is left, even when its logits are wrong by a bounded amount.",
    source="reconstructed",
    paper="convergence to embeddings, no rate",
    ours=max(abs(slopes[name] - 1) for name in ("exact", wrong)),
    band=(0, 0.02),
    control=f"bounded logits: slope {slopes['hull, logits bounded']:.2f}",
    scale=f"|slope - 1|, logit error 0 and {bound:g}, {len(few):,} trajectories, {steps} points",
)
page.claim(
    "flow-unconstrained-stalls",
    statement="An unconstrained predictor with an error that doesn't vanish does not end on tokens.",
    source="stated",
    paper="both distances grow and mix under a direct head",
    ours=far["unconstrained"][-1].median(),
    band=(0.15, 0.25),
    control=f"the same error, shrinking with s: {float(far['unconstrained, error ∝ s'][-1].max()):.1e}",
    scale=f"median distance to the nearest token at s = {float(scale[-1]):g}; error of length 0.2",
)
page.claim(
    "flow-hull-not-enough",
    statement="To stay in the hull is not enough: with bounded logits the flow stops short.",
    source="ours",
    ours=far["hull, logits bounded"][-1].max() / far["exact"][-1].max(),
    band=(3, None),
    control="exact logits are the 1 of this ratio",
    scale=f"largest distance at s = {float(scale[-1]):g} over that of the exact mean; range of 8 nats",
)
page.claim(
    "flow-right-tokens-wrong-law",
    statement="To end on tokens is not to end on the right ones: bounded logit errors change the "
    "frequencies, while every path still ends on a token.",
    source="ours",
    ours=(ends_at - toy.PRIOR).abs().sum() / 2,
    band=(0.05, None),
    control=f"exact mean: {float((frequencies - toy.PRIOR).abs().sum() / 2):.3f}",
    scale=f"total variation between frequencies and probabilities, error up to {bound:g} nats",
)

# %% [markdown]
# So the hull is neither necessary (an error that shrinks with the noise does as well) nor sufficient (with a blunted kernel the flow stops short). What it does is to make one thing automatic: near a token the *exact kernel* outweighs any bounded error of the network, and the error of $\mu$ dies out by itself, faster than any power of $s$. And none of this says that the tokens are the right ones. Where blunt logits stop can be said exactly: {ref}`an exercise <ex-blunt>`.
#
# ## What can be proved
#
# ```{admonition} Ours
# :class: ours
# Two statements that need no assumption on the grid. Both follow from {eq}`eq-contract` and are checked in the tests of this book.
# ```
#
# **A. The end is in the hull, on any grid.** Apply {eq}`eq-step` $K$ times:

# %% [markdown] slideshow={"slide_type": "subslide"}
# $$
# x_K = \frac{\sigma_K}{\sigma_0}\, x_0 + \Big(\alpha_K - \sigma_K \frac{\alpha_0}{\sigma_0}\Big)\, \bar\mu,
# \qquad \bar\mu = \frac{\sum_k \big(\tfrac{\alpha_{k+1}}{\sigma_{k+1}} - \tfrac{\alpha_k}{\sigma_k}\big)\, \mu_k}{\tfrac{\alpha_K}{\sigma_K} - \tfrac{\alpha_0}{\sigma_0}} ,
# $$ (eq-identity)

# %% [markdown]
# a mean of all predictions with positive weights. No step size can throw a hull predictor out of the hull.

# %%
coarse = toy.scales(6, 30.0, 0.2)
ys, means = flow.follow(toy.exact, coarse[1][0] * few, coarse)
growth = (coarse[0] / coarse[1]).diff()  # of α/σ, at each step
average = torch.tensordot(growth / growth.sum(), means, dims=1)
shrink = coarse[1][-1] / coarse[1][0]
assert torch.allclose(ys[-1], shrink * ys[0] + (1 - shrink) * average)

# %% [markdown]
# **B. Capture.** Let $v$ be the token nearest to $y$ and
#
# $$
# m_u(y) = \tfrac12\big(|y - e_u|^2 - |y - e_v|^2\big), \qquad m = \min_{u \ne v} m_u ,
# $$ (eq-margin)
#
# the *margin*. Put $g = \frac12 \min_{u \neq w} |e_u - e_w|^2$, let $\Delta$ be the largest distance between two rows, and let $B$ bound the error of the logits. By {eq}`eq-hull` any other token has at most $e^{2B - m/s^2}$ times the weight of $v$, so together
#
# $$
# 1 - w_v \le (V - 1)\, e^{2B - m/s^2} .
# $$ (eq-weight)
#
# Now $m_u$ is *affine* in $y$: the squares cancel. At $e_v$ it is at least $g$, at any other row at least $-\Delta^2/2$. So at $\mu$
#
# $$
# m_u(\mu) \ge g - (1 - w_v)\big(g + \tfrac12\Delta^2\big) > \tfrac{g}{2}
# \quad\text{as soon as}\quad
# m > \theta(s) = s^2 \Big[2B + \log\frac{2(V-1)(g + \Delta^2/2)}{g}\Big] .
# $$ (eq-threshold)
#
# A step takes $y$ to a point *between* $y$ and $\mu$, where $m_u$ lies between its two values. If $m > \theta(s)$ and $\theta(s) < g/2$, both values exceed $\theta(s)$, which only falls. **The condition can't be lost again, whatever the remaining steps are, and the trajectory ends at $v$.** That is a certificate: it can be issued for one position of one sample, while the flow is still running. It takes a bound $B$; for a source that is known, {ref}`an exercise <ex-context>` finds one.

# %%
certified = {}
for B in bounds:
    ys, tokens = (
        run(toy.mistaken(B, seed + 6), few) if B else (flows["exact"][0], flows["exact"][1])
    )
    excess = 2 * B + math.log(float(toy.PRIOR.max() / toy.PRIOR.min()))  # the prior is in f too
    named = torch.stack(
        [flow.certify(y, s, toy.TOKENS, excess) for y, s in zip(ys, scale, strict=True)]
    )
    possible = flow.threshold(scale, excess, toy.TOKENS) < geometry(toy.TOKENS)[0] / 2
    latest = float(scale[possible][0])
    certified[B] = ((named >= 0).double().mean(1), *flow.audit(named, tokens), latest)

# %% slideshow={"slide_type": "subslide"} tags=["hide-input"]
one = int((scale - 1).abs().argmin())
guesses = flow.margin(flows["exact"][0][one], toy.TOKENS)[0]
figure, axes = plt.subplots(figsize=(6.4, 3.2))
for colour, (B, (share, _, _, latest)) in zip(PALETTE, certified.items(), strict=False):
    axes.plot(scale, share, color=colour, label=f"B = {B:g}")
    axes.axvline(latest, color=colour, ls=":", lw=1)
axes.set(xscale="log", xlim=(2, 1e-2), xlabel="s = σ/α", ylabel="share certified")
axes.yaxis.set_major_formatter(lambda v, _: f"{v:.0%}")
axes.legend()
page.show(
    figure,
    name="fig-certified",
    caption=(
        f"Share of {len(few):,} trajectories that hold a certificate, for four bounds $B$ on the "
        "logit error. Dotted: the noise above which the threshold of {eq}`eq-threshold` is too "
        "high for anyone. Most trajectories are certain as soon as they can be."
    ),
    alt=(
        "Four curves that rise steeply from zero to one hundred per cent as the noise falls, "
        "later for larger bounds, each at its dotted line."
    ),
)
page.claim(
    "flow-certificates",
    statement="A certificate of capture is never wrong, and every trajectory gets one.",
    source="ours",
    ours=sum(false + missing for _, false, missing, _ in certified.values()),
    band=(0, 0),
    control="naming the nearest token at s = 1 instead: "
    f"{int((guesses != flows['exact'][1]).sum())} of {len(few):,} wrong",
    scale=f"wrong plus missing, {len(bounds)} error bounds up to {max(bounds):g} nats, {len(few):,} "
    "trajectories each",
)

# %% [markdown]
# What B doesn't say is that a trajectory must ever come to *have* a margin. It could balance between two tokens for ever; how unstable such a balance is, {ref}`an exercise <ex-slope>` works out. That is the hard part, and the next section is about it.
#
# ## Theorem 1
#
# ```{admonition} What the paper says
# :class: paper
# Assume (a) $f_j > 0$; (b) along the sampled trajectory, $\log f_j$ is Lipschitz in $t$, with one constant for all $j$; (c) the grid goes to $t_N \to 1$ with $(t_{k+1} - t_k)/(1 - t_{k+1})^3 < \delta$ for a small $\delta$. Then each $x_{t_N}^{(i)}$ converges to some $e_{j}$ in probability as $N \to \infty$.
# ```
#
# The proof freezes $f$ along the trajectory that it is evaluated on, and compares the density that the flow pushes forward with a mixture of Gaussians around the $\alpha e_j$. But a frozen $f$ depends on where the trajectory began, and then there is no one density to push forward. Whether this matters can be tried on a line. Take tokens $\pm 1$ and
#
# $$
# \log \frac{f_1}{f_2} = -\frac{2tx}{(1-t)^2} - 6x
# \quad\Longrightarrow\quad \mu = -\tanh(3x) .
# $$ (eq-trap)
#
# This $f$ is positive and smooth for $t < 1$. It undoes the kernel, and sends every point to the *middle*. On its way there $x$ shrinks so fast that $\log f$ changes at a bounded rate: (b) holds. For comparison, keep the pull to the middle but let it be Lipschitz in $x$, with a constant that doesn't grow as $t \to 1$: $\log f_1/f_2 = -4\tanh(2x)$.
#
# We also count. The proof adds up one error of the order $\delta^2$ for each of the $N$ steps, and takes the sum $N\delta^2$ to be bounded.


# %%
def trap(x, t):
    """log f_1/f_2 that undoes the kernel: the mean is -tanh(3x)."""
    return -2 * t * x / (1 - t) ** 2 - 6 * x


def lipschitz(x, t):
    """log f_1/f_2 with the same pull to the midpoint, but Lipschitz in x at all t."""
    return -4 * torch.tanh(2 * x)


def lipschitz_constant(log_odds, xs, times):
    """The largest |change of log f_1/f_2| / |change of t| along trajectories: (b)'s constant."""
    values = log_odds(xs, times[:, None])
    return float((values.diff(dim=0).abs() / times.diff()[:, None]).max())


# %%
begin = torch.linspace(-3, 3, 400, dtype=torch.float64)  # an even number: not exactly 0
tries = []
for delta in deltas:
    for end in ends:
        t = flow.theorem_grid(delta, end)
        for name, odds in (("{eq}`eq-trap`", trap), ("Lipschitz in x", lipschitz)):
            xs, _ = flow.follow(two_tokens(odds), begin, flow.linear(t))
            gap = (xs[-1].abs() - 1).abs()
            constant = lipschitz_constant(odds, xs, t)
            tries.append(
                (name, delta, end, len(t) - 1, (len(t) - 1) * delta**2, constant,
                 float(gap.max()), float(gap.max() / (1 - t[-1])))
            )  # fmt: skip
tries = pd.DataFrame(
    tries,
    columns=[
        "log f", "δ", "end 1 − t", "steps N", "N δ²", "Lipschitz in t",
        "largest distance", "over 1 − t",
    ],
)  # fmt: skip

# %% slideshow={"slide_type": "subslide"} tags=["hide-input"]
t = flow.theorem_grid(max(deltas), min(ends))
drawn = torch.searchsorted(t, torch.linspace(0, float(t[-1]), 200, dtype=t.dtype)).unique()
figure, panels = plt.subplots(1, 2, figsize=(9.2, 3.0), sharey=True)
titles = {r"$\mu = -\tanh(3x)$": trap, r"$f$ Lipschitz in $x$": lipschitz}
for axes, (title, odds) in zip(panels, titles.items(), strict=True):
    xs, _ = flow.follow(two_tokens(odds), begin[::8], flow.linear(t))
    for path in xs.T:
        axes.plot(t[drawn], path[drawn], color=BLUE if path[0] > 0 else RED, lw=0.8)
    for token in (-1, 1):
        axes.axhline(token, color=MUTED, ls="--", lw=1)
    axes.set(xlabel="t", xlim=(0, 1), ylim=(-3, 3))
    axes.set_title(title)
panels[0].set_ylabel("x")
page.show(
    figure,
    name="fig-trap",
    caption=(
        "Two hull predictors with positive, smooth $f$, on the grid of the theorem "
        f"(δ = {max(deltas)}, to 1 − t = {min(ends)}). Dashed: the tokens."
    ),
    alt=(
        "Left: all trajectories run to zero, the midpoint between the tokens. Right: they first "
        "run towards zero too, then leave it and end at plus or minus one."
    ),
)
page.table(
    tries,
    name="tbl-theorem",
    caption=(
        f"{len(begin)} trajectories from $|x_0| \\le 3$ on the coarsest grids that assumption (c) "
        "allows. The Lipschitz constant in $t$ is measured along the trajectories."
    ),
)

# %% slideshow={"slide_type": "subslide"} tags=["hide-input"]
trapped, free = (tries[tries["log f"] == name] for name in tries["log f"].unique())
growth = trapped[trapped["δ"] == max(deltas)]["N δ²"]
page.claim(
    "flow-theorem-literal",
    statement="Theorem 1 as stated: with f positive, log f Lipschitz in t along trajectories, and "
    "the grid of assumption (c), trajectories end at tokens.",
    source="stated",
    paper="convergence in probability",
    ours=trapped["largest distance"].min(),
    band=(0, 0.5),
    control=f"f Lipschitz in x: {free['largest distance'].min():.4f}",
    scale=f"largest distance to a token, least over {len(trapped)} grids; tokens ±1, "
    f"{len(begin)} trajectories; constant of (b) {span(trapped['Lipschitz in t'], 1)}",
)
page.claim(
    "flow-theorem-lipschitz",
    statement="With log f Lipschitz in x, uniformly in t, trajectories end at tokens, at a distance "
    "that is a bounded multiple of 1 − t.",
    source="reconstructed",
    ours=free["over 1 − t"].max(),
    band=(0, 10),
    control=f"the counterexample, at 1 − t = {min(ends)}: {trapped['over 1 − t'].max():.0f}",
    scale=f"largest distance over 1 − t, {len(free)} grids, {len(begin)} trajectories",
)
page.claim(
    "flow-theorem-grid",
    statement="The proof's sum of N errors of size δ² stays bounded on the grids that (c) allows.",
    source="stated",
    paper="O(1)",
    ours=growth.max() / growth.min(),
    band=(None, 2),
    control=f"(ε/ε')² for the ends {max(ends)} and {min(ends)}: {(max(ends) / min(ends)) ** 2:.0f}",
    scale=f"growth of N δ² from 1 − t = {max(ends)} to {min(ends)} at δ = {max(deltas)}",
)

# %% [markdown]
# Two conclusions. **The theorem needs a Lipschitz condition in $x$**, not only in $t$ along the path; that is the version which the table supports, and which the rest of this book means. And the grid has to be finer than (c) says: to reach $1 - t = \varepsilon$ takes $N \approx (\varepsilon^{-2} - 1)/2\delta$ steps, so $N\delta^2 \approx \delta/2\varepsilon^2$ is only bounded when $\delta$ shrinks like $\varepsilon^2$. Neither is a fault of the method: with capture (B), and away from trajectories that balance on a border, a flow in the hull does end on tokens, at any step size.
#
# ```{admonition} Differs from the paper
# :class: differs
# The theorem is about the plain sampler. With self-conditioning guidance above 1 or unconditional guidance above 0, the quantity that drives the step is an extrapolation and can leave the hull; with the released grid, $t_N$ stays below a fifth ({numref}`tbl-grid`). The samples of the paper's main table are made with all of these.
# ```
#
# ## Three propositions
#
# **Proposition 1** is Bayes' rule with independent noise: $P(s_i = j \mid x) \propto P(s_i = j \mid x^{(-i)})\, \exp(-|x^{(i)} - \alpha e_j|^2/2\sigma^2)$, where $x^{(-i)}$ is the sequence without position $i$. So a perfect network's $f$ is what the *other* positions say about this one. We check it by listing all sequences of a small source, and against a second algorithm.

# %%
small = flow.MarkovMixture.random(V=4, components=3, seed=seed, branching=2)
E4, gamma = flow.embeddings(4, 4, seed).double(), torch.tensor(0.5, dtype=torch.float64)
e = E4[small.sample(20, 5, generator)]
x = flow.corrupt(e, gamma, normal(*e.shape))
full, without = flow.brute_force(small, x, gamma, E4)
oracle = small.oracle(E4)(x, gamma)
left_out = flow.leave_one_out(oracle.logits, x, gamma, E4)
gap = max(float((oracle.logits - full).abs().max()), float((left_out - without).abs().max()))

# %% tags=["hide-input"]
page.claim(
    "flow-proposition-1",
    statement="A token's posterior is its Gaussian kernel times what the other positions say.",
    source="stated",
    ours=gap,
    band=(0, 1e-8),
    control=f"without the kernel: {float((full - without).abs().max()):.2f}",
    scale=f"largest difference in log probability, all {4**5:,} sequences of V = 4, L = 5 listed "
    "against forward–backward",
)

# %% [markdown]
# **Proposition 2** is a warning about regression without the hull. The predictor $\mu = x/(\alpha + \sigma)$ is right in the limit: on the path {eq}`eq-noising`, $x \to x^\star$ as $\sigma \to 0$. But put it into {eq}`eq-step` and everything cancels: $x' = x\,\frac{\alpha'+\sigma'}{\alpha+\sigma}$. The flow only rescales its noise. Its samples are Gaussian for ever, and miss *every* token by at least 1 with a probability of at least $P(\chi^2_d \ge (1+\sqrt d)^2)$, since all tokens lie on a sphere of radius $\sqrt d$.

# %%
missing = []
for width in (2, 16, 768):
    rows_d = flow.embeddings(64, width, seed, "gaussian").double()
    z = normal(2000, width)
    grid_d = flow.preserving(torch.linspace(12, -12, 8, dtype=torch.float64))
    xs, _ = flow.follow(lambda x, at: x / (at[0] + at[1]), z, grid_d)
    end = xs[-1] / grid_d[0][-1]
    missed = float((torch.cdist(end, rows_d).amin(1) >= 1).double().mean())
    missing.append((width, stats.chi2.sf((1 + math.sqrt(width)) ** 2, width), missed))

# %% tags=["hide-input"]
page.table(
    pd.DataFrame(missing, columns=["d", "lower bound", "measured, 64 tokens"]),
    name="tbl-miss",
    caption="How often the flow of Proposition 2 ends at a distance of 1 or more from every token.",
)
page.claim(
    "flow-proposition-2",
    statement="A predictor that is right in the limit can generate rescaled noise only.",
    source="stated",
    ours=min(measured - low for _, low, measured in missing),
    band=(-0.02, None),
    control="exact hull flow of the plane: share farther than 1 from every token "
    f"{float((far['exact'][-1] >= 1).double().mean()):.2f}",
    scale="least of measured share minus bound; d = 2, 16, 768, 2,000 samples each",
)

# %% [markdown]
# **Proposition 3.** When rows have one norm and no two of them have a cosine above $1 - \rho$,
#
# $$
# \frac{|\mu|^2}{|e|^2} \le 1 - \rho + \rho \sum_j w_j^2 ,
# $$ (eq-onehot)
#
# so a prediction can be as long as a row only if its weights are nearly one-hot. That one norm for all matters in another way, too. With rows of *unequal* norm, some tokens may lie inside the hull of the others. Then a mixture of other tokens can make them, and the flow may end there for the wrong reason. ({ref}`An exercise <ex-own-tokens>` puts a token of yours inside.)


# %%
def extreme_share(rows):
    """Share of rows that no mixture of the others can make."""
    return len(spatial.ConvexHull(rows.numpy()).vertices) / len(rows)


table = flow.embeddings(200, 4, seed, "gaussian").double()
sharpness = torch.logspace(-1, 2, 4000, dtype=torch.float64)
weights = (sharpness[:, None] * normal(4000, 200)).softmax(-1)
length = (weights @ table).square().sum(-1) / table[0].square().sum()
unit = normalize(table, dim=-1)
rho = 1 - (unit @ unit.T).abs().fill_diagonal_(0).max()
limit = 1 - rho + rho * weights.square().sum(-1)
share_equal = extreme_share(table)
share_raw = [extreme_share(normal(200, 4)) for _ in range(5)]

# %% tags=["hide-input"]
page.claim(
    "flow-proposition-3",
    statement="For rows of one norm, |μ|²/|e|² is at most 1 − ρ + ρ Σ w².",
    source="stated",
    ours=(length - limit).max(),
    band=(None, 1e-6),
    control=f"share of the bound that is reached: {span(length / limit)}",
    scale="largest excess over the bound, 4,000 random weights of all sharpnesses, V = 200, d = 4",
)
page.claim(
    "flow-extreme-points",
    statement="Rows of one norm are all vertices of their hull; raw Gaussian rows are not.",
    source="ours",
    ours=share_equal,
    band=(1, 1),
    control=f"Gaussian rows as drawn: {span(share_raw)}",
    scale="share of 200 rows in d = 4 that are vertices",
)

# %% [markdown]
# ## A source that is known
#
# To go further we need sequences, and an exact posterior of sequences. A **mixture of Markov chains** has both. One of a few chains is drawn, and then writes the whole sequence, each token from the one before. The likelihood of a sequence is a sum over chains; the posterior given a noisy one is a forward–backward pass, in float64. A predictor that computes it is our **oracle**. Each token has a few common successors, and any token may follow with a small probability, so that a wrong sequence gets a low likelihood instead of none.

# %%
source = flow.MarkovMixture.random(V=V, components=components, seed=seed)
E = E.double()
oracle = source.oracle(E)
entropy, entropy_error = source.entropy(L, 2000, generator)
single = float(torch.special.entr(source.marginals(L)).sum(1).mean())

# %% tags=["hide-input"]
page.say(
    f"$V = {V}$ tokens, {components} chains, $L = {L}$. Entropy: {entropy:.4f} nats a token "
    f"(± {entropy_error:.0e}), a perplexity of {math.exp(entropy):.2f}. A reader who knows nothing "
    f"of the neighbours faces {single:.3f} nats: context is worth {single - entropy:.2f}."
)

# %% [markdown]
# ### Likelihood from squared errors
#
# A network trained with a squared error has no likelihood to report, it seems. But there is an identity {cite:p}`guo2005mutual`: with $\mathrm{SNR} = \alpha^2/\sigma^2$ and $\mathrm{mmse}$ the squared error of the exact mean,
#
# $$
# H(x^\star) = \frac12 \int_0^\infty \mathrm{mmse}\; d\,\mathrm{SNR}
# = \frac12 \int \mathrm{SNR} \cdot \mathrm{mmse}\; d\gamma .
# $$ (eq-immse)
#
# Any other predictor has a larger error, so **the same integral over a model's own squared errors is an upper bound on its negative log-likelihood**: that of the model as a diffusion, which draws fresh noise at each step; its deterministic flow has a law of its own, near to that one where the model is good. Training with a squared error is training on likelihood, with the noise levels weighted. For the context-free posterior the integral must give the entropy of single tokens. With orthogonal rows the squared error is also, exactly, $d$ times the Brier score of the weights.

# %%
gammas = torch.linspace(-3, 10, levels, dtype=torch.float64)
tokens = source.sample(curve, L, generator)
readers = {
    "with all of the context": oracle,
    "without context": lambda x, g, c: flow.context_free(x, g, E, source.marginals(L)),
}
errors = {
    name: flow.squared_errors(reader, E, tokens, gammas, generator)
    for name, reader in readers.items()
}
integrals = {name: flow.nll_bound(gammas, error) for name, error in errors.items()}
density = {name: flow.information_density(gammas, error.mean(1)) for name, error in errors.items()}
fitted = flow.fit_gumbel(gammas, density["with all of the context"])

x = flow.corrupt(E[tokens], gammas[10], normal(curve, L, V))
guess = oracle(x, gammas[10])
squared = (guess.mean - E[tokens]).square().sum(-1)
brier = (guess.logits.exp() - one_hot(tokens, V)).square().sum(-1)
assert torch.allclose(squared, V * brier, atol=1e-4)

# %% tags=["hide-input"]
figure, (left, right) = plt.subplots(1, 2, figsize=(9.2, 3.2))
for colour, name in zip((BLUE, MUTED), errors, strict=True):
    left.plot(gammas, errors[name].mean(1) / V, color=colour, label=name)
    right.plot(gammas, density[name], color=colour, label=name)
left.set(xlabel="γ (noise to the right)", ylabel="squared error per coordinate")
left.legend()
z = (gammas - fitted.loc) / fitted.scale
right.plot(
    gammas, entropy * torch.exp(-z - torch.exp(-z)) / fitted.scale, color=RED, ls="--",
    label="fitted schedule",
)  # fmt: skip
right.set(xlabel="γ", ylabel="nats per unit of γ")
right.legend()
page.show(
    figure,
    name="fig-information",
    caption=(
        f"Exact squared error (left) and information per unit of γ (right) of the known source, "
        f"{curve:,} sequences. The area under the blue curve on the right is the entropy, under "
        "the grey one that of single tokens. Dashed: a Gumbel density with the blue curve's mean "
        f"and variance, loc {fitted.loc:.3f} and scale {fitted.scale:.3f}."
    ),
    alt=(
        "Left: two error curves rise with noise from zero to one; with context the rise comes "
        "later. Right: two humps; the hump with context is smaller and lies at more noise, and "
        "the dashed density follows it closely."
    ),
)

# %% tags=["hide-input"]
ratio = {
    name: integrals[name].mean() / level
    for name, level in (("with all of the context", entropy), ("without context", single))
}
ratio_error = float(integrals["with all of the context"].std() / math.sqrt(curve) / entropy)
page.claim(
    "flow-information-identity",
    statement="Half the integral of the exact squared error over SNR is the entropy.",
    source="ours",
    ours=ratio["with all of the context"] - 1,
    uncertainty=ratio_error,
    band=(-max(0.02, 3 * ratio_error), max(0.02, 3 * ratio_error)),
    control=f"without context: {float(integrals['without context'].mean()):.3f} nats, and the "
    f"entropy of single tokens is {single:.3f}",
    scale=f"relative difference, {curve:,} sequences at {levels} noise levels",
)

# %% [markdown]
# The right panel of {numref}`fig-information` is a *recipe*: it says at which noise there is something to learn. The dashed density makes training times fall there; the schedule with two numbers that the paper's code uses has the same family, and here it is simply fitted. The page {doc}`language` trains with it.
#
# ### An exact model in an inexact solver
#
# Give the sampler the oracle, and whatever is wrong with its samples is the fault of the steps, that is, of too few evaluations of the predictor (*NFE*, number of function evaluations). Each sample is scored by its true likelihood, by the entropy of its own tokens, and by the divergence of its pairs of neighbours from the exact law of pairs. **The data themselves are scored in the same way**, since a finite sample of the right law doesn't have a divergence of zero.
#
# To the exact model we also apply a *mechanism*, one of those with which the paper sharpens its samples. **Unconditional guidance** makes every step longer. In the coordinates of {eq}`eq-contract`, with $\hat\epsilon = (y - \mu)/s$ the noise that $y$ holds if $\mu$ is right,
#
# $$
# y' = y + (1 + w_{ug})\,(s' - s)\,\hat\epsilon .
# $$ (eq-unconditional)
#
# With $w_{ug} = 0$ this is {eq}`eq-step`; with more, $y$ goes farther towards $\mu$ than it should.

# %%
best, worst = max(nfes), min(nfes)
real = judge(source.sample(n, L, generator), source)
solved = {}
for nfe in nfes:
    made = sample(oracle, plan(nfe, Mechanism(K=0), fitted), (n, L, V), generator)
    solved[nfe] = judge(made.decode(E), source)
guided = {}
for w in guidances:
    how = plan(best, Mechanism(K=0, w_ug=w), fitted)
    guided[w] = judge(sample(oracle, how, (n, L, V), generator).decode(E), source)

# %% tags=["hide-input"]
page.table(
    pd.DataFrame(
        [
            (name, v.nll, v.error, v.perplexity, v.entropy, v.bigram_kl,
             "yes" if v.degenerate(real) else "")
            for name, v in [
                ("data", real),
                *((f"NFE {nfe}", v) for nfe, v in solved.items()),
                *((f"NFE {max(nfes)}, w_ug = {w:g}", v) for w, v in guided.items() if w),
            ]
        ],
        columns=[
            "samples", "NLL", "± se", "perplexity", "entropy", "pair KL", "degenerate",
        ],
    ),
    name="tbl-solver",
    caption=(
        f"{n:,} sequences each, from the exact denoiser. NLL in nats a token under the source; "
        f"exact entropy {entropy:.4f}. *Degenerate*: likelier than the data and clearly less varied."
    ),
)  # fmt: skip

# %% tags=["hide-input"]
figure, (left, right) = plt.subplots(1, 2, figsize=(9.2, 3.2))
left.errorbar(
    list(solved), [v.nll for v in solved.values()], [2 * v.error for v in solved.values()],
    color=BLUE, marker="o", ms=4,
)  # fmt: skip
left.axhline(entropy, color=MUTED, ls="--")
left.set(xscale="log", xlabel="network evaluations", ylabel="NLL, nats a token")
left.set_xticks(nfes, [str(k) for k in nfes])
left.minorticks_off()
right.plot(
    [v.perplexity for v in guided.values()], [v.bigram_kl for v in guided.values()],
    color=RED, marker="o", ms=4,
)  # fmt: skip
for w, v in guided.items():
    right.annotate(f"{w:g}", (v.perplexity, v.bigram_kl), xytext=(5, 3), textcoords="offset points")
right.plot(real.perplexity, real.bigram_kl, "*", ms=13, color=INK)
right.set(yscale="log", xlabel="perplexity under the source", ylabel="divergence of pairs")
page.show(
    figure,
    name="fig-solver",
    caption=(
        "Left: likelihood of samples from the exact denoiser against the number of steps (bars: "
        "two standard errors; dashed: exact entropy). Right: unconditional guidance $w_{ug}$ "
        f"(numbers) at {max(nfes)} evaluations: perplexity and divergence. Star: the data."
    ),
    alt=(
        "Left: the negative log-likelihood falls quickly with evaluations to the dashed line. "
        "Right: with more guidance the perplexity falls below that of the data while the "
        "divergence rises by two orders of magnitude."
    ),
)

# %% tags=["hide-input"]
page.claim(
    "flow-solver-converges",
    statement=f"With the exact denoiser, {best} evaluations sample the source's own likelihood.",
    source="ours",
    ours=abs(solved[best].nll - entropy),
    uncertainty=solved[best].error,
    band=(0, max(0.03, 3 * solved[best].error)),
    control=f"{worst} evaluations: {solved[worst].nll - entropy:+.3f}",
    scale=f"|NLL − entropy| in nats a token, {n:,} sequences",
)
strongest = max(guidances)
page.claim(
    "flow-guidance-trades",
    statement="Unconditional guidance lowers the perplexity of a perfect model below the data's, "
    "and pays with the law of its samples.",
    source="ours",
    paper="w_ug moves along the perplexity–entropy frontier",
    ours=guided[strongest].bigram_kl / solved[best].bigram_kl,
    band=(5, None),
    control=f"data: {real.bigram_kl / solved[best].bigram_kl:.2f} of the same unit; perplexity "
    f"{guided[strongest].perplexity:.2f} with guidance {strongest:g}, {real.perplexity:.2f} of the data",
    scale=f"pair divergence over that without guidance, NFE {best}, {n:,} sequences",
)

# %% [markdown]
# The model behind the right panel of {numref}`fig-solver` is *perfect*, and guidance makes its perplexity better than perfect. That is a distortion, not a success: the divergence says so, and so would a reader. **A perplexity below the data's is an error with a flattering sign.** Wherever samples are compared in this part, the data's own point is drawn, and samples that are likelier and less varied than the data are marked. Whether a little guidance can make up for a coarse grid is {ref}`an open exercise <ex-coarse>`.
#
# ### Model, solver, mechanism
#
# Now make the *model* wrong, by a known amount: let it take the context for less than it is worth, $f^{0.7}$ in the place of $f$, with the exact kernel. Its squared errors bound its likelihood by {eq}`eq-immse`, before anything is sampled. Then sample with and without guidance.


# %%
def blunt(x, g, c):
    """The oracle, with what the context says raised to the power 0.7."""
    f = flow.leave_one_out(oracle(x, g).logits, x, g, E)
    logits = 0.7 * f + flow.log_kernel(x, *flow.preserving(g), E)
    return flow.Prediction(logits, logits.softmax(-1) @ E)


some = tokens[: max(1, curve // 2)]
blunt_bound = float(
    flow.nll_bound(gammas, flow.squared_errors(blunt, E, some, gammas, generator)).mean()
)
exact_bound = float(integrals["with all of the context"].mean())
mild = 0.1
apart = {
    "data": (None, real),
    f"exact model, NFE {worst}: solver": (exact_bound, solved[worst]),
    f"exact model, NFE {best}: none": (exact_bound, solved[best]),
}
for label, model, w, level in (
    ("blunt model: model", blunt, 0.0, blunt_bound),
    (f"exact model, w_ug = {mild}: mechanism", oracle, mild, exact_bound),
    (f"blunt model, w_ug = {mild}: both", blunt, mild, blunt_bound),
):
    how = plan(best, Mechanism(K=0, w_ug=w), fitted)
    apart[label] = (level, judge(sample(model, how, (n, L, V), generator).decode(E), source))

# %% tags=["hide-input"]
page.table(
    pd.DataFrame(
        [
            (name, level, v.nll, v.error, v.entropy, v.bigram_kl)
            for name, (level, v) in apart.items()
        ],
        columns=["samples: what is wrong", "½∫ mse dSNR", "NLL", "± se", "entropy", "pair KL"],
    ),
    name="tbl-apart",
    caption=(
        f"Errors of the solver, of the model and of the mechanism, told apart; NFE {best} where "
        f"none is given, {n:,} sequences. The bound is the model's own and knows neither the "
        f"solver nor the mechanism. Exact entropy {entropy:.4f} nats."
    ),
)
model_gap = apart["blunt model: model"][1].nll - entropy
both_gap = apart[f"blunt model, w_ug = {mild}: both"][1].nll - entropy
page.say(
    f"The blunt model's samples are {model_gap:+.3f} nats a token from the source's entropy, and "
    f"{both_gap:+.3f} with guidance {mild}. The two errors have opposite signs: a mechanism that "
    "sharpens can make up for a model that is too timid, and on a model that isn't it is an error "
    f"of its own. Note also that the bound rose by only {blunt_bound - exact_bound:.3f}. The bound "
    "scores *data* under the model, the NLL scores *samples* under the source. To give a little too "
    "much to everything unlikely costs next to nothing by the first, and a great deal by the second."
)

# %% [markdown]
# ## Exercises
#
# From ★ (predict, then run) to ★★★ (extend the paper). Predict on paper first; each cell ends in a check that says what a wrong answer may come from.

# %% [markdown] slideshow={"slide_type": "subslide"}
# ```{exercise} ★ A rarer token
# :label: ex-quantile
#
# In {numref}`fig-line` token $+1$ has probability 0.3. Let it be 0.1. From which starting noise on do paths end at $+1$?
# ```

# %% [markdown]
# ```{solution-start} ex-quantile
# :class: dropdown
# ```
#
# Paths keep their order, so the top tenth of the noise ends at $+1$: those above the 90 % quantile of the normal distribution. Where {eq}`eq-tanh` is zero plays no part.

# %%
rare = 0.1
# Your prediction: the noise `border` above which paths end at +1.
# BEGIN SOLUTION: order is kept, so which share of a normal law lies above it? stats.norm.ppf
border = stats.norm.ppf(1 - rare)
# END SOLUTION

starts = torch.linspace(-3, 3, 601, dtype=torch.float64)
rare_mean = two_tokens(lambda x, t: math.log(rare / (1 - rare)) + 0 * x)
ends_up, _ = flow.follow(rare_mean, starts, flow.linear(times))
found = float(starts[ends_up[-1] > 0].min())
expect(
    "ex-quantile",
    border,
    found,
    within=0.03,
    mistakes={
        "the quantile below which a tenth lies": stats.norm.ppf(rare),
        "the zero of the noise, as if the nearer token won": 0.0,
    },
    hint="a tenth of all paths must end at +1, and paths can't cross",
)
page.say(
    f"Predicted {border:.3f}; the lowest of {len(starts)} starts that ends at +1: {found:.2f}."
)

# %% [markdown]
# ```{solution-end}
# ```
#
# ```{exercise} ★ Where blunt logits stop
# :label: ex-blunt
#
# Tokens at ±1 with equal probability, and a hull predictor whose log odds are clipped to $[-c, c]$. At what distance from 0 do its trajectories end? Say it for $c = 3$.
# ```
#
# ```{solution-start} ex-blunt
# :class: dropdown
# ```
#
# Near the end the exact log odds $2\alpha x/\sigma^2$ are huge, so they are clipped to $\pm c$ and $\mu = \pm\tanh(c/2)$. By {eq}`eq-contract` $y$ goes to $\mu$ as $s \to 0$: the end is $\tanh(c/2)$, short of the token by $2/(1 + e^{c})$.

# %%
c = 3.0
# Your prediction: the distance `stop` from 0 at which every trajectory ends.
# BEGIN SOLUTION: the log odds end at c or -c; the mean of the two tokens is then a tanh
stop = math.tanh(c / 2)
# END SOLUTION

odds = lambda x, t: (2 * t * x / (1 - t) ** 2).clamp(-c, c) - 2 * t * x / (1 - t) ** 2  # noqa: E731
nearer = flow.time_of(torch.linspace(14, -16, 1000, dtype=torch.float64))
stopped, _ = flow.follow(two_tokens(odds), begin, flow.linear(nearer))
low, high = (float(f(stopped[-1].abs())) for f in (torch.min, torch.max))
expect(
    "ex-blunt",
    stop,
    (low + high) / 2,
    within=3e-3,
    mistakes={
        "tanh of c: log odds of c mean tanh(c/2)": math.tanh(c),
        "the probability of the likelier token, not the mean": 1 / (1 + math.exp(-c)),
        "the token itself": 1.0,
    },
    hint="y goes to μ; with log odds c the tokens have probabilities 1/(1 + exp(∓c))",
)
page.say(f"Predicted {stop:.4f}; ends between {low:.4f} and {high:.4f}.")

# %% [markdown]
# ```{solution-end}
# ```
#
# ```{exercise} ★★ The slope of the mean
# :label: ex-slope
#
# With $f$ fixed, show that $\partial\mu/\partial x = \frac{\alpha}{\sigma^2}\, \mathrm{Cov}_w(e)$, the covariance of the rows under the weights. Check it against automatic differentiation at one point of the plane. What does it say about a position that balances between two tokens, as $s \to 0$?
# ```
#
# ```{solution-start} ex-slope
# :class: dropdown
# ```
#
# Differentiating {eq}`eq-hull`, $\partial w_j/\partial x = \frac{\alpha}{\sigma^2} w_j (e_j - \mu)$, and $\sum_j e_j w_j (e_j - \mu)^\top$ is the covariance. Halfway between two tokens at distance $D$ the covariance along their line is $D^2/4$, so the slope in $y$ is $D^2/4s^2$: a small departure from balance is amplified without limit. That is why exact trajectories don't stay on borders. The counterexample {eq}`eq-trap` can balance only because its $f$ has a slope that cancels this one, and so one that grows without limit too.

# %%
alpha, sigma = torch.tensor([1.0, 0.7], dtype=torch.float64)
x = torch.tensor([0.3, -0.2], dtype=torch.float64)
w = toy.posterior_logits(x, (alpha, sigma)).softmax(-1)  # (5,), of the rows toy.TOKENS (5, 2)
# The (2, 2) matrix `by_formula` of the slopes of μ at x.
# BEGIN SOLUTION: the covariance of the rows under w, times what the kernel's exponent gives
centred = toy.TOKENS - w @ toy.TOKENS
by_formula = alpha / sigma**2 * centred.T @ (w[:, None] * centred)
# END SOLUTION

slope = torch.autograd.functional.jacobian(lambda x: toy.exact(x, (alpha, sigma)), x)
expect(
    "ex-slope",
    by_formula,
    slope,
    within=1e-5,
    mistakes={
        "the covariance alone": slope * sigma**2,
        "Σ w e e', from which the mean's square is still to be taken": (
            alpha / sigma**2 * toy.TOKENS.T @ (w[:, None] * toy.TOKENS)
        ),
        "α/σ in place of α/σ²": slope * sigma,
    },
    hint="differentiate log w by x: α e/σ², less its mean",
)

# %% [markdown]
# ```{solution-end}
# ```
#
# ```{exercise} ★★ Tokens of your own
# :label: ex-own-tokens
#
# Put tokens of your own into the plane, with probabilities of your own, and one of them *inside* the hull of the others. Theorem 1 speaks of vertices. Which share of the exact flow's paths ends at the inner token? Move it about, and onto the middle of an edge.
# ```
#
# ```{solution-start} ex-own-tokens
# :class: dropdown
# ```
#
# Its probability, as for any other token: the exact flow takes the normal law to the data's law, and cares for no vertex. An inner token is different only for an *inexact* predictor, which can make its place out of other tokens.

# %%
# `own`: a tensor (V, 2) of tokens, the last inside; `own_prior`: (V,); `share`: your prediction.
# BEGIN SOLUTION: any V from 4 on; for the share, ask what law the exact flow ends in
own = torch.tensor([[2.0, 0.0], [-1.0, 1.7], [-1.0, -1.7], [0.2, 0.1]], dtype=torch.float64)
own_prior = torch.tensor([0.3, 0.2, 0.1, 0.4], dtype=torch.float64)
share = 0.4
# END SOLUTION
own, own_prior = own.double(), own_prior.double()


def own_mean(y, at):
    """The exact posterior mean of your tokens, in the coordinates y and s."""
    logits = own_prior.log() - squared_distances(y, own) / (2 * at[1] ** 2)
    return logits.softmax(-1) @ own


path = toy.scales(200)
ys, _ = flow.follow(own_mean, path[1][0] * noise, path)
nearest = flow.margin(ys[-1], own)[0]
inner = float((nearest == len(own) - 1).double().mean())
expect("ex-own-tokens", extreme_share(own) < 1, True, hint="move the last token inside")
expect(
    "ex-own-tokens",
    share,
    inner,
    within=4 * math.sqrt(inner * (1 - inner) / paths),
    mistakes={"nothing, as if only vertices could be reached": 0.0},
    hint="compare with the frequencies of the five tokens in the text",
)
page.say(
    f"Predicted {share:.3f}, measured {inner:.3f} of {paths:,} paths; the largest distance to a "
    f"token at the end is {float(squared_distances(ys[-1], own).amin(-1).max().sqrt()):.1e}."
)

# %% [markdown]
# ```{solution-end}
# ```
#
# ```{exercise} ★★★ Certain from the context alone
# :label: ex-context
#
# The theorem is about $t \to 1$; a certificate comes earlier, if the excess of {eq}`eq-threshold` is known. For the known source, bound how strongly any context can favour one token over another, and use it as the excess $2B$. From which noise on can the exact sampler's positions be certified, and are they?
# ```
#
# ```{solution-start} ex-context
# :class: dropdown
# ```
#
# Inside one chain, token $u$ between neighbours $a$ and $b$ has the odds $\frac{T(a,u)\,T(u,b)}{T(a,v)\,T(v,b)}$ against $v$; at the start the first tokens' law stands for $T(a, \cdot)$. The largest of these over all chains and neighbours bounds every mixture of them. It is finite because any token may follow any other with a small probability.

# %%
first, step = source.logs  # log probabilities of the first token (K, V), of the next (K, V, V)
# The largest log odds `excess` of any token u over any v, given any neighbours, in any chain; the
# first token of a sequence has none before it.
# BEGIN SOLUTION: what u gains over v on the way in, its most over a, plus the same on the way out
into = torch.cat([step, first[:, None]], dim=1)  # from any neighbour, or at the start
gain_in = (into[..., :, None] - into[..., None, :]).amax(1)  # (K, u, v)
gain_out = (step[:, :, None] - step[:, None]).amax(-1)
excess = float((gain_in + gain_out).max())
# END SOLUTION

ratios_in = (step[..., :, None] - step[..., None, :]).amax(1)
expect(
    "ex-context",
    excess,
    source.log_odds_bound(),
    within=1e-6,
    mistakes={
        "the way in alone": float(ratios_in.max()),
        "the two ways for different tokens, or different chains": 2 * float(ratios_in.max()),
    },
    hint="one chain, one pair u, v: log T(a,u)/T(a,v) + log T(u,b)/T(v,b), largest over a and b; "
    "for the first token, its own law stands in the place of T(a, ·)",
)

# %%
floor = float(flow.threshold(torch.tensor(1.0, dtype=torch.float64), excess, E))  # θ at s = 1
g = geometry(E)[0]
# The noise `reach` below which a certificate is possible: a number s.
# BEGIN SOLUTION: θ goes as s², and must be below g/2
reach = math.sqrt(g / 2 / floor)
# END SOLUTION

expect(
    "ex-context",
    float(flow.threshold(torch.tensor(reach, dtype=torch.float64), excess, E)),
    g / 2,
    within=1e-6,
    hint="the number is θ at your noise; it must be g/2 there",
)
fine = torch.logspace(1.5, -1.5, 40, dtype=torch.float64)
oracle_mean = lambda y, at: oracle(y / (1 + at[1] ** 2).sqrt(), 2 * at[1].log()).mean  # noqa: E731
ys, _ = flow.follow(oracle_mean, fine[0] * normal(100, L, V), (torch.ones_like(fine), fine))
named = torch.stack([flow.certify(y, s, E, excess) for y, s in zip(ys, fine, strict=True)])
wrong_named, never = flow.audit(named, flow.margin(ys[-1], E)[0])
expect("ex-context", wrong_named, 0, hint="a certificate that is wrong: the excess is too small")
page.say(
    f"The bound is {excess:.2f} nats. Certificates become possible at $s$ = {reach:.3f}; of "
    f"{100 * L:,} positions {never} never got one, and {wrong_named} certificates were wrong."
)

# %% [markdown]
# **Verdict.** For a source whose odds are bounded the limit of the theorem can be replaced by a finite noise level, and no certificate is wrong. The bound is that of the worst context; most contexts favour nobody so strongly, so most positions were decided long before. A bound for the context at hand would certify earlier, and a trained network comes with no bound at all: both are open.
#
# ```{solution-end}
# ```
#
# ```{exercise} ★★★ Can guidance undo a coarse grid?
# :label: ex-coarse
#
# At few evaluations the exact model's samples are too unlikely ({numref}`fig-solver`, left); guidance makes samples likelier (right). The paper tunes guidance at each number of evaluations and doesn't say which error it mends. Take the fewest evaluations of this page. Is there a $w_{ug}$ at which likelihood *and* the law of pairs are as good as the data's?
# ```
#
# ```{solution-start} ex-coarse
# :class: dropdown
# ```


# %%
def coarse(w):
    """The judge's verdict on n samples of the oracle: `worst` evaluations, K = 0, w_ug = w."""
    # BEGIN SOLUTION: plan, Mechanism, sample and judge as in the text, with another NFE
    how = plan(worst, Mechanism(K=0, w_ug=w), fitted)
    return judge(sample(oracle, how, (n, L, V), generator).decode(E), source)
    # END SOLUTION


swept = {w: coarse(w) for w in (0.0, 0.1, 0.15, 0.4)}
expect(
    "ex-coarse",
    swept[0.0].nll,
    solved[worst].nll,
    within=6 * solved[worst].error,
    mistakes={"the samples of the finest grid": solved[best].nll},
    hint="without guidance this is the first row of the table of solvers",
)
page.table(
    pd.DataFrame(
        [(w, v.nll - entropy, v.error, v.bigram_kl / real.bigram_kl) for w, v in swept.items()],
        columns=["w_ug", "NLL − entropy", "± se", "pair KL over the data's"],
    ),
    name="tbl-coarse",
    caption=f"The exact denoiser at {worst} evaluations with unconditional guidance, {n:,} samples.",
)
mended = min(swept, key=lambda w: abs(swept[w].nll - entropy))
page.say(
    f"Likelihood is nearest to the source's at $w_{{ug}}$ = {mended:g}, where the divergence of "
    f"pairs is {swept[mended].bigram_kl / real.bigram_kl:.1f} times that of as many data."
)

# %% [markdown]
# **Verdict.** On this source a little guidance moves the likelihood of a coarse grid to where it belongs, at a price in the law of pairs that the last sentence states. So part of what guidance is praised for may be a repair of the solver, and a guidance that was tuned at few evaluations is too much at many. One source with an exact model, one schedule: on a trained model the two effects can't be told apart so easily.
#
# ```{solution-end}
# ```
#
# ## Further reading
#
# - **Where this comes from.** {cite:t}`lipman2023flow` introduce flow matching, {cite:t}`song2021ddim` the deterministic step; {cite:t}`guo2005mutual` prove the identity between information and squared error.
# - **The page after this one** trains networks on the source above, and on text: {doc}`language`.

# %%
page.footer()
