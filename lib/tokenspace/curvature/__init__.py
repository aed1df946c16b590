"""Part IV: sampling curvature of the two likeliest tokens; chess lies in a package of its own."""

from tokenspace.curvature.companion import companion_curvature, companion_form
from tokenspace.curvature.connection import (
    Curvature,
    curvature,
    curvature_norm,
    curvature_on,
    live_curvature,
    one_form,
)
from tokenspace.curvature.frames import Frame, apply_bivector, frame, tangent, wedge
from tokenspace.curvature.generation import Reading, continue_greedily, encode, read
from tokenspace.curvature.points import REASONS, Points, assemble, join, points_of
from tokenspace.curvature.reader import Reader, load_reader, reader_of, untrained_reader
from tokenspace.curvature.sensitivity import READOUTS, jensen_shannon, swap_divergence, swap_table
from tokenspace.curvature.softmax import charge, covariance_times, entropy, mean, sampling_error
from tokenspace.curvature.statistics import interval_over_texts, rank_correlation, shift_null
from tokenspace.curvature.text import check_text, describe_points, read_sentence, readable
from tokenspace.curvature.transport import (
    Path,
    arc,
    cap_area,
    circle,
    curvature_from_clover,
    curvature_from_plaquette,
    plaquette,
    rotation_angle,
    sampling_form,
    sphere_form,
    transport,
    wilson_loop,
)
