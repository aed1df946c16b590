"""A published model's own training: its embedding table at steps along the way, each one checked.

Public checkpoints repeat and swap steps (EleutherAI/pythia, issues 83, 195, 203, 205, 206), so the
tables are hashed and compared before anything is drawn. Ours, after arXiv:2608.30315, section 5.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Float, Float64, Int64
from torch import Tensor
from tqdm import tqdm

from tokenspace.errors import (
    ParameterError,
    SourceError,
    TableError,
    TokenspaceError,
    UnreachableError,
)
from tokenspace.nn.checkpoint import digest
from tokenspace.sources import EmbeddingTable, check_rows, load_table
from tokenspace.staircase.alignment import alignment, cosine_gram

STEPS = (0, *(2**k for k in range(10)), *range(1000, 143_001, 1000))  # that Pythia publishes
EARLY = 16  # steps so few, most often within the warm-up, that a run is still near its start
INDEPENDENT = 0.9  # of the distance between two unrelated tables: unrelated, not trained
JUMP = 0.05  # a median row norm this far outside that of both neighbours, as a share


@dataclass(frozen=True)
class Snapshots:
    """A model's tables at the steps that can be told apart, and what was found on the way."""

    steps: list[int]
    tables: list[EmbeddingTable]
    dropped: dict[int, str]  # why a step asked for is not among `steps`
    flags: dict[int, str]  # what to know about a step that is


def revisions(points: int = 24) -> list[int]:
    """About `points` of Pythia's 154 steps, even in the logarithm, with 0 and the last.

    >>> revisions(6)
    [0, 1, 16, 512, 7000, 143000]
    """
    if points < 3:
        raise ParameterError(f"points = {points}: 0, 1 and the last make 3 or more.")
    logs = torch.tensor(STEPS[1:], dtype=torch.float64).log()
    even = torch.linspace(0, float(logs[-1]), points - 1, dtype=torch.float64)
    near = (even[:, None] - logs).abs().argmin(1)
    return [0, *(STEPS[1 + i] for i in near.unique().tolist())]


def read_snapshots(
    model: str, steps: Sequence[int] | Mapping[int, str], side: str = "input"
) -> Snapshots:
    """The tables of `model` ("org/name") at `steps`, by range requests; a mapping names revisions.

    A step that can't be read, or whose bytes stand at another step too, is dropped and listed; ask
    for the last step as well, since wrong steps mostly hold its table. Equal bytes at the very
    start are kept: no update seen yet. Raises `SourceError` when no step can be read, and
    `UnreachableError` when one is out of reach for now.
    """
    named = steps if isinstance(steps, Mapping) else {s: f"step{s}" for s in steps}
    found: dict[int, EmbeddingTable] = {}
    dropped: dict[int, str] = {}
    for step in tqdm(sorted(named), desc=model, unit="step", disable=None):
        try:
            table = load_table(model, revision=named[step], side=side)
            _refuse_misfit(table, found)
            found[step] = table
        except UnreachableError:  # it may be there another time: no reason to go on without it
            raise
        except TokenspaceError as error:
            dropped[step] = str(error)
    if not found:
        why = next(iter(dropped.values()), "none was asked for")
        raise SourceError(f"{model}: none of {len(named)} steps can be read. {why}")
    flags = _drop_repeats(found, dropped)
    kept, tables = list(found), list(found.values())
    _flag_unrelated(kept, tables, flags)
    _flag_jumps(kept, tables, flags)
    return Snapshots(kept, tables, dropped, flags)


def next_token_alignment(
    snapshots: Snapshots, ids: Int64[Tensor, " T"], signature: Float64[Tensor, "T features"]
) -> Float64[Tensor, " S"]:
    """ρ_next at each step: Pearson of cosines of the rows `ids` with those of their signature.

    `ids` and `signature` come from `most_frequent` and `followers`, on a text in the model's own
    tokens. Raises `ParameterError` for an id that the tables have no row for.
    """
    wanted, found = cosine_gram(signature), []
    for table in snapshots.tables:
        n = len(table.rows)
        if len(ids) < 3 or int(ids.min()) < 0 or int(ids.max()) >= n:
            raise ParameterError(
                f"{len(ids)} ids for tables of {n:,} rows: give 3 or more, from 0 to {n - 1:,}; "
                f"larger ones come from another model's tokenizer."
            )
        found.append(float(alignment(cosine_gram(table.rows[ids]), wanted)))
    return torch.tensor(found, dtype=torch.float64)


def _refuse_misfit(table: EmbeddingTable, found: dict[int, EmbeddingTable]) -> None:
    check_rows(table.rows)
    for step, other in found.items():
        if other.rows.shape != table.rows.shape:
            raise TableError(
                f"{table.origin} has shape {tuple(table.rows.shape)}, that of step {step} "
                f"{tuple(other.rows.shape)}: not the same model."
            )


def _drop_repeats(found: dict[int, EmbeddingTable], dropped: dict[int, str]) -> dict[int, str]:
    """Moves steps with equal bytes from `found` to `dropped`; flags equal ones at the start."""
    by_hash: dict[str, list[int]] = {}
    for step, table in found.items():
        by_hash.setdefault(digest(table.rows), []).append(step)
    flags = {}
    for sha, same in by_hash.items():
        if len(same) > 1 and same == list(found)[: len(same)] and same[-1] <= EARLY:
            for step in same[1:]:
                flags[step] = f"the table of step {same[0]} still: no update seen between them"
        elif len(same) > 1:
            for step in same:
                others = ", ".join(str(s) for s in same if s != step)
                dropped[step] = (
                    f"the same bytes (sha256 {sha}) as at step {others}: at most one of them "
                    f"is right. Leave out those that you know to be wrong."
                )
    for step in dropped.keys() & found.keys():
        del found[step]
    return flags


def _flag_unrelated(steps: list[int], tables: list[EmbeddingTable], flags: dict[int, str]) -> None:
    """The first early step after step 0 that isn't step 0 itself: does it descend from it?"""
    later = [i for i, s in enumerate(steps) if 0 < s <= EARLY and s not in flags]
    if not later or steps[0] != 0:
        return
    a, b = tables[0].rows, tables[later[0]].rows
    unrelated = torch.hypot(_length(a), _length(b))  # distance of two tables of these lengths
    share = float(_length(a - b) / unrelated)
    if share >= INDEPENDENT:
        flags[steps[later[0]]] = (
            f"{share:.2f} of the distance from step 0 that an unrelated initialization has: this "
            f"run doesn't descend from that step 0"
        )


def _flag_jumps(steps: list[int], tables: list[EmbeddingTable], flags: dict[int, str]) -> None:
    """Steps whose median row norm lies outside that of both neighbours."""
    norms = [float(_length(t.rows, dim=1).median()) for t in tables]
    for before, at, after, step in zip(norms, norms[1:], norms[2:], steps[1:], strict=False):
        low, high = min(before, after), max(before, after)
        if not low * (1 - JUMP) <= at <= high * (1 + JUMP):
            told = f"median row norm {at:.4g} between {before:.4g} and {after:.4g}"
            flags[step] = f"{flags[step]}; {told}" if step in flags else told


def _length(rows: Float[Tensor, "n d"], dim: int | None = None) -> Tensor:
    return torch.linalg.vector_norm(rows, dim=dim, dtype=torch.float64)
