"""Part I: where a token's direction comes from, context order by context order."""

from tokenspace.staircase.alignment import (
    alignment,
    best_order,
    cosine_gram,
    pairs,
    partial_alignment,
    probe,
    project,
    span,
    variance_share,
)
from tokenspace.staircase.language import CharGPT, train_text
from tokenspace.staircase.models import FFN, Attention
from tokenspace.staircase.pythia import next_token_alignment, read_snapshots, revisions
from tokenspace.staircase.signatures import (
    fourier,
    label_ids,
    label_signature,
    pure,
    signature_tensor,
)
from tokenspace.staircase.tasks import (
    BLOCKS,
    LAWS,
    arithmetic,
    best_loss,
    factorial,
    length_three,
    minmax,
    modular,
    parity,
    pointer,
    prescribed,
)
from tokenspace.staircase.text import bpe, characters, clone, even_windows, model_tokens
from tokenspace.staircase.text_signatures import (
    attention_path_signature,
    followers,
    innovation,
    most_frequent,
    n_gram_counts,
    prefix_bag_signature,
    text_signature,
)
from tokenspace.staircase.training import Settings, log_steps, train
