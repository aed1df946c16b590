"""The reading of a whole table: MiniLM's numbers, policies, padding, and bad input."""

import json
import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from tokenspace.errors import ParameterError, TableError
from tokenspace.hub import (
    earliest,
    gaussian,
    ghost,
    lengths,
    manifold,
    mle,
    nearest,
    plant,
    read_dimension,
    sphere,
    valley,
)
from tokenspace.sources import EmbeddingTable

# --- MiniLM


def test_minilm_reads_as_published(minilm_reading):
    r = minilm_reading
    assert (r.n, r.d, r.duplicates, r.zero_rows, r.padded_rows) == (30522, 384, 0, 0, 0)
    assert r.full.mle == pytest.approx(13.60, abs=0.02)
    assert r.full.se == pytest.approx(0.11, abs=0.01)
    assert r.full.median == pytest.approx(28.2, abs=0.1)
    assert r.hub_rows == 2824
    assert r.hub_removed.mle == pytest.approx(11.51, abs=0.02)
    assert r.normalized.mle == pytest.approx(10.84, abs=0.02)
    for values, lid20 in ((r.full, 48.2), (r.hub_removed, 27.0), (r.normalized, 21.9)):
        assert values.lid20 == pytest.approx(lid20, abs=3 * values.lid20_se)
    assert not r.hub_inert
    assert r.effect.ghost == pytest.approx(13.88, abs=0.02)


def test_minilm_norms_are_bimodal_and_its_placeholders_short(minilm, minilm_reading):
    low, middle = lengths(minilm.rows).quantile(torch.tensor([0.01, 0.5], dtype=torch.float64))
    assert float(low) < valley(minilm.rows) < float(middle)
    names = [minilm.token(int(row)) for row in minilm_reading.hub.rows]
    unused = [t for t in minilm.tokens if t.startswith("[unused")]
    assert sum(t.startswith("[unused") for t in names) > 0.99 * len(unused)


def test_the_reading_is_json(minilm_reading):
    found = json.loads(json.dumps(minilm_reading.as_dict()))
    named = ("table", "n", "d", "dtype", "duplicates", "zero_rows", "padded_rows", "seconds")
    assert {*named, "full", "hub_removed", "normalized"} < set(found)
    assert {"mle", "se", "median", "lid20"} < set(found["full"])
    assert (found["hub_rows"], found["hub_inert"]) == (2824, False)


# --- the parts agree with their definitions


@pytest.fixture(scope="module")
def planted():
    """The hub stands before the core: ids of the core are not those of the table."""
    table, hub = plant(manifold(1200, 8, 256, 0.35, seed=0, length_sd=0.1), 50, 0.2, seed=0)
    return torch.cat([table[hub], table[:1200]]), torch.arange(50)


def test_each_version_is_the_reading_of_that_table(planted, read):
    table, hub = planted
    reading = read_dimension(table, controls=True)
    assert torch.isin(hub, reading.hub.rows).all()
    rho = lengths(table)
    keep = torch.ones(len(table), dtype=torch.bool)
    keep[reading.hub.rows] = False
    assert reading.full.mle == read(table)
    assert reading.hub_removed.mle == read(table[keep])
    unit = table / rho[:, None].float()
    assert reading.normalized.mle == pytest.approx(read(unit), rel=1e-6)
    longest = rho.argsort(descending=True)[reading.hub_rows :]
    assert reading.controls["longest"].mle == pytest.approx(read(table[longest]), rel=1e-9)
    assert reading.controls["random"].rows == len(table) - reading.hub_rows
    assert reading.controls["random"].mle > 0.9 * reading.full.mle
    free = nearest(table[keep])
    assert reading.effect.ghost == mle(*ghost(free.r1, free.r2, rho[keep])).value


def test_queries_are_subsampled_and_the_table_is_not(planted):
    table, _ = planted
    whole, some = read_dimension(table), read_dimension(table, queries=300, seed=5)
    assert some.full.queries == 300
    assert some.full.rows == whole.full.rows == len(table)
    assert some.hub_rows == whole.hub_rows
    assert "read at 300 of 1250 rows, neighbours among all" in some.notes
    for name in ("full", "hub_removed", "normalized"):
        one, other = getattr(whole, name), getattr(some, name)
        assert other.mle == pytest.approx(one.mle, abs=4 * other.se)


def test_a_table_without_a_hub_reads_the_same_when_it_is_removed():
    reading = read_dimension(sphere(300, 4, 0), controls=True)
    assert reading.hub_rows == 0
    assert reading.hub_inert
    assert reading.hub_removed == reading.full
    assert reading.controls == {}


# --- duplicates, zero rows, padding


def test_duplicates_are_counted_left_out_and_change_nothing():
    clean = gaussian(500, 5, seed=0)
    for copies, equal in ((1, 40), (2, 60)):
        reading = read_dimension(torch.cat([clean] + copies * [clean[:20]]))
        wanted = read_dimension(clean)
        assert reading.duplicates == equal
        assert f"{20 * copies} rows repeat an earlier one exactly and were left out" in " ".join(
            reading.notes
        )
        assert reading.full.mle == pytest.approx(wanted.full.mle, abs=1e-12)
        assert reading.normalized.mle == pytest.approx(wanted.normalized.mle, abs=1e-12)


