"""Which rows may be a hub: by their lengths alone, or by where tokens look.

Known failures of the reflection rule, which knows lengths alone: one extremely long row hides the
hub; a left-skewed core loses about 4 % of its rows to it; a hub at half the core's length or more
is missed when the log lengths spread by .25; and a hub around the mean of the table, away from the
origin, isn't short at all. Hence the ball around the place where tokens look, and the judgement of
either by what its removal does (`tokenspace.hub.effect`).
"""

import math
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float, Float64, Int64
from scipy.ndimage import gaussian_filter1d
from scipy.signal import find_peaks
from torch import Tensor

from tokenspace.hub.neighbours import Neighbours, exponent

LOOKED_AT = 0.25  # times sqrt(n) rows, those that are looked at most, set the ball's centre
LEAST_CORE = 30  # tokens outside a ball: the share of fewer that it captures says nothing


@dataclass(frozen=True)
class Hub:
    """The rows within `threshold` of the origin, or of where tokens look; lengths from there.

    Lengths are in the table's units.
    """

    rows: Int64[Tensor, " h"]
    threshold: float
    median_norm: float
    max_norm: float
    around: str = "the origin"

    def __len__(self) -> int:
        return len(self.rows)


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
    if len(x) < 3 or np.ptp(x) < 8 * torch.finfo(rows.dtype).eps:  # one length, but for rounding
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


def ball(rows: Float[Tensor, "n d"], neighbours: Neighbours) -> Hub:
    """The ball around the place where tokens look that captures most beyond its share of rows.

    Its centre is the mean of the rows that are most often a first or second neighbour, each as
    often as it is one; its k rows, those nearest to the centre, have the largest share of outside
    tokens with both neighbours inside, less k / n. Lengths are those from the centre.

    >>> from tokenspace.hub import nearest
    >>> from tokenspace.hub.planted import gaussian, plant
    >>> table, hub = plant(gaussian(300, 60, seed=0), h=20, s=0.1, seed=0)
    >>> torch.equal(ball(table + 9, nearest(table + 9)).rows, hub)
    True
    """
    n = len(rows)
    looks = neighbours.indices[:, :2].flatten().bincount(minlength=n)
    most = looks.argsort(descending=True)[: max(3, int(LOOKED_AT * math.sqrt(n)))]
    weights = looks[most].to(torch.float64)
    centre = (rows[most].to(torch.float64) * weights[:, None]).sum(0) / weights.sum()
    rho = lengths(rows - centre.to(rows.dtype))
    order = rho.argsort(stable=True)
    rank = torch.empty_like(order)
    rank[order] = torch.arange(n)
    own, farther = rank[neighbours.queries], rank[neighbours.indices[:, :2]].amax(1)
    # the ball of the k nearest rows captures a token when farther < k <= own
    begins, ends = (x[farther < own].bincount(minlength=n) for x in (farther, own))
    captures = (begins - ends).cumsum(0).to(torch.float64)  # of the ball of k = 1 .. n rows
    core = len(own) - own.bincount(minlength=n).cumsum(0)
    gain = captures / core.clamp_min(1) - torch.arange(1, n + 1) / n
    gain[core < LEAST_CORE] = 0
    k = int(gain.argmax()) + 1 if float(gain.max()) > 0 else 0
    radius = float(rho[order[k]]) if 0 < k < n else 0.0
    middle, top = float(rho.median()), float(rho.max())
    return Hub(order[:k].sort().values, radius, middle, top, "where tokens look")
