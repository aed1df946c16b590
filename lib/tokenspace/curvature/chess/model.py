"""A small chess transformer whose tokens are squares: a game is BOS, from, to, from, to, ...

It is our addition: no off-the-shelf model of this size knows a board. Two trainings come with the
package, by the seeds 0 and 1: a safetensors file each, beside which its sha256 lies.
`python -m tokenspace.curvature.chess.train` writes both files anew.
"""

import hashlib
import json
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import chess
import torch
from jaxtyping import Bool, Float, Int64
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor

from tokenspace.curvature.chess.games import facts, random_games, replay
from tokenspace.errors import ParameterError, SourceError
from tokenspace.files import placing
from tokenspace.nn.checkpoint import Checkpoint, load_weights, named
from tokenspace.nn.settings import Settings, identity_of
from tokenspace.nn.train import Run, train

BOS = 64  # after the 64 squares
PACKAGED = [Path(__file__).with_name(f"chess-{seed}.safetensors") for seed in (0, 1)]
IGNORED = -100  # a label that transformers leaves out of the loss


@dataclass(frozen=True)
class ChessRecipe:
    """What makes a chess model, all of it: shape, games (drawn with seed + 1) and training."""

    width: int = 96
    layers: int = 3
    heads: int = 4
    games: int = 20_000
    plies: int = 40
    greed: float = 0.0
    steps: int = 8000
    batch: int = 32
    rate: float = 2e-3
    seed: int = 0


def tokens_of(game: chess.Board) -> list[int]:
    """A game in tokens: BOS, then the from and to square of each move (a castling king's two).

    Raises ParameterError for a pawn that becomes anything but a queen: squares can't tell it.

    >>> from tokenspace.curvature.chess.games import games_of
    >>> tokens_of(games_of("1. e4 *")[0])
    [64, 12, 28]
    """
    for move in game.move_stack:
        if move.promotion not in (None, chess.QUEEN):
            raise ParameterError(f"{move.uci()} promotes to no queen, which two squares can't say.")
    return [BOS, *(s for move in game.move_stack for s in (move.from_square, move.to_square))]


def facts_along(game: chess.Board) -> Bool[Tensor, "L F"]:
    """The facts of the position at every token of a game: those before the move being made.

    >>> from tokenspace.curvature.chess.games import games_of
    >>> facts_along(games_of("1. e4 *")[0])[:, -1].tolist()  # White to move: at BOS, at e2
    [True, True, False]
    """
    before = [facts(board) for board, _ in replay(game)]
    return torch.stack([*(row for row in before for _ in range(2)), facts(game)])


def untrained_chess(recipe: ChessRecipe) -> Any:
    """The model of a recipe before training: a Llama of transformers over 65 tokens.

    >>> sum(p.numel() for p in untrained_chess(ChessRecipe()).parameters()) // 10_000  # 0.34 M
    34
    """
    from transformers import LlamaConfig, LlamaForCausalLM  # takes seconds to import

    config = LlamaConfig(
        vocab_size=BOS + 1,
        hidden_size=recipe.width,
        intermediate_size=8 * recipe.width // 3,
        num_hidden_layers=recipe.layers,
        num_attention_heads=recipe.heads,
        bos_token_id=BOS,
        eos_token_id=None,
        pad_token_id=None,
        tie_word_embeddings=False,
    )
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(recipe.seed)
        return LlamaForCausalLM(config).eval()


def train_chess(
    recipe: ChessRecipe,
    report: Callable[[int, float], None] = lambda step, loss: None,
    *,
    checkpoint: Path | None = None,
    device: str = "cpu",
) -> Any:
    """Train a recipe's model on its games by AdamW with a one-cycle rate; `report` sees the loss.

    The games and the order of batches are the same on every `device`; the model comes back to the
    CPU. With a `checkpoint` the training goes on from where it was left.

    >>> tiny = ChessRecipe(width=8, layers=1, heads=1, games=4, plies=4, steps=2, batch=2)
    >>> train_chess(tiny).config.hidden_size
    8
    """
    games = random_games(recipe.games, recipe.seed + 1, recipe.plies, recipe.greed)
    ids, labels = (each.to(device) for each in batch_of(games))
    model = untrained_chess(recipe).train().to(device)
    generator = torch.Generator().manual_seed(recipe.seed)
    drawn = torch.stack(
        [torch.randint(len(ids), (recipe.batch,), generator=generator) for _ in range(recipe.steps)]
    ).to(device)  # (steps, batch)
    settings = Settings(
        recipe.steps, recipe.rate, schedule="one-cycle", weight_decay=0.01, clip=1.0,
        seed=recipe.seed, fused=False,  # as the packaged models were trained, to the bit
    )  # fmt: skip

    def loss(rows: Int64[Tensor, " batch"]) -> Float[Tensor, ""]:
        return model(input_ids=ids[rows], labels=labels[rows], use_cache=False).loss

    def log(run: Run) -> dict[str, Tensor]:
        report(run.step - 1, float(run.mean_loss))
        return {"loss": run.mean_loss}

    keep = Checkpoint.at(checkpoint, identity_of(model, str(recipe), named(ids), settings))
    every = range(1, recipe.steps + 1)
    train(model, lambda step: [drawn[step]], loss, settings, log=log, logged=every, checkpoint=keep)
    return model.eval().cpu()


