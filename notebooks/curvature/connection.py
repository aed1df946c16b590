# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown] slideshow={"slide_type": "slide"}
# # Sampling as parallel transport: a connection made of two tokens
#
# A language model ends in a state, a single vector, and from it follow the probabilities of all tokens. Then one token is drawn, and everything that the state said about the others is gone. How large is that error, and does it have a *shape*?

# %% [markdown]
# {cite:t}`modenbach2026curvature` gives it one. The two likeliest tokens span a plane; the plane defines a small rotation for every direction in which the state might move; and rotations that don't commute have curvature. This page derives the pieces one at a time, checks each against something known, and then reads them from a real model. At the end stands the question that matters: **does the curvature tell how much a sampled token changes what follows?**
#
# You need dot products, derivatives, and the idea that a rotation of $\mathbb R^n$ turns planes. Symbols are listed in the {doc}`/glossary`.

# %% [markdown] slideshow={"slide_type": "subslide"}
# ```{admonition} What the paper says
# :class: paper
# - Language models are sensitive to a change of a single token where the predicted distribution is spread over several.
# - $z$ is the last hidden activation, scaled to length 1; logits are $Vz$; $v_1, v_2$ are the rows of the two most probable tokens, $p_1, p_2$ their probabilities.
# - The **probability charge** $q = 4 p_1 p_2$ is 0 when the model is certain and 1 when two tokens are equally likely.
# - The triple wedge $4\, z\wedge p_1v_1\wedge p_2v_2$, contracted with a tangent vector $\mu$, is a **connection** with values in $\mathfrak{so}(n)$, the skew matrices. It depends only on the geometry of the token embeddings:
#
#   $$
#   A_\mu(z) = q\,[-(\mu\cdot v_1)\, z\wedge v_2 + (\mu\cdot v_2)\, z\wedge v_1] .
#   $$
#
# - Parallel transport along a path is $P\exp(-\int A)$. The **curvature** $R = \partial_\mu A_\nu - \partial_\nu A_\mu - [A_\nu, A_\mu]$ is measured by small closed loops, four of which make a clover.
# ```

# %% [markdown]
# ```{admonition} Where the paper is silent, and what we chose
# :class: reconstructed
# We could read the paper's abstract, its opening and notes on the rest, not its code. It may say more than we know.
# - **Rows** are scaled to length 1, written $a$ and $b$, and not centred. Centred rows are compared below.
# - **The state** is what the output matrix reads: after the final norm and its gain.
# - **The charge** is held fixed when differentiating, since the form is said to depend on the geometry of the embeddings alone. A live charge is compared below.
# - **The plane** of $\mu$ and $\nu$ is the one that the three vectors single out.
# - **Signs**: $x\wedge y = xy^\top - yx^\top$ and $D = d + A$; the size of a matrix is $\|M\|^2 = \tfrac12\operatorname{tr} M^\top M$, the speed at which it turns its plane.
#
# The derivation of $q$, the closed form of the curvature, the companion form and every check are our additions.
# ```

# %% tags=["parameters"]
seed: int = 0
device: str = "auto"
model: str = "smollm2"  # a packaged model, a folder, an id on the Hub, or "untrained"
sharded: bool = False  # over all GPUs by accelerate, in the model's own number type
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

import matplotlib.pyplot as plt
import pandas as pd
import torch
from matplotlib.figure import Figure
from torch.nn.functional import normalize

from tokenspace import curvature as cv
from tokenspace.press.exercises import expect
from tokenspace.press.figures import AMBER, BLUE, GRID, INK, MUTED, RED, TEAL
from tokenspace.press.live import Live, Slider, sentence

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
# Let $h$ be the model's last state, so that token $i$ with row $v_i$ has the logit $v_i\cdot h$. The gradient of the log-normalizer $\log\sum_i e^{v_i\cdot h}$ is the **mean row** $m = \sum_i p_i v_i$: what the model would say if it could say everything at once. Sampling replaces $m$ by one row $v$. The expected squared error is the trace of the covariance of the rows,
#
# $$
# \mathrm E\,|v - m|^2 = \sum_i p_i\,|v_i - m|^2 .
# $$ (eq-error)

# %% [markdown] slideshow={"slide_type": "subslide"}
# Let two tokens carry all probability. Then $v_1 - m = p_2 (v_1 - v_2)$ and $v_2 - m = -p_1 (v_1 - v_2)$, so
#
# $$
# \mathrm E\,|v - m|^2 = (p_1 p_2^2 + p_2 p_1^2)\,|v_1 - v_2|^2 = p_1 p_2\,|v_1 - v_2|^2 ,
# $$ (eq-two)

# %% [markdown]
# which is largest at $p_1 = p_2 = \tfrac12$. Divided by that largest value it is $4 p_1 p_2$. **The charge is the error of sampling, normalized.** That is our derivation; the paper introduces $q$ for its two limits.

# %%
pair = draw(2, 5)
p = torch.linspace(0.02, 0.98, 25, dtype=torch.float64)
laws = torch.stack([p, 1 - p], dim=1)
normalized = 4 * cv.sampling_error(laws, pair) / (pair[0] - pair[1]).square().sum()

picks = torch.multinomial(laws, 2000, replacement=True, generator=generator)
sampled = (pair[picks] - cv.mean(laws, pair)[:, None]).square().sum(-1).mean(1)
sampled = 4 * sampled / (pair[0] - pair[1]).square().sum()

# %% slideshow={"slide_type": "subslide"} tags=["hide-input"]
figure, axes = plt.subplots(figsize=(5.2, 3.2))
axes.plot(p, normalized, color=BLUE, label="normalized error, trace of the covariance")
axes.plot(p, cv.charge(p, 1 - p), ":", color=INK, lw=2.5, label=r"charge $4p_1p_2$")
axes.plot(p, sampled, "o", color=AMBER, ms=4, label="normalized error, by sampling")
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
# Where does a rotation come from? Let the state move by $dh$. With two tokens $dp_1 = -dp_2 = p_1p_2\,(v_1 - v_2)\cdot dh$, so the mean row moves by $dm = (v_1 - v_2)\,dp_1$, and
#
# $$
# m\wedge dm = -p_1p_2\,\big((v_1 - v_2)\cdot dh\big)\; v_1\wedge v_2 .
# $$ (eq-mean-turns)
#
# The mean row turns in the plane of the two rows, at a rate with $p_1p_2$ in it: again the charge. The paper's form takes the state in as well. A wedge of three vectors is contracted with $\mu$ by pairing $\mu$ with each in turn, with alternating sign:
#
# $$
# q\; z\wedge v_1\wedge v_2 \;\longmapsto\; q\,\big[(\mu\cdot z)\, v_1\wedge v_2 - (\mu\cdot v_1)\, z\wedge v_2 + (\mu\cdot v_2)\, z\wedge v_1\big] .
# $$

