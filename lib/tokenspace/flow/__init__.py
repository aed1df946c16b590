"""Part III: ConvergeFlow, a flow that lands on tokens, checked against exact answers."""

from tokenspace.flow.exact import MarkovMixture
from tokenspace.flow.judges import fit_gumbel, information_density, nll_bound, squared_errors
from tokenspace.flow.models import build
from tokenspace.flow.path import (
    Gumbel,
    corrupt,
    ddim_step,
    follow,
    linear,
    loss_weight,
    preserving,
    snr,
    stratified,
    time_of,
)
from tokenspace.flow.predictor import Hull, Prediction, context_free, embeddings, log_kernel
from tokenspace.flow.theory import (
    audit,
    brute_force,
    certify,
    excess_of,
    leave_one_out,
    margin,
    nearest_accuracy,
    theorem_grid,
    threshold,
)
