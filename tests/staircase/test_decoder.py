"""The paper-shaped decoder: causal, relative positions, drawn as said; training resumes bitwise."""

from dataclasses import replace
from itertools import pairwise

import pytest
import torch

from tokenspace.errors import ParameterError
from tokenspace.staircase.alignment import alignment, cosine_gram
from tokenspace.staircase.decoder import (
    Decoder,
    DecoderSettings,
    DecoderShape,
    TextSignatures,
    pretrain,
)

TINY = DecoderShape(20, layers=2, d=16, heads=2, width=24, length=8, gamma=0.8)
TEXT = torch.randint(20, (400,), generator=torch.Generator().manual_seed(0))
ONE = DecoderSettings(1)


def test_a_later_token_changes_nothing_before_it():
    model = Decoder(TINY)
    tokens = TEXT[:8][None].repeat(2, 1)
    tokens[1, 5:] = (tokens[1, 5:] + 1) % 20
    a, b = model(tokens)
    assert torch.allclose(a[:5], b[:5], atol=1e-6)
    assert not torch.allclose(a[5], b[5], atol=1e-4)


def test_attention_is_what_the_blocks_use():
    model = Decoder(TINY)
    tokens = TEXT[:8][None]
    block = model.layers[0]
    h = model.E(tokens)
    A = model.attention(tokens)[0]
    assert torch.allclose(A.sum(-1), torch.ones(1, 8), atol=1e-6)
    q, k, _ = block.queries_keys_values(block.norm1(h), model.blocks.turn(h))
    v = torch.eye(8).expand(1, 2, 8, 8)  # attention returned as values
    used = torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
    assert torch.allclose(used.mean(1), A, atol=1e-5)


def test_value_rows_point_where_attention_moves_a_token():
    model = Decoder(TINY)
    block = model.layers[0]
    V = block.attn_qkv.weight[-TINY.d :]
    moved = block.attn_out(block.norm1(model.E.weight) @ V.T)
    found = model.value_rows(torch.arange(20))[0]
    assert torch.allclose(torch.cosine_similarity(moved, found), torch.ones(20), atol=1e-5)


def test_matrices_are_drawn_with_their_gamma():
    model = Decoder(DecoderShape(300, layers=1, d=64, heads=2, width=96, length=4, gamma=0.8))
    assert float(model.E.weight.detach().std()) == pytest.approx(64**-0.8, rel=0.03)
    assert float(model.layers[0].mlp.W2.weight.detach().std()) == pytest.approx(96**-0.8, rel=0.05)
    assert torch.equal(model.norm.weight, torch.ones(64))
    assert not torch.equal(Decoder(TINY, 0).E.weight, Decoder(TINY, 1).E.weight)


def test_a_resumed_run_is_the_run_not_interrupted(tmp_path):
    watch = TextSignatures(TEXT, 20, 8, top=15, windows=4, probe_steps=5)
    settings = DecoderSettings(12, batch=4, logged=[0, 4, 12], save_every=3)
    whole = pretrain(Decoder(TINY), TEXT, settings, watch=watch)
    at = tmp_path / "decoder"

    def until(model):
        if len(seen) == 2:
            raise KeyboardInterrupt
        seen.append(1)
        return watch(model)

    seen: list[int] = []
    with pytest.raises(KeyboardInterrupt):
        pretrain(Decoder(TINY), TEXT, settings, watch=until, checkpoint=at)
    resumed = pretrain(Decoder(TINY), TEXT, settings, watch=watch, checkpoint=at)
    assert all(torch.equal(whole.params[n], resumed.params[n]) for n in whole.params)
    assert torch.equal(whole.losses, resumed.losses)
    assert torch.equal(whole.records["paths"], resumed.records["paths"])
    with pytest.raises(ParameterError, match="seed: 0 there, 1 here"):
        pretrain(Decoder(TINY), TEXT, replace(settings, seed=1), watch=watch, checkpoint=at)


def test_signatures_are_compared_as_they_are_defined():
    """By loops: what follows each token, and the attention A_{s,I} on it where it is followed."""
    model = Decoder(TINY)
    model.E.weight.data += 0.05  # rows share a direction, which centring would take away
    watch = TextSignatures(TEXT, 20, 8, top=15, windows=4, probe_steps=3)
    found, ids = watch(model), watch.ids.tolist()
    follows = torch.zeros(15, 20)
    for token, after in pairwise(TEXT.tolist()):
        if token in ids:
            follows[ids.index(token), after] += 1
    rows = cosine_gram(model.E.weight.detach()[watch.ids])
    assert float(found["next"]) == pytest.approx(float(alignment(rows, cosine_gram(follows))))
    read = zip(model.attention(watch.windows[:, :-1]), model.value_rows(watch.ids), strict=True)
    for layer, (attention, moved) in enumerate(read):
        path, mass = torch.zeros(16, 16), torch.zeros(16, 1)
        for window, A in zip(watch.windows.tolist(), attention, strict=True):
            place = [ids.index(token) if token in ids else 15 for token in window]
            for s in range(8):
                for i in range(s + 1):
                    path[place[i], place[s + 1]] += A[s, i] / (s + 1)
                    mass[place[i]] += 1 / (s + 1)
        rows = cosine_gram(torch.cat([moved, torch.zeros(1, 16)]))
        expected = alignment(rows, cosine_gram(path / mass.clamp_min(1e-9)))
        assert float(found["paths"][0, layer]) == pytest.approx(float(expected), abs=1e-5)


def test_windows_follow_the_seed():
    one, same, other = (
        pretrain(Decoder(TINY), TEXT, replace(ONE, seed=seed)).losses for seed in (0, 0, 1)
    )
    assert torch.equal(one, same)
    assert not torch.equal(one, other)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Decoder(DecoderShape(20, d=18, heads=4)), "width = 18 in 4 heads"),
        (lambda: DecoderShape(20, gamma=-0.5), "γ = -0.5"),
        (lambda: Decoder(TINY)(TEXT[:9][None]), "9 tokens: this decoder reads at most 8"),
        (
            lambda: pretrain(Decoder(TINY), TEXT[:9], DecoderSettings(1)),
            "texts of 9 tokens.*at least 10 tokens for windows of 8",
        ),
        (lambda: pretrain(Decoder(TINY), TEXT + 1, ONE), "below the vocabulary of 20"),
    ],
)
def test_bad_input_is_said(make, message):
    with pytest.raises(ParameterError, match=message):
        make()
