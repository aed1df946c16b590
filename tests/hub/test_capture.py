"""Capture, its prediction, the reading of captured tokens, the exact sum, and the ghost hub."""

import inspect
import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from tokenspace.errors import ParameterError, TableError
from tokenspace.hub import (
    GROUPS,
    captured,
    captured_reading,
    decompose,
    ghost,
    lengths,
    manifold,
    mle,
    nearest,
    plant,
    prefers_hub,
    token_groups,
)

N, H, S = 2000, 75, 0.2


@pytest.fixture(scope="module")
def planted_tables():
    tables = {}
    for D in (512, 2048):
        for cosine in (0.6, 0.5, 0.4, 0.3):
            core = manifold(N, 8, D, cosine, seed=1)
            table, hub = plant(core, H, S, seed=2)
            tables[D, cosine] = core, nearest(core), nearest(table), hub
    return tables


def test_equal_lengths_and_a_hub_at_the_origin_capture_below_cosine_one_half():
    cosine = torch.tensor([0.501, 0.499, 0.9, -0.5])
    r = (2 - 2 * cosine).sqrt()
    taken = prefers_hub(r, torch.ones(4), s=0.0, h=300, D=512)
    assert taken.tolist() == [False, True, False, True]


def test_the_captured_fraction_is_predicted(planted_tables):
    for (D, _), (core, free, full, hub) in planted_tables.items():
        rho = lengths(core)
        s = S * float(rho.median())
        first = torch.isin(full.indices[:N, 0], hub).double().mean()
        both = captured(full, hub)[:N].double().mean()
        stated = prefers_hub(free.r1, rho, s, H, D).double().mean()
        assert abs(float(stated - (both if D == 2048 else first))) <= 0.02
        for order, measured in ((1, first), (2, both)):
            predicted = prefers_hub(free.r1, rho, s, H, D, order=order).double().mean()
            assert abs(float(predicted - measured)) <= 0.006


def test_an_order_beyond_the_hub_is_named():
    with pytest.raises(ParameterError, match="order = 4: a hub of 3 rows has orders 1 to 3"):
        prefers_hub(torch.ones(2), torch.ones(2), 0.1, 3, 64, order=4)


def test_the_reading_of_captured_tokens_is_predicted(planted_tables):
    for (D, cosine), (core, _, full, hub) in planted_tables.items():
        if cosine > 0.4:
            continue
        mask = captured(full, hub) & (full.queries < N)
        reading = mle(full.r1[mask], full.r2[mask]).value
        predicted = captured_reading(float(lengths(core).median()), S, H, D)
        assert 0.85 < reading / predicted < 1.05


def test_groups_are_told_apart(planted_tables):
    _, _, full, hub = planted_tables[512, 0.4]
    groups = token_groups(full, hub)
    assert (groups[hub] == GROUPS.index("hub row")).all()
    assert torch.equal(groups[:N] == GROUPS.index("captured"), captured(full, hub)[:N])


@given(
    st.lists(st.tuples(st.floats(1, 50), st.integers(0, 2)), min_size=3, max_size=40).filter(
        lambda rows: sum(mu > 1 for mu, _ in rows) > 1
    )
)
def test_the_decomposition_is_exact_for_any_groups(rows):
    r2 = torch.tensor([mu for mu, _ in rows], dtype=torch.float64)
    groups = torch.tensor([g for _, g in rows])
    table = decompose(torch.ones_like(r2), r2, groups)
    assert table.contribution.sum() == pytest.approx(1 / mle(torch.ones_like(r2), r2).value, 1e-9)
    assert len(table) == len(set(groups.tolist()))
    assert table.n.sum() == len(rows)
    assert table.share.sum() == pytest.approx(1)


def test_the_decomposition_drops_zero_distances_as_the_mle_does():
    r1, r2 = torch.tensor([0.0, 1.0, 1.0]), torch.tensor([1.0, 2.0, 3.0])
    table = decompose(r1, r2, torch.tensor([2, 0, 1]))
    assert table.group.tolist() == ["free", "captured"]
    assert table.contribution.sum() == pytest.approx(1 / mle(r1, r2).value, rel=1e-9)


def test_labels_that_do_not_match_are_named():
    with pytest.raises(TableError, match="2 group labels for 3 pairs"):
        inspect.unwrap(decompose)(torch.ones(3), torch.ones(3), torch.zeros(2, dtype=torch.int64))
    for label in (-1, 3):
        with pytest.raises(TableError, match=rf"labels \[{label}\]: use 0 to 2"):
            decompose(torch.ones(3), torch.full((3,), 2.0), torch.tensor([0, label, 1]))


def test_the_ghost_by_cases():
    cases = [[1.0, 2, 3], [1, 3, 2], [3, 4, 2], [2, 2, 2], [1, 3, math.inf]]  # r1, r2, length
    two = torch.stack(ghost(*torch.tensor(cases).T), dim=1)
    assert two.tolist() == [[1, 2], [1, 2], [2, 2], [2, 2], [1, 3]]


def test_the_ghost_predicts_a_planted_hub(planted_tables):
    """A ghost's captured tokens have m = 0; a planted hub's have 1 / `captured_reading`."""
    for (D, cosine), (core, free, full, hub) in planted_tables.items():
        rho = lengths(core)
        phantom = mle(*ghost(free.r1, free.r2, rho)).value
        planted = mle(full.r1[:N], full.r2[:N]).value
        share = float(captured(full, hub)[:N].double().mean())
        left = share / captured_reading(float(rho.median()), S, H, D)
        assert 1 / planted == pytest.approx(1 / phantom + left, rel=0.15)
        if cosine >= 0.5:
            assert phantom == pytest.approx(planted, rel=0.1)