# %% [markdown] slideshow={"slide_type": "subslide"}
# $z$ has length 1 and stays on the sphere, so $\mu$ is at right angles to it and the first term is 0. The others are $A_\mu(z)$ above. Write $B = a\wedge b$ for the matrix that turns the plane of the unit rows, $B\mu = a\,(b\cdot\mu) - b\,(a\cdot\mu)$, and collect terms:
#
# $$
# A_z(\mu) = q\; z\wedge B\mu .
# $$ (eq-form)

# %% [markdown]
# If the state moves along $\mu$, the frame that travels with it is turned in the plane of $z$ and $B\mu$. Directions that touch neither token turn nothing.
#
# **By hand, in $\mathbb R^3$.** Write $c = a\times b$, $\tau = z\cdot c$ and $[x]_\times y = x\times y$. Then $x\wedge y = -[x\times y]_\times$ and $B\mu = -c\times\mu$, so for $\mu$ at right angles to $z$
#
# $$
# A_z(\mu) = q\,[z\times(c\times\mu)]_\times = q\,[c\,(z\cdot\mu) - \mu\,(z\cdot c)]_\times = -q\,\tau\,[\mu]_\times .
# $$ (eq-three)
#
# The state moves along $\mu$ and the frame turns *about* $\mu$, at the rate $q\tau$. The curvature is made of what differentiating $z$ in {eq}`eq-form` gives, $q\,(\mu\wedge B\nu - \nu\wedge B\mu) = q\,[c\times(\mu\times\nu)]_\times$, and of the commutator $[-q\tau[\mu]_\times, -q\tau[\nu]_\times]$:
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

# %% slideshow={"slide_type": "subslide"} tags=["hide-input"]
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
shadow = z_ - normal * (normal @ z_)
axes.plot(*torch.stack([z_, shadow, 0 * shadow]).T.numpy(), "--", color=MUTED, lw=1.2)
axes.text(*(shadow + torch.tensor([0.04, -0.02, 0.0])).tolist(), r"$\Pi z$", color=MUTED)
axes.set(xlim=(-0.1, 0.9), ylim=(-0.1, 0.9), zlim=(0, 0.9))
axes.view_init(elev=18, azim=-62)
axes.set_axis_off()
page.show(
    figure,
    name="fig-candidates",
    caption=r"A state $z$, the plane of the two unit rows $a$ and $b$, the part $\Pi z$ of $z$ that "
    r"lies in it, and $\hat n$, the direction of the part that doesn't.",
    alt="Four arrows from one point: a and b in a shaded plane, z above it with its shadow on the "
    "plane, and n upright on it.",
)

# %% [markdown]
# ## What transport does: the sphere first
#
# **Transport** along a path $z(t)$ adds up all these small rotations, in order: $U' = -A_z(z')\,U$ from $U = I$, for which $P\exp(-\int A)$ is the short form. Around a closed loop what is left is its **holonomy** $H$, a rotation. If rotations commuted, it would depend on $\int A$ alone; curvature is what a small loop leaves per area.
#
# Before any loops with tokens, one with a known answer. On the sphere carry a vector along a closed path without ever turning it within the surface: the form is $A_z(\mu) = z\wedge\mu$. Back at the start, the vector has turned by the **solid angle** of the loop. Around a cap of half-angle $\theta$ that is $2\pi(1-\cos\theta)$.


# %%
def rotation_angle(R):
    """Angle of a rotation of R³, in [0, π]; by acos rounding could leave the domain."""
    axial = torch.stack([R[2, 1] - R[1, 2], R[0, 2] - R[2, 0], R[1, 0] - R[0, 1]]) / 2
    return float(torch.atan2(axial.norm(), (R.trace() - 1) / 2))


pole, x, y = torch.eye(3, dtype=torch.float64)[[2, 0, 1]]
half_angles = torch.linspace(0.05, 1.5, 24).tolist()
turned_by = []
for theta in half_angles:
    H = cv.transport(cv.wedge, cv.circle(pole, x, y, theta), steps=128)
    angle = rotation_angle(H)  # in [0, π], and from θ = π/3 on the turn is more than π
    turned_by.append(angle if theta < math.pi / 3 else 2 * math.pi - angle)
solid = [4 * math.pi * math.sin(theta / 2) ** 2 for theta in half_angles]
cap_error = max(abs(s - t) for s, t in zip(solid, turned_by, strict=True))

