# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown] slideshow={"slide_type": "slide"}
# # The hub in real tables
#
# {doc}`The previous page <estimators>` built a table with a hub in it and watched the estimate of its intrinsic dimension grow. This page takes the tables of real models and asks, of each: is there a hub, whom does it capture, and how much does it change the reading? Everything is measured with a control, and every claim of the paper's abstract gets a verdict at the scale that this run had.

# %% [markdown]
# The list of tables is a parameter. Put your own model into it, by the name of a file or by its id on the Hugging Face Hub, and the whole page is about that model.

# %% tags=["parameters"]
tables: list = ["minilm", "smollm2", "glove"]  # packaged tables, files, Hub ids, or "public"
whole: int = 40_000  # a table of at most this many rows is read at every row
queries: int = 4_096  # a larger one at this many of its rows, drawn by the seed
seed: int = 0
device: str = "auto"

# %%
from tokenspace.press import Page

page = Page("hub/models", seed=seed, device=device)

# %% tags=["hide-input"]
import math
import re

import faiss
import gguf
import numpy as np
import pandas as pd
import torch
from matplotlib import pyplot as plt
from matplotlib.ticker import LogLocator, MaxNLocator, NullFormatter, ScalarFormatter

from tokenspace.errors import TokenspaceError
from tokenspace.hub import (
    captured,
    decompose,
    earliest,
    facco,
    ghost,
    lengths,
    lid,
    lid_harmonic,
    lid_null,
    median,
    mle,
    nearest,
    nearest_prefixes,
    neighbour_cosines,
    plant,
    prefers_hub,
    read_dimension,
    reflection,
    survival,
    token_groups,
    valley,
)  # fmt: skip
from tokenspace.hub.neighbours import measure
from tokenspace.press.exercises import expect
from tokenspace.press.figures import AMBER, BLUE, INK, MUTED, RED, TEAL
from tokenspace.sources import check_rows, hf_models, load_table

# %% [markdown]
# ## What is claimed

# %% [markdown] slideshow={"slide_type": "subslide"}
# ```{admonition} What the paper says
# :class: paper
#
# The abstract of {cite:t}`quemy2026hub`, in our words and one claim at a time:
#
# 1. Many embedding tables hold a cluster of short rows near the origin. Concentration of measure makes a token closer to this cluster than to any other token.
# 2. A token's first two neighbours are then both rows of the cluster, at nearly the same distance, and TwoNN reads far too high.
# 3. Token by token, the dimension read is heavy-tailed.
# 4. On Pythia, following {cite:t}`kataiwa2025measuring`, the reading grows from 27 to 122 between 160M and 12B parameters.
# 5. With the hub removed it is 10–17 at every size.
# 6. Eleven models, from GPT-2 to Kimi K3 and GLM-4.7, then fall into one narrow range.
# 7. A few hundred rows suffice.
# 8. The hub holds a subset of the rows that detectors of under-trained tokens flag, yet its rows were updated in training.
# 9. Normalizing all rows to length one gives the same lower reading.
# ```

# %% [markdown]
# ```{admonition} Differs from the paper
# :class: differs
#
# - **The models.** Pythia's tables have to be fetched from the Hub. Without a network, this page reads tables that come as Python packages: a sentence encoder, a small language model, and word vectors. Claims 4 to 6 name models; they can be tested only when those are in `tables`.
# - **Which rows are the hub.** Section 3 of the paper is said to speak of a top decile, and later sections of the shortest rows. We follow the later definition, with a threshold that has no free parameter, {eq}`eq-models-reflection`.
# - **The estimator.** We show four: maximum likelihood (MLE), Facco's fit, the median, and the local dimension at 20 neighbours. They weigh captured tokens very differently.
# - **What removal does.** In MiniLM there is no plateau: taking out more short rows keeps lowering the reading. So we headline the reading of normalized rows, which has no cut to choose, and normalize a table without its hub as a control.
# ```

# %% [markdown]
# ## The tables, read three ways
#
# `load_table` takes a packaged name, a `.gguf`, `.safetensors` or `.npy` file, or a Hub id, of which it fetches the one tensor and nothing else. The entry `public` in `tables` stands for a list of well-known models on the Hub, the paper's own first; one that cannot be had is named below and left out. `read_dimension` reads the table as it is, without its hub, and with every row scaled to length one. With the first two neighbour distances $r_1 \le r_2$ of each row and $m_i = \log(r_{2,i}/r_{1,i})$,
#
# $$
# \begin{aligned}
# \hat d_\text{MLE} &= \frac{N-1}{\sum_i m_i}, \\
# \hat d_\text{median} &= \frac{\ln 2}{\operatorname{median}_i m_i}, \\
# \mathrm{LID}_{20} &= \Big[\frac{1}{19}\sum_{j<20} \log\frac{r_{20}}{r_j}\Big]^{-1},
# \end{aligned}
# $$ (eq-models-estimators)
#
# and Facco's fit is the slope of a line through the origin on the sorted $m$, without their largest tenth; {doc}`the previous page <estimators>` derives all four. Exact duplicates are set aside first, so no distance is zero. A table is never subsampled, only the rows at which it is read; the last sections show why.

# %%
loaded, readings, missing = {}, {}, {}
public = hf_models() if "public" in tables else []
for spec in [*public, *(t for t in tables if t != "public")]:
    name = spec.rstrip("/").rsplit("/", 1)[-1]
    try:
        table = load_table(spec)
        at = len(table.rows) if len(table.rows) <= whole else queries
        readings[name] = read_dimension(table, queries=at, seed=seed, device=page.device)
        loaded[name] = table
    except TokenspaceError as error:
        missing[spec] = error
if not loaded:
    raise next(iter(missing.values()))
rho_of = {name: lengths(table.rows) for name, table in loaded.items()}
for spec, error in missing.items():
    page.say(f"**Not read:** `{spec}`. {error}")

# %% tags=["hide-input"]
facts = []
for name, table in loaded.items():
    r, rho = readings[name], rho_of[name].numpy()
    low, middle, high = np.percentile(rho, [1, 50, 99])
    facts.append({
        "table": name, "rows": f"{r.n:,}", "width": r.d, "stored": r.dtype,
        "tied": {True: "yes", False: "no", None: "unknown"}[table.tied],
        "duplicates": r.duplicates, "zero rows": r.zero_rows, "padding": r.padded_rows,
        "length, 1 %": low, "median": middle, "99 %": high, "longest": rho.max(),
    })  # fmt: skip
page.table(
    pd.DataFrame(facts), name="tbl-models-facts",
    caption="""The tables of this run. *Stored*: the number format in the file; everything quantized
    is read as the 32-bit numbers it stands for. *Tied*: whether the output matrix is the same
    table. *Duplicates*: rows equal to another row. *Padding*: rows beyond the tokenizer's last
    entry. The last four columns describe row lengths.""",
)  # fmt: skip

# %% [markdown]
# ### Is there a hub?
#
# A hub is made of short rows, so we begin with the lengths $\rho_i = \lvert x_i\rvert$, which are distances from the origin; whether that is the right middle is {ref}`an open exercise <ex-models-middle>`. How short is short? The longest row gives a scale: a row is called short if it lies further below the median, in logarithms, than any row lies above it,
#
# $$
# H = \Big\{ i : \rho_i < \frac{\operatorname{median}(\rho)^2}{\max(\rho)} \Big\}.
# $$ (eq-models-reflection)
#
# This reflection of the longest row about the median needs no parameter. It has known weaknesses: one extremely long row hides every hub ({ref}`an exercise <ex-models-long-row>` adds one), and a table whose lengths lean to the left loses a few percent of innocent rows. So we cross-check it with the density of $\log\rho$: where short rows form a group of their own, there is a valley between the two humps.

# %% slideshow={"slide_type": "subslide"} tags=["hide-input"]
columns = min(3, len(loaded))
height = math.ceil(len(loaded) / columns)
figure, axes = plt.subplots(
    height, columns, figsize=(6.8, 0.6 + 2.1 * height), squeeze=False, sharey=True
)
for ax, (name, rho) in zip(axes.flat, rho_of.items(), strict=False):
    short_rows, gap = reflection(loaded[name].rows), valley(loaded[name].rows)
    x = np.log2(rho[rho > 0].numpy() / short_rows.median_norm)
    count, edge = np.histogram(x, 160, weights=np.full(len(x), 100 / len(rho)))
    short = edge[:-1] < math.log2(short_rows.threshold / short_rows.median_norm)
    for part, colour in ((short, RED), (~short, BLUE)):
        ax.stairs(np.where(part, count, 0), edge, fill=True, color=colour)
    ax.axvline(math.log2(short_rows.threshold / short_rows.median_norm), color=RED, lw=1.2)
    if gap:
        ax.axvline(math.log2(gap / short_rows.median_norm), color=INK, lw=1.2, ls=":")
    ax.set_yscale("log")
    ax.set_title(name)
    ax.set_xlabel("length / median")
    ax.xaxis.set_major_locator(MaxNLocator(5, integer=True))
    ax.xaxis.set_major_formatter(lambda v, _: f"{2.0**v:g}" if v >= 0 else f"1/{2.0**-v:g}")
for ax in axes[:, 0]:
    ax.set_ylabel("rows (%)")
for ax in axes.flat[len(loaded) :]:
    ax.set_visible(False)
page.show(
    figure, name="fig-models-lengths",
    caption=f"""Row lengths over the table's median (both axes logarithmic), 160 bins. Solid line:
    the reflection threshold {{eq}}`eq-models-reflection`; rows left of it, in red, are the hub.
    Dotted line, where there is one: the deepest valley of the density of log length below the
    median. All rows: {", ".join(f"{k} {len(v):,}" for k, v in rho_of.items())}.""",
    alt=f"""Histograms of row lengths, one for each of {", ".join(rho_of)}, with the threshold below
    which rows count as a hub.""",
)  # fmt: skip

# %% tags=["hide-input"]
for name, r in readings.items():
    gap = valley(loaded[name].rows)
    valley_text = (
        f"the density has a valley at {gap / float(rho_of[name].median()):.2f} of the median length"
        if gap else "the density has no valley below the median"
    )  # fmt: skip
    judged = "no hub" if not r.hub_rows else "an inert hub" if r.hub_inert else "an active hub"
    page.say(
        f"**{name}: {judged}.** {r.hub_rows:,} rows lie nearer to {r.hub.around} than "
        f"{r.hub.threshold / r.hub.median_norm:.2f} of the median distance; {valley_text}."
        + f" {r.effect.touched:.1%} of the other rows have one of them among their first two "
        f"neighbours, {r.effect.captured:.1%} have two." * bool(r.hub_rows)
    )

# %% [markdown]
# A hub is called *inert* when fewer than one in a hundred tokens have a hub row among their first two neighbours: only such tokens can change their ratio when the hub goes. Short rows alone therefore do not make a hub that matters.
#
# ### The readings


# %% tags=["hide-input"]
def two(value: float | None) -> float:
    """A standard error to two significant digits."""
    return math.nan if value is None else float(f"{value:.2g}")


lines = []
for name, r in readings.items():
    versions = {"as it is": r.full, "hub removed": r.hub_removed, "normalized": r.normalized}
    versions["without padding"] = r.without_padding
    if not r.hub_rows:
        del versions["hub removed"]
    for version, v in versions.items():
        if v is not None:
            lines.append({
                "table": name, "version": version, "rows": f"{v.rows:,}", "read at": f"{v.queries:,}",
                "MLE": v.mle, "± se": two(v.se), "Facco": v.facco, "median": v.median,
                "LID20": v.lid20, "± se ": two(v.lid20_se),
            })  # fmt: skip