def batch_of(games: Sequence[chess.Board]) -> tuple[Int64[Tensor, "N L"], Int64[Tensor, "N L"]]:
    """Token ids of games, and labels that leave out what fills up the shorter ones.

    >>> from tokenspace.curvature.chess.games import games_of
    >>> batch_of(games_of("1. e4 e5 *\\n\\n1. d4 *"))[1][1].tolist()
    [64, 11, 27, -100, -100]
    """
    rows = [torch.tensor(tokens_of(game)) for game in games]
    ids = torch.nn.utils.rnn.pad_sequence(rows, batch_first=True)
    labels = torch.nn.utils.rnn.pad_sequence(rows, batch_first=True, padding_value=IGNORED)
    return ids, labels


@torch.no_grad()
def legality(model: Any, games: Sequence[chess.Board]) -> tuple[float, float]:
    """Share of moves whose likeliest from square can move, and whose likeliest to square, given
    the game's own from square, can be reached.

    >>> legality(untrained_chess(ChessRecipe(layers=1)), random_games(1, 0, 4))[0] <= 1
    True
    """
    found: list[tuple[bool, bool]] = []
    for game in games:
        guess = model(torch.tensor([tokens_of(game)])).logits[0].argmax(-1).tolist()
        for k, (board, move) in enumerate(replay(game)):
            legal = {(m.from_square, m.to_square) for m in board.legal_moves}
            can_move = guess[2 * k] in {start for start, _ in legal}
            found.append((can_move, (move.from_square, guess[2 * k + 1]) in legal))
    from_share, to_share = torch.tensor(found).double().mean(0).tolist()
    return from_share, to_share


def save_chess(model: Any, recipe: ChessRecipe, path: Path) -> str:
    """Write the weights with their recipe, and beside them the file's sha256, which is returned.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     path = Path(folder) / "chess.safetensors"
    ...     recipe = ChessRecipe(width=8, layers=1, heads=1)
    ...     digest = save_chess(untrained_chess(recipe), recipe, path)
    ...     load_chess(path)[1] == recipe
    True
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    weights = {name: value.contiguous() for name, value in model.state_dict().items()}
    with placing(_sums(path)) as sums, placing(path) as part:
        save_file(weights, part, metadata={"recipe": json.dumps(asdict(recipe))})
        digest = hashlib.sha256(part.read_bytes()).hexdigest()
        sums.write_text(f"{digest}  {path.name}\n")  # as `sha256sum -c` reads it
    return digest


def load_chess(path: Path) -> tuple[Any, ChessRecipe]:
    """The model in a file that `save_chess` wrote, and its recipe.

    Raises SourceError when the file or its sha256 is missing, or when they disagree.

    >>> load_chess(Path("nowhere.safetensors"))
    Traceback (most recent call last):
    tokenspace.errors.SourceError: No chess model at nowhere.safetensors...
    """
    again = "Copy both files again, or train it: python -m tokenspace.curvature.chess.train PATH"
    for file in (path, _sums(path)):
        if not file.is_file():
            raise SourceError(f"No chess model at {path}: {file.name} is missing. {again}")
    wanted = _sums(path).read_text().split()[:1]
    found = hashlib.sha256(path.read_bytes()).hexdigest()
    if [found] != wanted:
        raise SourceError(
            f"{path} ({path.stat().st_size:,} bytes) has sha256 {found[:12]}..., and "
            f"{_sums(path).name} says {(wanted or ['nothing'])[0][:12]}: one of them was changed "
            f"or cut short. {again}"
        )
    try:
        with safe_open(path, "pt") as file:
            recipe = ChessRecipe(**json.loads((file.metadata() or {})["recipe"]))
        model = untrained_chess(recipe)
        load_weights(model, path)
    except (SafetensorError, SourceError, KeyError, TypeError, ValueError) as error:
        raise SourceError(
            f"{path} holds no chess model of this version: {error}. {again}"
        ) from error
    return model, recipe


def _sums(path: Path) -> Path:
    return path.with_name(path.name + ".sha256")
