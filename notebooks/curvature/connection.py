# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # Sampling as parallel transport: a connection made of two tokens
#
# A language model ends in a state, a single vector, and from it follow the probabilities of all tokens. Then one token is drawn, and everything that the state said about the others is gone. How large is that error, and does it have a *shape*?
#
# {cite:t}`modenbach2026curvature` gives it one. The two likeliest tokens span a plane; the plane defines a small rotation for every direction in which the state might move; and rotations that don't commute have curvature. This page derives the pieces one at a time, checks each against something known, and then reads them from a real model. At the end stands the question that matters: **does the curvature tell how much a sampled token changes what follows?**
#
# You need dot products, derivatives, and the idea that a rotation of $\mathbb R^n$ turns planes. Symbols are listed in the {doc}`/glossary`.
#
# ```{admonition} What the paper says
# :class: paper
# - $z$ is the last hidden activation, scaled to length 1; logits are $Vz$; $v_1, v_2$ are the rows of the two most probable tokens, $p_1, p_2$ their probabilities.
# - The **probability charge** $q = 4 p_1 p_2$ is 0 when the model is certain and 1 when two tokens are equally likely.
# - The **connection** is $A_\mu(z) = q\,[-(\mu\cdot v_1)\, z\wedge v_2 + (\mu\cdot v_2)\, z\wedge v_1]$, and parallel transport along a path is $P\exp(-\int A)$.
# - Its **curvature** $R = \partial_\mu A_\nu - \partial_\nu A_\mu - [A_\nu, A_\mu]$ is measured by small closed loops, four of which make a clover.
# - So the error that sampling makes is related to the model's internal state, through $q$ and the three vectors.
# ```
#
# ```{admonition} What we add
# :class: differs
# We could read the abstract, the opening and notes of the paper, not its code. **Conventions are ours**: $a\wedge b = ab^\top - ba^\top$; rows are scaled to length 1, written $a$ and $b$; $q$ is held fixed when differentiating. So are the closed form of the curvature, the companion form, and every check.
# ```

# %% tags=["parameters"]
seed: int = 0
device: str = "auto"
model: str = "smollm2"  # a packaged model, a folder, an id on the Hub, or "untrained"
length: int = 7  # tokens that the model adds to each prompt
prompts_used: int = 33
draws: int = 1000  # resampled sets of prompts for each interval
sides: list[float] = [0.01, 0.02, 0.04, 0.08, 0.16]  # of the loops
loops: int = 200  # points that loops are closed around

# %%
from tokenspace.press import Page

page = Page("curvature/connection", seed=seed, device=device)

# %% tags=["hide-input"]
import math
from html import escape

import matplotlib.pyplot as plt
import pandas as pd
import torch
from torch.nn.functional import normalize

from tokenspace import curvature as cv
from tokenspace.press.figures import AMBER, BLUE, INK, MUTED, RED, TEAL

generator = torch.Generator().manual_seed(seed)


def draw(*shape):
    return torch.randn(*shape, generator=generator, dtype=torch.float64)


def slope(x, y):
    """Slope of a line fitted to logarithms."""
    x, y = (torch.as_tensor(v, dtype=torch.float64).log() for v in (x, y))
    return float(((x - x.mean()) * (y - y.mean())).sum() / (x - x.mean()).square().sum())


# %% [markdown]
# ## Why two tokens, and why their product
#
# The gradient of the log-normalizer $\log\sum_i e^{v_i\cdot h}$ is the **mean row** $m = \sum_i p_i v_i$: what the model would say if it could say everything at once. Sampling replaces $m$ by one row $v$. The expected squared error is the trace of the covariance of the rows,
#
# $$
# \mathrm E\,|v - m|^2 = \sum_i p_i\,|v_i - m|^2 .
# $$ (eq-error)
#
# Let two tokens carry all probability. Then $v_1 - m = p_2 (v_1 - v_2)$ and $v_2 - m = -p_1 (v_1 - v_2)$, so
#
# $$
# \mathrm E\,|v - m|^2 = (p_1 p_2^2 + p_2 p_1^2)\,|v_1 - v_2|^2 = p_1 p_2\,|v_1 - v_2|^2 ,
# $$ (eq-two)
#
# which is largest at $p_1 = p_2 = \tfrac12$. Divided by that largest value it is $4 p_1 p_2$. **The charge is the error of sampling, normalised.** That is our derivation; the paper introduces $q$ for its two limits.