page.table(
    pd.DataFrame(lines), name="tbl-models-readings",
    caption="""Four estimators on every version of every table. LID20 is the harmonic mean of the
    local dimension, at 4,096 rows at most. Standard errors are those of sampling rows; they say
    nothing about bias, and at these dimensions every reading is for comparison only.""",
)  # fmt: skip

# %% [markdown]
# Under the model that all four estimators rest on, the four columns of a row would agree. They do not, and the disagreement says something: a median far above the MLE means that many tokens read high while a few with large $m$ rule the mean, as in a mixture of captured and free tokens; Facco's fit above the MLE means that $m$ is not exponential even where nobody is captured.
#
# Beside these, the numbers that could be read of the paper. Its tables are not ours, so the comparison is of *patterns*: how much higher than without its hub is a table read as it is? How many tokens a hub would have to capture for the paper's numbers is {ref}`an exercise <ex-models-ceiling>`.

# %% tags=["hide-input"]
beside = []
for name, r in readings.items():
    ratio = r.full.mle / r.hub_removed.mle if r.hub_removed.mle else math.nan
    beside.append({
        "model": name, "whose": "this run", "as it is": f"{r.full.mle:.2f}",
        "hub removed": f"{r.hub_removed.mle:.2f}" if r.hub_rows and r.hub_removed.mle else "no hub",
        "normalized": f"{r.normalized.mle:.2f}" if r.normalized.mle else "–",
        "as it is / removed": f"{ratio:.2f}",
    })  # fmt: skip
PAPER = {"Pythia 160M": 27, "Pythia 12B": 122}  # readings the paper prints; 10–17 with the hub out
LOW, HIGH = 10, 17
for model, full in PAPER.items():
    beside.append({
        "model": model, "whose": "the paper", "as it is": str(full), "hub removed": f"{LOW}–{HIGH}",
        "normalized": "“the same lower reading”",
        "as it is / removed": f"{full / HIGH:.1f}–{full / LOW:.1f}",
    })  # fmt: skip
page.table(
    pd.DataFrame(beside), name="tbl-models-beside",
    caption="""Ours and the paper's, one row per model; ours are MLE. The last column is how far a
    hub raises the reading.""",
)  # fmt: skip

# %% slideshow={"slide_type": "subslide"} tags=["hide-input"]
figure, ax = plt.subplots(figsize=(6.8, 1.3 + 0.42 * (len(readings) + len(PAPER))))
labels = [*readings, *(f"{m} (paper)" for m in PAPER)]
for y, name in enumerate(readings):
    r = readings[name]
    points = [(r.full, RED, "o"), (r.normalized, TEAL, "^")]
    points += [(r.hub_removed, BLUE, "s")] * bool(r.hub_rows)
    found = [(v.mle, colour, mark) for v, colour, mark in points if v.mle]
    ax.plot([min(f[0] for f in found), max(f[0] for f in found)], [y, y], color=MUTED, lw=1)
    for value, colour, mark in found:
        ax.plot(value, y, mark, color=colour, ms=11 if mark == "o" else 7)
for y, printed in enumerate(PAPER.values(), start=len(readings)):
    ax.plot([HIGH, printed], [y, y], color=MUTED, lw=1)
    ax.plot([LOW, HIGH], [y, y], color=BLUE, lw=7, solid_capstyle="butt")
    ax.plot(printed, y, "o", color=RED, ms=8, mfc="none", mew=2)
for mark, colour, text in (
    ("o", RED, "as it is"),
    ("s", BLUE, "hub removed"),
    ("^", TEAL, "normalized"),
):
    ax.plot([], [], mark, color=colour, label=text)
ax.set_yticks(range(len(labels)), labels)
ax.invert_yaxis()
ax.set_xscale("log")
ax.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
ax.xaxis.set_major_formatter(ScalarFormatter())
ax.xaxis.set_minor_formatter(NullFormatter())
ax.grid(axis="y", visible=False)
ax.set_xlabel("reading (MLE)")
ax.legend(loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=3)
page.show(
    figure, name="fig-models-readings",
    caption=f"""Readings of the tables of this run, and of Pythia as the paper prints them: open
    circles as it is, the bar for the range 10–17 with the hub removed. Standard errors are smaller
    than the marks where all rows were read; rows and queries as in {{numref}}`tbl-models-readings`;
    seed {seed}.""",
    alt="A line for each table from its reading as it is to the one normalized: " + "; ".join(
        f"{k} {r.full.mle:.1f}" + (f" to {r.normalized.mle:.1f}" if r.normalized.mle else "")
        for k, r in readings.items()
    ) + "; the paper's Pythia from 27 and from 122 down to between 10 and 17.",
)  # fmt: skip

# %% [markdown]
# ## One table taken apart
#
# The rest of the page needs one table with a hub. It takes the first in the list whose hub is not inert; if there is none, the first table, and then the sections below show what the absence of a hub looks like.

# %%
focus = next((name for name, r in readings.items() if not r.hub_inert), next(iter(readings)))
table, reading = loaded[focus], readings[focus]
rows = check_rows(table.rows)
ids = (earliest(rows) == torch.arange(len(rows))).nonzero().flatten()  # duplicates set aside
rows, rho = rows[ids], lengths(rows[ids])
(n, d), hub = rows.shape, reflection(rows).rows
h, middle = len(hub), float(rho.median())
in_hub = torch.zeros(n, dtype=torch.bool).index_fill(0, hub, True)
draw = torch.randperm(n, generator=torch.Generator().manual_seed(seed))
at = None if n <= whole else draw[:queries].sort().values
tokens = [table.token(int(row)) for row in ids]
scale = f"{focus}, {n:,} rows" + ("" if at is None else f" read at {len(at):,}")
has_hub = not reading.hub_inert
NO_HUB = None if has_hub else (
    "no table of this run has a hub that is not inert: put one that has, such as minilm, into `tables`"
)  # fmt: skip
page.say(
    f"**{focus}** is taken apart: {n:,} rows of width {d}, "
    + (f"of which {h:,} are its hub." if has_hub else f"of which {h:,} are a hub that is inert."
       if h else "with no hub.")
)  # fmt: skip

# %% [markdown]
# All searches for first neighbours that this section needs are made here, once. `nearest_prefixes` takes the rows in order of length, longest first, and finds everybody's neighbours among the first so many of them, for several cuts in one pass. So the table without its hub, and every step of a removal curve, come for the price of one search.


# %%
def read_cuts(order, cuts):
    """Neighbours and readings among the first `cut` rows of `order`, for every cut."""
    found = nearest_prefixes(rows, order, cuts, queries=at, device=page.device)
    lines = []
    for each, cut in zip(found, cuts, strict=True):
        value = mle(each.r1, each.r2)
        line = {"rows": cut, "gone": n - cut, "mle": value.value, "se": value.se}
        line |= {f.__name__: f(each.r1, each.r2).value for f in (facco, median)}
        lines.append(line)
    return found, pd.DataFrame(lines)


by_length = rho.argsort(descending=True)
fractions = (0.45, 0.55, 0.65, 0.75, 0.85)
below = {f: int((rho < f * middle).sum()) for f in fractions}
LEAST = 3  # rows: two neighbours of each
gone = sorted(
    g for g in {0, 1, 100, 300, 1000, h, *below.values()} if g <= n // 2 and n - g >= LEAST
)
cuts = [n - g for g in reversed(gone)]
found, removal = read_cuts(by_length, cuts)
full, free = found[cuts.index(n)], found[cuts.index(n - h)]
full_d, free_d = mle(full.r1, full.r2), mle(free.r1, free.r2)
core_query = ~in_hub[full.queries]  # the queries of `full` that `free` has, in the same order

# %% [markdown]
# ### Who is in the hub


# %% tags=["hide-input"]
def shown(token: str) -> str:
    """A token as inline code."""
    fence = "``" if "`" in token else "`"
    return f"{fence} {token} {fence}" if "`" in token else f"{fence}{token}{fence}"


first = torch.bincount(full.indices[:, 0], minlength=n).double() / len(full.queries)
wanted = first.argsort(descending=True, stable=True)[:10].tolist()
page.table(
    pd.DataFrame({
        "token": [shown(tokens[i]) for i in wanted],
        "in the hub": ["yes" if in_hub[i] else "no" for i in wanted],
        "length / median": [float(rho[i]) / middle for i in wanted],
        "first neighbour of (%)": [100 * float(first[i]) for i in wanted],
    }),
    name="tbl-models-wanted",
    caption=f"""The ten rows of {focus} that are the first neighbour of most rows, over
    {len(full.queries):,} queries. If all rows were alike, each would be the first neighbour of
    {100 / n:.4f} % of them.""",
)  # fmt: skip

# %% tags=["hide-input"]
placeholder = torch.tensor([bool(re.fullmatch(r"[\[<]unused_?\d+[\]>]", t)) for t in tokens])
if h:
    shortest = ", ".join(shown(tokens[i]) for i in rho.argsort()[:8].tolist())
    some = hub[torch.randperm(h, generator=torch.Generator().manual_seed(seed))[:16]].tolist()
    page.say(
        f"The shortest rows of {focus} belong to {shortest}. Sixteen rows of the hub, drawn at "
        f"random: {', '.join(shown(tokens[i]) for i in some)}."
    )
if placeholder.any():
    page.say(
        f"{int(placeholder.sum()):,} tokens of this vocabulary are placeholders like "
        f"{shown(tokens[int(placeholder.nonzero()[0])])}, which occur in no text. "
        f"{float(in_hub[placeholder].double().mean()):.1%} of them are in the hub, and they make up "
        f"{float(placeholder[hub].double().mean()) if h else 0:.0%} of it."
    )

# %% slideshow={"slide_type": "subslide"} tags=["hide-input"]
drawn = draw[:12_000]
centred = rows - rows.mean(0)
_, _, basis = torch.pca_lowrank(centred[draw[:20_000]], q=min(2, d), center=False, niter=6)
flat = torch.nn.functional.pad(centred[drawn] @ basis, (0, 2 - basis.shape[1]))
flat /= centred[draw].norm(dim=1).median()
figure, ax = plt.subplots(figsize=(5.4, 4.6))
for mask, colour, label in ((~in_hub[drawn], BLUE, "core"), (in_hub[drawn], RED, "hub")):
    ax.scatter(*flat[mask].T.numpy(), s=4, color=colour, alpha=0.35, lw=0, label=label)
ax.set_aspect("equal")
ax.set_xlabel("first principal component / median length")
ax.set_ylabel("second principal component / median length")
for handle in ax.legend(markerscale=4).legend_handles:
    handle.set_alpha(1)
page.show(
    figure, name="fig-models-map",
    caption=f"""{focus} seen along its two directions of largest variance, {len(drawn):,} rows drawn
    at random (seed {seed}). Two directions show little of {d}: rows that look close here are mostly
    far apart. What can be seen is how much less room the hub takes.""",
    alt=f"""A map of {len(drawn)} rows of {focus}: a wide cloud of core rows and, where there is a
    hub, a small dense patch of hub rows.""",
)  # fmt: skip

# %% [markdown]
# Detectors of under-trained tokens {cite:p}`land2024magikarp` use the same observation from the other side: rows that training never reached look alike, so a row that points where the known placeholders point is a suspect. We rebuild such a detector in three lines. It flags a row whose cosine with the mean direction of the placeholders is at least that of nearly all placeholders themselves.
#
# Whether hub rows *were* updated cannot be seen in a finished table directly. But rows that were never touched are still the independent random draws that they started as, and independent directions in $D$ dimensions have cosines of size $1/\sqrt D$ around zero. A common direction is a trace of training. What a table reads that training never touched is {ref}`an exercise <ex-models-untrained>`.