# %% slideshow={"slide_type": "subslide"} tags=["hide-input"]
figure, axes = plt.subplots(figsize=(5.2, 3.2))
degrees = [math.degrees(theta) for theta in half_angles]
axes.plot(degrees, solid, color=MUTED, label=r"solid angle $2\pi(1-\cos\theta)$")
axes.plot(degrees, turned_by, "o", color=BLUE, ms=4, label="turn after one loop")
axes.set(xlabel="half-angle θ of the cap (degrees)", ylabel="steradians, radians")
axes.legend()
page.show(
    figure,
    name="fig-caps",
    caption="Transport around spherical caps. Beyond a turn of π the angle of the matrix is "
    "counted the other way round, since a rotation by more than π can't be told from one by less "
    "in the other direction.",
    alt="Dots on a rising curve: the turn after a loop equals the solid angle of the cap.",
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

# %% [markdown] slideshow={"slide_type": "subslide"}
# ## The curvature, in closed form
#
# Now the form of the two tokens, in any dimension. With $P = I - zz^\top$ and $q$, $a$, $b$ fixed, {eq}`eq-form` gives $\partial_\mu A_\nu = q\,\mu\wedge B\nu$, and $[z\wedge x, z\wedge y] = -Px\wedge Py$. So
#
# $$
# R(\mu,\nu) = q\,(\mu\wedge B\nu - \nu\wedge B\mu) - q^2\, PB\mu\wedge PB\nu .
# $$ (eq-r)

# %% [markdown] slideshow={"slide_type": "subslide"}
# There is one plane of directions that the three vectors single out: that of $Pa$ and $Pb$, with an orthonormal basis $e_1, e_2$ (Gram–Schmidt). Take $\mu = e_1$ and $\nu = e_2$. Then everything happens in the three dimensions of $z, e_1, e_2$, and {eq}`eq-r-three` is the answer already: $\mu\times\nu = z$ there, so its first part is $q^2\tau^2[z]_\times = -q^2\tau^2\,e_1\wedge e_2$ and its second $q\,[c\times z]_\times = q\,z\wedge c$. In words of any dimension,
#
# $$
# R = q\,D_0\; z\wedge\hat n \;-\; q^2 D^2\; e_1\wedge e_2, \qquad
# \|R\|^2 = q^2 D_0^2\,|\Pi_{ab}\,z|^2 + q^4 D^4 ,
# $$ (eq-closed)

# %% [markdown]
# where $D_0 = |a\wedge b|$ is the sine of the angle between the rows, $\hat n = c/D_0$ the unit vector of the part of $z$ outside their plane ({numref}`fig-candidates`), $\Pi_{ab}$ the projection on that plane, and $D = \tau = |z\wedge a\wedge b|$ the volume of the three. A skew matrix of three dimensions has rank 2: **$R$ turns one plane and nothing else**; what that does to the cosine of $w$ and $Rw$ is {ref}`an exercise <ex-cos>`. Two vectors of length $n$ say all of it; no $n\times n$ matrix is needed. {ref}`An exercise <ex-half>` halves the charge, {ref}`another <ex-swap>` exchanges the tokens.
#
# Notes on the paper say that $|z\wedge v_1\wedge v_2|$ is large when $z$ lies in the span of the two rows. It is the volume of three vectors, and vanishes there.
#
# Loops give an independent check. The loop around a square of side $\varepsilon$, a **plaquette**, returns $I - \varepsilon^2 R + O(\varepsilon^3)$; the mean over the four squares that meet at the point, a **clover**, cancels the odd orders. The *slopes* of the errors tell whether the formula is right, more sharply than any single value. (The trace of a loop would do as well: {ref}`an exercise <ex-wilson>`.)

# %%
h, v1, v2 = draw(3, loops, 12)
share = torch.rand(3, loops, generator=generator, dtype=torch.float64)
p1, p2 = (share / share.sum(0))[:2].sort(dim=0, descending=True).values
ids = torch.arange(loops)
toy = cv.assemble(2 * h + v1 + v2, v1, v2, (p1, p2), (ids, ids))
R, at = cv.curvature(toy), cv.frame(toy)
small = at.basis @ R.dense() @ at.basis.mT  # R in the frame (z, e1, e2)


def form(z, mu):
    return cv.one_form(z, at.a, at.b, toy.q, mu)  # in (z, e1, e2): 3 x 3, not n x n


axes3 = torch.eye(3, dtype=torch.float64)[:, None].expand(3, loops, 3)
errors = {"plaquette": [], "clover": []}
for side in sides:
    for name, measure in (
        ("plaquette", cv.curvature_from_plaquette),
        ("clover", cv.curvature_from_clover),
    ):
        gap = (measure(form, *axes3, side) - small).norm(dim=(1, 2)) / small.norm(dim=(1, 2))
        errors[name].append(float(gap.median()))
slopes = {name: slope(sides, values) for name, values in errors.items()}

wrong = small.clone()  # the commutator with the other sign
wrong[:, [1, 2], [2, 1]] *= -1
gap = (cv.curvature_from_clover(form, *axes3, sides[0]) - wrong).norm(dim=(1, 2)) / wrong.norm(
    dim=(1, 2)
)
wrong_error = float(gap.median())

# %% slideshow={"slide_type": "subslide"} tags=["hide-input"]
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
# The abstract says that the form depends on the geometry of the embeddings alone. So it must turn with them; and the origin from which the rows are measured is part of that geometry, although softmax doesn't see it.

# %%
turn = torch.linalg.qr(draw(12, 12)).Q
together = (x @ turn.T for x in (toy.z, toy.v1, toy.v2))
rotated = cv.curvature(cv.assemble(*together, (toy.p1, toy.p2), (ids, ids)))
left_over = float((rotated.dense() - turn @ R.dense() @ turn.T).abs().max())
shift = draw(12)
shifted = cv.assemble(toy.z, toy.v1 + shift, toy.v2 + shift, (toy.p1, toy.p2), (ids, ids))
by_shift = float((cv.curvature(shifted).norm() / R.norm()).log().abs().median().exp())

# %% tags=["hide-input"]
page.claim(
    "curvature-embedding-geometry",
    statement="The curvature is made of geometry: turned together, state and rows turn it along.",
    source="stated",
    paper="a 1-form that depends only on the geometry of the token embeddings",
    ours=left_over,
    band=(0, 1e-12),
    control="adding one random vector to every row, which leaves all probabilities as they are, "
    f"changes ‖R‖ by a factor of {by_shift:.1f} in the median",
    scale=f"{loops} random points, n = 12, one random rotation; largest entry left over",
)

# %% [markdown]
# ## A companion, and why it is not enough
#
# A simpler form suggests itself, without $z$. Let $u = m/|m|$ be the direction of the mean row, $du(v)$ how it moves when the state moves along $v$, and follow it: $\omega(v) = du(v)\wedge u$. With temperature $T$ and $C = \sum_i p_i (v_i - m)(v_i - m)^\top$, whose trace is {eq}`eq-error`, $du(v) = (I - uu^\top)\,C v/(T|m|)$. For two directions $v$ and $w$, both $d\omega$ and the commutator $\omega\wedge\omega = [\omega(v), \omega(w)]$ are multiples of $du(v)\wedge du(w)$: the first $-2$, the second $-1$. The direction $u$ is carried along by $D = d - \omega$, whose curvature is $-d\omega + \omega\wedge\omega$, a factor $2 - 1 = 1$. Adding them naively gives $-2 - 1 = -3$: a sign of convention changes the *size* of the answer.

# %%
V9 = draw(9, 5)
h9, v9, w9 = draw(3, 5)


def direction(h, V, v):
    """u, the unit vector of the mean row at state h, and du(v): how it turns as h moves along v."""
    p = (h @ V.T).softmax(-1)
    m = cv.mean(p, V)
    moved = (v @ (V - m).T * p) @ (V - m) / m.norm()  # C v / |m|
    return m / m.norm(), cv.tangent(m / m.norm(), moved)


def companion_form(h, V, v):
    """ω(v) = du(v)∧u, (n, n)."""
    u, du = direction(h, V, v)
    return cv.wedge(du, u)


def companion_curvature(h, V, v, w):
    """du(v)∧du(w), (n, n)."""
    return cv.wedge(*(direction(h, V, x)[1] for x in (v, w)))


def exterior(v, w, step=1e-4):
    """dω(v, w) by central differences."""

    def along(v, w):
        ahead, behind = (companion_form(h9 + s * step * v, V9, w) for s in (1, -1))
        return (ahead - behind) / (2 * step)

    return along(v, w) - along(w, v)


first, second = companion_form(h9, V9, v9), companion_form(h9, V9, w9)
bracket, d_omega = first @ second - second @ first, exterior(v9, w9)
F = companion_curvature(h9, V9, v9, w9)
factors = [float((M * F).sum() / F.square().sum()) for M in (bracket - d_omega, bracket + d_omega)]
only_two = float(companion_curvature(h9, V9[:2], v9, w9).norm() / F.norm())

# %% tags=["hide-input"]
page.say(
    f"Factors of $du(v)\\wedge du(w)$: {factors[0]:.6f}, and {factors[1]:.6f} with the naive sign. "
    f"With two live tokens instead of nine the curvature is {only_two:.0e} of that with nine."
)
page.claim(
    "curvature-companion-factor",
    statement="The companion form has curvature du∧du, with factor one.",
    source="ours",
    ours=abs(factors[0] - 1),
    band=(0, 1e-4),
    control=f"the naive sign gives a factor of {factors[1]:.4f}",
    scale="nine random tokens, n = 5, dω by finite differences; distance of the factor from one",
)

# %% [markdown]
# With two tokens nothing is left, and that is the point. Between them the mean row moves along a *line*, $u$ along a curve, and over a curve there is no area for a curvature to act on. In the paper's form the state $z$ itself takes part, so that two tokens are enough.
#
# ## A real model
#
# Now the states and rows of a model: each place where it chooses a token is a point with a $z$, two rows and two probabilities. ({ref}`A sentence of your own <ex-own-sentence>` is an exercise.) Another model takes one parameter, such as `-p model=gemma`, a folder, or an id on the Hub.

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
elif sharded:
    reader = cv.load_reader(model, dtype="auto", device_map="auto")
else:
    reader = cv.load_reader(model, device=page.device)
bos = reader.tokenizer.bos_token_id
prompts = cv.encode(reader, PROMPTS, bos=bos is not None)
texts = cv.continue_greedily(reader, prompts, length)
passage = cv.continue_greedily(reader, prompts[:4][-1:], 6 * length)
reading = cv.read(reader, passage)

# %% tags=["hide-input"]


def word(token):
    return cv.readable(reader.tokenizer, int(token))


# %% [markdown]
# Here is a passage that the model continues by itself, always with the likeliest token. The darker a word's ground, the larger the charge where it was chosen. **Predict first**: at the darkest words, which two tokens compete, and are their rows nearly one direction or far apart? Then open them in {numref}`fig-opened`, by mouse or with the arrow keys; {numref}`tbl-blurry` has those of the largest charge.

# %%
opened = [
    point for point in cv.describe_points(reading, reader.tokenizer) if point.next is not None
]
largest = max(range(len(opened)), key=lambda i: opened[i].q)


def told(point):
    """A point in words."""
    return (
        f"After “{point.after}” stands “{point.next}”. a: “{point.first}”, p₁ = {point.p1:.2f}; "
        f"b: “{point.second}”, p₂ = {point.p2:.2f}; charge q = {point.q:.2f}. The rows are "
        f"{math.degrees(point.angle):.0f}° apart, |Πz| = {math.hypot(point.across, point.along):.2f}. "
        f"‖R‖ = {point.norm:.3f}, from q D₀|Πz| = {point.linear:.3f} and q²D² = {point.quadratic:.3f}."
    )


# %% slideshow={"slide_type": "subslide"} tags=["hide-input"]
chose = {point.position + 1: i for i, point in enumerate(opened)}
shades = [0.05 + 0.4 * point.q for point in opened]
words = [(word(token), chose.get(k)) for k, token in enumerate(passage[0])]
page.say(sentence(words, shades, largest))


def empty_panels():
    """The plane of the rows from above, the same from its edge, and a bar of probabilities."""
    figure = Figure(figsize=(5.8, 3.9), layout="none")  # or panels would move between words
    margins = {"left": 0.04, "right": 0.96, "top": 0.93, "bottom": 0.13, "wspace": 0, "hspace": 0}
    above, edge, bar = figure.subplot_mosaic(
        [["above", "edge"], ["bar", "bar"]], height_ratios=[1, 0.11], gridspec_kw=margins
    ).values()
    for axes, title, turned in (
        (above, "the plane of both rows", torch.linspace(0, 2 * math.pi, 181)),
        (edge, "its edge, and the state", torch.linspace(0, math.pi / 2, 91)),
    ):
        axes.plot(turned.cos(), turned.sin(), color=GRID, lw=1)
        axes.set(title=title, xlim=(-1.25, 1.25), ylim=(-1.25, 1.25), aspect="equal")
        axes.set_axis_off()
    edge.plot([-1.2, 1.2], [0, 0], color=MUTED, lw=1)
    bar.set(xlim=(0, 1), ylim=(0, 1), yticks=[], xlabel="probability: a, b, all other tokens")
    bar.grid(visible=False)
    bar.spines["left"].set_visible(False)
    return figure, above, edge, bar


def arrow(axes, tip, text, name, colour, beside=None):
    """An arrow from the origin with its name at the tip, or on the side that `beside` points to."""
    length = math.hypot(*tip)
    axes.arrow(
        0, 0, *tip, width=0.018, head_width=0.09, head_length=min(0.11, length),
        length_includes_head=True, lw=0, color=colour, gid=f"ts-{name}",
    )  # fmt: skip
    x, y = beside or (tip[0] / max(length, 1e-9), tip[1] / max(length, 1e-9))
    place = tip[0] + 0.15 * x, tip[1] + 0.15 * y
    axes.text(*place, text, color=colour, ha="center", va="center", fontsize=12)


# %% tags=["hide-input"]
def draw_point(point, shade):
    """One point, to scale: both rows and the state's part in their plane, the state, the bar."""
    figure, above, edge, bar = empty_panels()
    x, y = math.sin(point.angle / 2), math.cos(point.angle / 2)
    above.fill([0, x, -x], [0, y, y], color=AMBER, lw=0, alpha=shade, gid="ts-between")
    arrow(above, (x, y), "a", "a", BLUE)
    arrow(above, (-x, y), "b", "b", TEAL)
    arrow(above, (point.across, point.along), r"$\Pi z$", "inside", INK)
    inside = math.hypot(point.across, point.along)
    height = math.sqrt(max(0.0, 1 - inside**2))
    edge.plot([inside, inside], [height, 0], "--", color=MUTED)
    arrow(edge, (inside, 0), r"$\Pi z$", "foot", INK, beside=(0, -1))
    arrow(edge, (inside, height), "$z$", "state", INK)
    edges = (0, point.p1, point.p1 + point.p2, 1)
    for i, (name, colour) in enumerate((("p1", BLUE), ("p2", TEAL), ("others", GRID))):
        width = edges[i + 1] - edges[i]
        bar.barh(0.5, width, 1, edges[i], color=colour, lw=0, gid=f"ts-{name}")
    return figure


# %% tags=["hide-input"]
page.show(
    [draw_point(point, shade) for point, shade in zip(opened, shades, strict=True)],
    name="fig-opened",
    caption=(
        f"One point of the passage of {model}, at first that of the largest charge. Left: the unit "
        "rows $a$ and $b$ of the two candidates in the plane that they span, and the part $\\Pi z$ "
        "of the unit state in it; grey: the circle of radius 1. Right: the plane from its edge, so "
        "that $z$ can be seen to stand on it. Angles and lengths are to scale, as is the bar of "
        "probabilities; the ground between the rows is as dark as $q$ is large. Not shown are the "
        "rows' real lengths and the other dimensions. A token in quotes has its space before it."
    ),
    alt=(
        "Left: two arrows a and b on a circle, and a shorter one, the state's part in their plane. "
        "Right: the state as an arrow of length one that stands steeply on that plane. Below: a "
        f"bar of probabilities. {told(opened[largest])}"
    ),
    live=Live(
        "planes",
        [Slider("word", [point.next for point in opened], largest)],
        says=told(opened[largest]),
        data={"says": [told(point) for point in opened]},
    ),
)

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
    ).round(2),
    name="tbl-blurry",
    caption=f"The points of largest charge in one passage of {model}, greedy continuation.",
)

