"""Games as text: where a square is named, and which square a candidate would name."""

import chess
import pytest
import torch
from tests.curvature.draws import random_points
from tokenizers import Regex, Tokenizer, models, pre_tokenizers
from transformers import (
    GPT2Config,
    GPT2LMHeadModel,
    LlamaConfig,
    LlamaForCausalLM,
    PreTrainedTokenizerFast,
)

from tokenspace.curvature.chess.board import cosines
from tokenspace.curvature.chess.games import facts, games_of, random_games, replay
from tokenspace.curvature.chess.points import square_cosines, text_points
from tokenspace.curvature.chess.reading import read_board
from tokenspace.curvature.chess.text import SQUARE, encode_game, movetext, named_square
from tokenspace.curvature.connection import Curvature, curvature
from tokenspace.curvature.reader import reader_of
from tokenspace.curvature.untrained import untrained_reader
from tokenspace.errors import ParameterError

SIGNS = ["?", "<s>", *" .+#=0123456789abcdefghBKNOQRx-"]


def llama():
    sizes = {"hidden_size": 16, "intermediate_size": 16, "num_attention_heads": 2}
    return LlamaForCausalLM(LlamaConfig(num_hidden_layers=1, vocab_size=len(SIGNS), **sizes))


def gpt2():
    sizes = {"n_embd": 16, "n_layer": 1, "n_head": 2}
    return GPT2LMHeadModel(GPT2Config(vocab_size=len(SIGNS), tie_word_embeddings=False, **sizes))


@pytest.fixture(scope="module", params=[llama, gpt2])
def letters(request):
    """Models that read single characters, as most do with the squares of chess."""
    tokenizer = Tokenizer(models.WordLevel({sign: i for i, sign in enumerate(SIGNS)}, "?"))
    tokenizer.pre_tokenizer = pre_tokenizers.Split(Regex("."), "isolated")
    wrapped = PreTrainedTokenizerFast(tokenizer_object=tokenizer, bos_token="<s>", unk_token="?")
    torch.manual_seed(0)
    model = request.param()
    ranks = torch.tensor([sign in set("12345678") for sign in SIGNS])
    model.lm_head.weight.data[~ranks] = 0  # so that the likeliest tokens are mostly ranks
    return reader_of(model, wrapped)


@pytest.mark.parametrize("game", random_games(5, 0, 40, greed=1.0))
def test_a_game_can_be_read_back_from_its_text(game):
    text, moves = movetext(game)
    assert games_of(text)[0].move_stack == game.move_stack
    assert all(text[place:].startswith(san) for place, san in moves)


def test_the_rank_comes_right_after_the_point(letters):
    game = random_games(1, 1, 40, greed=1.0)[0]
    ids, names = encode_game(letters, game)
    _, moves = movetext(game)
    assert ids[0] == letters.tokenizer.bos_token_id
    for name in names:
        place, san = moves[name.ply]
        end = place + list(SQUARE.finditer(san))[-1].end()
        assert name.position == end - 1  # BOS, then a token for each character
        assert named_square(letters, name.before, ids[name.position + 1]) == (
            game.move_stack[name.ply].to_square
        )


def test_castling_names_no_square(letters):
    game = games_of("1. e4 e5 2. Nf3 Nf6 3. Bc4 Bc5 4. O-O *")[0]
    assert [name.ply for name in encode_game(letters, game)[1]] == list(range(6))


@pytest.mark.parametrize(
    ("before", "sign", "square"),
    [("Nf", "3", "f3"), ("Nbd", "7", "d7"), ("R1e", "2", "e2"), ("exd", "8", "d8")],
)
def test_a_candidate_completes_its_square(letters, before, sign, square):
    token = letters.tokenizer.convert_tokens_to_ids(sign)
    assert named_square(letters, before, token) == chess.parse_square(square)


@pytest.mark.parametrize("sign", ["9", "+", "d", " "])
def test_other_candidates_complete_none(letters, sign):
    assert named_square(letters, "Nf", letters.tokenizer.convert_tokens_to_ids(sign)) == -1


def test_a_tokenizer_that_cannot_write_chess_is_refused():
    with pytest.raises(ParameterError, match=r"can't write chess: '1\. e4' comes back as"):
        encode_game(untrained_reader(["hello"]), games_of("1. e4 *")[0])


def test_points_carry_the_position_before_their_move(letters):
    games = random_games(3, 2, 20)
    at = text_points(letters, games)
    assert 0 < len(at) <= 60
    before = [[facts(board) for board, _ in replay(game)] for game in games]
    for game, place, holds in zip(at.game.tolist(), at.place.tolist(), at.holds, strict=True):
        assert torch.equal(holds, before[game][place])
    files = at.squares % 8  # the file is written, so that only the rank is open
    assert torch.equal(files[:, 0], files[:, 1])
    some = at[at.game == 1]
    assert set(some.game.tolist()) <= {1}
    assert len(some.points) == len(some)


def test_means_by_matrix_and_by_pairs_agree():
    R = curvature(random_points(400, 5))
    label = torch.arange(400) % 63  # one square never comes up
    found = square_cosines(R, label)
    expected = cosines(R.gram_of_means(label, 64).numpy())
    torch.testing.assert_close(*map(torch.from_numpy, (found, expected)), equal_nan=True)


def test_few_points_are_read_by_pairs():
    R: Curvature = curvature(random_points(70, 5))
    assert square_cosines(R, torch.arange(70) % 64).shape == (64, 64)


def test_too_few_games_are_said(letters):
    at = text_points(letters, random_games(3, 2, 10))
    with pytest.raises(ParameterError, match=r"No fact holds at 500 of the .* read more games"):
        read_board(at, least=500)
