"""Generation points: a state, its two likeliest tokens, and which points have no plane."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Float64, Int64
from torch import Tensor
from torch.nn.functional import normalize

from tokenspace.curvature.softmax import charge, entropy
from tokenspace.errors import ParameterError, TableError

TOLERANCE = 1e-6  # a sine below it is rounding: states and rows come in fp32 at best
TINY = torch.finfo(torch.float64).tiny  # so that a length of 0, left out later, can't divide
REASONS = (
    "vocabulary of one",
    "non-finite logits",
    "non-finite state",
    "z = 0",
    "v1 = 0 or v2 = 0",
    "v1 = v2",
    "z inside the plane",
)


@dataclass(frozen=True)
class Points:
    """N generation points that have a curvature, and why others were left out.

    `z` are unit states, `scale` their lengths before; `v1`, `v2` raw rows of the tokens `top1`,
    `top2` with probabilities `p1` >= `p2`; `entropy` is in nats. `kept` are the numbers of these
    points among all that were read, `reason` indexes `REASONS` for each of those (-1: kept).
    """

    z: Float64[Tensor, "N n"]
    scale: Float64[Tensor, " N"]
    v1: Float64[Tensor, "N n"]
    v2: Float64[Tensor, "N n"]
    p1: Float64[Tensor, " N"]
    p2: Float64[Tensor, " N"]
    top1: Int64[Tensor, " N"]
    top2: Int64[Tensor, " N"]
    entropy: Float64[Tensor, " N"]
    kept: Int64[Tensor, " N"]
    reason: Int64[Tensor, " M"]

    def __len__(self) -> int:
        return len(self.z)

    @property
    def q(self) -> Float64[Tensor, " N"]:
        return charge(self.p1, self.p2)

    @property
    def excluded(self) -> dict[str, int]:
        """How many points were left out, by reason; reasons that never applied are absent."""
        counts = {name: int((self.reason == i).sum()) for i, name in enumerate(REASONS)}
        return {name: count for name, count in counts.items() if count}

    def __getitem__(self, rows: Bool[Tensor, " N"] | Int64[Tensor, " K"] | slice) -> "Points":
        """Some of the points, with the whole account of the excluded ones."""
        return Points(**{k: v if k == "reason" else v[rows] for k, v in vars(self).items()})


def points_of(
    h: Float[Tensor, "M n"],
    logits: Float[Tensor, "M W"],
    V: Float[Tensor, "W n"],
    *,
    centre: bool = False,
) -> Points:
    """The points of states `h` (after the final norm and its gain) whose logits are `logits`.

    `centre` takes the mean row off the two rows: p doesn't change under v -> v + c, but the
    curvature does. Points without a curvature are left out and counted by name.
    Raises TableError when the table itself isn't finite.

    >>> h, V = torch.eye(3), torch.tensor([[1.0, 0.0, 1.0], [0.0, 1.0, 1.0]])
    >>> points_of(torch.cat([h, 0 * h]), torch.zeros(6, 2), V).excluded
    {'z = 0': 3}
    """
    bad = (~V.isfinite().all(-1)).nonzero().flatten().tolist()
    if bad:
        raise TableError(f"{len(bad)} rows of the unembedding aren't finite (first: {bad[:5]}).")
    one_token = logits.shape[-1] < 2
    if one_token:  # it has no runner-up: counted twice, to be left out by its name
        logits, V = logits.repeat(1, 2), V.repeat(2, 1)
    finite = logits.isfinite().all(-1)  # (M,)
    safe = torch.where(finite[:, None], logits, torch.zeros_like(logits)).double()
    values, top = safe.topk(2, dim=-1)  # (M, 2)
    p = (values - safe.logsumexp(-1, keepdim=True)).exp()
    rows = V[top.T].double() - (V.mean(0, dtype=torch.float64) if centre else 0)  # (2, M, n)
    (p1, p2), (top1, top2) = p.T, top.T
    return assemble(h, rows[0], rows[1], (p1, p2), (top1, top2), entropy(safe), finite, one_token)


def assemble(
    h: Float[Tensor, "M n"],
    v1: Float64[Tensor, "M n"],
    v2: Float64[Tensor, "M n"],
    p: tuple[Float64[Tensor, " M"], Float64[Tensor, " M"]],
    top: tuple[Int64[Tensor, " M"], Int64[Tensor, " M"]],
    H: Float64[Tensor, " M"] | None = None,
    finite: Bool[Tensor, " M"] | None = None,
    one_token: bool = False,
) -> Points:
    """Points from rows and probabilities already at hand; `points_of` reads them off logits.

    Raises ParameterError unless 0 <= p₂, p₁ and p₁ + p₂ <= 1.

    >>> x = torch.eye(3).double()
    >>> half, ids = torch.full((1,), 0.5).double(), torch.tensor([7])
    >>> assemble(x[:1], x[:1] + x[1:2], x[2:], (half, half), (ids, ids + 1)).q.round().item()
    1.0
    """
    p1, p2 = p
    if not bool(((p1 >= 0) & (p2 >= 0) & (p1 + p2 <= 1 + 1e-9)).all()):
        raise ParameterError("p1 and p2 must be probabilities with p1 + p2 <= 1.")
    h = h.double()
    scale = h.norm(dim=-1)
    z = h / scale.clamp(min=TINY)[:, None]
    known = torch.ones_like(p1, dtype=torch.bool) if finite is None else finite
    reason = _reasons(h, z, scale, v1, v2, known, one_token)
    kept = (reason < 0).nonzero().flatten()
    H = torch.full_like(p1, torch.nan) if H is None else H
    z, scale, v1, v2, p1, p2, top1, top2, H = (
        field[kept] for field in (z, scale, v1, v2, p1, p2, *top, H)
    )
    return Points(z, scale, v1, v2, p1, p2, top1, top2, H, kept, reason)


def join(parts: Sequence[Points]) -> Points:
    """Points read in several batches, as if read in one.

    >>> x, half, ids = torch.eye(3).double(), torch.full((1,), 0.5).double(), torch.tensor([7])
    >>> one = assemble(x[:1], x[:1] + x[1:2], x[2:], (half, half), (ids, ids))
    >>> join([one, one]).kept.tolist()
    [0, 1]
    """
    fields = {k: torch.cat([vars(part)[k] for part in parts]) for k in vars(parts[0])}
    starts = torch.tensor([0] + [len(part.reason) for part in parts[:-1]]).cumsum(0)
    moved = [part.kept + int(start) for part, start in zip(parts, starts, strict=True)]
    return Points(**{**fields, "kept": torch.cat(moved)})


def _reasons(
    h: Tensor, z: Tensor, scale: Tensor, v1: Tensor, v2: Tensor, finite: Tensor, one_token: bool
) -> Int64[Tensor, " M"]:
    """Index of the first reason that applies to each point, -1 for none."""
    lengths = torch.minimum(v1.norm(dim=-1), v2.norm(dim=-1))
    a, b = (normalize(v, dim=-1, eps=TINY) for v in (v1, v2))
    across = b - (a * b).sum(-1, keepdim=True) * a  # of b, at right angles to a: sin of their angle
    parallel = across.norm(dim=-1) < TOLERANCE
    c = normalize(across, dim=-1, eps=TINY)
    out = z - (z * a).sum(-1, keepdim=True) * a
    out = out - (out * c).sum(-1, keepdim=True) * c  # the part of z outside the plane
    tests = (
        torch.full_like(finite, one_token),
        ~finite,
        ~h.isfinite().all(-1),
        scale == 0,
        lengths == 0,
        parallel,  # v1 = -v2 as well: two rows on one line span no plane
        out.norm(dim=-1) < TOLERANCE,
    )
    stacked = torch.stack(tests)
    return torch.where(stacked.any(0), stacked.int().argmax(0), -1)
