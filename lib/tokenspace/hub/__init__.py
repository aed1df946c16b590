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
from tokenspace.hub.detection import Hub, ball, lengths, reflection, valley
from tokenspace.hub.dimension import (
    Estimate,
    censored,
    exponential_check,
    facco,
    lid,
    lid_harmonic,
    lid_null,
    limit,
    log_ratios,
    median,
    mle,
    survival,
)
from tokenspace.hub.effect import HubEffect, Removal, detect, judge, removal
from tokenspace.hub.neighbours import Neighbours, nearest, nearest_prefixes
from tokenspace.hub.planted import (
    bend,
    cube,
    gaussian,
    manifold,
    neighbour_cosines,
    plant,
    sphere,
    swiss_roll,
    torus,
)
from tokenspace.hub.reading import Reading, Values, earliest, read_dimension
