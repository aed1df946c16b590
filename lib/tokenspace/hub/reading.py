"""One table's intrinsic dimension, read as it is, without its hub, and with rows normalized.

Policy: exact duplicates go first, all but the earliest row, so that no distance is zero. The zero
vector is a row like any other, but has no direction: it is left out of the normalized table.
Queries may be subsampled; the table never is, since that would move every neighbour away.
"""

import time
from dataclasses import asdict, dataclass
from typing import Any

import torch
from jaxtyping import Float, Int64
from torch import Tensor

from tokenspace.errors import ParameterError, TableError
from tokenspace.hub.detection import Hub, Verdict, judge, lengths, reflection
from tokenspace.hub.dimension import lid_harmonic, median, mle
from tokenspace.hub.neighbours import Neighbours, nearest
from tokenspace.sources import EmbeddingTable, check_rows

ALL_ROWS_UP_TO = 65536  # rows; larger tables are read at QUERIES rows unless told otherwise
QUERIES = 16384
K = 20


@dataclass(frozen=True)
class Values:
    """Readings of one version of a table; None where one can't be had, and `note` says why."""

    rows: int
    queries: int
    mle: float | None = None
    se: float | None = None
    median: float | None = None
    lid20: float | None = None  # harmonic mean of the local dimension at 20 neighbours
    note: str = ""


@dataclass(frozen=True)
class Reading:
    """What `read_dimension` found; `as_dict` is the same for JSON."""

    table: str
    n: int
    d: int
    dtype: str
    duplicates: int
    zero_rows: int
    padded_rows: int
    hub: Hub  # ids in the table as given
    verdict: Verdict
    full: Values
    hub_removed: Values
    normalized: Values
    without_padding: Values | None
    controls: dict[str, Values]
    notes: tuple[str, ...]
    seconds: float

    @property
    def hub_rows(self) -> int:
        return len(self.hub)

    @property
    def hub_inert(self) -> bool:
        return self.verdict.inert

    def as_dict(self) -> dict[str, Any]:
        """Plain numbers and text, ready for JSON."""
        plain = {k: v for k, v in asdict(self).items() if k not in ("hub", "verdict")}
        judged = asdict(self.verdict)
        return plain | {
            "hub_rows": self.hub_rows,
            "hub_threshold": self.hub.threshold,
            "hub_inert": self.hub_inert,
            "hub_captured": judged["captured"],
            "ghost": judged["ghost"],
            "notes": list(self.notes),
        }


def read_dimension(
    table: EmbeddingTable | Float[Tensor, "n d"],
    *,
    queries: int | None = None,
    seed: int = 0,
    controls: bool = False,
    device: str | torch.device = "cpu",
    progress: bool = False,
) -> Reading:
    """Read a table's dimension three ways, and say what was found on the way.

    `queries` rows are drawn by `seed` (None: all up to 65,536 rows, else 16,384). `controls` adds
    the readings with as many random, and as many longest, rows removed as the hub has.
    Raises `TableError` for rows that aren't finite or fewer than 3 distinct ones.

    >>> from tokenspace.hub.planted import gaussian
    >>> reading = read_dimension(gaussian(400, 2, seed=0))
    >>> 1.7 < reading.full.mle < 2.4, reading.duplicates
    (True, 0)
    """
    start = time.perf_counter()
    if not isinstance(table, EmbeddingTable):
        table = EmbeddingTable("table", table, str(table.dtype).removeprefix("torch."))
    rows = check_rows(table.rows)
    n, d = rows.shape
    kept = distinct(rows)
    rows, ids = (rows, kept) if len(kept) == n else (rows[kept], kept)
    rho = lengths(rows)
    hub = reflection(rows)
    chosen = _draw(len(rows), queries, seed)

    def read(subset: Tensor | None, data: Tensor = rows) -> Values:
        return _read(data, subset, chosen, device, progress)[0]

    full, found = _read(rows, None, chosen, device, progress)
    core = _complement(len(rows), hub.rows)
    unit = rows / rho.clamp(min=torch.finfo(torch.float64).tiny)[:, None].to(rows.dtype)
    nonzero = (rho > 0).nonzero().flatten()
    unpadded = (ids < n - table.padded_rows).nonzero().flatten()
    return Reading(
        table=table.name,
        n=n,
        d=d,
        dtype=table.stored,
        duplicates=n - len(kept),
        zero_rows=int((lengths(table.rows) == 0).sum()),
        padded_rows=table.padded_rows,
        hub=Hub(ids[hub.rows], hub.threshold, hub.median_norm, hub.max_norm),
        verdict=judge(found, hub.rows, rho[found.queries]),
        full=full,
        hub_removed=read(core) if len(hub) else full,
        normalized=read(nonzero, unit),
        without_padding=read(unpadded) if table.padded_rows else None,
        controls=_controls(rows, rho, len(hub), chosen, seed, device) if controls else {},
        notes=_notes(table, n - len(kept), int((rho == 0).sum()), len(chosen), len(rows)),
        seconds=time.perf_counter() - start,
    )