# %% tags=["hide-input"]
page.say(
    f"The model is {model}; its final norm is `{reader.norm}`, and its output matrix is "
    f"{'tied to' if reader.tied else 'apart from'} the embedding. Every text begins with "
    f"{'no mark' if bos is None else f'the mark `{word(bos)}` (BOS)'}. Points left out of the "
    f"passage: {points.excluded or 'none'}. Logits recomputed from the states differ from the "
    f"model's own by {reader.logits_error:.1g} of the largest."
)

# %% [markdown]
# ### Frozen or live charge, raw or centred rows
#
# Two choices change the numbers and are not settled by what we could read. If the charge is differentiated too, the curvature gains the term $dq(\mu)\, z\wedge B\nu - dq(\nu)\, z\wedge B\mu$, and since logits are steep that term dominates. And softmax doesn't change when one vector is added to all rows, but the connection does: rows may be centred by taking their mean off. We use a frozen charge and raw rows, and report the other choices here.

# %%
everything = cv.read(reader, texts).points
centred = cv.read(reader, texts, centre=True).points
frozen = cv.curvature(everything)
V, means = reader.rows.double(), []
for some in range(0, len(everything), 64):
    part = everything[some : some + 64]
    means.append(cv.mean((part.scale[:, None] * part.z @ V.T).softmax(-1), V))
