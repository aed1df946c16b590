"""Tables whose hub is known: each is found, none is invented, wherever it lies in the table."""

from collections.abc import Callable

import pytest
import torch
from torch import Tensor
from torch.nn.functional import normalize

from tokenspace.hub import (
    Removal,
    ball,
    cube,
    detect,
    gaussian,
    manifold,
    mle,
    nearest,
    plant,
    read_dimension,
    removal,
    sphere,
    torus,
)

SEEDS = range(5)
N, D, H = 1200, 128, 60  # rows of the core, columns, rows of the hub
Table = tuple[Tensor, Tensor]  # rows, and the ids of the hub


def generator(seed: int) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def core(seed: int, n: int = N, cosine: float = 0.35, spread: float = 0.0) -> Tensor:
    return manifold(n, 8, D, cosine, seed, spread)


def planted(rows: Tensor, seed: int, h: int = H, s: float = 0.2) -> Table:
    return plant(rows, h, s, seed)


def around_a_point(seed: int) -> Table:
    rows, hub = planted(core(seed), seed)
    return rows + 1.5 * normalize(gaussian(1, D, seed + 9).float()), hub


def around_the_mean_of_a_cone(seed: int) -> Table:
    rows = core(seed) + 0.7 * normalize(gaussian(1, D, seed + 4).float())
    middle = rows.mean(0)
    table, hub = planted(rows - middle, seed)
    return table + middle, hub


def with_long_rows(seed: int, rows: int, times: float) -> Table:
    table, hub = planted(core(seed), seed)
    table[torch.randperm(N, generator=generator(seed))[:rows]] *= times
    return table, hub


def skewed(seed: int, left: bool) -> Tensor:
    lengths = torch.empty(N, 1).exponential_(generator=generator(seed + 2))
    return core(seed) * torch.exp((-0.02 if left else 0.3) * lengths)


def of_heavy_tails(seed: int) -> Tensor:
    """Student's t with three degrees of freedom: short rows, and no gap before the others."""
    squares = gaussian(N, 3, seed + 3).square().sum(1, keepdim=True) / 3
    return (gaussian(N, 30, seed) / squares.sqrt()).float()


def clusters(seed: int) -> Tensor:
    centres = gaussian(12, 40, seed)
    which = torch.arange(N) % 12
    widths = torch.linspace(0.2, 0.6, 12, dtype=torch.float64)
    return centres[which] + gaussian(N, 40, seed + 1) * widths[which, None]


def alike(seed: int) -> Tensor:
    rows = core(seed, cosine=0.6)
    rows[:25] = 1.3 * rows[0] + 1e-3 * gaussian(25, D, seed + 5).float()
    return rows


WITH_HUB: dict[str, Callable[[int], Table]] = {
    "at the origin": lambda s: planted(core(s), s),
    "tight": lambda s: planted(core(s), s, s=0.02),
    "around a point": around_a_point,
    "around the mean of a cone": around_the_mean_of_a_cone,
    "one row six times too long": lambda s: with_long_rows(s, 1, 6.0),
    "thirty rows three times too long": lambda s: with_long_rows(s, 30, 3.0),
    "three fifths of the rows": lambda s: planted(core(s, 600), s, h=900),
    "three tenths of the rows": lambda s: planted(core(s, 900), s, h=400),
    "five rows": lambda s: planted(core(s), s, h=5),
    "in a Gaussian": lambda s: planted(gaussian(N, 60, s).float(), s),
    "lengths spread by a quarter": lambda s: planted(core(s, spread=0.25), s, s=0.3),
    "half as long": lambda s: planted(core(s, spread=0.2), s, s=0.5),
    "half precision": lambda s: planted(core(s).half().float(), s),
    "lengths skewed to the left": lambda s: planted(skewed(s, left=True), s, s=0.1),
    "lengths skewed to the right": lambda s: planted(skewed(s, left=False), s),
}
SHORT_ROWS: dict[str, Callable[[int], Tensor]] = {  # whose core has no edge
    "lengths spread by .4": lambda s: core(s, n=3000, spread=0.4),
    "heavy tails": of_heavy_tails,
}
WITHOUT: dict[str, Callable[[int], Tensor]] = {
    "manifold": core,
    "manifold of close rows": lambda s: core(s, cosine=0.9),
    "cone": lambda s: core(s) + 1.5 * normalize(gaussian(1, D, s + 4).float()),
    "a hub among close rows": lambda s: planted(core(s, cosine=0.9), s)[0],
    "Gaussian, 10": lambda s: gaussian(N, 10, s),
    "Gaussian, 64": lambda s: gaussian(N, 64, s),
    "Gaussian, 300": lambda s: gaussian(N, 300, s),
    "cube": lambda s: cube(N, 5, s),
    "sphere": lambda s: sphere(N, 10, s),
    "torus": lambda s: torus(N, 3, s),
    "clusters": clusters,
    "rows alike": alike,
    "lengths skewed to the left": lambda s: skewed(s, left=True),
    "lengths skewed to the right": lambda s: skewed(s, left=False),
    "two lengths": lambda s: core(s) * torch.where(torch.arange(N) % 2 == 0, 1.0, 0.6)[:, None],
    "repeated rows": lambda s: torch.cat([core(s), core(s)[:60]]),
}