# %%
pair = draw(2, 5)
p = torch.linspace(0.02, 0.98, 25, dtype=torch.float64)
laws = torch.stack([p, 1 - p], dim=1)
normalised = 4 * cv.sampling_error(laws, pair) / (pair[0] - pair[1]).square().sum()
worst = float((normalised - cv.charge(p, 1 - p)).abs().max())

picks = torch.multinomial(laws, 2000, replacement=True, generator=generator)
sampled = (pair[picks] - cv.mean(laws, pair)[:, None]).square().sum(-1).mean(1)
sampled = 4 * sampled / (pair[0] - pair[1]).square().sum()

# %% tags=["hide-input"]
figure, axes = plt.subplots(figsize=(5.2, 3.2))
axes.plot(p, normalised, color=BLUE, label="normalised error, exact")
axes.plot(p, sampled, "o", color=AMBER, ms=4, label="by sampling")
axes.plot(p, cv.charge(p, 1 - p), "--", color=MUTED, label=r"$4p_1p_2$")
axes.set(xlabel="probability of one of two tokens", ylabel="error over its largest value")
axes.legend(loc="lower center", fontsize=9)
page.show(
    figure,
    name="fig-charge",
    caption="The charge of two tokens is the squared error of sampling over its largest value. "
    "Dots: 2,000 draws each, one seed.",
    alt="An arch from zero over one at one half back to zero; sampled dots lie on the curve.",
)

# %% [markdown]
# A real distribution has more than two tokens, and then $q$ forgets the rest: it is small both when the model is certain and when it spreads over twenty tokens. Keep that in mind for the end of the page.
#
# ## A plane, and a rotation for every direction
#
# The unit rows $a, b$ span a plane, and $B = a\wedge b$ is the matrix that turns it: $B\mu = a\,(b\cdot\mu) - b\,(a\cdot\mu)$. Collecting terms in the paper's formula gives
#
# $$
# A_z(\mu) = q\; z\wedge B\mu .
# $$ (eq-form)
#
# If the state moves along $\mu$, the frame that travels with it is turned in the plane of $z$ and $B\mu$. Directions that touch neither token turn nothing.
#
# **By hand, in $\mathbb R^3$.** Write $c = a\times b$, $\tau = z\cdot c$ and $[x]_\times y = x\times y$. Then $x\wedge y = -[x\times y]_\times$ and $B\mu = -c\times\mu$, so for $\mu$ at right angles to $z$
#
# $$
# A_z(\mu) = q\,[z\times(c\times\mu)]_\times = q\,[c\,(z\cdot\mu) - \mu\,(z\cdot c)]_\times = -q\,\tau\,[\mu]_\times .
# $$ (eq-three)
#
# The state moves along $\mu$ and the frame turns *about* $\mu$, at the rate $q\tau$. Differentiating $z$ in {eq}`eq-form` and adding the commutator gives
#
# $$
# R(\mu,\nu) = q^2\tau^2\,[\mu\times\nu]_\times + q\,[c\times(\mu\times\nu)]_\times .
# $$ (eq-r-three)

# %%
z, a, b = normalize(draw(3, 3), dim=1)
mu, nu = (cv.tangent(z, x) for x in draw(2, 3))
q, c = torch.tensor(0.7, dtype=torch.float64), torch.linalg.cross(a, b)
tau, area = z @ c, torch.linalg.cross(mu, nu)


def cross_matrix(x):
    return torch.linalg.cross(x.expand(3, 3), torch.eye(3).double(), dim=1).T


by_hand = cross_matrix(q**2 * tau**2 * area + q * torch.linalg.cross(c, area))
gap_three = float((by_hand - cv.curvature_on(z, a, b, q, mu, nu)).abs().max())
assert torch.allclose(cv.one_form(z, a, b, q, mu), cross_matrix(-q * tau * mu))
assert gap_three < 1e-12

