"""One table's intrinsic dimension, read as it is, without its hub, and with rows normalized.

Policy: exact duplicates go first, all but the earliest row, so that no distance is zero. The zero
vector is a row like any other, but has no direction: it is left out of the normalized table.
Queries may be subsampled; the table never is, since that would move every neighbour away.
"""

import time
from dataclasses import asdict, dataclass, replace
from hashlib import blake2b
from typing import Any

import torch
from jaxtyping import Float, Int64
from torch import Tensor

from tokenspace.errors import ParameterError, TableError
from tokenspace.hub.detection import Hub, lengths
from tokenspace.hub.dimension import facco, lid_harmonic, limit_note, median, mle, policy_note
from tokenspace.hub.effect import HubEffect, detect, judge
from tokenspace.hub.neighbours import Neighbours, nearest
from tokenspace.sources import EmbeddingTable, check_rows

ALL_ROWS_UP_TO = 65536  # rows; a larger table is read at QUERIES of its rows unless told otherwise
QUERIES = 8192
LID_QUERIES = 4096  # 20 neighbours cost several times what two do
K = 20
PARTED = 0.8  # of the full reading: below that, normalizing did what removing a hub does


@dataclass(frozen=True)
class Values:
    """Readings of one version of a table; None where one can't be had, and `note` says why."""

    rows: int
    queries: int
    mle: float | None = None
    se: float | None = None
    facco: float | None = None
    median: float | None = None
    lid20: float | None = None  # harmonic mean of local dimension, at 4,096 queries at most
    lid20_se: float | None = None
    note: str = ""


@dataclass(frozen=True)
class Reading:
    """What `read_dimension` found; `as_dict` is the same for JSON."""

    table: str
    n: int
    d: int
    dtype: str
    duplicates: int  # rows equal to another row
    zero_rows: int
    padded_rows: int
    hub: Hub  # ids in the table as given
    effect: HubEffect
    full: Values
    hub_removed: Values
    normalized: Values
    without_padding: Values | None
    controls: dict[str, Values]  # as many random, and longest, rows removed as the hub has
    notes: tuple[str, ...]
    seconds: float

    @property
    def hub_rows(self) -> int:
        return len(self.hub)

    @property
    def hub_inert(self) -> bool:
        return self.effect.inert

    def as_dict(self) -> dict[str, Any]:
        """Plain numbers and text, ready for JSON; the hub's row ids are left out."""
        plain = {k: v for k, v in asdict(self).items() if k not in ("hub", "effect")}
        effect = {f"hub_{k}": v for k, v in asdict(self.effect).items()}
        found = {"hub_rows": self.hub_rows, "hub_threshold": self.hub.threshold}
        where = {"hub_around": self.hub.around}
        return plain | found | where | effect | {"notes": list(self.notes)}


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

    `queries` rows are drawn by `seed` (None: all up to 65,536 rows, else 8,192). `controls` adds
    the readings with as many random, and as many longest, rows removed as the hub has.
    Raises `TableError` for rows that aren't finite or fewer than 3 distinct ones, and where the
    full table can't be read; a version that can't be read is None, with the reason in its note.

    >>> from tokenspace.hub.planted import gaussian
    >>> reading = read_dimension(gaussian(400, 2, seed=0))
    >>> 1.7 < reading.full.mle < 2.4, reading.duplicates
    (True, 0)
    """
    start = time.perf_counter()
    if not isinstance(table, EmbeddingTable):
        table = EmbeddingTable("table", table, str(table.dtype).removeprefix("torch."))
    rows = check_rows(table.rows)
    (n, d), rho = rows.shape, lengths(rows)
    zero_rows, first = int((rho == 0).sum()), earliest(rows)
    ids = (first == torch.arange(n)).nonzero().flatten()
    if len(ids) < n:
        rows, rho = rows[ids], rho[ids]
    chosen = _draw(len(rows), queries, seed)
    reader = _Reader(chosen, device, progress)
    full, found = reader.measure(rows, None)
    hub, change = detect(rows, found, device=device)
    core = _without(len(rows), hub.rows)
    removed, free = reader.measure(rows, core) if len(hub) else (full, found)
    nonzero = (rho > 0).nonzero().flatten()
    unit = rows / rho[:, None].to(rows.dtype)  # NaN in the zero row, which isn't read
    normalized = reader.read(unit, nonzero)
    notes = _notes(table, n - len(ids), zero_rows, len(chosen), len(rows))
    effect = judge(found, hub.rows, free, rho[core][free.queries], change)
    original = (ids < n - table.padded_rows).nonzero().flatten()
    return Reading(
        table=table.name,
        n=n,
        d=d,
        dtype=table.stored,
        duplicates=int((first.bincount(minlength=n)[first] > 1).sum()),
        zero_rows=zero_rows,
        padded_rows=table.padded_rows,
        hub=replace(hub, rows=ids[hub.rows]),
        effect=effect,
        full=full,
        hub_removed=removed,
        normalized=normalized,
        without_padding=reader.read(rows, original) if table.padded_rows else None,
        controls=_controls(reader, rows, rho, len(hub), seed) if controls else {},
        notes=notes + _parted(effect, full, normalized),
        seconds=time.perf_counter() - start,
    )


def earliest(rows: Float[Tensor, "n d"]) -> Int64[Tensor, " n"]:
    """For each row, the id of the first row equal to it (its own where there is none); -0 = 0.

    >>> earliest(torch.tensor([[1.0], [2.0], [1.0], [0.0], [-0.0]])).tolist()
    [0, 1, 0, 3, 3]
    """
    seen: dict[bytes, int] = {}
    found: list[int] = []
    for block in torch.split(rows, 16384):
        for row in (block + 0.0).numpy():  # -0 + 0 = 0
            digest = blake2b(row.tobytes(), digest_size=16).digest()
            found.append(seen.setdefault(digest, len(found)))
    return torch.tensor(found)


@dataclass(frozen=True)
class _Reader:
    """The rows to read at, in the deduplicated table's ids, and where to compute."""

    chosen: Tensor
    device: str | torch.device
    progress: bool

    def measure(self, rows: Tensor, subset: Tensor | None) -> tuple[Values, Neighbours]:
        """Readings of rows[subset] at those chosen rows that it holds."""
        at = self.chosen
        if subset is not None:
            place = torch.full((len(rows),), -1)
            place[subset] = torch.arange(len(subset))
            rows, at = rows[subset], place[at]
            at = at[at >= 0]
        if len(at) < 2:
            raise TableError(f"{len(at)} of {len(rows)} rows left to read at; take more queries.")
        whole = None if len(at) == len(rows) else at
        k = K if len(at) <= LID_QUERIES and len(rows) > K else 2  # 20 hold the first two
        found = nearest(rows, k, queries=whole, device=self.device, progress=self.progress)
        estimate = mle(found.r1, found.r2)
        values = {"mle": estimate.value, "se": estimate.se}
        notes = [policy_note(estimate.n_zero_distance, estimate.n_ties)]
        notes.append(limit_note(estimate.value, len(rows)))
        try:
            values["facco"] = facco(found.r1, found.r2).value
            values["median"] = median(found.r1, found.r2).value
            near = found
            if k < K:
                at = at[torch.linspace(0, len(at) - 1, min(len(at), LID_QUERIES)).long()]
                near = nearest(rows, K, queries=at, device=self.device, progress=self.progress)
            local = lid_harmonic(near.distances, K)
            values |= {"lid20": local.value, "lid20_se": local.se}
        except TableError as error:
            notes.append(str(error))
        note = "; ".join(filter(None, notes))
        return Values(len(rows), len(found.queries), **values, note=note), found

    def read(self, rows: Tensor, subset: Tensor) -> Values:
        """As `measure`, but a version that can't be read is a missing value with its reason."""
        try:
            return self.measure(rows, subset)[0]
        except TableError as error:
            return Values(len(subset), 0, note=str(error))