@pytest.mark.parametrize("name", WITH_HUB)
def test_a_hub_that_matters_is_found_whole(name: str) -> None:
    for seed in SEEDS:
        rows, hub = WITH_HUB[name](seed)
        found, change = detect(rows, nearest(rows))
        inside = torch.isin(hub, found.rows).double().mean()
        assert change is not None
        assert change.changes, (seed, change)
        assert inside > 0.95, (seed, float(inside))
        outside = ~torch.isin(torch.arange(len(rows)), hub)
        free, left = outside.clone(), outside.nonzero().flatten()
        free[found.rows] = False
        without = nearest(rows[free])  # a few short rows of the core may go with the hub
        right = nearest(rows[left])
        reading, truth = (mle(x.r1, x.r2) for x in (without, right))
        assert reading.value < truth.value + 3 * truth.se, (seed, reading, truth)


@pytest.mark.parametrize("name", SHORT_ROWS)
def test_short_rows_without_an_edge_are_found_by_their_effect(name: str) -> None:
    """Their directions alone read lower, as the table does when they are gone."""
    for seed in SEEDS:
        rows = SHORT_ROWS[name](seed)
        found, change = detect(rows, nearest(rows))
        unit = nearest(normalize(rows))
        full = nearest(rows)
        assert mle(unit.r1, unit.r2).value < 0.9 * mle(full.r1, full.r2).value
        assert change is not None
        assert change.changes
        assert change.beyond > 0
        assert rows[found.rows].norm(dim=1).median() < rows.norm(dim=1).median()


@pytest.mark.parametrize("name", WITHOUT)
def test_no_hub_is_invented(name: str) -> None:
    for seed in SEEDS:
        rows = WITHOUT[name](seed)
        found, change = detect(rows, nearest(rows))
        assert change is None or not change.changes, (seed, len(found), found.around, change)


def test_a_removal_by_hand() -> None:
    """Rows that go are no neighbours any more, and random rows are drawn from the rest."""
    rows, hub = planted(core(0), 0)
    found = nearest(rows)
    change = removal(rows, found, hub)
    stay = ~torch.isin(torch.arange(len(rows)), hub)
    alone = nearest(rows[stay])
    before = torch.log(found.r2[stay] / found.r1[stay]).mean()
    after = torch.log(alone.r2 / alone.r1).mean()
    assert change.fall == pytest.approx(float((after / before).log()), rel=1e-9)
    assert abs(change.chance) < 0.2 * change.fall
    again = removal(rows, found, hub)
    assert again == change


def test_a_removal_changes_beyond_error_chance_and_a_twentieth() -> None:
    assert Removal(0.10, 0.01, 0.0, 0.01).changes
    assert Removal(-0.10, 0.01, 0.0, 0.01).changes
    assert not Removal(0.04, 0.001, 0.0, 0.001).changes
    assert not Removal(0.10, 0.04, 0.0, 0.001).changes
    assert not Removal(0.10, 0.001, 0.0, 0.04).changes
    assert not Removal(0.10, 0.001, 0.08, 0.001).changes


def test_the_ball_is_around_where_tokens_look() -> None:
    """Moving the table moves its centre: the rows are the same."""
    rows, hub = around_a_point(0)
    found = nearest(rows)
    assert torch.equal(ball(rows, found).rows, hub)
    assert torch.equal(ball(rows - 7.0, nearest(rows - 7.0)).rows, hub)
    reading = read_dimension(rows)
    assert torch.isin(hub, reading.hub.rows).all()
    assert not reading.hub_inert