# %% tags=["hide-input"]
figure = plt.figure(figsize=(5.4, 4.4))
axes = figure.add_subplot(projection="3d")
shown = torch.tensor([[0.35, 0.25, 0.9], [1.0, 0.15, 0.0], [0.3, 0.95, 0.0]]).double()
z_, a_, b_ = normalize(shown, dim=1)
normal = torch.linalg.cross(a_, b_)
normal = normal / normal.norm()
s, t = torch.meshgrid(torch.linspace(-0.4, 1, 2), torch.linspace(-0.4, 1, 2), indexing="ij")
sheet = s[..., None] * a_ + t[..., None] * b_
axes.plot_surface(*sheet.permute(2, 0, 1).numpy(), color=MUTED, alpha=0.18, linewidth=0)
arrows = ((z_, "z", INK), (a_, "a", BLUE), (b_, "b", TEAL), (normal, r"$\hat n$", RED))
for vector, name, colour in arrows:
    axes.quiver(0, 0, 0, *vector.tolist(), color=colour, arrow_length_ratio=0.08)
    axes.text(*(1.1 * vector).tolist(), name, color=colour, fontsize=13)
axes.set(xlim=(-0.2, 1), ylim=(-0.2, 1), zlim=(0, 1), xticks=[], yticks=[], zticks=[])
axes.view_init(elev=18, azim=-62)
page.show(
    figure,
    name="fig-candidates",
    caption=r"A state $z$, the plane of the two unit rows $a$ and $b$, and $\hat n$, the direction "
    "of what the plane misses of $z$.",
    alt="Three arrows from one point: z above a shaded plane spanned by a and b, and n upright "
    "on the plane.",
)

# %% [markdown]
# ## What transport does: the sphere first
#
# Before any loops with tokens, one with a known answer. On the sphere carry a vector along a closed path without ever turning it within the surface: the form is $A_z(\mu) = z\wedge\mu$. Back at the start, the vector has turned by the **solid angle** of the loop. Around a cap of half-angle $\theta$ that is $2\pi(1-\cos\theta)$.

# %%
pole, x, y = torch.eye(3, dtype=torch.float64)[[2, 0, 1]]
half_angles = torch.linspace(0.05, 1.5, 24).tolist()
turned_by = []
for theta in half_angles:
    H = cv.transport(cv.sphere_form, cv.circle(pole, x, y, theta), 128)
    angle = cv.turned_angle(H)
    turned_by.append(angle if theta < math.pi / 3 else 2 * math.pi - angle)
solid = [cv.cap_area(theta) for theta in half_angles]
cap_error = max(abs(s - t) for s, t in zip(solid, turned_by, strict=True))

# %% tags=["hide-input"]
figure, axes = plt.subplots(figsize=(5.2, 3.2))
axes.plot(solid, solid, "--", color=MUTED, label="equal")
axes.plot(solid, turned_by, "o", color=BLUE, ms=4, label="transported")
axes.set(xlabel="solid angle of the cap (steradians)", ylabel="turn after one loop (radians)")
axes.legend()
page.show(
    figure,
    name="fig-caps",
    caption="Transport around spherical caps. Beyond a turn of π the angle of the matrix is "
    "counted the other way round, since a rotation by more than π can't be told from one by less "
    "in the other direction.",
    alt="Dots on the diagonal: the turn after a loop equals the solid angle of the cap.",
)
page.claim(
    "curvature-solid-angle",
    statement="Around a spherical cap, transport turns by the solid angle.",
    source="ours",
    ours=cap_error,
    band=(0, 1e-5),
    control="a known theorem: it checks the integrator, not the paper",
    scale=f"{len(half_angles)} caps, 128 steps of a fourth-order method; largest error in radians",
)

