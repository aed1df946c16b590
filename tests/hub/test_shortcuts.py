"""Approximate neighbours and quantized rows, against what is exact or known."""

import pytest
import torch

from tokenspace.errors import ParameterError
from tokenspace.hub import approximate, gaussian, nearest, recall, requantize

ROWS = gaussian(1500, 12, seed=0).float()
EXACT = nearest(ROWS)


@pytest.mark.parametrize("index", ["Flat", "IVF8,Flat"])
def test_an_index_that_searches_everything_is_exact(index):
    settings = ["nprobe=8"] if "IVF" in index else [""]
    (found,) = approximate(ROWS, index, settings)
    assert torch.equal(found.indices, EXACT.indices)
    assert torch.allclose(found.distances, EXACT.distances, rtol=1e-12)
    assert recall(found, EXACT) == 1


def test_an_index_that_searches_less_finds_less_and_never_nearer():
    few, many = approximate(ROWS, "IVF64,Flat", ["nprobe=1", "nprobe=16"])
    assert recall(few, EXACT) < recall(many, EXACT) <= 1
    assert (few.r1 >= EXACT.r1[few.queries] * (1 - 1e-12)).all()
    assert (few.r2 >= few.r1).all()
    assert not (few.indices == few.queries[:, None]).any()


def test_queries_with_too_few_neighbours_are_left_out():
    lonely = torch.cat([ROWS, torch.full((1, 12), 1e3)])  # a cell of its own
    (found,) = approximate(lonely, "IVF8,Flat", ["nprobe=1"])
    assert 1500 not in found.queries
    assert found.distances.isfinite().all()


def test_some_queries_are_as_all_of_them():
    at = torch.arange(0, 1500, 7)
    (some,) = approximate(ROWS, "HNSW8", ["efSearch=32"], queries=at)
    (again,) = approximate(ROWS, "HNSW8", ["efSearch=32"], queries=at)
    assert torch.equal(some.queries, at)
    assert torch.equal(some.indices, again.indices)
    assert recall(some, EXACT) > 0.9


@pytest.mark.parametrize(("kind", "levels"), [("Q8_0", 127), ("Q5_0", 15), ("Q4_0", 7)])
def test_a_block_is_rounded_to_its_largest_over_the_levels(kind, levels):
    rows = gaussian(20, 64, seed=1).float()
    step = rows.reshape(20, 2, 32).abs().amax(2) / levels
    error = (requantize(rows, kind) - rows).reshape(20, 2, 32).abs().amax(2)
    assert (error <= 1.01 * step).all()
    assert (error > 0).all()


@pytest.mark.parametrize(
    ("width", "kind", "message"),
    [(50, "Q8_0", "blocks of 32 numbers; rows of 50"), (64, "Q9_9", "can't write 'Q9_9'; try Q8_0"),
     (256, "IQ2_XXS", "can't write 'IQ2_XXS'")],
)  # fmt: skip
def test_what_cannot_be_stored_is_refused(width, kind, message):
    with pytest.raises(ParameterError, match=message):
        requantize(torch.zeros(3, width), kind)
