"""Planted tables: what was set is what is measured, and a planted hub does what the paper says."""

import math

import pytest
import torch

from tokenspace.errors import ParameterError
from tokenspace.hub import (
    bend,
    lengths,
    manifold,
    mle,
    nearest,
    neighbour_cosines,
    plant,
    reflection,
    sphere,
    swiss_roll,
    torus,
)

N, H, S, COSINE = 3000, 112, 0.2, 0.35  # the paper's share of hub rows, 300 in 8,300
SPREAD = 0.1  # of the log lengths


def unit(rows):
    return torch.nn.functional.normalize(rows.double())


def without(rows, gone):
    keep = torch.ones(len(rows), dtype=torch.bool)
    keep[gone] = False
    return rows[keep]


@pytest.mark.parametrize("cosine", [0.9, 0.6, 0.35])
def test_the_neighbour_cosine_is_the_one_set(cosine):
    core = manifold(2000, 6, 1024, cosine, seed=0)
    found = nearest(unit(core))
    assert float((1 - found.r1**2 / 2).median()) == pytest.approx(cosine, abs=0.02)
    assert float(lengths(core).median()) == pytest.approx(1, abs=0.02)


def test_lengths_spread_as_set():
    rho = lengths(manifold(4000, 3, 512, 0.8, seed=0, length_sd=0.2))
    assert float(rho.log().std()) == pytest.approx(0.2, rel=0.06)


def test_a_hub_free_reading_is_the_latent_one_over_the_bend(read):
    """d log chord / d log distance = phi on a Gaussian kernel."""
    for cosine in (0.9, 0.5, 0.35):
        tables = [manifold(2000, 8, 2048, c, seed=3) for c in (cosine, 0.98)]
        here, straight = (read(t) for t in tables)
        assert here * bend(cosine) == pytest.approx(straight * bend(0.98), rel=0.06)


@pytest.mark.parametrize("cosine", [0.0, 1.0, -0.3])
def test_an_impossible_cosine_is_named(cosine):
    with pytest.raises(ParameterError, match=f"cosine = {cosine} must lie strictly between 0 and"):
        manifold(10, 2, 8, cosine, seed=0)


def test_planted_rows_come_last_and_have_the_length_asked_for():
    core = 3 * sphere(500, 63, seed=1)
    table, hub = plant(core, 40, 0.2, seed=1)
    assert torch.equal(table[:500], core)
    assert hub.tolist() == list(range(500, 540))
    assert float(lengths(table[hub]).mean()) == pytest.approx(0.6, rel=0.05)
    assert table.dtype == core.dtype
    cosines = unit(core) @ unit(table[hub]).T
    assert float(cosines.abs().max()) < 0.8  # the same seed doesn't make them parallel


@pytest.mark.parametrize("D", [512, 2048])
@pytest.mark.parametrize("seed", range(3))
def test_a_planted_hub_inflates_and_its_removal_restores(seed, D, read):
    core = manifold(N, 8, D, COSINE, seed, SPREAD)
    table, planted = plant(core, H, S, seed)
    found = reflection(table).rows
    base, full = read(core), read(table)
    assert full / base >= 3
    assert abs(read(without(table, found)) / base - 1) <= 0.05
    assert torch.isin(planted, found).all()
    assert len(found) - H <= 5
    assert read(unit(table).float()) == pytest.approx(read(unit(core).float()), rel=0.08)
    # as many random rows, and as many of the longest: neither lowers the reading, beyond the
    # noise of losing H of N + H rows at random
    random = torch.randperm(len(table), generator=torch.Generator().manual_seed(seed))[:H]
    longest = lengths(table).argsort(descending=True)[:H]
    noise = 2 * full * math.sqrt(H) / N
    assert read(without(table, random)) >= full - noise
    assert read(without(table, longest)) >= full - noise


def test_the_phase_transition_lies_near_cosine_one_half():
    """Captured, and full over hub-free, against the neighbour cosine."""
    shares, inflation = [], []
    for cosine in (0.9, 0.6, 0.45, 0.3):
        core = manifold(N, 8, 2048, cosine, seed=0)
        table, hub = plant(core, H, S, seed=0)
        free, full = nearest(core), nearest(table)
        shares.append(float(torch.isin(full.indices[:N], hub).all(1).double().mean()))
        inflation.append(mle(full.r1, full.r2).value / mle(free.r1, free.r2).value)
    assert shares == sorted(shares)
    assert inflation == sorted(inflation)
    assert shares[0] < 0.01
    assert shares[1] < 0.3
    assert shares[2] > 0.5
    assert inflation[0] < 1.15
    assert inflation[3] > 5


def test_one_hub_row_lowers_the_reading_and_a_second_raises_it(read):
    core = manifold(N, 8, 2048, COSINE, seed=0)
    none, one, two = (read(plant(core, h, S, seed=0)[0]) if h else read(core) for h in (0, 1, 2))
    assert one < 0.75 * none
    assert two > 2 * none


def test_a_few_short_rows_among_unit_rows(read):
    """1,500 unit rows uniform in R^256 and 100 rows of N(0, (0.01 / 16)^2), five seeds."""
    readings = []
    for seed in range(5):
        core = sphere(1500, 255, seed)
        table, hub = plant(core, 100, 0.01, seed)
        clean, found = read(core), reflection(table).rows
        assert torch.equal(found, hub)
        assert read(without(table, found)) == clean
        readings.append([clean, read(table), read(unit(table))])
    clean, full, normalized = torch.tensor(readings).mean(dim=0).tolist()
    assert clean == pytest.approx(93.9, abs=3 * 2.4)
    assert full == pytest.approx(870, abs=3 * 32)
    assert normalized == pytest.approx(94.5, abs=3 * 1.6)


def test_points_lie_on_their_manifolds():
    assert torch.allclose(lengths(sphere(50, 4, 0)), torch.ones(50, dtype=torch.float64))
    t = torus(50, 3, 0)
    assert torch.allclose(t[:, :3] ** 2 + t[:, 3:] ** 2, torch.ones(50, 3, dtype=torch.float64))
    x, y, z = swiss_roll(50, 0).T
    angle = (x**2 + z**2).sqrt()
    assert torch.allclose(x, angle * angle.cos())
    assert float(y.min()) >= 0
    assert float(y.max()) <= 21


def test_cosines_are_those_of_the_matrix():
    rows = torch.randn(300, 5, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    rows[7] = 0
    cosines = (unit(rows) @ unit(rows).T).fill_diagonal_(-1)
    some = torch.tensor([0, 7, 8, 299])
    assert torch.allclose(neighbour_cosines(rows, some), cosines.amax(1)[[0, 8, 299]], atol=1e-12)