# %% [markdown]
# ## The curvature, in closed form
#
# For a plane one can do the same with {eq}`eq-form`. With $P = I - zz^\top$ and $q$, $a$, $b$ fixed, $\partial_\mu A_\nu = q\,\mu\wedge B\nu$, and $[z\wedge x, z\wedge y] = -Px\wedge Py$. So
#
# $$
# R(\mu,\nu) = q\,(\mu\wedge B\nu - \nu\wedge B\mu) - q^2\, PB\mu\wedge PB\nu .
# $$ (eq-r)
#
# There is one plane that the three vectors single out: that of $Pa$ and $Pb$, with an orthonormal basis $e_1, e_2$. On it everything collapses to
#
# $$
# R = q\,D_0\; z\wedge\hat n \;-\; q^2 D^2\; e_1\wedge e_2, \qquad
# \|R\|^2 = q^2 D_0^2\,|\Pi_{ab}\,z|^2 + q^4 D^4 ,
# $$ (eq-closed)
#
# where $D_0 = |a\wedge b|$ is the sine of the angle between the rows, $\hat n$ the unit vector of the part of $z$ outside their plane, $\Pi_{ab}$ the projection on that plane, and $D = |z\wedge a\wedge b|$ the volume of the three. Everything happens in the three dimensions of $z, e_1, e_2$, and a skew matrix of three dimensions has rank 2: **$R$ turns one plane and nothing else.** Two vectors of length $n$ say all of it; no $n\times n$ matrix is needed.
#
# Notes on the paper say that $|z\wedge v_1\wedge v_2|$ is large when $z$ lies in the span of the two rows. It is the volume of three vectors, and vanishes there.
#
# Loops give an independent check. A square of side $\varepsilon$ returns $I - \varepsilon^2 R + O(\varepsilon^3)$; the mean over four squares around the point, a clover, cancels the odd orders. The *slopes* of the errors tell whether the formula is right, more sharply than any single value.

# %%
h, v1, v2 = draw(3, loops, 12)
share = torch.rand(3, loops, generator=generator, dtype=torch.float64)
p1, p2 = (share / share.sum(0))[:2].sort(dim=0, descending=True).values
ids = torch.arange(loops)
toy = cv.assemble(2 * h + v1 + v2, v1, v2, (p1, p2), (ids, ids))
R, at = cv.curvature(toy), cv.frame(toy)
small = at.basis @ R.dense() @ at.basis.mT  # R in the frame (z, e1, e2)

form = cv.sampling_form(at.a, at.b, toy.q)
axes3 = torch.eye(3, dtype=torch.float64)[:, None].expand(3, loops, 3)
errors = {"plaquette": [], "clover": []}
for side in sides:
    for name, measure in (("plaquette", cv.from_plaquette), ("clover", cv.from_clover)):
        gap = (measure(form, *axes3, side) - small).norm(dim=(1, 2)) / small.norm(dim=(1, 2))
        errors[name].append(float(gap.median()))
slopes = {name: slope(sides, values) for name, values in errors.items()}

wrong = small.clone()  # the commutator with the other sign
wrong[:, [1, 2], [2, 1]] *= -1
gap = (cv.from_clover(form, *axes3, sides[0]) - wrong).norm(dim=(1, 2)) / wrong.norm(dim=(1, 2))
wrong_error = float(gap.median())

# %% tags=["hide-input"]
figure, axes = plt.subplots(figsize=(5.2, 3.4))
for (name, values), colour in zip(errors.items(), (AMBER, BLUE), strict=True):
    axes.loglog(sides, values, "o-", color=colour, label=f"{name}, slope {slopes[name]:.2f}")
axes.set(xlabel="side ε of the loop", ylabel="relative error of R")
axes.legend()
page.show(
    figure,
    name="fig-slopes",
    caption=f"Error of the curvature read from loops, against {{eq}}`eq-closed` (median of "
    f"{loops} random points, n = 12).",
    alt="Two straight lines on logarithmic axes; the clover's is twice as steep and far lower.",
)
for name, order in (("plaquette", 1), ("clover", 2)):
    page.claim(
        f"curvature-{name}-slope",
        statement=f"The error of a {name} falls as the power {order} of its side.",
        source="reconstructed",
        paper="curvature is measured by clovers; no numbers" if order == 2 else None,
        ours=slopes[name],
        band=(order - 0.15, order + 0.15),
        control=f"with the wrong sign of the commutator an error of {wrong_error:.2f} is left at "
        f"the smallest side, instead of {errors[name][0]:.0e}",
        scale=f"{loops} random points, n = 12, sides {sides[0]} to {sides[-1]}",
    )

