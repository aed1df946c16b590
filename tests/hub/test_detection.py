"""The reflection rule, its known failures, the density valley, and the judgement by capture."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from tokenspace.hub import (
    cube,
    gaussian,
    judge,
    lengths,
    manifold,
    nearest,
    plant,
    read_dimension,
    reflection,
    removal,
    sphere,
    torus,
    valley,
)


def along_one_axis(norms):
    return torch.tensor(norms, dtype=torch.float64)[:, None]


def lognormal_core(n, D, sd, seed):
    g = torch.Generator().manual_seed(seed)
    spread = torch.exp(sd * torch.randn(n, 1, generator=g, dtype=torch.float64))
    return sphere(n, D - 1, seed) * spread


@given(st.lists(st.floats(0.01, 100), min_size=3, max_size=40), st.floats(0.001, 1000))
def test_reflection_by_its_definition_and_in_any_unit(norms, scale):
    hub = reflection(along_one_axis(norms))
    ordered = sorted(norms)
    n = len(norms)
    middle = (ordered[(n - 1) // 2] + ordered[n // 2]) / 2
    assert hub.threshold == pytest.approx(middle**2 / ordered[-1], rel=1e-12)
    assert hub.rows.tolist() == [i for i, v in enumerate(norms) if v < hub.threshold]
    assert 2 * len(hub) <= n  # the upper half is never short
    assert reflection(along_one_axis(norms) * scale).threshold == pytest.approx(
        hub.threshold * scale, rel=1e-9
    )


@pytest.mark.parametrize("D", [512, 2048])
@pytest.mark.parametrize("seed", range(3))
def test_a_planted_hub_is_found_whole_and_nearly_pure(seed, D):
    core = manifold(8000, 8, D, 0.35, seed, length_sd=0.1)
    table, planted = plant(core, 300, 0.2, seed)
    found = reflection(table).rows
    assert torch.isin(planted, found).all()
    assert float(torch.isin(found, planted).double().mean()) >= 0.98
    assert len(reflection(core)) <= 5


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_rounding_makes_no_hub(dtype):
    rows = gaussian(5000, 40, 0).to(dtype)
    assert len(reflection(torch.nn.functional.normalize(rows))) == 0
    assert len(reflection(rows / lengths(rows)[:, None].to(dtype))) == 0


def test_a_table_of_equal_lengths_or_of_zeros_has_no_hub():
    assert len(reflection(torch.ones(5, 2))) == 0
    assert len(reflection(torch.zeros(5, 2))) == 0


def test_known_failure_one_long_row_hides_the_hub():
    table, planted = plant(lognormal_core(1000, 64, 0.05, 0), 50, 0.2, 0)
    assert torch.isin(planted, reflection(table).rows).all()
    table[0] *= 50
    assert len(reflection(table)) == 0
    assert 0.3 < valley(table) < 0.9  # the cross-check still sees it


def test_known_failure_a_hub_at_half_the_length_of_a_broad_core_is_missed():
    table, planted = plant(lognormal_core(3000, 64, 0.25, 0), 100, 0.5, 0)
    found = torch.isin(planted, reflection(table).rows)
    assert float(found.double().mean()) < 0.5


def test_the_valley_lies_between_hub_and_core():
    for seed in range(3):
        table, planted = plant(lognormal_core(2000, 128, 0.1, seed), 60, 0.2, seed)
        rho = lengths(table)
        assert float(rho[planted].max()) < valley(table) < float(rho[:2000].median())


@pytest.mark.parametrize("seed", range(3))
def test_one_mode_has_no_valley(seed):
    assert valley(gaussian(2000, 10, seed)) is None
    assert valley(cube(3000, 5, seed)) is None  # a few stray short rows are no mode
    assert valley(torch.ones(10, 2)) is None
    assert valley(torus(3000, 3, seed)) is None  # all of one length, but for rounding


def test_zero_rows_have_no_log_length_but_are_short():
    table = torch.cat([gaussian(500, 50, 0), torch.zeros(3, 50, dtype=torch.float64)])
    assert valley(table) is None
    assert {500, 501, 502} <= set(reflection(table).rows.tolist())


def judged(core, h):
    table, hub = plant(core, h, 0.2, 0)
    found, free = nearest(table), nearest(core)
    return judge(found, hub, free, lengths(core), removal(table, found, hub)), free


def test_a_capturing_hub_is_not_inert():
    effect, _ = judged(manifold(1500, 8, 256, 0.35, seed=0), 60)
    assert not effect.inert
    assert effect.captured > 0.7
    assert effect.touched >= effect.captured
    assert f"{effect.captured:.1%} of core tokens have both first neighbours" in effect.why


def test_a_hub_among_close_neighbours_is_inert():
    effect, free = judged(manifold(1500, 2, 256, 0.95, seed=0), 60)
    assert effect.inert
    assert effect.captured <= effect.touched < 0.01
    assert effect.ghost == pytest.approx(1499 / float((free.r2 / free.r1).log().sum()), rel=1e-3)


def test_one_short_row_captures_nobody_but_is_not_inert():
    effect, _ = judged(manifold(1500, 8, 256, 0.35, seed=0), 1)
    assert effect.captured == 0
    assert effect.touched > 0.7
    assert not effect.inert


def test_a_ghost_that_captures_everyone_has_no_reading():
    core = sphere(40, 399, 0)  # nearly orthogonal rows: all neighbours lie beyond the origin
    found = nearest(core)
    effect = judge(found, torch.tensor([], dtype=torch.int64), found, lengths(core), None)
    assert effect.ghost is None
    assert "a ghost hub at the origin would capture every token" in effect.why


def test_a_shoulder_of_the_core_is_no_valley():
    """A dip of a fifth between two modes is not the gap before a hub; one of nearly all is."""
    q = torch.linspace(0.001, 0.999, 2000, dtype=torch.float64)
    normal = torch.distributions.Normal(0.0, 1.0).icdf(q)

    def two_modes(apart):
        logs = torch.cat([0.1 * normal, 0.1 * normal[::2] - apart])
        return along_one_axis(logs.exp().tolist())

    assert valley(two_modes(0.3)) is None
    assert valley(two_modes(0.8)) == pytest.approx(math.exp(-0.4), rel=0.1)


def test_a_hub_away_from_the_origin_is_missed_by_length_and_found_where_tokens_look():
    table, planted = plant(manifold(1500, 8, 256, 0.35, 0, length_sd=0.1), 60, 0.2, 0)
    assert torch.isin(planted, reflection(table).rows).all()
    moved = table + 3.0 * torch.nn.functional.normalize(gaussian(1, 256, 1)).to(table.dtype)
    assert not torch.isin(planted, reflection(moved).rows).any()
    at_origin, away = read_dimension(table), read_dimension(moved)
    assert (at_origin.hub.around, away.hub.around) == ("the origin", "where tokens look")
    for version in ("full", "hub_removed"):
        here, there = (getattr(reading, version).mle for reading in (at_origin, away))
        assert there == pytest.approx(here, rel=1e-3)