# %%
unit = rows / rho.clamp(min=1e-30)[:, None].to(rows.dtype)


def mean_cosine(chosen: torch.Tensor) -> float:
    """Mean cosine over all pairs of the chosen rows."""
    k, total = len(chosen), unit[chosen].double().sum(0)
    return float((total @ total - k) / (k * (k - 1)))


flagged_hub = flagged_core = None
if placeholder.any() and has_hub:
    towards = torch.nn.functional.normalize(unit[placeholder].mean(0), dim=0)
    suspicion = unit @ towards
    flagged = suspicion >= suspicion[placeholder].quantile(0.01)
    flagged_hub = float(flagged[hub].double().mean())
    flagged_core = float(flagged[~in_hub].double().mean())

# %% tags=["hide-input"]
if flagged_hub is not None:
    page.say(
        f"The detector flags {int(flagged.sum()):,} rows. {float(in_hub[flagged].double().mean()):.1%} "
        f"of the flagged rows are in the hub, and {flagged_hub:.1%} of the hub is flagged. The mean "
        f"cosine of two rows is {mean_cosine(placeholder.nonzero().flatten()):.2f} among "
        f"placeholders, {mean_cosine(hub):.2f} in the hub and "
        f"{mean_cosine((~in_hub).nonzero().flatten()):.2f} in the core; untouched draws would have "
        f"0 ± {1 / math.sqrt(d):.2f}."
    )

# %% slideshow={"slide_type": "subslide"} tags=["hide-input"]
verdicts = [
    page.claim(
        "hub-subset-of-flagged",
        statement="The hub is a subset of the rows that detectors of under-trained tokens flag.",
        source="stated", paper="a subset; no share could be read",
        ours=flagged_hub, band=(0.95, 1),
        control=None if flagged_core is None else f"{flagged_core:.1%} of the core is flagged",
        scale=f"{scale}; detector rebuilt from cosines with known placeholders",
        why=None if flagged_hub is not None else
        "needs a table with an active hub and named placeholder tokens, such as minilm",
    ),
    page.claim(
        "hub-rows-updated",
        statement="The hub's rows were updated in training (mean cosine between two of them, in "
        "units of 1/sqrt(D), the size expected of untouched rows).",
        source="stated", paper="updated; no number could be read",
        ours=mean_cosine(hub) * math.sqrt(d) if has_hub else None, band=(3, None),
        control=f"core rows: {mean_cosine((~in_hub).nonzero().flatten()) * math.sqrt(d):.2f}"
        if has_hub else None,
        scale=f"{scale}; indirect, from the finished table", why=NO_HUB,
    ),
]  # fmt: skip

# %% [markdown]
# The direct test compares a finished table with the one that training started from. Pythia publishes both: put `"EleutherAI/pythia-160m"` and `"EleutherAI/pythia-160m@step0"` into `tables` and the next cell makes the comparison. It first checks that the two tables differ at all, because some public step-0 revisions hold end-of-training weights.

# %% tags=["hide-input"]
for name, trained in loaded.items():
    start = loaded.get(f"{name}@step0")
    if start is None or start.rows.shape != trained.rows.shape:
        continue
    if torch.equal(start.rows, trained.rows):
        page.say(f"**{name}@step0** holds the same numbers as {name}: no comparison is possible.")
        continue
    chosen = readings[name].hub.rows
    was, now = start.rows.float(), trained.rows.float()
    turned = torch.nn.functional.cosine_similarity(was, now)
    page.say(
        f"**{name}** against its start: cosine between a row then and now, median "
        f"{float(turned[chosen].median()) if len(chosen) else math.nan:.2f} in the hub and "
        f"{float(turned.median()):.2f} in all rows. Untouched rows, or rows only shrunk by weight "
        "decay, would have 1."
    )

# %% [markdown]
# ### Who holds the neighbour slots
#
# Every row names a first and a second neighbour. Spread evenly, each row would be named twice. In a table with a hub a few rows are named by everybody, which {cite:t}`radovanovic2010hubs` met in high dimensions long before language models.

# %% tags=["hide-input"]
named = torch.bincount(full.indices.flatten(), minlength=n).double() / len(full.queries)
figure, ax = plt.subplots(figsize=(6.8, 3.6))
for mask, colour, label in ((in_hub, RED, "hub"), (~in_hub, BLUE, "core")):
    sizes = named[mask].sort(descending=True).values
    sizes = sizes[sizes > 0].numpy() * 100
    if len(sizes):
        ax.plot(
            np.arange(1, len(sizes) + 1), sizes, color=colour, label=label, drawstyle="steps-post"
        )
ax.axhline(200 / n, color=MUTED, ls="--", lw=1.2, label="if spread evenly")
ax.set(xscale="log", yscale="log", xlabel="rank among rows of its group")
ax.set_ylabel("rows that name it (%)")
ax.legend()
slots = float(named[in_hub].sum() / named.sum())
page.show(
    figure, name="fig-models-slots",
    caption=f"""How often a row is named as first or second neighbour, for hub and core of {focus},
    each sorted by that count; {len(full.queries):,} queries. The hub is {h / n:.1%} of the rows and
    holds {slots:.1%} of the slots. Rows that nobody names are not drawn.""",
    alt=f"""Two falling curves on logarithmic axes: how many rows name a given row as a neighbour.
    In {focus} the hub holds {slots:.0%} of all neighbour slots.""",
)  # fmt: skip

# %%
neighbour_in_hub = in_hub[full.indices][core_query]
nearer_hub = float(neighbour_in_hub[:, 0].double().mean())
both_hub = float(captured(full, hub)[core_query].double().mean())
top = int(first.argmax())
chance = h / n

# %% tags=["hide-input"]
page.say(
    f"Of the core tokens of {focus}, {nearer_hub:.1%} have a hub row as their first neighbour and "
    f"{both_hub:.1%} are captured: both neighbours are hub rows. The single row "
    f"{shown(tokens[top])}, at {float(rho[top]) / middle:.2f} of the median length, is the first "
    f"neighbour of {float(first[top]):.1%} of all rows."
)
verdicts.append(
    page.claim(
        "hub-nearer-than-any-token",
        statement="Concentration of measure makes a token closer to the hub than to any other token "
        "(share of core tokens whose first neighbour is a hub row: more than half).",
        source="stated", paper="“a token”; no share could be read",
        ours=nearer_hub if has_hub else None, band=(0.5, 1),
        control=f"as many random rows are first neighbour of {chance:.1%}" if has_hub else None,
        scale=scale, why=NO_HUB,
    )
)  # fmt: skip

# %% [markdown]
# ### When a token is captured

# %% [markdown] slideshow={"slide_type": "subslide"}
# Hub rows of length $s$ point in directions that have nothing to do with the token's, so the largest of their $h$ projections on it is about $s\sqrt{2\ln h/D}$. A token of length $\rho$ whose nearest row outside the hub is at $r_\text{core}$ therefore prefers the hub when
#
# $$
# r_\text{core}^2 \;>\; \rho^2 + s^2 - 2\rho s\sqrt{\tfrac{2\ln h}{D}}.
# $$ (eq-models-capture)

# %% [markdown]
# For a very short hub and tokens of equal length this says that the nearest neighbour's cosine is below ½: a hub alone is not enough, neighbours must also be more than about 60° apart. Which words of yours are captured? That is {ref}`an exercise <ex-models-own-words>`.
#
# ```{admonition} Our reconstruction
# :class: reconstructed
#
# The abstract names concentration of measure as the cause and gives no formula. {eq}`eq-models-capture` is what it comes to; {doc}`the previous page <estimators>` derives it and checks it on planted hubs. In a real table the hub's rows need not be independent directions, so agreement here is not a matter of course.
# ```

# %% slideshow={"slide_type": "subslide"} tags=["hide-input"]
figure, ax = plt.subplots(figsize=(6.8, 3.5))
agree = predicted = math.nan
if h > 1:
    size = float(rho[hub].median())
    own = rho[free.queries]
    gain = 2 * own * size * math.sqrt(2 * math.log(h) / d)
    margin = free.r1**2 / (own**2 + size**2 - gain)
    prefers = prefers_hub(free.r1, own, size, h, d)
    predicted = float(prefers.double().mean())
    agree = float((prefers == neighbour_in_hub[:, 0]).double().mean())
    order = margin.argsort()
    for column, colour, label in ((0, BLUE, "first neighbour in the hub"), (1, RED, "both")):
        took = neighbour_in_hub[:, : column + 1].all(1)[order].double()
        parts = zip(margin[order].chunk(30), took.chunk(30), strict=True)
        x, y = zip(*[(float(a.median()), 100 * float(b.mean())) for a, b in parts], strict=True)
        ax.plot(x, y, "o-", color=colour, ms=4, label=label)
ax.axvline(1, color=INK, lw=1.2, ls=":", label="predicted switch")
ax.set_xlabel("squared distance to the nearest core row / right side of the condition")
ax.set_ylabel("core tokens (%)")
ax.legend()
page.show(
    figure, name="fig-models-capture",
    caption=f"""Core tokens of {focus} in 30 groups of equal size, sorted by the two sides of
    {{eq}}`eq-models-capture`; {len(free.queries):,} queries. s is the median length in the hub, h its
    {h:,} rows.""",
    alt=f"""The share of core tokens of {focus} whose neighbours are hub rows, rising steeply where
    the condition predicts it.""",
)  # fmt: skip

# %% tags=["hide-input"]
verdicts.append(
    page.claim(
        "hub-capture-predicted",
        statement="A length, a distance and the hub's size predict who prefers the hub (predicted "
        "minus measured share of core tokens with a hub row as first neighbour).",
        source="reconstructed", paper=None,
        ours=predicted - nearer_hub if has_hub else None, band=(-0.03, 0.03),
        control=f"predicted {predicted:.3f}, measured {nearer_hub:.3f}; token by token "
        f"{agree:.1%} agree; the same share by chance is {chance:.1%}" if has_hub else None,
        scale=scale, why=NO_HUB,
    )
)  # fmt: skip

# %% [markdown]
# ### What capture does to the reading
#
# Since $1/\hat d_\text{MLE}$ is a mean of $m$, it splits exactly over groups of tokens:
#
# $$
# \frac{1}{\hat d} = \sum_g w_g\, \bar m_g, \qquad g \in \{\text{free},\ \text{captured},\ \text{hub row}\},
# $$ (eq-models-decomposition)
#
# with $w_g = N_g / (N - 1)$, the group's share of the tokens but for the estimator's own $N - 1$, and $\bar m_g$ its mean. A captured token has two neighbours at almost one distance and adds almost nothing, so $\hat d$ rises: but a harmonic mean is ruled by the tokens that do add, and cannot rise by more than the captured share allows.

# %%
parts = decompose(full.r1, full.r2, token_groups(full, hub))
parts["reading"] = 1 / parts.mean_m
error = abs(parts.contribution.sum() * full_d.value - 1)

# %% tags=["hide-input"]
page.table(
    parts[["group", "n", "weight", "mean_m", "reading", "contribution", "share"]],
    name="tbl-models-parts",
    caption=f"""The parts of 1/d in {focus}, {len(full.queries):,} queries. *Reading*: the group
    alone. *Share*: of 1/d. The contributions add up to 1 over the MLE with a relative error of
    {error:.0e}.""",
)

