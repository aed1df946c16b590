"""Part IV: sampling curvature, from the two most likely tokens to chess."""

from tokenspace.curvature.companion import (
    companion_curvature,
    companion_form,
    direction,
    push,
)
from tokenspace.curvature.connection import (
    Curvature,
    Frame,
    curvature,
    curvature_norm,
    curvature_on,
    frame,
    live_curvature,
    one_form,
    tangent,
    turned,
    wedge,
)
from tokenspace.curvature.holonomy import (
    Path,
    arc,
    cap_area,
    circle,
    from_clover,
    from_plaquette,
    holonomy,
    line,
    plaquette,
    reduced,
    sampling_form,
    sphere_form,
    transport,
    wilson_loop,
)
from tokenspace.curvature.points import REASONS, Points, assemble, points
from tokenspace.curvature.rotations import (
    RotationLog,
    orthogonality,
    plane_rotations,
    rotation_log,
    turned_angle,
)
from tokenspace.curvature.softmax import (
    charge,
    covariance,
    covariance_times,
    entropy,
    mean,
    sampling_error,
    top_two,
)

__all__ = [
    "REASONS",
    "Points",
    "assemble",
    "points",
]
