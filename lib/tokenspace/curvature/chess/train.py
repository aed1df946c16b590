"""Train the small chess transformer anew: python -m tokenspace.curvature.chess.train OUT."""

import time
from dataclasses import replace
from pathlib import Path

import typer

from tokenspace.curvature.chess.games import random_games
from tokenspace.curvature.chess.model import ChessRecipe, legality, save_chess, train_chess

EVERY = 100  # steps between two lines
HELD_OUT = 1_000_000  # a seed far from any recipe's


def main(
    out: Path,
    games: int = ChessRecipe.games,
    steps: int = ChessRecipe.steps,
    greed: float = ChessRecipe.greed,
    seed: int = ChessRecipe.seed,
    device: str = "cpu",
    checkpoint: Path | None = None,
) -> None:
    """Train, write OUT and OUT.sha256, and say how often its likeliest squares are legal.

    With a checkpoint, go on from where the same training was left.
    """
    recipe = replace(ChessRecipe(), games=games, steps=steps, greed=greed, seed=seed)
    start = time.monotonic()

    def report(step: int, loss: float) -> None:
        if step % EVERY == 0 or step == steps - 1:
            typer.echo(f"step {step:5d}  loss {loss:.3f}  {time.monotonic() - start:.0f} s")

    model = train_chess(recipe, report, checkpoint=checkpoint, device=device)
    digest = save_chess(model, recipe, out)
    shares = legality(model, random_games(50, HELD_OUT, recipe.plies, greed))
    typer.echo(f"{out}  sha256 {digest}  legal from {shares[0]:.3f}, to {shares[1]:.3f}")


if __name__ == "__main__":
    typer.run(main)
