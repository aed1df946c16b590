"""The small chess transformer: its tokens, its training by a seed, its file and its hash."""

import subprocess

import chess
import pytest
import torch
from safetensors.torch import save_file
from typer.testing import CliRunner

from tokenspace.curvature.chess.games import FACTS, Fact, games_of, random_games
from tokenspace.curvature.chess.model import (
    BOS,
    PACKAGED,
    ChessRecipe,
    batch_of,
    facts_along,
    legality,
    load_chess,
    save_chess,
    tokens_of,
    train_chess,
    untrained_chess,
)
from tokenspace.errors import ParameterError, SourceError

TINY = ChessRecipe(width=16, layers=1, heads=2, games=40, plies=12, steps=60, batch=16, rate=0.02)


@pytest.fixture(scope="module")
def trained():
    losses = []
    return train_chess(TINY, lambda step, loss: losses.append(loss)), losses


@pytest.fixture
def checkpoint(trained, tmp_path):
    path = tmp_path / "chess.safetensors"
    save_chess(trained[0], TINY, path)
    return path


def same(one, other):
    weights = other.state_dict()
    return all(torch.equal(value, weights[name]) for name, value in one.state_dict().items())


def test_tokens_replay_to_the_game():
    for game in random_games(5, 0, 40):
        first, *squares = tokens_of(game)
        board = chess.Board()
        for start, end in zip(squares[::2], squares[1::2], strict=True):
            board.push(board.find_move(start, end))  # promotes to a queen
        assert first == BOS
        assert board == game


def test_castling_is_the_kings_two_squares():
    game = games_of("1. e4 e5 2. Nf3 Nf6 3. Bc4 Bc5 4. O-O *")[0]
    assert tokens_of(game)[-2:] == [chess.E1, chess.G1]


def test_promoting_to_a_knight_is_refused():
    pgn = '[SetUp "1"]\n[FEN "7k/P7/8/8/8/8/8/7K w - - 0 1"]\n\n1. a8=N *'
    with pytest.raises(ParameterError, match="a7a8n promotes to no queen"):
        tokens_of(games_of(pgn)[0])


def test_facts_lie_beside_tokens():
    game = games_of("1. e4 e5 *")[0]
    along = facts_along(game)
    held = [{f for f, holds in zip(FACTS, row, strict=True) if holds} for row in along]
    white, black = (
        Fact(chess.Piece.from_symbol(s), q) for s, q in (("P", chess.E4), ("p", chess.E5))
    )
    assert len(along) == len(tokens_of(game))
    assert [white in row for row in held] == [False, False, True, True, True]
    assert [black in row for row in held] == [False, False, False, False, True]


def test_the_loss_leaves_out_what_fills_up():
    games = games_of("1. e4 e5 2. d4 *\n\n1. d4 *")
    model = untrained_chess(TINY)
    ids, labels = batch_of(games)
    each = [torch.tensor([tokens_of(game)]) for game in games]
    total = sum(model(input_ids=row, labels=row).loss * (row.shape[1] - 1) for row in each)
    count = sum(row.shape[1] - 1 for row in each)
    torch.testing.assert_close(model(input_ids=ids, labels=labels).loss, total / count)


def test_training_learns_and_repeats(trained):
    model, losses = trained
    assert sum(losses[-5:]) < sum(losses[:5]) - 2
    assert same(model, train_chess(TINY))
    other = ChessRecipe(**{**vars(TINY), "seed": 1, "steps": 1})
    assert not same(untrained_chess(TINY), untrained_chess(other))
    games = random_games(10, 99, 12)
    assert legality(model, games)[0] > legality(untrained_chess(TINY), games)[0]


def test_a_saved_model_comes_back(checkpoint, trained):
    model, recipe = load_chess(checkpoint)
    assert recipe == TINY
    assert same(model, trained[0])
    sums = subprocess.run(
        ["sha256sum", "-c", checkpoint.name + ".sha256"], cwd=checkpoint.parent, check=False
    )
    assert sums.returncode == 0


@pytest.mark.parametrize("missing", ["", ".sha256"])
def test_a_missing_file_is_named(checkpoint, missing):
    gone = checkpoint.with_name(checkpoint.name + missing)
    gone.unlink()
    with pytest.raises(SourceError, match=f"{gone.name} is missing"):
        load_chess(checkpoint)


def changed(raw):
    return raw[:-1] + bytes([raw[-1] ^ 1])


@pytest.mark.parametrize("change", [changed, lambda raw: raw[:-8], lambda raw: b""])
def test_a_tampered_or_cut_file_is_refused(checkpoint, change):
    checkpoint.write_bytes(change(checkpoint.read_bytes()))
    with pytest.raises(SourceError, match=r"has sha256 .*\.\.\., and .* says .*: one of them"):
        load_chess(checkpoint)
    checkpoint.with_name(checkpoint.name + ".sha256").write_text("")
    with pytest.raises(SourceError, match="says nothing"):
        load_chess(checkpoint)


def test_a_file_of_something_else_is_refused(checkpoint):
    import hashlib

    save_file({"x": torch.zeros(2)}, checkpoint, metadata={"recipe": '{"depth": 3}'})
    digest = hashlib.sha256(checkpoint.read_bytes()).hexdigest()
    checkpoint.with_name(checkpoint.name + ".sha256").write_text(digest)
    with pytest.raises(SourceError, match="no chess model of this version"):
        load_chess(checkpoint)


def test_the_script_trains_and_says_how_legal_it_is(tmp_path, monkeypatch):
    import typer

    from tokenspace.curvature.chess import train

    monkeypatch.setattr(train, "ChessRecipe", lambda: TINY)
    app = typer.Typer()
    app.command()(train.main)
    out = tmp_path / "new" / "chess.safetensors"
    result = CliRunner().invoke(app, [str(out), "--games", "4", "--steps", "2"])
    assert result.exit_code == 0, result.output
    assert "step     1  loss" in result.output
    assert load_chess(out)[1].games == 4


@pytest.mark.parametrize("seed", range(len(PACKAGED)))
def test_the_packaged_models_are_of_the_recipe_and_know_the_rules(seed):
    model, recipe = load_chess(PACKAGED[seed])
    assert recipe == ChessRecipe(seed=seed)
    assert PACKAGED[seed].stat().st_size < 1_500_000
    shares = legality(model, random_games(10, 1_000_000, recipe.plies))
    assert min(shares) > 0.85
