"""Rotary positions, which two networks share."""

import pytest
import torch

from tokenspace.nn.transformer import rotate, turns


@pytest.mark.parametrize("size", [6, 8])
def test_turned_products_depend_on_distance_alone(size: int) -> None:
    q, k = torch.randn(2, size, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    turn = turns(40, size)
    products = rotate(q.expand(40, size), turn) @ rotate(k.expand(40, size), turn).T
    for distance in (-7, 0, 3):
        same = products.diagonal(distance)
        assert torch.allclose(same, same[0].expand_as(same), atol=1e-5)
    assert torch.allclose(products.diagonal(), (q @ k).expand(40), atol=1e-5)
    assert not torch.allclose(products[0, 1], products[0, 2], atol=1e-3)


def test_a_pair_turns_as_a_complex_number_does() -> None:
    x = torch.randn(5, 6, generator=torch.Generator().manual_seed(2), dtype=torch.float64)
    speed = 100.0 ** (-torch.arange(3, dtype=torch.float64) / 3)
    phase = torch.arange(5, dtype=torch.float64)[:, None] * speed
    wanted = torch.complex(x[:, :3], x[:, 3:]) * torch.polar(torch.ones_like(phase), phase)
    found = rotate(x, turns(5, 6, base=100.0))
    assert torch.allclose(found, torch.cat([wanted.real, wanted.imag], 1), atol=1e-6)
