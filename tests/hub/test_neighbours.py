"""Exact neighbours against independent oracles: fp64 differences, scikit-learn, themselves."""

import subprocess
import sys

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from sklearn.neighbors import NearestNeighbors

from tokenspace.errors import TableError
from tokenspace.hub import lengths, mle, nearest, nearest_prefixes, read_dimension
from tokenspace.hub.neighbours import UNIT_ROUNDOFF, Prepared
from tokenspace.sources import load_table


def by_differences(rows, k):
    """Every distance in fp64, sorted by (distance, row id)."""
    far = np.linalg.norm(rows[:, None].astype(float) - rows[None].astype(float), axis=2)
    np.fill_diagonal(far, np.inf)
    order = np.argsort(far, axis=1, kind="stable")[:, :k]
    return np.take_along_axis(far, order, 1), order


def gaussian(n, d, seed=0, **kind):
    return torch.randn(n, d, generator=torch.Generator().manual_seed(seed), **kind)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.float16, torch.bfloat16])
def test_equals_every_distance_in_fp64(dtype):
    rows = gaussian(700, 12).to(dtype)
    far, order = by_differences(rows.float().numpy(), 5)
    found = nearest(rows, 5, block=128)
    np.testing.assert_array_equal(found.indices.numpy(), order)
    np.testing.assert_allclose(found.distances.numpy(), far, rtol=1e-12)


@given(
    arrays(
        np.float32,
        st.tuples(st.integers(5, 30), st.integers(1, 4)),
        elements=st.integers(-3, 3).map(float),
    ),
    st.integers(1, 3),
    st.integers(2, 16),
)
@settings(max_examples=60, deadline=None)
def test_ties_and_duplicates_go_to_the_lower_id_at_every_block_size(rows, k, block):
    if len(np.unique(rows, axis=0)) < 3:
        return
    far, order = by_differences(rows, k)
    found = nearest(torch.from_numpy(rows), k, block=block)
    np.testing.assert_array_equal(found.indices.numpy(), order)
    np.testing.assert_allclose(found.distances.numpy(), far, rtol=1e-12)


def test_a_row_never_meets_itself_and_a_copy_is_at_zero():
    rows = gaussian(300, 6)
    rows[7] = rows[200]
    found = nearest(rows, 2, block=64)
    assert not (found.indices == torch.arange(300)[:, None]).any()
    assert found.indices[7, 0] == 200
    assert found.r1[7] == 0.0


@pytest.mark.parametrize("offset", [1e3, 1e5])
def test_a_far_offset_costs_no_digits(offset):
    """A plain |x|² − 2x·y + |y|² in fp32 loses every digit here."""
    rows = gaussian(500, 8) + offset
    far, order = by_differences(rows.numpy(), 2)
    found = nearest(rows)
    np.testing.assert_array_equal(found.indices.numpy(), order)
    np.testing.assert_allclose(found.distances.numpy(), far, rtol=1e-12)


def test_near_ties_below_fp32_are_settled_in_fp64():
    """400 rows within 1e-6 of four points: fp32 keys can't order them, the certificate says so."""
    centres = gaussian(4, 16, dtype=torch.float64)
    rows = centres.repeat(100, 1) + 1e-6 * gaussian(400, 16, 1, dtype=torch.float64)
    far, order = by_differences(rows.numpy(), 2)
    found = nearest(rows, block=64)
    np.testing.assert_array_equal(found.indices.numpy(), order)
    np.testing.assert_allclose(found.distances.numpy(), far, rtol=1e-9)


def test_one_extreme_row_does_not_blind_the_others():
    rows = torch.cat([gaussian(400, 8), torch.full((1, 8), 1e12)])
    _, order = by_differences(rows.numpy(), 2)
    np.testing.assert_array_equal(nearest(rows).indices.numpy(), order)


def test_queries_are_the_same_rows_of_the_whole_answer():
    rows = gaussian(900, 10)
    queries = torch.randperm(900, generator=torch.Generator().manual_seed(3))[:77]
    whole, some = nearest(rows, 4), nearest(rows, 4, queries=queries, block=50)
    assert torch.equal(some.indices, whole.indices[queries])
    assert torch.equal(some.distances, whole.distances[queries])


def test_the_answer_does_not_depend_on_the_block():
    rows = gaussian(1000, 20)
    answers = [nearest(rows, 3, block=block) for block in (17, 128, 1000, 5000)]
    for other in answers[1:]:
        assert torch.equal(answers[0].indices, other.indices)
        torch.testing.assert_close(answers[0].distances, other.distances, rtol=0, atol=1e-12)


