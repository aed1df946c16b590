"""The network: the released size, zero at the start, rotary positions, causality, context."""

import math

import pytest
import torch
from torch.nn.functional import gelu, silu

from tokenspace.errors import ParameterError
from tokenspace.flow.network import DiT, size_of


def tiny(**changes):
    torch.manual_seed(0)
    return DiT(8, 5, **({"width": 16, "depth": 2, "heads": 2, "conditioning": 8} | changes))


def shaken(net):
    """Every parameter away from its zero."""
    with torch.no_grad():
        for p in net.parameters():
            p.add_(torch.randn(p.shape) * 0.2)
    return net


def inputs(B=3, L=6, d=8):
    torch.manual_seed(1)
    return torch.randn(B, L, d), torch.randn(B), torch.randn(B, L, d)


def test_the_released_shape_has_its_parameters():
    with torch.device("meta"):
        assert size_of(DiT(768, 50257)) / 1e6 == pytest.approx(132.2, abs=0.05)  # without E


def by_equations(s, x, gamma, c, heads):
    """The released network from its tensors: rotary angles as complex numbers, head by head."""

    def norm(h, name):
        centred = h - h.mean(-1, keepdim=True)
        return centred / (centred.square().mean(-1, keepdim=True) + 1e-5).sqrt() * s[name]

    def affine(h, name):
        return h @ s[f"{name}.weight"].T + s.get(f"{name}.bias", 0.0)

    L, width = x.shape[1:]
    size = width // heads
    h = x + affine(torch.cat([x, c], -1), "self_cond_proj")
    phase = gamma[:, None] * torch.exp(-math.log(1e4) * torch.arange(128) / 128)
    level = affine(torch.cat([phase.cos(), phase.sin()], -1), "sigma_map.mlp.0")
    level = silu(affine(silu(level), "sigma_map.mlp.2"))[:, None]
    theta = torch.arange(L)[:, None] * 1e4 ** (-2 * torch.arange(size // 2).double() / size)
    turn = torch.polar(torch.ones_like(theta), theta)
    for b in range(len({name.split(".")[1] for name in s if name.startswith("blocks.")})):
        name = f"blocks.{b}"
        change = affine(level, f"{name}.adaLN_modulation").split(width, -1)
        inner = norm(h, f"{name}.norm1.weight") * (1 + change[1]) + change[0]
        q, k, v = affine(inner, f"{name}.attn_qkv").split(width, -1)
        mixed = []
        for q_, k_, v_ in zip(*(each.split(size, -1) for each in (q, k, v)), strict=True):
            q_, k_ = (torch.complex(*each.chunk(2, -1)) * turn for each in (q_, k_))
            weights = ((q_ @ k_.mH).real / math.sqrt(size)).softmax(-1)
            mixed.append(weights @ v_)
        h = h + change[2] * affine(torch.cat(mixed, -1), f"{name}.attn_out")
        inner = norm(h, f"{name}.norm2.weight") * (1 + change[4]) + change[3]
        inner = gelu(affine(inner, f"{name}.mlp.0"), approximate="tanh")
        h = h + change[5] * affine(inner, f"{name}.mlp.2")
    change = affine(level, "output_layer.adaLN_modulation").split(width, -1)
    h = norm(h, "output_layer.norm_final.weight") * (1 + change[1]) + change[0]
    return affine(h, "output_layer.linear")


def test_the_network_is_the_released_one():
    net = shaken(tiny(width=None)).double()
    x, gamma, c = (each.double() for each in inputs())
    found = net(x, gamma, c).detach()
    assert float(found.abs().mean()) > 0.05
    torch.testing.assert_close(
        found, by_equations(net.state_dict(), x, gamma, c, 2), atol=1e-5, rtol=0
    )


def test_only_the_causal_network_hides_later_positions():
    x, gamma, c = inputs()
    later = x.clone()
    later[:, 4:] += 1
    for causal in (True, False):
        net = shaken(tiny(causal=causal))
        change = (net(x, gamma, c) - net(later, gamma, c)).abs().amax((0, 2))
        assert bool((change[4:] > 1e-4).all())
        assert bool((change[:4] < 1e-6).all()) is causal


def test_gradients_reach_every_parameter_after_a_few_steps():
    net, (x, gamma, c) = tiny(dropout=0.1), inputs()
    adam = torch.optim.Adam(net.parameters(), lr=1e-2)
    for _ in range(6):  # each layer behind a zero one is a step later
        adam.zero_grad()
        net(x, gamma, c).sub(1).square().mean().backward()
        adam.step()
    still = [n for n, p in net.named_parameters() if p.grad is None or not p.grad.any()]
    assert still == []


@pytest.mark.parametrize("changes", [{"heads": 3}, {"width": 18, "heads": 6}])
def test_heads_of_an_odd_size_are_refused(changes):
    with pytest.raises(ParameterError, match="multiple of"):
        tiny(**changes)
