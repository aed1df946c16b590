"""Part II: intrinsic dimension of embedding tables, and the hub of short rows that inflates it."""

from tokenspace.hub.capture import (
    GROUPS,
    captured,
    captured_reading,
    decompose,
    ghost,
    prefers_hub,
    token_groups,
)
from tokenspace.hub.detection import Hub, Verdict, judge, lengths, reflection, valley
from tokenspace.hub.dimension import (
    Estimate,
    censored,
    exponential_check,
    facco,
    limit,
    log_ratios,
    median,
    mle,
    survival,
)
from tokenspace.hub.local import lid, lid_harmonic, lid_null
from tokenspace.hub.neighbours import Neighbours, nearest, nearest_prefixes
from tokenspace.hub.planted import (
    bend,
    cube,
    gaussian,
    manifold,
    plant,
    sphere,
    swiss_roll,
    torus,
)
from tokenspace.hub.reading import Reading, Values, earliest, read_dimension
from tokenspace.hub.scaled import beside

__all__ = [
    "GROUPS",
    "Estimate",
    "Hub",
    "Neighbours",
    "Reading",
    "Values",
    "Verdict",
    "bend",
    "beside",
    "captured",
    "captured_reading",
    "censored",
    "cube",
    "decompose",
    "earliest",
    "exponential_check",
    "facco",
    "gaussian",
    "ghost",
    "judge",
    "lengths",
    "lid",
    "lid_harmonic",
    "lid_null",
    "limit",
    "log_ratios",
    "manifold",
    "median",
    "mle",
    "nearest",
    "nearest_prefixes",
    "plant",
    "prefers_hub",
    "read_dimension",
    "reflection",
    "sphere",
    "survival",
    "swiss_roll",
    "token_groups",
    "torus",
    "valley",
]
