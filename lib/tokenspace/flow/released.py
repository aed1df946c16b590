"""Weights as LangFlow and ConvergeFlow were released, read into the models of this package."""

from pathlib import Path

from torch.nn.functional import normalize

from tokenspace.errors import SourceError
from tokenspace.flow.baselines import FlowModel
from tokenspace.flow.network import DiT
from tokenspace.flow.path import Gumbel
from tokenspace.flow.predictor import Hull
from tokenspace.nn.checkpoint import load_weights, read_tensors


def released(path: Path, heads: int = 12, weights: str = "model") -> FlowModel:
    """A model with the file's network, frozen rows and schedule, sizes taken from the file.

    Rows of E are normalized, then times √d. `weights` "ema" takes the average, where the file has
    one (the paper's evaluation takes the raw "model"). `heads` isn't in the file.
    Raises SourceError for a file that isn't of this kind.
    """
    tensors = read_tensors(path, weights)
    needed = ("vocab_embed.embedding", "proposal.loc", "proposal.scale", "sigma_map.mlp.2.bias")
    missing = [name for name in needed if name not in tensors]
    if missing:
        raise SourceError(
            f"{path} isn't a released LangFlow or ConvergeFlow model: it has no "
            f"{', '.join(missing)} among its {len(tensors)} tensors ({', '.join([*tensors][:3])})."
        )
    rows = tensors["vocab_embed.embedding"].float()
    blocks = {name.split(".")[1] for name in tensors if name.startswith("blocks.")}
    V, d = rows.shape
    conditioning = len(tensors["sigma_map.mlp.2.bias"])
    network = DiT(V, d, depth=len(blocks), heads=heads, conditioning=conditioning)
    load_weights(network, path, weights)
    E = normalize(rows, dim=-1) * d**0.5
    loc, scale = float(tensors["proposal.loc"]), float(tensors["proposal.scale"])
    return FlowModel(Hull(network, E), Gumbel(loc, scale)).eval()