# %% [markdown]
# ## A companion, and why it is not enough
#
# A simpler form suggests itself. Let $u = m/|m|$ be the direction of the mean row and follow it: $\omega = du\wedge u$. With temperature $T$ and $C$ the covariance of {eq}`eq-error`, $du(v) = (I - uu^\top)\,C v/(T|m|)$. Both $d\omega$ and the commutator are multiples of $du(v)\wedge du(w)$: the first $-2$, the second $-1$. With $D = d - \omega$ the curvature is $-d\omega + \omega\wedge\omega$, a factor $2 - 1 = 1$. Adding them naively gives $-2 - 1 = -3$: a sign of convention changes the *size* of the answer.

# %%
V9 = draw(9, 5)
h9, v9, w9 = draw(3, 5)


def exterior(v, w, step=1e-4):
    """dω(v, w) by central differences."""

    def along(v, w):
        ahead, behind = (cv.companion_form(h9 + s * step * v, V9, w) for s in (1, -1))
        return (ahead - behind) / (2 * step)

    return along(v, w) - along(w, v)


first, second = cv.companion_form(h9, V9, v9), cv.companion_form(h9, V9, w9)
bracket, d_omega = first @ second - second @ first, exterior(v9, w9)
F = cv.companion_curvature(h9, V9, v9, w9)
factors = [float((M * F).sum() / F.square().sum()) for M in (bracket - d_omega, bracket + d_omega)]
only_two = float(cv.companion_curvature(h9, V9[:2], v9, w9).norm() / F.norm())

# %% tags=["hide-input"]
page.say(
    f"Factors of $du(v)\\wedge du(w)$: {factors[0]:.6f}, and {factors[1]:.6f} with the naive sign. "
    f"With two live tokens instead of nine the curvature is {only_two:.0e} of that with nine."
)
page.claim(
    "curvature-companion-factor",
    statement="The companion form has curvature du∧du, with factor one.",
    source="ours",
    ours=factors[0],
    band=(1 - 1e-4, 1 + 1e-4),
    control=f"the naive sign: {factors[1]:.4f}",
    scale="nine random tokens, n = 5, dω by finite differences",
)

# %% [markdown]
# The last number is the point. Between two tokens the mean row moves along a *line*, $u$ along a curve, and over a curve there is no area for a curvature to act on. In the paper's form the state $z$ itself takes part, so that two tokens are enough.
#
# ## A real model
#
# Now the states and rows of a model. $z$ is the state that the output matrix reads, so after the final norm and its gain. Here is a passage that the model continues by itself, with each generation point coloured by the charge: what could have come instead is in the tooltip.

# %% tags=["hide-input"]
PROMPTS = [
    "The capital of France is", "Once upon a time, there was a", "Water boils at a temperature of",
    "The best way to learn a language is", "In the morning, she opened the", "Two plus two equals",
    "The largest planet in our solar system is", "He was born in the year", "My favourite food is",
    "The opposite of hot is", "The cat sat on the", "To make bread you need flour, water and",
    "The president of the United States lives in", "A triangle has three", "The colour of the sky is",
    "The train was late because", "Shakespeare wrote", "The first month of the year is",
    "If it rains tomorrow, we will", "The chemical symbol for gold is", "The old man looked at the",
    "Plants need light, water and", "The fastest animal on land is", "I would like to order a",
    "The meeting was moved to", "Most birds can", "The square root of nine is",
    "She put the book back on the", "The war ended in", "A good friend is someone who",
    "The river flows into the", "Please close the", "The main ingredient of soup is",
][:prompts_used]  # fmt: skip

if model == "untrained":
    reader = cv.untrained_reader(PROMPTS, seed=seed)
else:
    reader = cv.load_reader(model, device=page.device)
