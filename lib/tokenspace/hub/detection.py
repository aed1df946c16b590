"""Which rows are the hub, from their lengths alone, and whether it does anything.

Known failures of the reflection rule: one extremely long row hides the hub; a left-skewed core
loses about 4 % of its rows to it; a hub at half the core's length or more is missed when the
log lengths spread by .25. Hence the cross-check by density, and the judgement by capture.
"""

from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float, Float64, Int64
from scipy.ndimage import gaussian_filter1d
from scipy.signal import find_peaks
from torch import Tensor

from tokenspace.errors import TableError
from tokenspace.hub.capture import captured, ghost
from tokenspace.hub.dimension import mle
from tokenspace.hub.neighbours import Neighbours, exponent

INERT_BELOW = 0.01  # share of core tokens with a hub row among their first two neighbours


@dataclass(frozen=True)
class Hub:
    """The rows shorter than `threshold`, and the two lengths that set it (table's units)."""

    rows: Int64[Tensor, " h"]
    threshold: float
    median_norm: float
    max_norm: float

    def __len__(self) -> int:
        return len(self.rows)


@dataclass(frozen=True)
class HubEffect:
    """Whether a hub changes the reading, with the shares of core tokens that say so."""

    inert: bool
    captured: float  # both first neighbours are hub rows
    touched: float  # at least one is
    ghost: float | None  # the hub-free table with a hub at the origin; None: it captures all
    why: str


def lengths(rows: Float[Tensor, "n d"]) -> Float64[Tensor, " n"]:
    """Euclidean length of each row, summed in float64, a block of rows at a time.

    >>> lengths(torch.tensor([[3.0, 4.0], [0.0, 0.0]])).tolist()
    [5.0, 0.0]
    """
    unit = 2.0 ** exponent(rows)
    blocks = torch.split(rows, 16384)  # bounds the memory of the copy in fp64
    return unit * torch.cat([(block.to(torch.float64) / unit).norm(dim=1) for block in blocks])


def reflection(rows: Float[Tensor, "n d"]) -> Hub:
    """The hub without parameters: H = {rho_i < median(rho)^2 / max(rho)}.

    A row is short if it lies further below the median, in logs, than any row lies above it, by
    more than the rounding of the rows' own type (else a normalized table would have a hub).

    >>> rows = torch.tensor([[1.0], [1.1], [0.9], [1.2], [-1.0], [0.1]])
    >>> reflection(rows).rows.tolist()
    [5]
    """
    rho = lengths(rows)
    middle, top = float(np.median(rho.numpy())), float(rho.max())
    rounding = 1 - 8 * torch.finfo(rows.dtype).eps
    threshold = middle * (middle / top) * rounding if top else 0.0
    return Hub((rho < threshold).nonzero().flatten(), threshold, middle, top)


def valley(rows: Float[Tensor, "n d"]) -> float | None:
    """Length at the valley of the log-length density between the core and a shorter mode, if any.

    Gaussian kernel of Silverman's width. A mode counts when its prominence is half its height and
    it holds at least sqrt(n) rows: a few stray rows are no mode. Zero rows have no log length.

    >>> rows = torch.cat([torch.full((90, 1), 1.0), torch.full((10, 1), 0.1)])
    >>> 0.1 < valley(rows * torch.linspace(0.9, 1.1, 100)[:, None]) < 0.9
    True
    """
    rho = lengths(rows).numpy()
    x = np.log(rho[rho > 0])
    if len(x) < 3 or x.min() == x.max():
        return None
    iqr = np.subtract(*np.percentile(x, [75, 25])) / 1.34
    width = 0.9 * (min(x.std(), iqr) or x.std()) * len(x) ** -0.2
    low, high = x.min() - 4 * width, x.max() + 4 * width
    count, edge = np.histogram(x, min(65536, int(8 * (high - low) / width)), (low, high))
    density = gaussian_filter1d(count.astype(float), width / (edge[1] - edge[0]), mode="constant")
    peaks, found = find_peaks(np.pad(density, 1), prominence=0)  # a peak may lie at the border
    peaks -= 1
    main = peaks[np.argmax(density[peaks])]
    for peak in reversed(peaks[(peaks < main) & (found["prominences"] >= density[peaks] / 2)]):
        between = density[peak:main]  # often zero over a stretch: take its middle
        bottom = peak + int(np.median(np.flatnonzero(between == between.min())))
        if count[:bottom].sum() >= np.sqrt(len(x)):
            return float(np.exp((edge[bottom] + edge[bottom + 1]) / 2))
    return None


def judge(
    neighbours: Neighbours,
    hub_rows: Int64[Tensor, " h"],
    free: Neighbours,
    rho: Float[Tensor, " q"],
) -> HubEffect:
    """Say whether a hub is inert: under 1 % of core tokens have a hub row as first or second.

    Only such tokens can change their ratio when the hub is removed. `free` are the neighbours in
    the table without its hub (the same object where there is none), rho the lengths of its
    queries: their `ghost` reading says what a hub at the origin would do to this table.
    Raises `TableError` where a reading can't be had.

    >>> from tokenspace.hub import nearest
    >>> rows = torch.randn(200, 3, generator=torch.Generator().manual_seed(0))
    >>> found = nearest(rows)
    >>> judge(found, torch.tensor([], dtype=torch.int64), found, lengths(rows)).inert
    True
    """
    core = ~torch.isin(neighbours.queries, hub_rows)
    touched = torch.isin(neighbours.indices[core, :2], hub_rows).any(dim=1)
    both = captured(neighbours, hub_rows)[core]
    # with no core query there is nothing to capture
    share, pairs = (float(v.sum()) / max(1, len(v)) for v in (touched, both))
    without = mle(free.r1, free.r2).value
    phantom: float | None
    try:
        phantom = mle(*ghost(free.r1, free.r2, rho)).value
        what_if = f"a ghost hub at the origin would read {phantom:.2f}"
    except TableError:
        phantom, what_if = None, "a ghost hub at the origin would capture every token"
    why = (
        f"{len(hub_rows)} hub rows; {pairs:.1%} of core tokens have both first neighbours among "
        f"them, {share:.1%} at least one; without the hub {without:.2f}, {what_if}"
    )
    return HubEffect(share < INERT_BELOW, pairs, share, phantom, why)