# %% slideshow={"slide_type": "subslide"} tags=["hide-input"]
figure, axes = plt.subplots(2, 1, figsize=(6.8, 2.4), sharex=True)
colours = {"free": BLUE, "captured": RED, "hub row": AMBER}
for ax, column, label in zip(axes, ("weight", "share"), ("tokens", "1 / reading"), strict=True):
    left = 0.0
    whole_bar = parts[column].sum()
    for _, part in parts.iterrows():
        size = 100 * part[column] / whole_bar
        ax.barh(0, size, left=left, color=colours[part.group], label=part.group, linewidth=0)
        left += size
    ax.set_yticks([0], [label])
    ax.grid(axis="y", visible=False)
axes[1].set_xlabel("share (%)")
axes[0].legend(loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=3)
page.show(
    figure, name="fig-models-parts",
    caption=f"""Free tokens, captured tokens and the hub's own rows in {focus}: their share of all
    tokens, and of the mean of m that the reading is one over; {len(full.queries):,} queries.""",
    alt="Two stacked bars: " + "; ".join(
        f"{p.group} {p.weight:.0%} of tokens, {p.share:.0%} of one over the reading"
        for p in parts.itertuples()
    ),
)  # fmt: skip

# %% [markdown]
# A token's own reading with the hub in place does not say what the hub did to it: it may have read high before. So we start from the table without its hub and let the hub act on one group at a time: first on the captured tokens, then on those with one hub row among their first two neighbours; the others do not notice. Last, the hub's own rows join the mean.

# %%
alone = parts.set_index("group").reading
m_full, m_free = ((found.r2 / found.r1).log() for found in (full, free))
m_core = m_full[core_query]  # of the tokens in m_free, with the hub in place
caught = captured(full, hub)[core_query]
touched = neighbour_in_hub.any(1) & ~caught
assert torch.equal(m_core[~caught & ~touched], m_free[~caught & ~touched])
path, m = [{"step": "without the hub", "reading": free_d.value}], m_free
for step, mask in (
    ("captured tokens see it", caught),
    ("tokens with one hub neighbour see it", touched),
):
    m = torch.where(mask, m_core, m)
    if mask.any():
        own = {"own reading before": 1 / float(m_free[mask].mean()),
               "own reading after": 1 / float(m_core[mask].mean())}  # fmt: skip
        path.append({"step": step, "tokens (%)": 100 * float(mask.sum()) / len(m_full), **own,
                     "reading": (len(m) - 1) / float(m.sum())})  # fmt: skip
if h:
    path.append({"step": "the hub's own rows are read too", "tokens (%)": 100 * float((~core_query).double().mean()),
                 "own reading after": alone.get("hub row"), "reading": full_d.value})  # fmt: skip
columns = ["step", "tokens (%)", "own reading before", "own reading after", "reading"]
path = pd.DataFrame(path, columns=columns)

# %% tags=["hide-input"]
page.table(
    path, name="tbl-models-path",
    caption=f"""From {focus} without its hub to {focus} as it is, one group of tokens at a time.
    *Own reading*: the group's alone, before and after it sees the hub. *Reading*: the table's MLE
    after this step; {len(full.queries):,} queries.""",
)  # fmt: skip

# %% tags=["hide-input"]
opening = apart = kept_apart = None
NO_CAPTURE = NO_HUB or (None if caught.any() else f"no token of {focus} is captured")
if NO_CAPTURE:
    page.say(f"**Not shown:** what capture does to a token: {NO_CAPTURE}.")
else:
    opening = alone["captured"] / path["own reading before"][1]
    apart = float(m_full[core_query][caught].median().expm1())
    kept_apart = float(m_full[core_query][~caught].median().expm1()) if not caught.all() else None
    rises = path.reading.diff()
    page.say(
        f"Captured tokens alone read {alone['captured']:.0f}. But they are the tokens that lie far from "
        f"all others, and without the hub they read {path['own reading before'][1]:.0f} already. In a "
        f"mean of m, what was small and gets smaller weighs little: they take the MLE from "
        f"{path.reading[0]:.2f} to {path.reading[1]:.2f}. Of the rise to {full_d.value:.2f}, {rises.max() / rises.sum():.0%} comes "
        f"with the step “{path.step[rises.idxmax()]}”. The median counts tokens instead of weighing "
        "them, and moves much more."
    )

# %% tags=["hide-input"]
verdicts += [
    page.claim(
        "hub-two-at-one-distance",
        statement="A captured token's first two neighbours lie at nearly the same distance (median of "
        "r2/r1 − 1).",
        source="stated", paper="“nearly the same distance”",
        ours=apart, band=(0, 0.05),
        control="no core token is free" if kept_apart is None
        else f"the other core tokens: {kept_apart:.3f}",
        scale=scale, why=NO_CAPTURE,
    ),
    page.claim(
        "hub-captured-reads-high",
        statement="Capture makes a token read far too high (reading of captured tokens over that of the "
        "same tokens without the hub).",
        source="reconstructed", paper="whole tables: 1.6 to 12 times",
        ours=opening, band=(1.6, None),
        control="no core token is free" if kept_apart is None
        else f"captured over other core tokens, both without the hub: "
        f"{path['own reading before'][1] * float(m_free[~caught].mean()):.1f}",
        scale=scale, why=NO_CAPTURE,
    ),
    page.claim(
        "hub-decomposition-exact",
        statement="1/d is the sum over free tokens, captured tokens and hub rows (relative error).",
        source="ours", ours=error, band=(0, 1e-9),
        control="the MLE computed without groups", scale=scale,
    ),
]  # fmt: skip

# %% [markdown]
# The mixture shows in the distribution of $m$. If $m$ were exponential with rate $\hat d$, then $-\log(1-F(m))$ would be a straight line of slope $\hat d$ through the origin, with $F$ the share of tokens below $m$.

# %% tags=["hide-input"]
figure, ax = plt.subplots(figsize=(6.8, 3.5))
for label, m, colour in (("as it is", m_full, RED), ("hub removed", m_free, BLUE)):
    x, y = survival(m)
    keep = torch.linspace(0, len(x) - 1, 400).long()
    ax.plot(x[keep], y[keep], color=colour, label=label)
    slope = 1 / float(m.mean())
    end = min(float(x[-1]), 5 / slope)
    ax.plot([0, end], [0, slope * end], color=colour, ls=":", lw=1.3, label=f"slope {slope:.1f}")
ax.set(xlim=(0, float(m_full.quantile(0.995))), ylim=(0, 5.5))
ax.set_xlabel("m = log(r2 / r1)")
ax.set_ylabel("−log(1 − F)")
ax.legend()
page.show(
    figure, name="fig-models-exponential",
    caption=f"""The distribution of m in {focus}, with and without the hub, against the exponential
    of the same mean (dotted); {len(m_full):,} and {len(m_free):,} queries. A steep beginning is made
    by tokens whose two neighbours are about equally far.""",
    alt="""Two curves that start steeper and end flatter than the dotted straight lines through the
    origin; the curve of the table as it is starts the steepest.""",
)  # fmt: skip

# %% [markdown]
# ### Take rows away, put rows back
#
# Three orders of removal: shortest rows first, which is the experiment; random rows, which is the control for having fewer rows; longest rows first, the control for cutting an end off the lengths. And one order of return: into the table without its hub, the hub's rows come back, shortest first.