def _draw(n: int, queries: int | None, seed: int) -> Tensor:
    if queries is not None and queries < 2:
        raise ParameterError(f"queries = {queries}: at least 2 rows are needed for an error bar.")
    wanted = queries or (n if n <= ALL_ROWS_UP_TO else QUERIES)
    if wanted >= n:
        return torch.arange(n)
    return torch.randperm(n, generator=torch.Generator().manual_seed(seed))[:wanted].sort().values


def _without(n: int, rows: Tensor) -> Tensor:
    inside = torch.ones(n, dtype=torch.bool)
    inside[rows] = False
    return inside.nonzero().flatten()


def _controls(reader: _Reader, rows: Tensor, rho: Tensor, h: int, seed: int) -> dict[str, Values]:
    if not h:
        return {}
    random = torch.randperm(len(rows), generator=torch.Generator().manual_seed(seed + 1))
    gone = {"random": random[:h], "longest": rho.argsort(descending=True)[:h]}
    return {name: reader.read(rows, _without(len(rows), cut)) for name, cut in gone.items()}


def _parted(effect: HubEffect, full: Values, normalized: Values) -> tuple[str, ...]:
    """Say so where normalizing does what removing a hub does, and there is none to remove."""
    share = normalized.mle / full.mle if normalized.mle and full.mle else 1.0
    if not effect.inert or share >= PARTED:
        return ()
    return (f"no hub was found, yet the normalized rows read {share:.0%} of the full table",)


def _notes(
    table: EmbeddingTable, repeats: int, zeros: int, queries: int, rows: int
) -> tuple[str, ...]:
    notes = list(table.notes)
    if table.rows.dtype not in (torch.float32, torch.float64):
        notes.append(f"stored as {table.stored}, read in fp32; distances in fp64")
    if repeats:
        notes.append(f"{repeats} rows repeat an earlier one exactly and were left out")
    if zeros:
        notes.append("the zero vector has no direction: left out of the normalized table")
    if table.padded_rows:
        notes.append(f"{table.padded_rows} rows beyond the tokenizer: also read without them")
    if table.unnamed_rows:
        notes.append(f"{table.unnamed_rows} rows among the others have no token")
    if table.entries_without_row:
        notes.append(f"{table.entries_without_row} entries of the tokenizer have no row")
    if table.rows.shape[1] > table.rows.shape[0]:
        notes.append("more columns than rows: is the table transposed?")
    if queries < rows:
        notes.append(f"read at {queries} of {rows} rows, neighbours among all")
    return tuple(notes)
