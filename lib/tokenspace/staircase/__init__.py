"""Part I: where a token's direction comes from, context order by context order."""

from tokenspace.staircase.alignment import (
    alignment,
    best_order,
    cosine_gram,
    one_minus_mse,
    pairs,
    partial_alignment,
    probe,
    project,
    span,
    variance_share,
)
from tokenspace.staircase.decoder import Decoder, DecoderShape
from tokenspace.staircase.history import History, log_steps
from tokenspace.staircase.language import CharGPT, attention_paths, train_text, twin_cosine
from tokenspace.staircase.models import FFN, Attention, Scaled, activation, derivatives, runs
from tokenspace.staircase.pretraining import DecoderSettings, TextSignatures, pretrain
from tokenspace.staircase.pythia import next_token_alignment, read_snapshots, revisions
from tokenspace.staircase.signatures import (
    additive_prediction,
    context_ids,
    fourier,
    label_ids,
    label_signature,
    pure,
    signature_tensor,
)
from tokenspace.staircase.tasks import (
    BLOCKS,
    LAWS,
    Task,
    arithmetic,
    best_loss,
    factorial,
    label_law,
    length_three,
    minmax,
    modular,
    parity,
    pointer,
    prescribed,
)
from tokenspace.staircase.text import bpe, characters, clone, model_tokens, twins, words_of
from tokenspace.staircase.text_signatures import (
    attention_path_signature,
    followers,
    innovation,
    most_frequent,
    n_gram_counts,
    nearest_category,
    order_score,
    prefix_bag_signature,
    text_signature,
    word_signature,
)
from tokenspace.staircase.theory import (
    attention_terms,
    cosine,
    lowest_degree,
    order_terms,
    predicted,
    relative_error,
    uniform,
    velocity,
)
from tokenspace.staircase.training import Settings, block_losses, train