def test_rows_equal_but_for_the_last_bits_stay_and_are_read():
    clean = gaussian(400, 5, seed=0).float()
    near = clean[:10] * (1 + 2**-23)
    reading = read_dimension(torch.cat([clean, near]))
    assert reading.duplicates == 0
    assert math.isfinite(reading.full.mle)


@given(arrays.arrays("float32", (12, 2), elements=st.sampled_from([-1.0, -0.0, 0.0, 2.0])))
def test_earliest_equal_row_by_brute_force(rows):
    table = torch.from_numpy(rows)
    expected = [min(j for j in range(12) if (rows[j] == rows[i]).all()) for i in range(12)]
    assert earliest(table).tolist() == expected
    assert earliest(table.double()).tolist() == expected


def test_zero_rows_are_counted_and_left_out_of_the_normalized_table():
    table = torch.cat([gaussian(300, 4, 0), torch.zeros(3, 4, dtype=torch.float64)])
    reading = read_dimension(table)
    assert (reading.zero_rows, reading.duplicates) == (3, 3)
    assert reading.full.rows == 301
    assert reading.normalized.rows == 300
    assert any("the zero vector has no direction" in note for note in reading.notes)


@pytest.mark.parametrize("padded", [27, 155, 411])
def test_padded_rows_are_reported_and_read_with_and_without(padded, read):
    rows = gaussian(600 + padded, 4, 0).float()
    rows[600:] *= 0.01
    table = EmbeddingTable("pythia-shaped", rows, "BF16", None, 600)
    reading = read_dimension(table)
    assert reading.padded_rows == padded
    assert reading.without_padding.rows == 600
    assert reading.without_padding.mle == pytest.approx(read(rows[:600]), rel=1e-9)
    assert f"{padded} rows beyond the tokenizer: also read without them" in reading.notes


# --- types and bad input


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
@pytest.mark.parametrize("n", [3, 4096])
def test_half_precision_is_raised_to_fp32_at_every_size_and_says_so(dtype, n):
    rows = gaussian(n, 6, 0).to(dtype)
    half, single = read_dimension(rows), read_dimension(rows.float())
    assert half.full == single.full
    assert half.normalized == single.normalized
    name = str(dtype).removeprefix("torch.")
    assert f"stored as {name}, read in fp32; distances in fp64" in half.notes
    assert not any("stored as" in note for note in single.notes)


@pytest.mark.parametrize(("value", "name"), [(math.nan, "NaN"), (math.inf, "Inf")])
def test_a_row_that_is_not_finite_is_named_before_any_distance(value, name, monkeypatch):
    rows = gaussian(500, 5, 0)
    rows[3, 2] = value
    monkeypatch.setattr("tokenspace.hub.reading.nearest", lambda *_, **__: pytest.fail("too late"))
    with pytest.raises(TableError, match=rf"1 of 500 rows are not finite .*{name}.*rows 3\."):
        read_dimension(rows)


def test_fewer_than_three_distinct_rows_are_refused():
    with pytest.raises(TableError, match="Only 2 distinct rows among 10"):
        read_dimension(torch.tensor([[1.0, 2.0], [3.0, 4.0]]).repeat(5, 1))


def test_equidistant_rows_have_no_dimension():
    with pytest.raises(TableError, match="aren't equidistant"):
        read_dimension(torch.eye(6))


def test_a_version_that_cannot_be_read_is_missing_with_its_reason():
    line = torch.tensor([[1.0], [2.0], [4.0], [5.0], [5.5]])  # normalized: one point
    reading = read_dimension(line)
    assert reading.full.mle is not None
    assert reading.normalized.mle is None
    assert "Only 1 distinct rows" in reading.normalized.note
    assert reading.full.lid20 is None
    assert "k = 20 neighbours need at least 21 rows" in reading.full.note


def test_too_few_queries_are_refused():
    with pytest.raises(ParameterError, match="queries = 1: at least 2 rows"):
        read_dimension(gaussian(50, 3, 0), queries=1)


def test_a_dimension_too_large_for_the_sample_is_flagged():
    reading = read_dimension(sphere(512, 49, 0))
    assert "not identifiable from n = 512" in reading.full.note
    assert math.isfinite(reading.full.mle)


def test_a_tokenizer_that_does_not_fit_its_table_is_said():
    rows = gaussian(208, 4, 0)
    big = read_dimension(EmbeddingTable("t", rows, "F64", [f"t{i}" for i in range(300)], 300))
    assert "92 entries of the tokenizer have no row" in big.notes
    tokens = [f"t{i}" if not 40 <= i < 99 else f"<row {i}: no token>" for i in range(208)]
    gap = read_dimension(EmbeddingTable("t", rows, "F64", tokens, 208))
    assert "59 rows among the others have no token" in gap.notes


def test_a_transposed_table_is_suspected():
    assert any("transposed" in note for note in read_dimension(gaussian(20, 50, 0)).notes)