@pytest.mark.parametrize("queries", [None, torch.arange(0, 600, 3)], ids=["all", "some"])
def test_prefixes_equal_a_search_of_each_subset(queries):
    rows = gaussian(700, 5)  # some stay out of every subset
    order = torch.randperm(600, generator=torch.Generator().manual_seed(1))
    cuts = [3, 40, 41, 300, 600]
    answers = nearest_prefixes(rows, order, cuts, queries=queries)
    for cut, found in zip(cuts, answers, strict=True):
        kept = order[:cut].sort().values
        chosen = torch.ones(cut, dtype=torch.bool) if queries is None else torch.isin(kept, queries)
        alone = nearest(rows[kept])
        assert torch.equal(found.queries, kept[chosen])
        assert torch.equal(found.indices, kept[alone.indices][chosen])
        assert torch.equal(found.distances, alone.distances[chosen])


def test_minilm_against_scikit_learn_in_fp64():
    """5,000 rows of the real table, each against all 30,522."""
    rows = load_table("minilm").rows
    queries = torch.randperm(len(rows), generator=torch.Generator().manual_seed(0))[:5000]
    oracle = NearestNeighbors(n_neighbors=3, algorithm="brute").fit(rows.double().numpy())
    far, order = oracle.kneighbors(rows[queries].double().numpy())
    found = nearest(rows)
    np.testing.assert_array_equal(found.indices[queries].numpy(), order[:, 1:])
    np.testing.assert_allclose(found.distances[queries].numpy(), far[:, 1:], rtol=1e-9)


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda: nearest(gaussian(5, 2), 5), "k = 5 neighbours need at least 6 rows, got 5"),
        (lambda: nearest(gaussian(5, 2), 0), "k = 0 neighbours"),
        (lambda: nearest(gaussian(5, 2), queries=torch.tensor([9])), r"outside 0\.\.4: \[9\]"),
        (
            lambda: nearest_prefixes(gaussian(5, 2), torch.arange(5), [5, 4]),
            r"cuts must ascend .* got \[5, 4\]",
        ),
        (lambda: nearest_prefixes(gaussian(5, 2), torch.arange(5), [2, 5]), "got 2"),
        (lambda: nearest(torch.tensor([[0.0], [1.0], [float("nan")]])), "2"),
    ],
)
def test_what_it_refuses(call, says):
    with pytest.raises(TableError, match=says):
        call()


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
def test_a_gpu_gives_the_same_rows():
    rows = gaussian(20_000, 64)
    here, there = nearest(rows), nearest(rows, device="cuda")
    assert torch.equal(here.indices, there.indices)
    assert torch.equal(here.distances, there.distances)


def test_certificate_bound_covers_the_observed_rounding():
    """The fp32 keys are off by less than the bound that certifies them."""
    rows = gaussian(400, 300) * 3 + 1
    table = Prepared(rows)
    keys = (table.left(slice(None)) @ table.right.T).double()
    true = torch.cdist(rows.double(), rows.double()).square() / 2 / table.scale**2
    gamma = (300 + 8) * UNIT_ROUNDOFF
    bound = gamma * (table.length[:, None] + table.length[None]).square() / 2
    assert ((keys - true).abs() <= bound).all()


def test_memory_stays_near_the_table():
    """In a process of its own: a self-join holds the table, its prepared copy, and little else."""
    code = """
import resource, torch
from tokenspace.hub import nearest
peak = lambda: resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
nearest(torch.randn(2000, 256))
rows = torch.randn(12_000, 1_500)
before = peak()
nearest(rows)
print((peak() - before) / rows.nbytes)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert float(done.stdout) < 6


@pytest.mark.parametrize(
    ("size", "dtype"),
    [(2.0**-660, torch.float64), (2.0**600, torch.float64), (1e30, torch.float32)],
)
def test_rows_whose_squares_leave_the_range_are_read_as_others_are(size, dtype):
    rows = gaussian(300, 5).to(dtype)
    usual, other = nearest(rows), nearest(rows * size)
    assert torch.equal(other.indices, usual.indices)
    torch.testing.assert_close(other.distances / size, usual.distances, rtol=1e-6, atol=0)
    cut = nearest_prefixes(rows * size, torch.arange(300), [300])[0]
    assert torch.equal(cut.distances, other.distances)
    assert read_dimension(rows * size).full.mle == pytest.approx(mle(usual.r1, usual.r2).value)
    torch.testing.assert_close(lengths(rows * size) / size, lengths(rows), rtol=1e-6, atol=0)
