"""Opened points: their plane against least squares, their curvature against the dense matrix."""

import math

import pytest
import torch

from tokenspace.curvature import curvature, encode, open_points, read, readable, untrained_reader

TEXTS = ["the cat sat on the mat", "a dog, the dog and one more dog"]


@pytest.fixture(scope="module")
def found():
    reader = untrained_reader(TEXTS, seed=3)
    reading = read(reader, encode(reader, TEXTS, bos=True))
    return reader, reading, [open_points(reading, reader.tokenizer, text) for text in (0, 1)]


def test_every_token_but_the_first_is_opened_in_its_own_text(found):
    reader, reading, opened = found
    for ids, points in zip(reading.ids, opened, strict=True):
        words = [reader.tokenizer.decode([token]) for token in ids]
        assert [p.after for p in points] == words[:-1]
        assert [p.follows for p in points] == words[1:]
        assert [p.position for p in points] == list(range(len(ids) - 1))


def test_the_plane_and_the_norms_are_those_of_the_vectors(found):
    _, reading, opened = found
    points, R = reading.points, curvature(reading.points).dense()
    chosen = [
        i
        for i in range(len(points))
        if int(reading.position[i]) + 1 < len(reading.ids[int(reading.text[i])])
    ]
    for i, point in zip(chosen, [p for text in opened for p in text], strict=True):
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
    """A tokenizer of given words."""

    def __init__(self, *words):
        self.words = words

    def decode(self, ids):
        return self.words[ids[0]]

    def convert_ids_to_tokens(self, token):
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
def test_what_cannot_be_seen_is_named(word, seen):
    assert readable(Words(word), 0) == seen
