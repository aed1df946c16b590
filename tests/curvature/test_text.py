"""A text of one's own, and its points in words: against the model itself and the closed form."""

import json
import math
from pathlib import Path

import numpy as np
import pytest
import torch
from tests.curvature.tiny import WORDS, gpt2, llama, tokenizer
from typer.testing import CliRunner

from tokenspace import curvature as cv
from tokenspace.cli import app
from tokenspace.errors import ParameterError


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model of nine words, as a reader would have saved it."""
    path = tmp_path_factory.mktemp("model")
    llama().save_pretrained(path)
    tokenizer().save_pretrained(path)
    return path


def test_a_sentence_of_ones_own(folder: Path) -> None:
    words = ["curvature", "the cat sat", "--model", str(folder), "--json", "--device", "cpu"]
    done = CliRunner().invoke(app, words)
    assert done.exit_code == 0, done.stderr
    told = json.loads(done.stdout)
    assert told["tokens"] == ["<s>", "the", "cat", "sat"]
    assert [point["next"] for point in told["points"]] == ["the", "cat", "sat", None]
    ids = [WORDS.index(word) for word in told["tokens"]]
    for point in told["points"]:
        out = llama()(torch.tensor([ids[: point["position"] + 1]]))  # without our code
        p = out.logits[0, -1].detach().double().softmax(-1).numpy()
        one, two = np.argsort(-p)[:2]
        assert (point["first"], point["second"]) == (WORDS[one], WORDS[two])
        assert point["p1"] == pytest.approx(p[one], rel=1e-4)
        assert point["p2"] == pytest.approx(p[two], rel=1e-4)
        assert point["q"] == pytest.approx(4 * p[one] * p[two], rel=1e-4)
        assert point["entropy"] == pytest.approx(-(p * np.log(p)).sum(), rel=1e-4)


def test_the_table_shows_every_point(folder: Path) -> None:
    done = CliRunner().invoke(app, ["curvature", "the cat", "--model", str(folder)])
    assert done.exit_code == 0, done.stderr
    for word in ("3 tokens", "‖R‖", "the", "cat", "time"):
        assert word in done.stdout


def test_tokens_that_the_model_adds_are_its_likeliest() -> None:
    model = gpt2()
    told = cv.read_sentence(cv.reader_of(model, tokenizer()), "the cat", more=3)
    assert len(told["tokens"]) > 3
    for point in told["points"][2:-1]:
        assert point["next"] == point["first"]


def test_a_text_that_cannot_be_read_is_refused_without_a_model_where_it_can_be() -> None:
    for text, said in ((" ", "the text is blank"), ("cat \ud800", "character 5 .* U\\+D800")):
        with pytest.raises(ParameterError, match=said):
            cv.check_text(text)
        with pytest.raises(ParameterError, match=said):
            cv.read_sentence(cv.reader_of(gpt2(), tokenizer()), text)
    cv.check_text("猫 🐈")
    with pytest.raises(ParameterError, match="beyond the model's window of 64"):
        cv.read_sentence(cv.reader_of(gpt2(), tokenizer()), "cat " * 70)


def test_a_model_that_cannot_be_read_is_said_without_a_traceback(tmp_path: Path) -> None:
    llama().save_pretrained(tmp_path)
    for model, said in (
        (tmp_path / "none", ["no such file, folder or packaged table"]),
        (tmp_path, ["holds no tokenizer", "tokenizer.save_pretrained(folder)"]),
    ):
        done = CliRunner().invoke(app, ["curvature", "the cat", "--model", str(model)])
        assert done.exit_code == 1
        assert all(words in done.stderr for words in said)
        assert 'File "' not in done.stderr


# --- points in words

TEXT = "the cat sat on the mat, a dog, the dog and one more dog"


def test_points_are_told_in_words_with_the_geometry_of_the_vectors() -> None:
    reader = cv.untrained_reader([TEXT], seed=3)
    reading = cv.read(reader, cv.encode(reader, [TEXT], bos=True))
    points, R = reading.points, cv.curvature(reading.points).dense()
    told = cv.describe_points(reading, reader.tokenizer)
    words = [reader.tokenizer.decode([token]) for token in reading.ids[0]]
    assert [p.after for p in told] == words
    assert [p.next for p in told] == [*words[1:], None]
    assert [p.position for p in told] == list(range(len(words)))
    for i, point in enumerate(told):
        v = torch.stack([points.v1[i], points.v2[i]])
        a, b = v / v.norm(dim=1, keepdim=True)
        inside = v.T @ torch.linalg.lstsq(v.T, points.z[i][:, None]).solution[:, 0]
        assert math.isclose(point.angle, math.acos(float(a @ b)), rel_tol=1e-9)
        assert math.isclose(point.across, float(inside @ (a - b) / (a - b).norm()), abs_tol=1e-9)
        assert math.isclose(point.along, float(inside @ (a + b) / (a + b).norm()), abs_tol=1e-9)
        size = float((R[i].square().sum() / 2).sqrt())
        assert math.isclose(point.norm, size, rel_tol=1e-9)
        assert math.isclose(math.hypot(point.linear, point.quadratic), size, rel_tol=1e-9)
        assert math.isclose(point.q, 4 * point.p1 * point.p2)


class Words:
    """A tokenizer of given words, or of given bytes, which stand for a letter together."""

    def __init__(self, *words: str | bytes) -> None:
        self.words = [word if isinstance(word, bytes) else word.encode() for word in words]

    def decode(self, ids: list[int]) -> str:
        return b"".join(self.words[i] for i in ids).decode(errors="replace")

    def convert_ids_to_tokens(self, token: int) -> str:
        return f"piece{token}"


@pytest.mark.parametrize(
    ("word", "seen"),
    [
        (" the", " the"),
        ("\n\n", "↵↵"),
        ("  ", "␣␣"),
        ("", "⟨piece0⟩"),
        ("\N{REPLACEMENT CHARACTER}", "⟨piece0⟩"),
        ("a\N{ZERO WIDTH SPACE}b", "a⟨U+200B⟩b"),
        ("\N{NO-BREAK SPACE}", "⟨U+00A0⟩"),
        ("<|endoftext|>", "<|endoftext|>"),
    ],
)
def test_what_cannot_be_seen_is_named(word: str, seen: str) -> None:
    assert cv.readable(Words(word), 0) == seen


@pytest.mark.parametrize("text", ["猫が座る", "سلام", "good 🐈!", "naïve"])
def test_a_letter_in_pieces_is_shown_with_its_last_piece(text: str) -> None:
    pieces = Words(*(bytes([byte]) for byte in text.encode()))
    shown = [cv.readable(pieces, k, range(k)) for k in range(len(pieces.words))]
    assert "".join(word for word in shown if "piece" not in word).replace("␣", " ") == text
    assert len([word for word in shown if "piece" not in word]) == len(text)
