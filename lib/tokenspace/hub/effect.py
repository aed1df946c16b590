"""What a hub does to the reading: the judgement of every rule that finds one.

A candidate is a hub that matters when the reading of the tokens that stay changes as its rows go,
by more than their paired error and more than it does when as many random rows go.
"""

import math
from dataclasses import dataclass

import torch
from jaxtyping import Float, Int64
from torch import Tensor

from tokenspace.errors import TableError
from tokenspace.hub.capture import captured, ghost
from tokenspace.hub.detection import Hub, ball, reflection
from tokenspace.hub.dimension import log_ratios, mle
from tokenspace.hub.neighbours import Neighbours, nearest

LEAST_FALL = 0.05  # of the log reading; what a hub does to real tables is .07 and more
MUCH = 0.1  # of the log reading, by which a rule must do better than the paper's to replace it
DRAWS = 5  # of random rows, whose removal says what a fall is worth
TOKENS = 4096  # at most, at which a removal is judged


@dataclass(frozen=True)
class Removal:
    """What taking rows away does to the reading (MLE) of the tokens that stay, in logs."""

    fall: float  # log of the reading with the rows over the reading without
    error: float  # its standard error: the same tokens are read twice
    chance: float  # mean fall where as many random rows go
    spread: float  # standard deviation of that fall

    @property
    def changes(self) -> bool:
        """Whether the reading changes beyond its error, beyond chance, and by a twentieth."""
        return abs(self.beyond) > max(LEAST_FALL, 3 * math.hypot(self.error, self.spread))

    @property
    def beyond(self) -> float:
        """The fall beyond chance."""
        return self.fall - self.chance


def removal(
    rows: Float[Tensor, "n d"],
    neighbours: Neighbours,
    gone: Int64[Tensor, " h"],
    *,
    seed: int = 0,
    device: str | torch.device = "cpu",
) -> Removal:
    """Compare the reading before and after rows go, and with as many random rows of the rest.

    Only tokens that have a row that goes among their first two neighbours are looked up again.
    Raises `TableError` where fewer than three rows, or no pair with r1 > 0, would be left.

    >>> from tokenspace.hub import nearest
    >>> from tokenspace.hub.planted import gaussian, plant
    >>> table, hub = plant(gaussian(300, 40, seed=0), h=20, s=0.1, seed=0)
    >>> removal(table, nearest(table), hub).changes
    True
    """
    fall, error = _fall(rows, neighbours, gone, device)
    if abs(fall) <= error:  # nothing to explain
        return Removal(fall, error, 0.0, 0.0)
    rest = _others(len(rows), gone)
    draw = torch.Generator().manual_seed(seed)
    count = min(len(gone), len(rest) // 2)
    random = [rest[torch.randperm(len(rest), generator=draw)[:count]] for _ in range(DRAWS)]
    falls = torch.tensor([_fall(rows, neighbours, some, device)[0] for some in random])
    return Removal(fall, error, float(falls.mean()), float(falls.std()))


def detect(
    rows: Float[Tensor, "n d"], neighbours: Neighbours, *, device: str | torch.device = "cpu"
) -> tuple[Hub, Removal | None]:
    """The hub and what its removal does (None: there are no rows to remove).

    The paper's short rows, by `reflection`, where their removal changes the reading; the `ball`
    where only that does, or does so by a tenth more. Otherwise the short rows, which are inert.

    >>> from tokenspace.hub import nearest
    >>> from tokenspace.hub.planted import gaussian, plant
    >>> table, planted = plant(gaussian(300, 40, seed=0), h=20, s=0.1, seed=0)
    >>> hub, change = detect(table + 5, nearest(table + 5))
    >>> hub.around, change.changes
    ('where tokens look', True)
    """
    found = [
        (hub, _judged(rows, neighbours, hub, device))
        for hub in (reflection(rows), ball(rows, neighbours))
    ]
    (short, by_length), (near, by_looks) = found
    if by_looks is None or not by_looks.changes or by_looks.beyond < 0:
        return short, by_length
    if by_length and by_length.changes and by_length.beyond + MUCH > by_looks.beyond:
        return short, by_length
    return near, by_looks


def _judged(
    rows: Tensor, neighbours: Neighbours, hub: Hub, device: str | torch.device
) -> Removal | None:
    some = torch.linspace(0, len(neighbours.queries) - 1, TOKENS).long().unique()
    few = Neighbours(neighbours.distances[some], neighbours.indices[some], neighbours.queries[some])
    try:
        return removal(rows, few, hub.rows, device=device) if len(hub) else None
    except TableError:  # too little is left to compare
        return None


def _fall(
    rows: Tensor, neighbours: Neighbours, gone: Tensor, device: str | torch.device
) -> tuple[float, float]:
    """Log of the reading with `gone` over that without, at the queries that stay; its error."""
    stay = ~torch.isin(neighbours.queries, gone)
    before, after = (neighbours.distances[stay, :2].clone() for _ in range(2))
    again = torch.isin(neighbours.indices[stay, :2], gone).any(1).nonzero().flatten()
    if len(again):
        rest = _others(len(rows), gone)
        place = torch.full((len(rows),), -1)
        place[rest] = torch.arange(len(rest))
        at = place[neighbours.queries[stay][again]]
        after[again] = nearest(rows[rest], 2, queries=at, device=device).distances
    some = (before[:, 0] > 0) & (after[:, 0] > 0)
    m_before, m_after = (log_ratios(r[some, 0], r[some, 1]) for r in (before, after))
    paired = m_after / m_after.mean() - m_before / m_before.mean()
    fall = float(m_after.mean().log() - m_before.mean().log())
    return fall, float(paired.std()) / math.sqrt(len(paired))


def _others(n: int, gone: Tensor) -> Tensor:
    inside = torch.ones(n, dtype=torch.bool)
    inside[gone] = False
    return inside.nonzero().flatten()


@dataclass(frozen=True)
class HubEffect:
    """Whether a hub changes the reading, with the shares of core tokens that say so."""

    inert: bool
    captured: float  # both first neighbours are hub rows
    touched: float  # at least one is
    ghost: float | None  # the hub-free table with a hub at the origin; None: it captures all
    why: str


def judge(
    neighbours: Neighbours,
    hub_rows: Int64[Tensor, " h"],
    free: Neighbours,
    rho: Float[Tensor, " q"],
    change: Removal | None,
) -> HubEffect:
    """Say what a hub does: inert where its removal (None: of nothing) changes no reading.

    `free` are the neighbours in the table without its hub (the same object where there is none),
    rho the lengths of its queries: their `ghost` reading says what a hub at the origin would do to
    this table. Raises `TableError` where a reading can't be had.

    >>> from tokenspace.hub import nearest
    >>> rows = torch.randn(200, 3, generator=torch.Generator().manual_seed(0))
    >>> found = nearest(rows)
    >>> judge(found, torch.tensor([], dtype=torch.int64), found, rows.norm(dim=1), None).inert
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
    inert = change is None or not change.changes
    return HubEffect(inert, pairs, share, phantom, why)
