"""Rows, sums and read-outs against plain indexing and einsum, with their gradients."""

import pytest
import torch

from tokenspace.staircase.models import linear, read_out, rows_of, sum_rows

G = torch.Generator().manual_seed(0)


def drawn(*shape):
    return torch.randn(*shape, generator=G, dtype=torch.float64, requires_grad=True)


@pytest.mark.parametrize("shape", [(7, 3), (1, 1), (2, 7, 3)])
def test_rows_and_sums_are_indexing(shape):
    table = drawn(2, 5, 4)
    index = torch.randint(4, shape, generator=G)  # token 4 never occurs, tokens occur twice
    each = index.expand(2, *shape[-2:])

    def plain():
        return torch.stack([table[r, each[r]] for r in range(2)])

    assert torch.equal(rows_of(table, index), plain())
    for out, expected in (
        (rows_of(table, index), plain()),
        (sum_rows(table, index), plain().sum(2)),
    ):
        weight = torch.randn(out.shape, generator=G, dtype=torch.float64)
        assert torch.allclose(out, expected)
        mine, torchs = (torch.autograd.grad(o, table, weight)[0] for o in (out, expected))
        assert torch.allclose(mine, torchs)
    assert torch.autograd.gradcheck(lambda t: sum_rows(t, index), table)


def test_a_gradient_stored_the_other_way_is_the_same():
    table, index = drawn(2, 5, 4), torch.randint(5, (6, 3), generator=G)
    weight = torch.randn(2, 4, 6, generator=G, dtype=torch.float64)
    a, b = (
        torch.autograd.grad(sum_rows(table, index), table, w)[0]
        for w in (weight.mT, weight.mT.contiguous())
    )
    assert torch.allclose(a, b)


def test_read_out_and_linear_are_products():
    h, U, W = drawn(2, 7, 4), drawn(2, 3, 4), drawn(2, 5, 4)
    assert torch.allclose(read_out(h, U), torch.einsum("rnd,rkd->rnk", h, U))
    assert torch.autograd.gradcheck(read_out, (h, U))
    deep = drawn(2, 3, 6, 4)
    assert torch.allclose(linear(deep, W), torch.einsum("rbld,rmd->rblm", deep, W))
    assert torch.autograd.gradcheck(linear, (deep, W))
