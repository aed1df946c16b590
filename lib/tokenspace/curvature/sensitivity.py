"""What a sampled token changes: the top token swapped for the runner-up, and what comes after.

The divergence is the Jensen–Shannon one between the model's next-token distributions after either
token, in nats: 0 when the swap makes no difference, log 2 when the two futures share nothing.
"""

from collections.abc import Sequence
from dataclasses import replace

import pandas as pd
import torch
from jaxtyping import Float, Float64
from torch import Tensor

from tokenspace.curvature.connection import curvature
from tokenspace.curvature.generation import Reading, read
from tokenspace.curvature.reader import Reader
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
def swap_divergence(
    reader: Reader, reading: Reading, *, tokens: int = ONE_STEP
) -> Float64[Tensor, " N"]:
    """Divergence after the top token against after the runner-up, at each point of a reading.

    Prefixes of equal length run together, so nothing is padded. Points keep their order.
    """
    points, device = reading.points, reader.model.device
    text, position = reading.text[points.kept].cpu(), reading.position[points.kept].cpu()  # (N,)
    divergence = torch.zeros(len(points), dtype=torch.float64)
    for length in position.unique().tolist():
        at = (position == length).nonzero().flatten()
        for rows in at.split(max(1, tokens // (2 * (length + 2)))):
            prefix = torch.tensor([reading.ids[i][: length + 1] for i in text[rows].tolist()])
            prefix = prefix.to(device)  # (rows, length + 1)
            first, second = (
                _next_logits(reader, torch.cat([prefix, top[rows, None].to(device)], dim=1))
                for top in (points.top1, points.top2)
            )
            divergence[rows] = jensen_shannon(first, second).cpu()
    return divergence


def _next_logits(reader: Reader, ids: Tensor) -> Tensor:
    logits = reader.model(input_ids=ids, logits_to_keep=1, use_cache=False).logits
    return logits[:, -1]


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
