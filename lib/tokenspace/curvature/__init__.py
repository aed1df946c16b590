"""Part IV: sampling curvature of the two likeliest tokens; chess lies in a package of its own."""

from tokenspace.curvature.connection import (
    curvature,
    curvature_on,
    frame,
    one_form,
    tangent,
    wedge,
)
from tokenspace.curvature.points import assemble, points_of
from tokenspace.curvature.reader import Reader, load_reader, read, reader_of, untrained_reader
from tokenspace.curvature.softmax import charge, mean, sampling_error
from tokenspace.curvature.statistics import (
    READOUTS,
    interval_over_texts,
    rank_correlation,
    shift_null,
    swap_table,
)
from tokenspace.curvature.text import (
    check_text,
    continue_greedily,
    describe_points,
    encode,
    read_sentence,
    readable,
)
from tokenspace.curvature.transport import (
    arc,
    circle,
    curvature_from_clover,
    curvature_from_plaquette,
    plaquette,
    transport,
)
