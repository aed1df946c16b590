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

from tokenspace.hub.capture import captured, ghost
from tokenspace.hub.dimension import mle
from tokenspace.hub.neighbours import Neighbours

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
class Verdict:
    """Whether a hub changes the reading, with the shares of core tokens that say so."""

    inert: bool
    captured: float  # both first neighbours are hub rows
    touched: float  # at least one is
    full: float  # the reading of the table as it is
    ghost: float  # the reading if a hub sat at the origin
    why: str


def lengths(rows: Float[Tensor, "n d"]) -> Float64[Tensor, " n"]:
    """Euclidean length of each row, summed in float64, a block of rows at a time.

    >>> lengths(torch.tensor([[3.0, 4.0], [0.0, 0.0]])).tolist()
    [5.0, 0.0]
    """
    return torch.cat([block.to(torch.float64).norm(dim=1) for block in rows.split(16384)])


def reflection(rows: Float[Tensor, "n d"]) -> Hub:
    """The hub without parameters: H = {rho_i < median(rho)^2 / max(rho)}.

    A row is short if it lies further below the median, in logs, than any row lies above it.

    >>> rows = torch.tensor([[1.0], [1.1], [0.9], [1.2], [-1.0], [0.1]])
    >>> reflection(rows).rows.tolist()
    [5]
    """
    rho = lengths(rows)
    middle, top = (
        float(rho.quantile(0.5)) if len(rho) < 2**24 else float(rho.median()),
        float(rho.max()),
    )
    threshold = middle**2 / top if top else 0.0
    return Hub((rho < threshold).nonzero().flatten(), threshold, middle, top)


def valley(rows: Float[Tensor, "n d"]) -> float | None:
    """The length at the deepest valley of the log-length density below the median; None if none.

    Gaussian kernel, Silverman's width; a mode counts when its prominence is half its height.

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
    cells = min(65536, int(np.ceil((np.ptp(x) + 8 * width) / width * 8)))
    count, edge = np.histogram(x, cells, (x.min() - 4 * width, x.max() + 4 * width))
    density = gaussian_filter1d(count.astype(float), width / (edge[1] - edge[0]), mode="constant")
    peaks, found = find_peaks(density, prominence=0)
    main = peaks[np.argmax(density[peaks])]
    low = peaks[(peaks < main) & (found["prominences"] >= density[peaks] / 2)]
    if not len(low):
        return None
    highest = low[np.argmax(density[low])]
    bottom = highest + int(np.argmin(density[highest:main]))
    return float(np.exp((edge[bottom] + edge[bottom + 1]) / 2))


def judge(
    neighbours: Neighbours, hub_rows: Int64[Tensor, " h"], rho: Float[Tensor, " q"]
) -> Verdict:
    """Say whether a hub is inert: under 1 % of core tokens have a hub row as first or second.

    rho is the length of each query's row. Only such tokens can change their ratio when the hub
    is removed. The ghost reading says what a hub at the origin would do to this table.

    >>> from tokenspace.hub import nearest
    >>> rows = torch.randn(200, 3, generator=torch.Generator().manual_seed(0))
    >>> judge(nearest(rows), torch.tensor([], dtype=torch.int64), lengths(rows)).inert
    True
    """
    r1, r2 = neighbours.distances[:, 0], neighbours.distances[:, 1]
    core = ~torch.isin(neighbours.queries, hub_rows)
    touched = torch.isin(neighbours.indices[core, :2], hub_rows).any(dim=1)
    share = float(touched.double().mean()) if int(core.sum()) else 0.0
    both = float(captured(neighbours, hub_rows)[core].double().mean()) if int(core.sum()) else 0.0
    full, phantom = mle(r1, r2).value, mle(*ghost(r1, r2, rho)).value
    inert = share < INERT_BELOW
    why = (
        f"{len(hub_rows)} hub rows: {both:.1%} of core tokens have both first neighbours among "
        f"them, {share:.1%} at least one; a hub at the origin would read {phantom:.2f} "
        f"instead of {full:.2f}"
    )
    return Verdict(inert, both, share, full, phantom, why)