# %%
some = sorted(
    {g for g in (300, 1000, h, *(below[f] for f in (0.55, 0.75, 0.85))) if g in gone and g > 0}
)
wide = sorted({*some, *(g for g in (n // 2, 3 * n // 4, 9 * n // 10) if n - g >= LEAST)})
controls = {}
for label, order, steps in (
    ("random rows", draw, wide), ("longest first", by_length.flip(0), some),
):  # fmt: skip
    _, controls[label] = read_cuts(order, [n - g for g in reversed(steps)])
back = sorted({b for b in (0, 1, 2, 10, 100, 300, 1000, h) if b <= h})
returning = torch.cat([(~in_hub).nonzero().flatten(), hub[rho[hub].argsort()]])
_, returned = read_cuts(returning, [n - h + b for b in back])
returned["back"] = back

# %% slideshow={"slide_type": "subslide"} tags=["hide-input"]
figure, axes = plt.subplots(1, 2, figsize=(6.8, 3.7), sharey=True)
ax = axes[0]
for label, curve, colour in (
    ("shortest first", removal, RED),
    ("random rows", controls["random rows"], MUTED),
    ("longest first", controls["longest first"], AMBER),
):  # fmt: skip
    curve = curve[(curve.gone > 0) & (curve.gone <= n // 2)].sort_values("gone")
    ax.errorbar(curve.gone, curve.mle, curve.se, fmt="o-", color=colour, ms=4, label=label, lw=1.5)
ax.axhline(full_d.value, color=INK, lw=1, ls="--")
if h:
    ax.axvline(h, color=RED, lw=1, ls=":")
ax.set(xscale="log", xlabel="rows taken away", ylabel="reading (MLE)")
ax.legend(loc="lower left")
ax = axes[1]
some_back = returned[returned.back > 0]
ax.errorbar(some_back.back, some_back.mle, some_back.se, fmt="o-", color=RED, ms=4, lw=1.5)
ax.axhline(full_d.value, color=INK, lw=1, ls="--", label="as it is")
ax.axhline(free_d.value, color=BLUE, lw=1, ls="--", label="hub removed")
ax.set(xscale="log", xlabel="hub rows put back", xlim=(0.8, max(10, 1.3 * h)))
ax.legend(loc="lower right")
page.show(
    figure, name="fig-models-curves",
    caption=f"""Left: rows of {focus} taken away, shortest first and in two control orders; dotted
    line: the hub's {h:,} rows. Right: the hub's rows put back into the table without its hub,
    shortest first. Dashed: the readings with and without the hub. Bars are one standard error,
    {len(full.queries):,} queries, seed {seed}.""",
    alt=f"""Left, the reading of {focus} against rows taken away: shortest first it ends lower than
    random or longest rows first. Right, the reading as hub rows are put back one by one.""",
)  # fmt: skip


# %%
def at_gone(curve: pd.DataFrame, g: int) -> float:
    """The reading where g rows are gone."""
    return float(curve.mle[curve.gone == g].iloc[0])


# %% tags=["hide-input"]
few, gap = 300, full_d.value - free_d.value
regained = restored = None
if has_hub and h >= few:
    regained = (float(returned.mle[returned.back == few].iloc[0]) - free_d.value) / gap
    restored = (full_d.value - at_gone(removal, few)) / gap
    random_h, longest_h = at_gone(controls["random rows"], h), at_gone(controls["longest first"], h)
    page.say(
        f"As it is, {focus} reads {full_d.value:.2f} ± {full_d.se:.2f}. Taking away the hub leaves "
        f"{free_d.value:.2f} ± {free_d.se:.2f}; taking away as many random rows {random_h:.2f}, as "
        f"many of the longest {longest_h:.2f}: what counts is which rows go, not how many. The {few} "
        f"shortest alone leave {at_gone(removal, few):.2f}, "
        f"{'because' if restored < 0.2 else 'though'} many like them remain."
    )
# %% tags=["hide-input"]
plateau = None
if has_hub and 0 < below[0.55] < below[0.75] and below[0.75] in gone:
    plateau = at_gone(removal, below[0.75]) / at_gone(removal, below[0.55])
    steps = ", ".join(
        f"{f:g}: {at_gone(removal, below[f]):.2f}" for f in fractions if below[f] in gone
    )
    page.say(
        f"With all rows gone that are shorter than a fraction of the median length, the reading is, by "
        f"fraction, {steps}. "
        + (
            "There is no plateau. The curve keeps its slope where the hub ends, so no cut can be read "
            "off it."
            if abs(plateau - 1) > 0.05 else "Between .55 and .75 the curve is nearly flat."
        )
    )  # fmt: skip
one = returned.mle[returned.back == 1]
if len(one):
    page.say(
        f"The first row put back, {shown(tokens[int(rho.argmin())])}, moves the reading from "
        f"{free_d.value:.2f} to {float(one.iloc[0]):.2f}. One row gives a far token a nearer first "
        f"neighbour and no second, so that its ratio *grows*. It takes two to capture."
    )

# %% slideshow={"slide_type": "subslide"} tags=["hide-input"]
inflation = full_d.value / free_d.value
random_ratio = plateau and (
    at_gone(controls["random rows"], below[0.75]) / at_gone(controls["random rows"], below[0.55])
)
relative = inflation * math.hypot(full_d.se / full_d.value, free_d.se / free_d.value)
verdicts += [
    page.claim(
        "hub-inflates-far",
        statement="The hub makes TwoNN read far too high (as it is over hub removed; the paper's own "
        "numbers span 27/17 to 122/10).",
        source="stated", paper="1.6 to 12",
        ours=inflation if has_hub else None, uncertainty=relative, band=(PAPER["Pythia 160M"] / HIGH, None),
        control=f"as many random rows removed: {full_d.value / at_gone(controls['random rows'], h):.2f}"
        if has_hub else None, scale=scale, why=NO_HUB,
    ),
]  # fmt: skip

# %% slideshow={"slide_type": "subslide"} tags=["hide-input"]
verdicts += [
    page.claim(
        "hub-few-hundred-suffice",
        statement="A few hundred rows suffice (share of the inflation that the 300 shortest rows bring "
        "back when put into the table without its hub).",
        source="stated", paper="“a few hundred rows suffice”",
        ours=regained, band=(0.8, None),
        control=None if restored is None else f"taking the same 300 away undoes {restored:.1%} of it",
        scale=scale,
        why=None if regained is not None else NO_HUB or f"its hub has fewer than {few} rows",
    ),
    page.claim(
        "hub-removal-plateau",
        statement="Which short rows count as the hub makes no difference: the removal curve has a plateau "
        "(reading with all rows below .75 of the median length gone, over that with those below .55).",
        source="reconstructed", paper="trimming; no curve could be read",
        ours=plateau, band=(0.95, 1.05),
        control=None if plateau is None else f"the same two numbers of random rows: {random_ratio:.2f}",
        scale=scale, why=None if plateau is not None else NO_HUB or "it has too few short rows to move a cut",
    ),
]  # fmt: skip

# %% tags=["hide-input"]
if focus == "minilm":
    verdicts.append(
        page.claim(
            "hub-mild-minilm",
            statement="In MiniLM the hub inflates the reading, mildly (as it is over hub removed).",
            source="ours", ours=inflation, uncertainty=relative, band=(1.1, 1.3),
            control=f"as many random rows removed: "
            f"{full_d.value / at_gone(controls['random rows'], h):.2f}",
            scale=scale,
        )
    )  # fmt: skip

# %% [markdown]
# ### Rows of one length
#
# Dividing every row by its length moves the hub out among the others, without choosing whom to remove. But it does a second thing: it takes away the spread of lengths, one direction in which neighbours differed. The control is to normalize the table *without* its hub, and tables that have none.

# %%
core_ids = (~in_hub).nonzero().flatten()
place = None if at is None else torch.isin(core_ids, at).nonzero().flatten()
normal, normal_se, unit_free_d = reading.normalized.mle, reading.normalized.se, None
NO_DIRECTIONS = None if normal else f"normalized, {focus} can't be read: {reading.normalized.note}"
if normal:
    unit_free = nearest(unit[~in_hub], 2, queries=place, device=page.device)
    unit_free_d = mle(unit_free.r1, unit_free.r2)

# %% tags=["hide-input"]
others = [
    f"{name} {r.full.mle:.2f} to {r.normalized.mle:.2f}"
    for name, r in readings.items() if r.hub_inert and r.normalized.mle
]  # fmt: skip
page.say(
    (
        f"**Not shown:** {NO_DIRECTIONS} " if NO_DIRECTIONS
        else f"{focus} normalized reads {normal:.2f} ± {normal_se:.2f}; without its hub, "
        f"{free_d.value:.2f} as it is and {unit_free_d.value:.2f} normalized. "
    )
    + (f"Tables with no active hub, normalized: {'; '.join(others)}." if others else "")
)  # fmt: skip
tested = has_hub and not NO_DIRECTIONS
verdicts.append(
    page.claim(
        "hub-normalizing-same",
        statement="Normalizing rows gives the same lower reading as removing the hub (normalized over "
        "hub removed).",
        source="stated", paper="“the same lower reading”; GLM still changes",
        ours=normal / free_d.value if tested else None,
        uncertainty=normal / free_d.value * math.hypot(normal_se / normal, free_d.se / free_d.value)
        if tested else None,
        band=(0.9, 1.1),
        control=f"normalizing the table without its hub: {unit_free_d.value / free_d.value:.2f}"
        if tested else None,
        scale=scale, why=NO_HUB or NO_DIRECTIONS,
    )
)  # fmt: skip

# %% [markdown]
# So part of what normalizing does to a table with a hub, it also does to tables without one, and not always downwards. Where the two cures agree, some of the agreement is owed to the cut: the threshold of {eq}`eq-models-reflection` could sit elsewhere on a curve without a plateau.

# %% [markdown]
# ### Token by token
#
# A local dimension for each token needs more than two neighbours: at $k = 2$ its tail is a power law of exponent one *even on a perfect manifold*, $P(\mathrm{LID}_2 > t) = 1 - e^{-d/t}$, with an infinite mean. At $k = 20$ the null law is an inverse gamma distribution, and its 99th percentile lies at 1.8 times its median whatever $d$ is. A tail heavier than this says something about the table.

# %%
picked = full.queries[torch.linspace(0, len(full.queries) - 1, min(len(full.queries), 4096)).long()]
nonzero = (rho > 0).nonzero().flatten()
pointwise, middle_d = {}, None
for label, kept, values20 in (
    ("as it is", torch.arange(n), rows), ("hub removed", core_ids, rows), ("normalized", nonzero, unit),
):  # fmt: skip
    place = torch.isin(kept, picked).nonzero().flatten()
    try:
        local = nearest(values20[kept], 20, queries=place, device=page.device).distances
        pointwise[label] = lid(local, 20)
        middle_d = lid_harmonic(local, 20).value if label == "hub removed" else middle_d
    except TokenspaceError as unread:
        page.say(f"**Not shown:** local dimension of {focus}, {label}. {unread}")
tail = {k: float(v.quantile(0.99) / v.median()) for k, v in pointwise.items()}
NO_LOCAL = (
    None if len(pointwise) == 3 else f"{focus} can't be read at 20 neighbours in all versions"
)
null = lid_null(middle_d or 1.0, 20)  # its tail over its median is the same at every dimension
null_tail = null.ppf(0.99) / null.median()

# %% tags=["hide-input"]
if not NO_LOCAL:
    figure, ax = plt.subplots(figsize=(6.8, 3.5))
    low = min(float(v.min()) for v in pointwise.values())
    high = max(float(v.quantile(0.999)) for v in pointwise.values())
    edges = np.geomspace(low, high, 60)
    for (label, v), colour in zip(pointwise.items(), (RED, BLUE, TEAL), strict=True):
        density, _ = np.histogram(v.log().numpy(), np.log(edges), density=True)
        ax.stairs(density, edges, color=colour, lw=1.8, label=label)
    x = np.geomspace(low, high, 300)
    ax.plot(x, x * null.pdf(x), color=MUTED, ls="--", label="perfect manifold")
    ax.set(
        xscale="log", xlabel="local dimension at 20 neighbours", ylabel="density over its logarithm"
    )
    ax.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    ax.xaxis.set_major_formatter(ScalarFormatter())
    ax.xaxis.set_minor_formatter(NullFormatter())
    ax.legend()
    page.show(
        figure, name="fig-models-local",
        caption=f"""Local dimension of {len(picked):,} tokens of {focus} at k = 20, in three versions of
        the table. Dashed: the exact law on a manifold whose dimension is the harmonic mean without the
        hub, {middle_d:.1f}.""",
        alt="""Densities of local dimension: as it is the widest and furthest right, hub removed and
        normalized lower, all of them wider than the narrow law of a perfect manifold.""",
    )  # fmt: skip

# %% tags=["hide-input"]
if not NO_LOCAL:
    page.say(
        "The 99th percentile over the median: "
        + ", ".join(f"{k} {v:.2f}" for k, v in tail.items())
        + f"; on a perfect manifold {null_tail:.2f}. Medians: "
        + ", ".join(f"{k} {float(v.median()):.1f}" for k, v in pointwise.items()) + ". "
        + ("Without the hub the tail stays: the hub moves the whole distribution more than it stretches it."
           if has_hub and tail["hub removed"] > 1.5 * null_tail else "")
    )  # fmt: skip
verdicts.append(
    page.claim(
        "hub-local-heavy-tail",
        statement="Token by token, dimension is heavy-tailed (99th percentile over median of the local "
        "dimension at 20 neighbours; at least half as much again as on a perfect manifold).",
        source="stated", paper="heavy-tailed; no number could be read",
        ours=None if NO_LOCAL else tail["as it is"], band=(1.5 * null_tail, None),
        control=None if NO_LOCAL
        else f"perfect manifold {null_tail:.2f}; without the hub {tail['hub removed']:.2f}",
        scale=f"{scale}; {len(picked):,} tokens", why=NO_LOCAL,
    )
)  # fmt: skip

# %% [markdown]
# ## The paper's models
#
# Claims 4 to 6 are about named models. When a run reads them, the next cells test these claims; otherwise they say what would.

# %% tags=["hide-input"]
COMMAND = """tokenspace run hub/models --profile paper, or with -p tables='["EleutherAI/pythia-160m", "EleutherAI/pythia-12b"]'"""
pythia = sorted(
    (r for name, r in readings.items() if name.startswith("pythia") and "@" not in name),
    key=lambda r: (r.d, r.table),
)
sizes = {r.table.rsplit("-", 1)[-1]: r for r in pythia}
ends = "160m" in sizes and "12b" in sizes
seen = ", ".join(f"{size} {r.full.mle:.1f}" for size, r in sizes.items())
WHY = (
    None
    if ends
    else f"needs Pythia 160M and 12B, to be fetched from the Hugging Face Hub: {COMMAND}"
)
verdicts += [
    page.claim(
        "hub-pythia-grows",
        statement="On Pythia the reading grows from 27 to 122 between 160M and 12B parameters (12B over "
        "160M).",
        source="stated", paper="27 → 122, a factor of 4.5",
        ours=sizes["12b"].full.mle / sizes["160m"].full.mle if ends else None, band=(3, 6.5),
        control=f"all sizes: {seen}; with the hub removed the factor is "
        f"{sizes['12b'].hub_removed.mle / sizes['160m'].hub_removed.mle:.2f}" if ends else None,
        scale="Pythia, 50,304 to 50,688 rows", why=WHY,
    ),
    page.claim(
        "hub-pythia-removed",
        statement="With the hub removed Pythia reads 10–17 at every size (the size furthest from 13).",
        source="stated", paper="10–17",
        ours=max((r.hub_removed.mle for r in pythia), key=lambda v: abs(v - 13)) if ends else None,
        band=(LOW, HIGH), control=f"as it is: {seen}" if ends else None,
        scale="Pythia, 50,304 to 50,688 rows", why=WHY,
    ),
]  # fmt: skip

# %% slideshow={"slide_type": "subslide"} tags=["hide-input"]
hubbed = {name: r for name, r in readings.items() if not r.hub_inert and r.hub_removed.mle}
spread = {
    version: max(v) / min(v)
    for version in ("full", "hub_removed")
    if (v := [getattr(r, version).mle for r in hubbed.values()])
}
verdicts.append(
    page.claim(
        "hub-models-collapse",
        statement="Without their hubs, models from GPT-2 to Kimi K3 and GLM-4.7 fall into one narrow "
        "range (largest over smallest reading; the paper's 10–17 is 1.7).",
        source="stated", paper="eleven models, a narrow range",
        ours=spread["hub_removed"] if len(hubbed) >= 5 else None, band=(1, HIGH / LOW),
        control=f"as they are: {spread['full']:.2f}" if len(hubbed) >= 5 else None,
        scale=f"tables with an active hub: {', '.join(hubbed) or 'none'}",
        why=None if len(hubbed) >= 5 else f"needs five tables with an active hub, this run has "
        f"{len(hubbed)}: tokenspace run hub/models --profile paper",
    )
)  # fmt: skip

# %% [markdown]
# ## What a hub would do to the other tables
#
# A table without a hub is a chance to test the mechanism. The *ghost* predicts, from distances already known, what a hub at the origin would do: give every token two more neighbours, both at its own length $\rho$, and read again. Then a hub is really planted, {math}`h = 300` rows of a fifth of the median length, and the two are compared.
#
# ```{admonition} Our addition
# :class: ours
#
# *The origin is not special.* Distances do not know where it is. A short row is everybody's neighbour because it lies near the **middle** of the cloud, and where all rows share a large common part, the origin is not in the middle. So the experiment is made twice: with the hub at the origin, and with the hub at the mean of the rows.
# ```


# %%
def with_hub_at(place, x, alone):
    """Readings of the table x with a hub at a place, foretold and planted; `alone` without it."""
    mean = x.mean(0, dtype=torch.float64).to(x.dtype)
    moved = x - mean if place == "mean" else x
    own = lengths(moved)[alone.queries]
    hubbed, planted = plant(moved, 300, 0.2, seed)
    found = nearest(hubbed, 2, queries=alone.queries, device=page.device)
    value = mle(found.r1, found.r2)
    return {
        "nearer to it": float((alone.r1 > own).double().mean()),
        "captured": float(captured(found, planted).double().mean()),
        "without": mle(alone.r1, alone.r2).value,
        "ghost": mle(*ghost(alone.r1, alone.r2, own)).value,
        "planted": value.value, "± se": two(value.se),
    }  # fmt: skip


# %%
experiments, searches = [], {}
for name, other in loaded.items():
    x = check_rows(other.rows)
    x = x[earliest(x) == torch.arange(len(x))]
    keep = torch.ones(len(x), dtype=torch.bool).index_fill(0, reflection(x).rows, False)
    x = x[keep]
    chosen = torch.randperm(len(x), generator=torch.Generator().manual_seed(seed))[:queries]
    searches[name] = nearest(x, 2, queries=chosen.sort().values, device=page.device)
    try:
        far = float((neighbour_cosines(x, chosen, device=page.device) < 0.5).double().mean())
        experiments += [
            {"table": name, "hub at the": place, "neighbour cosine below ½": far,
             **with_hub_at(place, x, searches[name])}
            for place in ("origin", "mean")
        ]  # fmt: skip
    except TokenspaceError as unread:
        page.say(f"**Not shown:** what a hub would do to {name}. {unread}")

# %% tags=["hide-input"]
experiments = pd.DataFrame(experiments)
if len(experiments):
    page.table(
        experiments, name="tbl-models-whatif",
        caption=f"""A hub of 300 rows put into every table, whose own hub was taken out first; readings
        are MLE. *Neighbour cosine below ½*: share of rows whose nearest row is more than 60° away,
        seen from the origin. *Nearer to it*: share of rows closer to the origin, or the mean, than to
        any row. {queries:,} queries a table, seed {seed}.""",
    )  # fmt: skip

# %% tags=["hide-input"]
if len(experiments):
    figure, ax = plt.subplots(figsize=(6.8, 1.2 + 0.42 * len(experiments)))
    for y, e in enumerate(experiments.itertuples()):
        ax.plot([e.without, e.planted], [y, y], color=MUTED, lw=1)
        ax.plot(e.without, y, "s", color=BLUE, ms=7, label="without" if y == 0 else None)
        ax.plot(
            e.ghost,
            y,
            "o",
            color=AMBER,
            ms=11,
            mfc="none",
            mew=2,
            label="ghost" if y == 0 else None,
        )
        ax.errorbar(
            e.planted, y, xerr=e[-1], fmt="o", color=RED, ms=5, label="planted" if y == 0 else None
        )
    names = [f"{t}, {p}" for t, p in zip(experiments.table, experiments["hub at the"], strict=True)]
    ax.set_yticks(range(len(names)), names)
    ax.invert_yaxis()
    ax.grid(axis="y", visible=False)
    ax.set_xlabel("reading (MLE)")
    ax.legend(loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=3)
    page.show(
        figure, name="fig-models-whatif",
        caption=f"""Readings without a hub, with a ghost hub and with a planted one, at the origin and at
        the mean of the rows; {queries:,} queries a table, bars one standard error, seed {seed}.""",
        alt="""For each table and place, three marks on a line: the reading without a hub, the ghost's
        prediction, and the reading with a planted hub. Ghost and planted nearly coincide.""",
    )  # fmt: skip

# %% tags=["hide-input"]
largest = None
if len(experiments):
    largest = (experiments.ghost / experiments.planted - 1).abs().max()
    effect = (experiments.planted / experiments.without - 1).abs().max()
verdicts.append(
    page.claim(
        "hub-ghost-predicts",
        statement="A ghost hub predicts what planting one does (largest relative difference between the "
        "two readings).",
        source="ours", ours=largest, band=(0, 0.1),
        control=None if largest is None else f"the readings themselves change by up to {effect:.0%}",
        scale=f"{', '.join(loaded)}; a hub of 300 rows at the origin and at the mean",
        why=None if largest is not None else "no table of this run can be read with a hub in it",
    )
)  # fmt: skip

# %% [markdown]
# ### Under-trained rows need not be short
#
# Are under-trained rows always short? A table with exact duplicates offers a look, because two tokens rarely end up with the same numbers if either was trained. The cell below collects, around the most duplicated row of each table, the rows within a seventh of its length, and asks where this group lies.

# %%
groups = []
for name, other in loaded.items():
    if not readings[name].duplicates or name not in searches:
        continue
    x = check_rows(other.rows)
    anchor = int(earliest(x).bincount().argmax())
    length, from_mean = lengths(x), lengths(x - x.mean(0, dtype=torch.float64).to(x.dtype))
    near = ((x - x[anchor]).norm(dim=1) < length[anchor] / 7).nonzero().flatten()
    kept = (earliest(x) == torch.arange(len(x))).nonzero().flatten()
    kept = kept[~torch.isin(kept, readings[name].hub.rows)]
    inside = torch.isin(kept[searches[name].indices[:, 0]], near)
    groups.append({
        "table": name, "rows": len(near), "duplicates": readings[name].duplicates,
        "length / median": float(length[near].median() / length.median()),
        "shorter rows (%)": 100 * float((length < length[near].median()).double().mean()),
        "nearer to the mean (%)": 100 * float((from_mean < from_mean[near].median()).double().mean()),
        "first neighbour of (%)": 100 * float(inside.double().mean()),
        "tokens": ", ".join(shown(other.token(int(i))) for i in near[:: -(-len(near) // 8)]),
    })  # fmt: skip

# %% tags=["hide-input"]
if groups:
    page.table(
        pd.DataFrame(groups), name="tbl-models-groups",
        caption="""Near-identical rows around the most duplicated row. *Shorter rows*, *nearer to the
        mean*: share of the table's rows that are shorter than the group, and that lie nearer to the
        mean of all rows.""",
    )  # fmt: skip
else:
    page.say("No table of this run has duplicates; `smollm2` has.")

# %% tags=["hide-input"]
group = next((g for g in groups if g["table"] == "smollm2"), None)
if group:
    page.say(
        f"**SmolLM2 is a counterexample.** {group['rows']} of its rows are nearly identical, among them "
        f"{group['duplicates']} that are exactly equal to another: special marks such as `<gh_stars>`, and "
        f"fragments of program text. They have the length of an ordinary row, "
        f"{group['length / median']:.2f} of the median, so no rule about short rows finds them. But only "
        f"{group['nearer to the mean (%)']:.2g} % of all rows lie nearer to the *mean* of the table, and as "
        f"a group they are the first neighbour of {group['first neighbour of (%)']:.1f} % of tokens. A "
        "likely reading: training moved them only together with all other rows, so they stayed at the "
        "part that all rows share. Such rows are short only if that part is."
    )
    verdicts.append(
        page.claim(
            "hub-undertrained-not-short",
            statement="Under-trained rows are not always short: in SmolLM2 a group of near-identical rows "
            "has the length of ordinary rows (length over the median).",
            source="ours", ours=group["length / median"], band=(0.9, 1.1),
            control=f"only {group['nearer to the mean (%)']:.2g} % of rows lie nearer to the mean",
            scale=f"smollm2, {readings['smollm2'].n:,} rows",
        )
    )  # fmt: skip

# %% [markdown]
# ## What else moves the number
#
# Three shortcuts are common in practice: approximate neighbours, quantized tables, and reading a sample. One is harmless.
#
# ### Approximate neighbours
#
# Libraries for nearest-neighbour search trade exactness for speed, and for retrieval the trade is good. For TwoNN it is not: a missed first neighbour promotes the second to first and the third to second, and ratios of far neighbours are closer to one. The table is that of the section before; each index is built once and searched with several settings, and the distances to what it found are exact.

# %%
part = rows[draw[:50_000]]  # building an index of more takes minutes
probe = torch.arange(min(len(part), len(full.queries), 2048))
truth = nearest(part, 2, queries=probe, device=page.device)
exact = mle(truth.r1, truth.r2)
lists = max(1, min(128, len(part) // 40))
indexes = {
    "Flat": [""],
    "HNSW32": ["efSearch=16", "efSearch=64", "efSearch=256"],
    f"IVF{lists},Flat": [f"nprobe={p}" for p in (1, 4, 16, 64) if p <= lists],
}
vectors = np.ascontiguousarray(part.float().numpy())
threads = faiss.omp_get_max_threads()
trade = []
for index, settings in indexes.items():
    built = faiss.index_factory(d, index)
    faiss.omp_set_num_threads(1)  # with more, an HNSW graph depends on their timing
    built.train(vectors)
    built.add(vectors)
    faiss.omp_set_num_threads(threads)
    for setting in settings:
        if setting:
            faiss.ParameterSpace().set_index_parameters(built, setting)
        ids = torch.from_numpy(built.search(vectors[: len(probe)], 3)[1])
        others = ids.masked_fill(ids == probe[:, None], -1)  # one may be the row itself
        far, ids = measure(part, probe, others, 2)
        enough = far[:, 1].isfinite()  # an index may find fewer than two
        value = mle(far[enough, 0], far[enough, 1])
        hit = (truth.indices[enough, :, None] == ids[enough, None]).any(2)
        trade.append({
            "name": index.split(",")[0], "setting": setting, "recall": float(hit.double().mean()),
            "reading": value.value, "± se": value.se, "exact": exact.value,
        })  # fmt: skip
trade = pd.DataFrame(trade)

# %% tags=["hide-input"]
figure, ax = plt.subplots(figsize=(6.8, 3.5))
for (index, line), colour in zip(trade.groupby("name", sort=False), (INK, RED, BLUE), strict=True):
    ax.errorbar(100 * line.recall, line.reading, line["± se"], fmt="o-", color=colour, label=index,
                ms=11 if index == "Flat" else 6, mfc="none" if index == "Flat" else None)  # fmt: skip
    for point in line.itertuples():
        last = point.recall > 0.95
        ax.annotate(point.setting, (100 * point.recall, point.reading), xytext=(-7 if last else 6, 6 if colour == RED or last else -13),
                    textcoords="offset points", fontsize=8.5, color=colour,
                    ha="right" if last else "left")  # fmt: skip
ax.axhline(exact.value, color=MUTED, ls="--", lw=1.2, label="exact")
ax.set_xlabel("first two neighbours found (%)")
ax.set_ylabel("reading (MLE)")
ax.margins(x=0.12, y=0.1)
ax.legend(loc="upper right")
page.show(
    figure, name="fig-models-approximate",
    caption=f"""Readings of {focus} from approximate neighbours (faiss; distances recomputed in
    double precision), {len(probe):,} queries among {len(part):,} rows. Bars: one standard error.
    *Flat* searches everything, through the same code.""",
    alt=f"""Reading against the share of neighbours found: {", ".join(f"{t.name} {t.setting} "
    f"{t.reading:.1f} at {t.recall:.0%}" for t in trade.itertuples())}.
    Exact: {exact.value:.1f}.""",
)  # fmt: skip

# %% tags=["hide-input"]
worst = (trade.reading / exact.value - 1).abs().max()
flat_error = abs(trade.reading[0] / exact.value - 1)
page.say(
    f"An HNSW graph that finds {trade.recall[1]:.0%} of the neighbours reads {trade.reading[1]:.1f} "
    f"where {exact.value:.1f} is right; even at {trade.recall[3]:.0%} it reads {trade.reading[3]:.1f}. "
    + (
        "Inverted files err to the other side. "
        if (trade.reading < 0.97 * exact.value).any()
        else ""
    )
    + "Exact search of a table of this size takes seconds, so there is nothing to trade for."
)
verdicts.append(
    page.claim(
        "hub-approximate-biased",
        statement="Approximate neighbours bias the reading (largest relative error over the settings).",
        source="ours", ours=worst, band=(0.1, None),
        control=f"the exact index through the same code: {flat_error:.0e}",
        scale=f"{focus}, {len(probe):,} queries; HNSW and IVF of faiss",
    )
)  # fmt: skip

# %% [markdown]
# ### Quantized tables
#
# Public models often come quantized. Here the table is stored in formats of decreasing size by the gguf library, brought back, and read again at the same rows.


# %%
def stored_as(kind):
    """The table as it comes back from storage of a kind."""
    if kind == "BF16":
        return rows.to(torch.bfloat16).float()
    code = gguf.GGMLQuantizationType[kind]
    packed = gguf.quantize(rows.float().numpy(), code)
    return torch.from_numpy(np.array(gguf.dequantize(packed, code), dtype=np.float32))


stored = []
formats = ("Q8_0", "Q5_0", "Q4_1", "Q4_0") if d % 32 == 0 else ()  # stored in blocks of 32
for kind in ("as loaded", "BF16", *formats):
    if kind == "as loaded":
        x, found = rows, full
    else:
        x = stored_as(kind)
        found = nearest(x, 2, queries=at, device=page.device)
    value = mle(found.r1, found.r2)
    stored.append({
        "format": kind, "rounding error (%)": 100 * float((x - rows).norm() / rows.norm()),
        "MLE": value.value, "± se": two(value.se), "median": median(found.r1, found.r2).value,
        "change (%)": 100 * (value.value / full_d.value - 1),
    })  # fmt: skip

# %% tags=["hide-input"]
stored = pd.DataFrame(stored)
page.table(
    stored, name="tbl-models-quantized",
    caption=f"""{focus} rounded to storage formats and read again, {len(full.queries):,} queries.
    *Rounding error*: norm of the difference over the norm of the table. The number in a format's
    name is its bits per entry; a width that isn't a multiple of 32 can't be stored so.""",
)  # fmt: skip

# %% tags=["hide-input"]
eight = stored[stored.format.isin(["BF16", "Q8_0"])]["change (%)"].abs().max() / 100
verdicts.append(
    page.claim(
        "hub-quantization-harmless",
        statement="Storing a table with 8 or 16 bits an entry leaves the reading alone (largest relative "
        "change).",
        source="ours", ours=eight, band=(0, 0.01),
        control=f"the coarsest format tried changes it by {stored['change (%)'].abs().max():.1f} %",
        scale=scale,
    )
)  # fmt: skip

# %% [markdown]
# ### Samples
#
# If a table is too large, it is tempting to read a random tenth of it. But that moves every neighbour away: a reading belongs to a *scale*, and the scale is set by how many rows there are. With a hub it is worse. As the other rows thin out, neighbours move apart while the middle stays as near as it was, and more tokens are captured. Reading the whole table *at* a random tenth of its rows changes nothing but the error bar.

# %%
smaller = controls["random rows"][lambda t: t.gone >= n // 2][["rows", "mle", "se"]].copy()
smaller["what"] = "rows of a random part of the table"
at_rows = []
shuffled = torch.randperm(len(full.queries), generator=torch.Generator().manual_seed(seed))
for part in smaller.rows:  # empty where a table has too few rows for it
    take = shuffled[: max(2, round(len(full.queries) * part / n))]
    value = mle(full.r1[take], full.r2[take])
    at_rows.append({"rows": part, "mle": value.value, "se": value.se})
sampled = pd.concat(
    [smaller, pd.DataFrame(at_rows).assign(what="whole table, read at a part of it")]
)

# %% tags=["hide-input"]
figure, ax = plt.subplots(figsize=(6.8, 3.2))
for (what, line), colour, mark in zip(sampled.groupby("what"), (RED, BLUE), "os", strict=False):
    ax.errorbar(100 * line.rows / n, line.mle, line.se, fmt=f"{mark}-", color=colour, label=what)
ax.axhline(full_d.value, color=INK, ls="--", lw=1.2, label="whole table, all queries")
ax.set(xscale="log", xlabel="part (%)", ylabel="reading (MLE)")
ax.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
ax.xaxis.set_major_formatter(ScalarFormatter())
ax.xaxis.set_minor_formatter(NullFormatter())
ax.legend()
page.show(
    figure, name="fig-models-samples",
    caption=f"""{focus}, {n:,} rows: readings of a random part of the table, and of the whole table at
    the same part of its {len(full.queries):,} queries. Bars: one standard error; seed {seed}.""",
    alt="""Readings of random parts of the table rise as the part shrinks; readings of the whole table
    at random rows stay at the full reading within their error bars.""",
)  # fmt: skip

# %% tags=["hide-input"]
TOO_SMALL = None if 9 * n // 10 in wide else f"{focus} has too few rows to read a tenth of them"
tenth = few_rows = None
if not TOO_SMALL:
    tenth, few_rows = smaller.mle.iloc[0] / full_d.value, at_rows[0]["mle"] / full_d.value
verdicts.append(
    page.claim(
        "hub-sampling-rows-biases",
        statement="Reading a random tenth of a table biases the reading (over that of the whole table).",
        source="ours", ours=tenth,
        uncertainty=None if TOO_SMALL else smaller.se.iloc[0] / full_d.value, band=(1.1, None),
        control=None if TOO_SMALL else f"the whole table at a tenth of its queries: {few_rows:.2f} ± "
        f"{at_rows[0]['se'] / full_d.value:.2f}",
        scale=scale, why=TOO_SMALL,
    )
)  # fmt: skip

# %% [markdown]
# ## Your own model
#
# In Python it is one line, for any table that `load_table` can find:
#
# ```python
# from tokenspace.hub import read_dimension
# from tokenspace.sources import load_table
#
# reading = read_dimension(load_table("your/model"))  # a Hub id, or a file
# reading.full, reading.hub_removed, reading.normalized, reading.effect.why
# ```
#
# On the command line it is `tokenspace dimension your/model`, with `--json` for a program. To have all of this page about your model,
#
# ```
# tokenspace run hub/models -p tables='["your/model", "minilm"]'
# ```

# %% tags=["hide-input"]
page.say(
    f"For {focus} the one line answers: *{reading.effect.why}.* It took {reading.seconds:.0f} s here"
    + (f". It adds: {'; '.join(reading.notes)}." if reading.notes else ".")
)

# %% [markdown]
# ## What holds at this scale

# %% tags=["hide-input"]
ABSTRACT = {  # the claims' numbers in the list at the top
    "hub-nearer-than-any-token": 1, "hub-two-at-one-distance": 2, "hub-inflates-far": 2,
    "hub-local-heavy-tail": 3, "hub-pythia-grows": 4, "hub-pythia-removed": 5,
    "hub-models-collapse": 6, "hub-few-hundred-suffice": 7, "hub-subset-of-flagged": 8,
    "hub-rows-updated": 8, "hub-normalizing-same": 9,
}  # fmt: skip
whose = {"stated": "the paper", "reconstructed": "reconstructed", "ours": "ours"}
summary = pd.DataFrame([
    {"no.": ABSTRACT.get(v.id, math.nan), "verdict": v.verdict.replace("-", " "),
     "claim": v.statement, "whose": whose[v.source]}
    for v in verdicts
])  # fmt: skip
page.table(
    summary.sort_values(["no.", "whose"], ascending=[True, False], kind="stable"), name="tbl-models-summary",
    caption="""Every claim of this page; *no.*: its place in the paper's abstract, as listed at the
    top; *reconstructed*: what the paper must have meant or done; *ours*: not in the paper. Numbers,
    bands and controls stand in the boxes above and on the {doc}`/scoreboard`.""",
)  # fmt: skip
if focus == "minilm":
    page.say(
        f"For MiniLM, then: the mechanism is all there. The hub exists, it holds {slots:.0%} of the "
        f"neighbour slots on {h / n:.0%} of the rows, it captures {both_hub:.0%} of the other tokens, and "
        "who is captured can be predicted from lengths and distances. What does not reproduce at this "
        f"scale is its size: the MLE falls by a factor of {inflation:.2f} when the hub goes. The median "
        f"falls by {reading.full.median / reading.hub_removed.median:.2f} and LID20 by "
        f"{reading.full.lid20 / reading.hub_removed.lid20:.2f}, so how much a hub inflates is also a "
        "matter of the estimator."
    )

# %% [markdown]
# ## Exercises
#
# From ★ (predict, then run) to ★★★ (extend the paper). Predict on paper first; each cell ends in a check that says what a wrong answer may come from.

# %% [markdown] slideshow={"slide_type": "subslide"}
# ```{exercise} ★ One long row
# :label: ex-models-long-row
#
# Append to the table a single row twenty times as long as the median. Where does the threshold of {eq}`eq-models-reflection` go, in median lengths? What happens to the hub, and to the valley? Which of the two would you trust in a program that reads tables of unknown origin?
# ```

# %% [markdown]
# ```{solution-start} ex-models-long-row
# :class: dropdown
# ```
#
# The reflected maximum moves from just below the median to a twentieth of it, and the hub is hidden. The density has not noticed. Neither alone is safe: the valley finds nothing where the hub has no gap before it. Hence both are shown, and the last word is left to the capture of tokens.

# %%
# Your prediction `new_threshold`: the threshold with the long row, in median lengths.
# BEGIN SOLUTION: put the new maximum into the rule; one row moves no median
new_threshold = 1 / 20
# END SOLUTION

long_row = 20 * middle * torch.nn.functional.normalize(rows[:1])
longer = torch.cat([rows, long_row])
before, after = reflection(rows), reflection(longer)
expect(
    "ex-models-long-row",
    new_threshold,
    after.threshold / middle,
    within=1e-3,
    mistakes={
        "the threshold as it was": before.threshold / middle,
        "the longest row itself, not its reflection": 20,
    },
    hint="the rule divides the median's square by the longest length",
)
page.say(f"Reflection: {len(before.rows):,} rows before, {len(after.rows):,} after.")
for label, x in (("before", rows), ("after", longer)):
    gap = valley(x)
    page.say(f"Valley {label}: {'none' if gap is None else f'{gap / middle:.3f} of the median'}.")

# %% [markdown]
# ```{solution-end}
# ```
#
# ```{exercise} ★ A table that training never touched
# :label: ex-models-untrained
#
# Draw a Gaussian table with as many columns as this page's, and 8,000 rows. Predict: is there a hub? Is the reading lower or higher than this page's table as it is? Which share of the tokens would a planted hub capture? Then measure.
# ```
#
# ```{solution-start} ex-models-untrained
# :class: dropdown
# ```
#
# All lengths are nearly equal, so there is no hub, though the rule may flag a few rows at the lower end. Nearest neighbours have a cosine of a few over $\sqrt D$, far below ½: every token would rather have a short row than any other, and a planted hub captures nearly all.

# %%
# Your predictions `compared`, "lower" or "higher", and `share_captured`, between 0 and 1.
# BEGIN SOLUTION: random directions in many dimensions are almost at right angles, above 60°
compared = "higher"
share_captured = 1.0
# END SOLUTION

noise = torch.randn(8_000, d, generator=torch.Generator().manual_seed(seed))
some = torch.arange(500)
found_noise = nearest(noise, 2, queries=some)
planted_noise, planted_hub = plant(noise, 300, 0.2, seed)
with_hub = nearest(planted_noise, 2, queries=some)
alone = mle(found_noise.r1, found_noise.r2).value
caught = float(captured(with_hub, planted_hub).double().mean())
expect(
    "ex-models-untrained",
    compared,
    "higher" if alone > full_d.value else "lower",
    hint="training gives a table its shape; noise fills every direction there is",
)
expect(
    "ex-models-untrained",
    share_captured,
    caught,
    within=0.1,
    mistakes={
        "none, as if fellow tokens were nearer than 60°": 0.0,
        "the share in per cent": 100 * caught,
    },
    hint="compare the cosine of nearest neighbours with one half",
)
cosine = float(neighbour_cosines(noise, some).median()) if d > 1 else 1.0  # in one, only ±1
page.say(
    f"Rows flagged: {len(reflection(noise).rows)}; median neighbour cosine "
    f"{cosine:.2f}; reading {alone:.0f}, with a planted hub "
    f"{mle(with_hub.r1, with_hub.r2).value:.0f}; captured {caught:.1%}."
)

# %% [markdown]
# An untrained table reads high on its own, with no hub at all: it has no low-dimensional shape to find. A large reading is therefore not yet evidence of a hub, and the readings of trained tables say that training has given them shape.
#
# ```{solution-end}
# ```
#
# ```{exercise} ★★ How many tokens must a hub capture?
# :label: ex-models-ceiling
#
# Suppose that a share $c$ of the tokens is captured, that a captured token has $m = 0$, and that the hub changes nothing for the others. By what factor does the MLE rise? What share does the paper's 122 need against 10–17, and its 27? What is the most that the share captured in this page's table could do?
# ```
#
# ```{solution-start} ex-models-ceiling
# :class: dropdown
# ```
#
# The mean of $m$ loses the captured share, $1/\hat d = (1-c)/\hat d_\text{free}$, so the factor is $1/(1-c)$ and $c = 1 - \hat d_\text{free}/\hat d$.


# %%
def factor(c):
    """How many times the MLE rises when a share c of the tokens falls silent."""
    # BEGIN SOLUTION: the reading is one over the mean of m; which share of the sum is left?
    return 1 / (1 - c)
    # END SOLUTION


def share_needed(times):
    """The share that must be captured for the MLE to rise so many times."""
    # BEGIN SOLUTION: turn the formula round
    return 1 - 1 / times
    # END SOLUTION


chance_order = torch.rand(len(free.r1), generator=torch.Generator().manual_seed(seed))
for c in (0.5, 0.25, 0.8):
    silent = chance_order < chance_order.quantile(c)  # captured at random: their m becomes 0
    silenced = mle(torch.where(silent, free.r2, free.r1), free.r2).value / free_d.value
    expect(
        "ex-models-ceiling",
        factor(c) / silenced,
        1,
        within=0.15,
        mistakes={"one plus the share": (1 + c) / silenced, "the share left": (1 - c) / silenced},
        hint="the MLE is (N - 1) over the sum of m, and N stays",
    )
    expect("ex-models-ceiling", share_needed(factor(c)), c, within=1e-6, hint="undo `factor`")
for model, full_reading in PAPER.items():
    shares = [share_needed(full_reading / base) for base in (HIGH, LOW)]
    page.say(f"{model}: $c$ between {shares[0]:.2f} and {shares[1]:.2f}.")
bound = f"at most {factor(both_hub):.2f} times" if both_hub < 1 else "any number of times"
page.say(f"{focus}: captured {both_hub:.2f}, so {bound}; found {full_d.value / free_d.value:.2f}.")

# %% [markdown]
# A reading of 122 needs a hub that captures about nine tokens in ten. Captured tokens are not a random draw: they are the ones far from everything, whose $m$ was small before. That is why the factor found stays below the bound.
#
# ```{solution-end}
# ```
#
# ```{exercise} ★★ Words of your own
# :label: ex-models-own-words
#
# Choose ten words, some common, some rare, some odd. Which of them will be captured, that is, have two hub rows as nearest neighbours? Find the two neighbours of each yourself, from all distances to its row.
# ```
#
# ```{solution-start} ex-models-own-words
# :class: dropdown
# ```
#
# The words are in the list below; those that the vocabulary lacks are left out. A word's own row is at distance 0 and must be left out of its neighbours.

# %%
# `own_words`, a list of words.
# BEGIN SOLUTION: any words; this table's tokens are in `tokens`, some with a mark for a space
own_words = ["the", "house", "river", "seven", "monday", "quantum", "lichen", "zeugma", "red"]
# END SOLUTION

# %% tags=["starter"]
asked_for = {word.lower() for word in own_words}
places = [place for place, token in enumerate(tokens) if token.strip("Ġ▁#").lower() in asked_for]
mine = torch.tensor(places[:40], dtype=torch.int64)


# %%
def two_nearest(x, table):
    """Row numbers (q, 2) of the two rows of `table` (n, d) nearest to each of x (q, d) but itself."""
    # BEGIN SOLUTION: torch.cdist in double, then topk of the smallest three
    distance = torch.cdist(x.double(), table.double())
    return distance.topk(3, largest=False).indices[:, 1:]
    # END SOLUTION


expect(
    "ex-models-own-words", len(places) > 0, True, hint="take words that are tokens of this table"
)
my_neighbours = torch.as_tensor(two_nearest(rows[mine], rows))
by_library = nearest(rows, 2, queries=mine).indices
expect(
    "ex-models-own-words",
    my_neighbours,
    by_library,
    mistakes={
        "the rows themselves and one neighbour": torch.stack([mine, by_library[:, 0]], 1),
        "the two in the wrong order": by_library.flip(1),
    },
    hint="every row is its own nearest; ask for three and drop the first",
)
taken = in_hub[my_neighbours].all(1)
page.say(
    "Captured: " + (", ".join(shown(tokens[int(i)]) for i in mine[taken]) or "none") + ". Not "
    "captured: " + (", ".join(shown(tokens[int(i)]) for i in mine[~taken]) or "none") + "."
)

# %% [markdown]
# ```{solution-end}
# ```
#
# ```{exercise} ★★★ Where is the middle?
# :label: ex-models-middle
#
# The hub rule of the paper looks at lengths, which are distances from the origin. Apply it to distances from the mean of the rows instead. Does the answer change for each table of this page? What would have to be true of a table for the two to disagree, and which of the two does TwoNN care about?
# ```
#
# ```{solution-start} ex-models-middle
# :class: dropdown
# ```


# %%
def hub_from_mean(x):
    """Ids of the rows of x (n, d) that the reflection rule flags by their distance from the mean."""
    # BEGIN SOLUTION: move the table so that its mean is at the origin, then use `reflection`
    mean = x.mean(0, dtype=torch.float64)
    return reflection(x - mean.to(x.dtype)).rows
    # END SOLUTION


for name, other in loaded.items():
    x = check_rows(other.rows)
    from_mean = hub_from_mean(x)
    mean = x.mean(0, dtype=torch.float64)
    away = torch.cat([(part.double() - mean).norm(dim=1) for part in x.split(8192)])
    short_of = (away.log() < 2 * away.median().log() - away.max().log()).nonzero().flatten()
    expect(
        "ex-models-middle",
        len(from_mean),
        len(short_of),
        within=1 + len(x) // 10_000,
        mistakes={
            "the hub by lengths": len(readings[name].hub.rows),
            "one entry for each row, where ids are asked": len(x),
        },
        hint="the rule is in logarithms: distance, its median and its maximum, all from the mean",
    )
    length_of_mean = float(mean.norm()) / float(lengths(x).median())
    both = torch.isin(from_mean, readings[name].hub.rows).sum()
    page.say(
        f"{name}: length of the mean {length_of_mean:.2f} of the median length; from the origin "
        f"{readings[name].hub_rows:,} rows, from the mean {len(from_mean):,}, in both {int(both):,}."
    )

# %% [markdown]
# **Verdict.** The two disagree where the mean is long. Distances between rows do not change when all rows are moved, so TwoNN knows of no origin: what counts is being near the middle of the cloud. Lengths work as long as the mean is short compared with the rows. A hub rule that is honest about this would search for the point that is nearest to everybody, and look for rows around it; whether that finds other hubs in the paper's eleven models is open.
#
# ```{solution-end}
# ```

# %% [markdown]
# ## Further reading
#
# - {cite:t}`quemy2026hub`, the paper; {cite:t}`kataiwa2025measuring`, whose readings of Pythia it explains.
# - {cite:t}`facco2017twonn` and {cite:t}`levina2004mle` for the estimators; {cite:t}`denti2022gride` for more than two neighbours and the question of scale.
# - {cite:t}`radovanovic2010hubs` on hubs in high dimensions before language models.
# - {cite:t}`land2024magikarp` on finding under-trained tokens; {cite:t}`mu2018allbutthetop` on the common part that rows share.
# - {cite:t}`malkov2020hnsw` and {cite:t}`johnson2021faiss` on the approximate search used above.
# - {cite:t}`wang2020minilm` and {cite:t}`reimers2019sentencebert` for MiniLM, {cite:t}`allal2025smollm2` for SmolLM2, {cite:t}`pennington2014glove` for GloVe.

# %%
page.footer(tables=", ".join(f"{name}: {table.origin}" for name, table in loaded.items()))