def distinct(rows: Float[Tensor, "n d"]) -> Int64[Tensor, " m"]:
    """Ids of the rows that differ from every earlier row, ascending; -0 equals 0.

    >>> distinct(torch.tensor([[1.0], [2.0], [1.0], [0.0], [-0.0]])).tolist()
    [0, 1, 3]
    """
    width = torch.int32 if rows.dtype == torch.float32 else torch.int64
    generator = torch.Generator().manual_seed(0)
    weight = torch.randint(-(2**62), 2**62, (rows.shape[1],), generator=generator)
    keys = torch.cat([((b + 0.0).view(width) * weight).sum(1) for b in rows.split(16384)])
    order = keys.argsort(stable=True)  # equal rows have equal keys; earliest first in each run
    fresh = torch.ones(len(rows), dtype=torch.bool)
    fresh[1:] = keys[order][1:] != keys[order][:-1]
    first = order[fresh][fresh.cumsum(0) - 1]
    repeat = ~fresh
    repeat[~fresh] = (rows[order[~fresh]] == rows[first[~fresh]]).all(dim=1)
    return order[~repeat].sort().values


def _read(
    rows: Tensor, subset: Tensor | None, chosen: Tensor, device: Any, progress: bool
) -> tuple[Values, Neighbours]:
    """Readings of rows[subset] at those of the chosen rows that are in it."""
    n = len(rows)
    if subset is not None and len(subset) < n:
        place = torch.full((n,), -1, dtype=torch.int64)
        place[subset] = torch.arange(len(subset))
        rows, chosen = rows[subset], place[chosen]
        chosen = chosen[chosen >= 0]
    queries = None if len(chosen) == len(rows) else chosen
    found = nearest(rows, min(K, len(rows) - 1), queries=queries, device=device, progress=progress)
    return _values(found, len(rows)), found


def _values(found: Neighbours, rows: int) -> Values:
    r1, r2 = found.r1, found.r2
    values: dict[str, float] = {}
    notes = []
    try:
        estimate = mle(r1, r2)
        values = {"mle": estimate.value, "se": estimate.se}
        notes.append(estimate.note)
        values["median"] = median(r1, r2).value
    except TableError as error:
        notes.append(str(error))
    if found.distances.shape[1] < K:
        notes.append(f"{rows} rows are too few for LID at {K} neighbours")
    else:
        try:
            values["lid20"] = lid_harmonic(found.distances, K).value
        except TableError as error:
            notes.append(str(error))
    return Values(rows, len(found.queries), **values, note="; ".join(filter(None, notes)))


def _draw(n: int, queries: int | None, seed: int) -> Tensor:
    if queries is not None and queries < 2:
        raise ParameterError(f"queries = {queries}: at least 2 rows are needed for an error bar.")
    wanted = queries or (n if n <= ALL_ROWS_UP_TO else QUERIES)
    if wanted >= n:
        return torch.arange(n)
    generator = torch.Generator().manual_seed(seed)
    return torch.randperm(n, generator=generator)[:wanted].sort().values


def _complement(n: int, rows: Tensor) -> Tensor:
    inside = torch.ones(n, dtype=torch.bool)
    inside[rows] = False
    return inside.nonzero().flatten()


def _controls(
    rows: Tensor, rho: Tensor, h: int, chosen: Tensor, seed: int, device: Any
) -> dict[str, Values]:
    if not h:
        return {}
    n = len(rows)
    random = torch.randperm(n, generator=torch.Generator().manual_seed(seed + 1))[:h]
    cuts = {"random": random, "longest": rho.argsort(descending=True)[:h]}
    return {
        name: _read(rows, _complement(n, gone), chosen, device, False)[0]
        for name, gone in cuts.items()
    }


def _notes(
    table: EmbeddingTable, duplicates: int, zeros: int, queries: int, rows: int
) -> tuple[str, ...]:
    notes = []
    if table.rows.dtype not in (torch.float32, torch.float64):
        notes.append(f"stored as {table.stored}, read in fp32; distances in fp64")
    if duplicates:
        notes.append(f"{duplicates} exact duplicate rows left out, the earliest of each kept")
    if zeros:
        notes.append("the zero vector has no direction: left out of the normalized table")
    if table.padded_rows:
        notes.append(f"{table.padded_rows} rows beyond the tokenizer: also read without them")
    if queries < rows:
        notes.append(f"read at {queries} of {rows} rows, neighbours among all")
    return tuple(notes)