prompts = cv.encode(reader, PROMPTS, bos=reader.tokenizer.bos_token_id is not None)
texts = cv.continue_greedily(reader, prompts, length)
passage = cv.continue_greedily(reader, prompts[1:2], 10 * length)
reading = cv.read(reader, passage)

# %% tags=["hide-input"]


def word(token):
    return reader.tokenizer.decode([int(token)]).replace("\n", "↵") or "∅"


def coloured(reading):
    """The first text of a reading: each token on the charge of the point that chose it."""
    points, ids = reading.points, reading.ids[0]
    at = {int(reading.position[k]): i for i, k in enumerate(points.kept.tolist())}
    spans = []
    for position, token in enumerate(ids):
        i = at.get(position - 1)
        if i is None:
            spans.append(f"<span>{escape(word(token))}</span>")
            continue
        first, second = word(points.top1[i]), word(points.top2[i])
        tip = f"{first!r} {points.p1[i]:.2f}, {second!r} {points.p2[i]:.2f}, q {points.q[i]:.2f}"
        shade = f"background: rgba(221, 160, 40, {0.45 * float(points.q[i]):.2f})"
        spans.append(f'<span style="{shade}" title="{escape(tip)}">{escape(word(token))}</span>')
    return '<p style="line-height: 2">' + "".join(spans) + "</p>"


page.say(coloured(reading))

# %% tags=["hide-input"]
points = reading.points
order = points.q.argsort(descending=True)[:8]
page.table(
    pd.DataFrame(
        {
            "after": [word(passage[0][int(reading.position[points.kept[i]])]) for i in order],
            "first": [word(points.top1[i]) for i in order],
            "p₁": points.p1[order].cpu(),
            "second": [word(points.top2[i]) for i in order],
            "p₂": points.p2[order].cpu(),
            "q": points.q[order].cpu(),
            "‖R‖": cv.curvature(points).norm()[order].cpu(),
        }
    ),
    name="tbl-blurry",
    caption=f"The points of largest charge in one passage of {model}, greedy continuation.",
)

# %% tags=["hide-input"]
page.say(
    f"Model {model}: final norm `{reader.norm}`, output matrix "
    f"{'tied to' if reader.tied else 'apart from'} the embedding, token ids of the first prompt "
    f"{prompts[0]} (a BOS in front if the tokenizer has one). Points left out of the passage: "
    f"{points.excluded or 'none'}. `V z` and the model's logits differ by {reader.lens_error:.0e}."
)

# %% [markdown]
# ### Frozen or live charge, raw or centred rows
#
# Two choices change the numbers and are not settled by the text. If the charge is differentiated too, the curvature gains a term $dq\wedge(z\wedge B)$, and since logits are steep that term dominates. And softmax doesn't change when one vector is added to all rows, but the connection does. We use a frozen charge and raw rows, and report the other choices here.

# %%
everything = cv.read(reader, texts).points
centred = cv.read(reader, texts, centre=True).points
frozen = cv.curvature(everything)
V, means = reader.rows.double(), []
for some in range(0, len(everything), 64):
    part = everything[some : some + 64]
    means.append(cv.mean((part.scale[:, None] * part.z @ V.T).softmax(-1), V))
live = cv.live_curvature(everything, torch.cat(means))
ratio = float((live.norm() / frozen.norm()).median())
products = (frozen.plane() @ live.plane().mT).det()
cosine = float(products.median())
both = torch.isin(everything.kept, centred.kept), torch.isin(centred.kept, everything.kept)
between = cv.rank_correlation(
    frozen.norm()[both[0]].cpu().numpy(), cv.curvature_norm(centred)[both[1]].cpu().numpy()
)

# %% tags=["hide-input"]
page.say(
    f"Over {len(everything)} points: with a live charge ‖R‖ is {ratio:.0f} times as large in the "
    f"median, at a median cosine of {cosine:.2f} to the frozen one. With centred rows the order of "
    f"‖R‖ over points correlates with that of raw rows at ρ = {between:.2f}."
)

