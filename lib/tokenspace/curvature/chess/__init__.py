"""Chess: games, the small model of them, and what curvature says about the board."""

from tokenspace.curvature.chess.board import (
    FACT_SQUARE,
    board_tests,
    read_board,
    square_cosines,
    square_points,
    text_points,
)
from tokenspace.curvature.chess.games import (
    FACTS,
    encode_game,
    facts,
    games_of,
    load_games,
    movetext,
    own_squares,
    random_games,
    replay,
)
from tokenspace.curvature.chess.model import (
    PACKAGED,
    ChessRecipe,
    legality,
    load_chess,
    tokens_of,
    train_chess,
    untrained_chess,
)
from tokenspace.curvature.chess.probes import (
    bag_of_tokens,
    fit_probes,
    held_out,
    kappa,
    probe_auc,
    random_planes,
    rotated_cosine,
    varied,
)
from tokenspace.curvature.chess.statistics import (
    by_square,
    cosines,
    coupling_over_games,
    coupling_ratio,
    exchanged_games,
    holm,
    king_distance,
    mantel,
    mantel_test,
    permutation_test,
)
