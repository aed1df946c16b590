"""What a sampled token changes, what goes along with that, and how much of it is chance.

The top token is swapped for the runner-up. The divergence is the Jensen–Shannon one between the
model's next-token distributions after either token, in nats: 0 when the swap makes no difference,
log 2 when the two futures share nothing.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
import pandas as pd
import torch
from jaxtyping import Float, Float64
from scipy.stats import rankdata
from torch import Tensor

from tokenspace.curvature.connection import curvature
from tokenspace.curvature.reader import Reader, Reading, read
from tokenspace.errors import ParameterError

READOUTS = ("q", "norm", "norm at q = 1", "entropy", "row distance")
ONE_STEP = 1024  # tokens run at once: more than in `read`, since few logits are kept


def jensen_shannon(
    first: Float[Tensor, "*N V"], second: Float[Tensor, "*N V"]
) -> Float64[Tensor, "*N"]:
    """Jensen–Shannon divergence of softmax(first) and softmax(second), in nats.

    >>> one, other = torch.tensor([0.0, -1e4]), torch.tensor([-1e4, 0.0])
    >>> round(jensen_shannon(one, other).exp().item(), 6)
    2.0
    """
    p, q = first.double().softmax(-1), second.double().softmax(-1)
    m = (p + q) / 2
    kl = (torch.xlogy(p, p) + torch.xlogy(q, q)).sum(-1) / 2 - torch.xlogy(m, m).sum(-1)
    return kl.clamp(min=0)


@torch.no_grad()
def swap_divergence(reader: Reader, reading: Reading) -> Float64[Tensor, " N"]:
    """Divergence after the top token against after the runner-up, at each point of a reading.

    Prefixes of equal length run together, so nothing is padded. Points keep their order.
    """
    points, device = reading.points, reader.model.device
    text, position = reading.text[points.kept].cpu(), reading.position[points.kept].cpu()  # (N,)
    divergence = torch.zeros(len(points), dtype=torch.float64)

    def next_logits(ids: Tensor) -> Tensor:
        return reader.model(input_ids=ids, logits_to_keep=1, use_cache=False).logits[:, -1]

    for length in position.unique().tolist():
        at = (position == length).nonzero().flatten()
        for rows in at.split(max(1, ONE_STEP // (2 * (length + 2)))):
            prefix = torch.tensor([reading.ids[i][: length + 1] for i in text[rows].tolist()])
            prefix = prefix.to(device)  # (rows, length + 1)
            first, second = (
                next_logits(torch.cat([prefix, top[rows, None].to(device)], dim=1))
                for top in (points.top1, points.top2)
            )
            divergence[rows] = jensen_shannon(first, second).cpu()
    return divergence


def swap_table(reader: Reader, ids: Sequence[Sequence[int]], since: Sequence[int]) -> pd.DataFrame:
    """One row a generation point from position `since[i]` of text i on: readouts and divergence.

    Columns: text, position, p1, p2, `READOUTS`, js, and expected = p₁ p₂ js, which contains p₁ p₂
    and so goes along with q by construction.
    """
    if len(since) != len(ids):
        raise ParameterError(f"{len(since)} first positions for {len(ids)} texts; give one a text.")
    everything = read(reader, ids)
    kept, text, position = everything.points.kept, everything.text, everything.position
    first = torch.tensor(list(since), device=kept.device)[text[kept]]  # (N,)
    chosen = everything.points[position[kept] >= first]
    js = swap_divergence(reader, replace(everything, points=chosen))
    columns = {
        "text": text[chosen.kept],
        "position": position[chosen.kept],
        "p1": chosen.p1,
        "p2": chosen.p2,
        "q": chosen.q,
        "norm": curvature(chosen).norm(),
        "norm at q = 1": curvature(chosen, q=torch.ones_like(chosen.q)).norm(),
        "entropy": chosen.entropy,
        "row distance": (chosen.v1 - chosen.v2).norm(dim=-1),
        "js": js,
        "expected": (chosen.p1 * chosen.p2).cpu() * js,
    }
    return pd.DataFrame({name: value.cpu().numpy() for name, value in columns.items()})


def rank_correlation(x: np.ndarray, y: np.ndarray, given: np.ndarray | None = None) -> float:
    """Spearman's ρ; with `given`, the partial one: what is left of both when it is fitted.

    >>> round(rank_correlation(np.array([1, 2, 3]), np.array([2, 4, 5])), 9)
    1.0
    """
    columns = [rankdata(column) for column in (x, y)]
    columns = [column - column.mean() for column in columns]
    if given is not None:
        other = rankdata(given) - (len(x) + 1) / 2
        columns = [c - other * (c @ other) / (other @ other) for c in columns]
    lengths = np.prod([np.linalg.norm(column) for column in columns])
    return float(columns[0] @ columns[1] / lengths) if lengths > 0 else float("nan")


def interval_over_texts(
    table: pd.DataFrame, statistic: Callable[[pd.DataFrame], float], draws: int, seed: int
) -> tuple[float, float, float]:
    """A statistic and its 95 % interval when whole texts are drawn again, with replacement.

    Points of one text aren't independent, so drawing points would make the interval too narrow.

    >>> table = pd.DataFrame({"text": [0, 0, 1], "x": [1.0, 1.0, 1.0]})
    >>> interval_over_texts(table, lambda t: t.x.mean(), draws=5, seed=0)
    (1.0, 1.0, 1.0)
    """
    texts = [group for _, group in table.groupby("text")]
    generator = np.random.default_rng(seed)
    drawn = [
        statistic(pd.concat([texts[i] for i in generator.integers(0, len(texts), len(texts))]))
        for _ in range(draws)
    ]
    low, high = np.nanquantile(drawn, [0.025, 0.975])
    return float(statistic(table)), float(low), float(high)


def shift_null(
    table: pd.DataFrame,
    statistic: Callable[[pd.DataFrame], float],
    column: str,
    draws: int,
    seed: int,
) -> float:
    """How large |statistic| gets by chance: its 95 % point when `column` is moved along the rows.

    A rotation of the whole column by a random number of rows keeps neighbours together, so points
    of one text stay alike; shuffling single rows would make chance look smaller than it is.

    >>> table = pd.DataFrame({"x": [1.0, 2.0, 3.0, 4.0], "y": [1.0, 2.0, 3.0, 4.0]})
    >>> rho = lambda t: rank_correlation(t.x.to_numpy(), t.y.to_numpy())
    >>> shift_null(table, rho, "y", draws=20, seed=0) < 0.9
    True
    """
    generator = np.random.default_rng(seed)
    shifts = generator.integers(1, len(table), draws)
    found = [
        statistic(table.assign(**{column: np.roll(table[column].to_numpy(), shift)}))
        for shift in shifts
    ]
    return float(np.nanquantile(np.abs(found), 0.95))