# %% [markdown]
# ## Does it tell how much a token matters?
#
# At each point that the model adds to the prompts, take the likeliest token, and then the runner-up instead, and compare what the model expects next: the Jensen–Shannon divergence between the two distributions, in nats. If curvature measures sensitivity, it should go along with that divergence.
#
# One trap lies close by. The *expected* damage of sampling contains the probability that the other token is drawn, $p_1 p_2$, and $q$ is $4 p_1 p_2$. Their correlation is high by construction and shows nothing. The honest question is about the divergence **given** the swap.

# %%
since = [len(row) - 1 for row in prompts]
table = cv.swap_table(reader, [t[:-1] for t in texts], since)


def judged(column, target="js", given=None):
    """ρ with its interval over prompts, and how large it gets by chance."""

    def rho(t):
        other = None if given is None else t[given].to_numpy()
        return cv.rank_correlation(t[column].to_numpy(), t[target].to_numpy(), other)

    interval = cv.over_texts(table, rho, draws, seed)
    return *interval, cv.shift_null(table, rho, target, draws, seed)


swapped = "JS given the swap"
rows = [(name, swapped, *judged(name)) for name in cv.READOUTS]
rows += [
    (f"{name}, {given} partialled out", swapped, *judged(name, given=given))
    for name, given in (("norm", "q"), ("norm at q = 1", "row distance"))
]
rows.append(("q", "p₁p₂ · JS", *judged("q", "expected")))
found = pd.DataFrame(rows, columns=["readout", "against", "ρ", "low", "high", "chance"])
by_name = found.set_index(["readout", "against"])

# %% tags=["hide-input"]
page.table(
    found,
    name="tbl-sensitivity",
    caption=(
        f"Spearman correlations over {len(table)} points of {table.text.nunique()} prompts, with "
        f"95 % intervals from {draws:,} resamplings of whole prompts. Chance: 95 % of |ρ| when "
        f"the divergences are moved along the points. {len(rows)} were tried: an interval that "
        "barely misses zero is no finding."
    ),
)
figure, panels = plt.subplots(1, 2, figsize=(8.4, 3.2))
for axes, column, name in zip(
    panels, ("js", "expected"), ("JS after the swap (nats)", r"$p_1p_2\cdot$JS"), strict=True
):
    axes.plot(table.q, table[column], "o", color=BLUE, ms=3.5, alpha=0.6)
    axes.set(xlabel="charge q", ylabel=name)
panels[1].plot([0, 1], [0, math.log(2) / 4], "--", color=MUTED, label="largest possible")
panels[1].legend(fontsize=9)
page.show(
    figure,
    name="fig-swap",
    caption="What a swap of the two candidates changes, against the charge. Left: given the swap. "
    "Right: times p₁p₂, which puts the charge on both axes.",
    alt="Left: a cloud without trend. Right: points under a rising line.",
)

# %% tags=["hide-input"]
rho = by_name["ρ"]
low, high = by_name.loc[("q", swapped), ["low", "high"]]
page.claim(
    "curvature-q-sensitivity",
    statement="Given that the token is swapped, the divergence doesn't go along with the charge.",
    source="ours",
    paper="relates the error of sampling to the state; no number for text",
    ours=rho["q", swapped],
    band=(-0.2, 0.2),
    control=f"95 % over prompts: {low:.2f} to {high:.2f}; distance of the two rows: "
    f"{rho['row distance', swapped]:.2f}",
    scale=f"{model}, {len(table)} points of {table.text.nunique()} prompts",
)
low, high = by_name.loc[("norm at q = 1", swapped), ["low", "high"]]
page.claim(
    "curvature-geometry-sensitivity",
    statement="Given the swap, the curvature without its charge does go along with the divergence.",
    source="ours",
    paper="relates the error of sampling to the state; no number for text",
    ours=rho["norm at q = 1", swapped],
    band=(0.1, None),
    control=f"95 % over prompts: {low:.2f} to {high:.2f}; by chance below "
    f"{by_name['chance']['norm at q = 1', swapped]:.2f}; with the distance of the two rows "
    f"partialled out: {rho['norm at q = 1, row distance partialled out', swapped]:.2f}",
    scale=f"{model}, {len(table)} points of {table.text.nunique()} prompts",
)
page.claim(
    "curvature-q-expected",
    statement="The expected divergence, which contains p₁p₂, goes along with the charge.",
    source="ours",
    ours=rho["q", "p₁p₂ · JS"],
    band=(0.6, None),
    control="by construction: p₁p₂ is a factor of both",
    scale=f"{model}, {len(table)} points of {table.text.nunique()} prompts",
)