live = cv.curvature(everything, mean_rows=torch.cat(means))
ratio = float((live.norm() / frozen.norm()).median())
products = (frozen.plane() @ live.plane().mT).det()
cosine = float(products.median())
both = torch.isin(everything.kept, centred.kept), torch.isin(centred.kept, everything.kept)
between = cv.rank_correlation(
    frozen.norm()[both[0]].cpu().numpy(), cv.curvature(centred).norm()[both[1]].cpu().numpy()
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
# At each point that the model adds to the prompts, take the likeliest token, and then the runner-up instead, and compare what the model expects next: the Jensen–Shannon divergence (JS) between the two distributions, which is 0 when the swap makes no difference and $\log 2 \approx 0.69$ nats when the two futures share no token. If the charge, or the curvature, or the spread of the distribution (its entropy) tells sensitivity, it should go along with that divergence. We call a rank correlation a finding from 0.2 on.
#
# One trap lies close by. The *expected* damage of sampling contains the probability that the other token is drawn, $p_1 p_2$, and $q$ is $4 p_1 p_2$. Their correlation is high by construction and shows nothing. The honest question is about the divergence **given** the swap.

# %%
since = [len(row) - 1 for row in prompts]
table = cv.swap_table(reader, [t[:-1] for t in texts], since)


NAMES = {"norm": "‖R‖", "norm at q = 1": "‖R‖ at q = 1", "row distance": "|v₁ − v₂|"}
TARGETS = {"js": "JS given the swap", "expected": "p₁p₂ · JS"}


def judged(column, target="js", given=None):
    """ρ with its interval over prompts, and how large it gets by chance."""

    def rho(t):
        other = None if given is None else t[given].to_numpy()
        return cv.rank_correlation(t[column].to_numpy(), t[target].to_numpy(), other)

    interval = cv.interval_over_texts(table, rho, draws, seed)
    return dict(
        zip(("ρ", "low", "high"), interval, strict=True),
        chance=cv.shift_null(table, rho, target, draws, seed),
    )


tried = [(name, "js", None) for name in cv.READOUTS]
tried += [("norm", "js", "q"), ("norm at q = 1", "js", "row distance"), ("q", "expected", None)]
found = {each: judged(*each) for each in tried}

# %% tags=["hide-input"]
page.table(
    pd.DataFrame(
        {
            "readout": NAMES.get(name, name)
            + (f", {NAMES.get(given, given)} taken out" if given else ""),
            "against": TARGETS[target],
            **row,
        }
        for (name, target, given), row in found.items()
    ).round(2),
    name="tbl-sensitivity",
    caption=(
        f"Spearman's ρ over {len(table)} points of {table.text.nunique()} prompts, with 95 % "
        f"intervals from {draws:,} resamplings of whole prompts. Chance: what |ρ| stays below in "
        "95 % of shifts of the divergences along the points, which keep neighbours together. "
        "Taken out: correlation of what is left of both rankings when that of the other quantity "
        f"is fitted. {len(found)} were tried: an interval that barely misses zero is no finding."
    ),
)

# %% slideshow={"slide_type": "subslide"} tags=["hide-input"]
figure, panels = plt.subplots(1, 2, figsize=(8.4, 3.2))
for axes, column, name in zip(
    panels, ("js", "expected"), ("JS after the swap (nats)", r"$p_1p_2\cdot$JS (nats)"), strict=True
):
    axes.plot(table.q, table[column], "o", color=BLUE, ms=3.5, alpha=0.6)
    axes.set(xlabel="charge q", ylabel=name, xlim=(-0.03, 1.03))
panels[1].plot([0, 1], [0, math.log(2) / 4], "--", color=MUTED, label="largest possible")
panels[1].legend(fontsize=9)
page.show(
    figure,
    name="fig-swap",
    caption="What a swap of the two candidates changes, against the charge. Left: given the swap. "
    "Right: times p₁p₂, which puts the charge on both axes.",
    alt="Left: a cloud without trend. Right: points under a rising line.",
)

# %% slideshow={"slide_type": "subslide"} tags=["hide-input"]
scale = f"{model}, {len(table)} points of {table.text.nunique()} prompts, one token ahead"


def interval(*each):
    return "{low:.2f} to {high:.2f}, by chance below {chance:.2f}".format(**found[each])


page.claim(
    "curvature-spread-sensitivity",
    statement="A model is sensitive to a single token where its distribution is spread.",
    source="stated",
    paper="the first sentence of the abstract; no number",
    ours=found["entropy", "js", None]["ρ"],
    band=(0.2, None),
    control=f"ρ of entropy and JS given the swap; 95 % {interval('entropy', 'js', None)}. Spread "
    "also makes a swap likelier: that part is in the last claim, by construction",
    scale=scale,
)
page.claim(
    "curvature-q-sensitivity",
    statement="Given that the token is swapped, the divergence doesn't go along with the charge.",
    source="ours",
    ours=found["q", "js", None]["ρ"],
    band=(-0.2, 0.2),
    control=f"95 % {interval('q', 'js', None)}; ρ of the distance between the two rows: "
    f"{found['row distance', 'js', None]['ρ']:.2f}",
    scale=scale,
)
page.claim(
    "curvature-geometry-sensitivity",
    statement="Given the swap, the curvature without its charge does go along with the divergence.",
    source="ours",
    ours=found["norm at q = 1", "js", None]["ρ"],
    band=(0.1, None),
    control=f"95 % {interval('norm at q = 1', 'js', None)}",
    scale=scale,
)

# %% tags=["hide-input"]
page.claim(
    "curvature-q-expected",
    statement="The expected divergence, which contains p₁p₂, goes along with the charge.",
    source="ours",
    ours=found["q", "expected", None]["ρ"],
    band=(0.6, None),
    control=f"95 % {interval('q', 'expected', None)}; by construction: p₁p₂ is a factor of both",
    scale=scale,
)
beyond = found["norm at q = 1", "js", "row distance"]
bare = cv.curvature(everything, q=torch.ones_like(everything.q)).norm()
to_sine = float((bare / cv.frame(everything).D0 ** 2).median())
alike = cv.rank_correlation(*table[["norm at q = 1", "row distance"]].to_numpy().T)
page.say(
    "Is it curvature, or only that the two rows are far apart? For a state far from their plane "
    "‖R‖ at q = 1 is nearly $D_0^2$, the squared sine of the angle between them (their ratio is "
    f"{to_sine:.2f} in the median), and $z$ hardly matters; it ranks the points as the distance of "
    f"the rows does, at ρ = {alike:.2f}. The distance against JS gives "
    f"{found['row distance', 'js', None]['ρ']:.2f}, the curvature "
    f"{found['norm at q = 1', 'js', None]['ρ']:.2f}. With the distance taken out, "
    f"{beyond['ρ']:.2f} is left of the latter, "
    f"with an interval of {beyond['low']:.2f} to {beyond['high']:.2f}, "
    + ("which contains zero: no evidence" if beyond["low"] <= 0 <= beyond["high"] else "evidence")
    + " that the curvature knows more than the distance."
)

# %% [markdown]
# ```{admonition} Differs from the paper
# :class: differs
# - **The charge is not sensitivity.** What a swap changes is told by the geometry, and much of that by the distance of the two rows, rather than by how likely the two tokens are ({numref}`tbl-sensitivity`). The product with $p_1p_2$ looks convincing and is circular.
# - **Models differ.** With `-p model=gemma` the entropy comes out just on the other side of the line of 0.2, and the expected divergence just below its own line; the rest of the table keeps its signs.
# - **The curvature needs no loops.** {eq}`eq-closed` is exact, and loops are its check ({numref}`fig-slopes`).
# - **The triple wedge vanishes in the plane** of the two rows; it isn't large there.
# - **Frozen charge, unit rows, raw rows** are our choices. The live charge gives a different object, not a small correction.
# - **One step, small models.** The paper measures moves of chess, in models of 24 and 32 billion parameters; we look one token ahead, in text. A spread distribution may still mark the place from which longer texts part.
# - **Points, no paths.** All of this is local; how far a text turns the frame on its way is {ref}`an open exercise <ex-path>`.
# ```
#
# ## Exercises
#
# From ★ (predict, then run) to ★★★ (extend the paper). Predict on paper first; each cell ends in a check that says what a wrong answer may come from.

# %% [markdown] slideshow={"slide_type": "subslide"}
# ```{exercise} ★ Turned towards itself
# :label: ex-cos
#
# Someone measures the mean of $|\cos|$ between a vector $w$ and $Rw$, over random $w$ and the curvatures of this page. What comes out, and what has been learned?
# ```

# %% [markdown]
# ```{solution-start} ex-cos
# :class: dropdown
# ```
#
# Zero, and nothing has been learned: $w^\top R w = 0$ for every skew matrix. The next page needs this, because cosines with $Rw$ have a second artefact: all $Rw$ lie in one plane.

# %%
# Your prediction `mean_cosine`: the mean of |cos(w, Rw)|.
# BEGIN SOLUTION: R is skew, so what is the number w·Rw equal to when it is transposed?
mean_cosine = 0.0
# END SOLUTION

w = draw(loops, 12)
Rw = torch.einsum("nij,nj->ni", R.dense(), w)
expect(
    "ex-cos",
    mean_cosine,
    float(torch.cosine_similarity(w, Rw, dim=1).abs().mean()),
    within=1e-6,
    mistakes={"what random pairs of vectors have, but Rw isn't random given w": 0.23},
    hint="a number is its own transpose, and R' = -R",
)

# %% [markdown]
# ```{solution-end}
# ```
#
# ```{exercise} ★ Half the charge
# :label: ex-half
#
# Halve $q$, and nothing else. By what factor does $\|R\|$ change for a state almost in the plane of the two rows? By what factor for a state at right angles to it?
# ```
#
# ```{solution-start} ex-half
# :class: dropdown
# ```
#
# Almost in the plane, $D$ is nearly 0 and the first part of {eq}`eq-closed`, linear in $q$, is all there is: one half. At right angles $\Pi_{ab}z = 0$, and the second part, quadratic in $q$, is all: a quarter. Between, the factor lies between.

# %%
# Your predictions `factor_in_plane` and `factor_across`: ‖R‖ at half the charge over ‖R‖ at the
# whole, for the two states.
# BEGIN SOLUTION: which of the two parts of the squared norm is left in each case?
factor_in_plane = 0.5
factor_across = 0.25
# END SOLUTION

rows2, off = normalize(draw(2, 12), dim=1), draw(12)
off = normalize(off - rows2.T @ torch.linalg.lstsq(rows2.T, off[:, None]).solution[:, 0], dim=0)
states = torch.stack([rows2.sum(0) + 1e-3 * off, off])
at_half, one = torch.full((2,), 0.5).double(), torch.arange(2)
pairs = (rows2[:1].expand(2, 12), rows2[1:].expand(2, 12))
both = cv.assemble(states, *pairs, (at_half, at_half), (one, one))
change = cv.curvature(both, q=at_half).norm() / cv.curvature(both).norm()
for mine, found, other in (
    (factor_in_plane, change[0], change[1]),
    (factor_across, change[1], change[0]),
):
    expect(
        "ex-half",
        mine,
        float(found),
        within=0.01,
        mistakes={
            "no change, but both parts contain q": 1.0,
            "the factor of the other state": float(other),
        },
        hint="look at the powers of q in the closed form, and at D and Πz for this state",
    )
page.say(f"Almost in the plane: {float(change[0]):.3f}; at right angles: {float(change[1]):.3f}.")

# %% [markdown]
# ```{solution-end}
# ```
#
# ```{exercise} ★★ Odd and even
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
# `sign_of_form`, `sign_of_linear`, `sign_of_quadratic`: 1 or -1, what A and the parts of R that are
# linear and quadratic in q are multiplied by when v1 and v2 change places.
# BEGIN SOLUTION: B is odd in the two rows; the pair e1, e2 changes orientation as well
sign_of_form = -1
sign_of_linear = 1
sign_of_quadratic = -1
# END SOLUTION

around = cv.frame(toy)
e1, e2 = around.e1, around.e2
turn_e = e1[:, :, None] * e2[:, None] - e2[:, :, None] * e1[:, None]
quadratic = -((toy.q * around.D) ** 2)[:, None, None] * turn_e
linear = R.dense() - quadratic
other = cv.assemble(toy.z, toy.v2, toy.v1, (toy.p1, toy.p2), (toy.top2, toy.top1))
there = cv.curvature(other)
unit_a, unit_b = normalize(toy.v1, dim=1), normalize(toy.v2, dim=1)
A = cv.one_form(toy.z, unit_a, unit_b, toy.q, e1)
gap = (sign_of_form * A - cv.one_form(toy.z, unit_b, unit_a, toy.q, e1)).abs().max()
expect(
    "ex-swap", float(gap), 0, within=1e-9, hint="A contains B once; the number is how far A is off"
)
gap = (sign_of_linear * linear + sign_of_quadratic * quadratic - there.dense()).abs().max()
plane_forgotten = (quadratic - linear - there.dense()).abs().max()
expect(
    "ex-swap",
    float(gap),
    0,
    within=1e-9,
    mistakes={
        "the signs of B alone, with a plane that keeps its orientation": float(plane_forgotten)
    },
    hint="the number is how far R is from what you say; count the signs of each part: one for each "
    "B, and one for the plane's orientation",
)
page.say(
    f"Largest change of ‖R‖: {float((R.norm() - there.norm()).abs().max()):.0e}. Median cosine of "
    f"the two curvatures: {float((R.plane() @ there.plane().mT).det().median()):.2f}."
)

# %% [markdown]
# ```{solution-end}
# ```
#
# ```{exercise} ★★ A loop's trace
# :label: ex-wilson
#
# The Wilson loop is $W = \operatorname{tr} H / n$. Derive its distance from 1 for a small square of side $\varepsilon$, and turn it into a measurement of $\|R\|$.
# ```
#
# ```{solution-start} ex-wilson
# :class: dropdown
# ```
#
# A rotation by a small angle $\theta$ in one plane has the trace $n - 2 + 2\cos\theta \approx n - \theta^2$. The square turns by $\varepsilon^2\|R\|$, so $n(1 - W) = \varepsilon^4\|R\|^2$ to leading order.

# %%
side, n_wide = 0.02, 12
H = cv.plaquette(form, *axes3, side)  # in the frame; in the other directions H is 1
W = 1 + (H.diagonal(dim1=1, dim2=2) - 1).sum(-1) / n_wide  # (loops,), tr H / n
# The norms `by_trace`, (loops,), from W, n_wide and side.
# BEGIN SOLUTION: a turn by a small angle in one plane lowers the trace by the angle squared
by_trace = (n_wide * (1 - W)).sqrt() / side**2
# END SOLUTION

ratio_of_trace = float((by_trace / R.norm()).median())
expect(
    "ex-wilson",
    ratio_of_trace,
    1,
    within=0.05,
    mistakes={
        "a trace that isn't multiplied by n": 12**-0.5,
        "the angle per side, not per area": side,
        "an angle θ with trace n - θ²/2, which is that of one cosine, not of two": 2**0.5,
    },
    hint="the trace of a turn by an angle is n - 2 + 2 cos(angle), and the angle is side² ‖R‖",
)
page.say(f"Median ratio to ‖R‖: {ratio_of_trace:.3f}.")

# %% [markdown]
# ```{solution-end}
# ```
#
# ```{exercise} ★★ A sentence of your own
# :label: ex-own-sentence
#
# Give the model a sentence of yours and compute the curvature at each of its points from {eq}`eq-closed` alone: no loops, no matrices, only dot products of $z$, $a$ and $b$. Where is it largest, and would you have chosen that place?
# ```
#
# ```{solution-start} ex-own-sentence
# :class: dropdown
# ```
#
# With $g = a\cdot b$ one has $D_0^2 = 1 - g^2$. The squared length of $\Pi_{ab} z$ is $\big((z\cdot a)^2 + (z\cdot b)^2 - 2g\,(z\cdot a)(z\cdot b)\big)/D_0^2$, and $D^2 = D_0^2\,(1 - |\Pi_{ab} z|^2)$, the area of the two rows times the height of $z$ above it.

# %%
# Your `sentence`, a string; an untrained model knows the words of PROMPTS only.
# BEGIN SOLUTION: anything that the model could go on with in more than one way
sentence = "The old man looked at the river and the cat sat on the"
# END SOLUTION


def norm_of(z, a, b, q):
    """‖R‖ of unit vectors z, a, b of shape (N, n) and charges q of shape (N,)."""
    # BEGIN SOLUTION: three dot products give D0², then |Πz|² (a 2 x 2 system), then D²
    za, zb, g = ((x * y).sum(1) for x, y in ((z, a), (z, b), (a, b)))
    area = 1 - g**2
    shadow = (za**2 + zb**2 - 2 * g * za * zb) / area
    return (q**2 * area * shadow + q**4 * (area * (1 - shadow)) ** 2).sqrt()
    # END SOLUTION


own = cv.read(reader, cv.encode(reader, [sentence], bos=bos is not None))
mine = own.points
got = norm_of(mine.z, normalize(mine.v1, dim=1), normalize(mine.v2, dim=1), mine.q).cpu()
known = cv.curvature(mine).norm().cpu()
expect(
    "ex-own-sentence",
    got,
    known,
    within=1e-6,
    hint="check a case by hand: a, b and z all at right angles must give q²",
)
most = int(known.argmax())
spot = int(own.position[mine.kept[most]])
page.say(
    f"Largest ‖R‖: {float(known[most]):.2f}, after “{word(own.ids[0][spot])}”, between "
    f"“{word(mine.top1[most])}” and “{word(mine.top2[most])}” (q = {float(mine.q[most]):.2f})."
)

# %% [markdown]
# ```{solution-end}
# ```
#
# ```{exercise} ★★★ Do texts move where it turns?
# :label: ex-path
#
# The paper transports along paths, but says of no path that a model takes it. A text is one: from each state to the next. How far does each step turn the frame, $\|A_z(\mu)\|$ with $\mu$ the direction of the step on the sphere? Is that more than for steps towards the states of *other* texts? Predict, measure, and give a verdict.
# ```
#
# ```{solution-start} ex-path
# :class: dropdown
# ```
#
# By {eq}`eq-form` $A = q\,z\wedge B\mu$, whose size is $q$ times the length of the part of $B\mu$ at right angles to $z$.


# %%
def turn_of(z, a, b, q, step):
    """‖A_z(step)‖ of shape (N,), for unit z, a, b and tangents `step` of shape (N, n)."""
    # BEGIN SOLUTION: B step = a (b·step) - b (a·step), less its part along z; times q
    moved = a * (b * step).sum(1, True) - b * (a * step).sum(1, True)
    return q * (moved - z * (z * moved).sum(1, True)).norm(dim=1)
    # END SOLUTION


path = cv.read(reader, texts)
spot, of = path.points.kept, path.text[path.points.kept]
goes_on = (of[1:] == of[:-1]) & (spot[1:] == spot[:-1] + 1)
here = goes_on.nonzero().flatten()
at_step = path.points[here]
a_step, b_step = normalize(at_step.v1, dim=1), normalize(at_step.v2, dim=1)


def turns(targets):
    """How far unit steps from the points `here` towards other points turn the frame."""
    step = normalize(cv.tangent(at_step.z, path.points.z[targets]), dim=1)
    return turn_of(at_step.z, a_step, b_step, at_step.q, step)


taken = turns(here + 1)
order = torch.randperm(len(here), generator=generator)
strangers = torch.stack([turns((here + 1)[order.roll(k)]) for k in range(1, 20)])
aim = normalize(cv.tangent(at_step.z, path.points.z[here + 1]), dim=1)
few = slice(0, 20)  # a dense matrix takes n² numbers
dense = cv.one_form(at_step.z[few], a_step[few], b_step[few], at_step.q[few], aim[few])
expect(
    "ex-path",
    taken[few].cpu(),
    (dense.square().sum((1, 2)) / 2).sqrt().cpu(),
    within=1e-8,
    hint="compare with the dense matrix: ‖M‖² is half the trace of M'M",
)

# %%
# `ahead`, (steps,): 1 where the step taken turns further than half of the strangers'.
# BEGIN SOLUTION: `taken` is (steps,), `strangers` is (19, steps); 19 has a middle
ahead = (taken > strangers.median(0).values).double().cpu()
# END SOLUTION

ahead = ahead.double().cpu()
expect(
    "ex-path",
    float(ahead.mean()),
    float(((strangers < taken).double().mean(0) > 0.5).double().mean()),
    within=1e-9,
    hint="compare with the median over the strangers of one step, not over all steps",
)
each = torch.stack([ahead[(of[here] == k).cpu()].mean() for k in of[here].unique()])
share, error = float(each.mean()), float(each.std() / math.sqrt(len(each)))
gain = float(taken.median() / strangers.median())
page.say(
    f"{len(here)} steps of {len(each)} texts. A step that the text takes turns the frame "
    f"{gain:.2f} times as far as a step towards another text's state, in the median. It turns it "
    f"further than half of these in {share:.0%} of the cases, ± {2 * error:.0%} (two standard "
    "errors over texts); chance gives 50 %: "
    + ("a difference." if abs(share - 0.5) > 2 * error else "no difference that can be told.")
)

# %% [markdown]
# **Verdict.** The numbers are the run's, and their control is what matters: all steps have length 1, so only their aim counts. The form turns most for steps that aim at one of the two rows and away from the other. A difference would therefore say first how a state moves relative to the rows it has just chosen from, and nothing yet about meaning. Whether $P\exp(-\int A)$ along a whole text keeps anything of it is open.
#
# ```{solution-end}
# ```
#
# ## Further reading
#
# - **The paper**: {cite:t}`modenbach2026curvature`.
# - **Other geometry of the output.** {cite:t}`park2024linear` ask which inner product makes directions of the unembedding mean something; it isn't the plain one used here. {cite:t}`yang2018bottleneck` show what a softmax over rows of width $n$ cannot express.
# - **Sampling.** {cite:t}`holtzman2020degeneration` describe what goes wrong when a model always takes the likeliest token, as the texts on this page do, and when it draws from the whole distribution.
# - **Transport and loops.** {cite:t}`blanes2009magnus` review the expansion behind our integrator. {cite:t}`wilson1974confinement` introduced loops on a lattice, with the trace of {ref}`an exercise above <ex-wilson>`; clovers come from {cite:t}`sheikholeslami1985improved`.

# %%
page.footer()