# %% [markdown]
# ```{admonition} Differs from the paper
# :class: differs
# - **The charge is not sensitivity.** What a swap changes shows in the geometry, that is in $\|R\|$ at $q = 1$ or simply in how far apart the two rows are, and not in how likely the two tokens are ({numref}`tbl-sensitivity`). The product with $p_1p_2$ looks convincing and is circular.
# - **The curvature needs no loops.** {eq}`eq-closed` is exact, and loops are its check ({numref}`fig-slopes`).
# - **The triple wedge vanishes in the plane** of the two rows; it isn't large there.
# - **Frozen charge, unit rows, raw rows** are our choices. The live charge gives a different object, not a small correction.
# - **Small model, one step.** The paper measures games of chess in models hundreds of times larger; we look one token ahead.
# ```
#
# ## Exercises
#
# ```{exercise} Nothing in the plane
# :label: ex-flat
#
# Show that in $n = 2$ the connection is zero, whatever the tokens.
# ```
#
# ```{solution} ex-flat
# :class: dropdown
# There $B\mu$ is $\mu$ turned by a right angle (times $D_0$). A tangent $\mu$ is at right angles to $z$, so $B\mu$ is along $z$, and $z\wedge B\mu = 0$.
# ```
#
# ```{exercise} Odd and even
# :label: ex-swap
#
# At $p_1 = p_2$ the two tokens change places. What happens to $A$, to the two parts of $R$ on the canonical plane, and to $\|R\|$?
# ```
#
# ```{solution-start} ex-swap
# :class: dropdown
# ```
#
# $B$ changes sign, and with it $A$. The plane's basis, made of $Pa$ and then $Pb$, changes orientation. The part linear in $B$ changes sign twice, so it stays; the quadratic part only once. The norm stays, because the parts are orthogonal.

# %%
other = cv.assemble(toy.z, toy.v2, toy.v1, (toy.p1, toy.p2), (ids, ids))
there = cv.curvature(other)
page.say(
    f"Largest change of ‖R‖: {float((R.norm() - there.norm()).abs().max()):.0e}. Median cosine of "
    f"the two curvatures: {float((R.plane() @ there.plane().mT).det().median()):.2f}."
)

# %% [markdown]
# ```{solution-end}
# ```
#
# ```{exercise} Turned towards itself
# :label: ex-cos
#
# Someone measures the cosine between a vector $w$ and $Rw$ and finds it to be zero for every $w$. What has been learned?
# ```
#
# ```{solution} ex-cos
# :class: dropdown
# Nothing: $w^\top R w = 0$ for every skew matrix. The next page needs this, because cosines with $Rw$ have a second artefact: all $Rw$ lie in one plane.
# ```
#
# ```{exercise} A loop's trace
# :label: ex-wilson
#
# The Wilson loop is $\operatorname{tr} H / n$. Derive its distance from 1 for a small square and compare with the norm.
# ```
#
# ```{solution-start} ex-wilson
# :class: dropdown
# ```
#
# A rotation by a small angle $\epsilon$ in one plane has trace $n - \epsilon^2$. The square turns by $\varepsilon^2\|R\|$, so $n(1 - W) = \varepsilon^4\|R\|^2$ to leading order.

# %%
side = 0.02
W = cv.wilson_loop(cv.plaquette(form, *axes3, side), n=12)
measured = (12 * (1 - W)).sqrt() / side**2
page.say(f"Median ratio to ‖R‖: {float((measured / R.norm()).median()):.3f}.")

# %% [markdown]
# ```{solution-end}
# ```
#
# ## Further reading
#
# - **The paper**: {cite:t}`modenbach2026curvature`.

# %%
page.footer()
