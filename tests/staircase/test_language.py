"""The character GPT against torch's own attention; KLs, resume, paths; what is refused."""

import math
from dataclasses import replace

import pytest
import torch

from tokenspace import staircase as st
from tokenspace.errors import ParameterError
from tokenspace.staircase.text_signatures import n_gram_law

TINY = st.CharGPT(6, length=4, d=8, width=12, heads=2)


def chain(length=4000, seed=0):
    """Each token follows its predecessor's successor nine times in ten."""
    g = torch.Generator().manual_seed(seed)
    steps = 1 + (torch.rand(length, generator=g) > 0.9).long() * 2
    return steps.cumsum(0) % 6


def test_the_gpt_is_torchs_attention_and_its_formula():
    params = TINY.init([0.3, 0.5], [0], torch.float64)
    windows = torch.stack([chain(20), chain(20, 1)]).reshape(2, 5, 4)
    found = TINY(params, windows)
    for r in range(2):
        p = {name: value[r] for name, value in params.items()}
        h = p["E"][windows[r]] + p["P"]
        q, k, v = ((h @ p[n].T).reshape(5, 4, 2, 4).transpose(1, 2) for n in "QKV")
        out = torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        h = h + out.transpose(1, 2).reshape(5, 4, 8) @ p["O"].T
        h = h + torch.nn.functional.silu(h @ p["W1"].T) @ p["W2"].T
        assert torch.allclose(found[r], h @ p["U"].T)
    weights = TINY.attention(params, windows)
    assert torch.allclose(weights.sum(-1), torch.ones_like(weights[..., 0]))
    assert float(weights.triu(1).abs().max()) == 0
    with pytest.raises(ParameterError, match="windows of 5 tokens: this model has 4 positions"):
        TINY(params, chain(30).reshape(2, 3, 5))
    with pytest.raises(ParameterError, match="d = 10 doesn't divide into 4"):
        st.CharGPT(6, d=10)


def test_runs_on_their_own_texts_are_runs_apart():
    texts = torch.stack([chain(), st.clone(chain(), 2)])
    params = TINY.init([0.5], [0, 1], torch.float64)
    settings = st.Settings(25, lr=3e-3, batch=8, logged=[0, 25], seeds=[4, 7])
    whole = st.train_text(TINY, params, texts, settings, n_grams=(1, 2, 3))
    for r, seed in enumerate([4, 7]):
        one = {name: p[r : r + 1] for name, p in params.items()}
        mine = replace(settings, seeds=[seed])
        alone = st.train_text(TINY, one, texts[r : r + 1], mine, n_grams=(1, 2, 3))
        assert torch.allclose(whole.losses[:, r], alone.losses[:, 0])
        assert torch.allclose(whole.records["kl"][:, r], alone.records["kl"][:, 0])


def test_a_chain_is_learned_to_its_entropy_and_its_bigram_law():
    settings = st.Settings(600, lr=0.01, batch=64, logged=[0, 600])
    history = st.train_text(TINY, TINY.init([0.5], [0]), chain()[None], settings, n_grams=(1, 2))
    entropy = -(0.9 * math.log(0.9) + 0.1 * math.log(0.1))
    assert float(history.losses[0, 0]) == pytest.approx(math.log(6), abs=0.3)
    assert float(history.losses[-1, 0]) < entropy + 0.25 * math.log(6)  # position 1 knows as much
    unigram, bigram = history.records["kl"][-1, 0].tolist()
    assert bigram < 0.02 < 1 < unigram


def test_resume_is_bitwise(tmp_path):
    params, texts = TINY.init([0.5, 0.8], [0]), chain()[None].repeat(2, 1)
    settings = st.Settings(40, lr=3e-3, batch=8, logged=range(0, 41, 5), save_every=8)
    whole = st.train_text(TINY, params, texts, settings, n_grams=(2,))

    def stop(step, params):
        if step == 30:
            raise KeyboardInterrupt
        return {}

    at = tmp_path / "state.pt"
    with pytest.raises(KeyboardInterrupt):
        st.train_text(TINY, params, texts, settings, n_grams=(2,), checkpoint=at, callback=stop)
    resumed = st.train_text(TINY, params, texts, settings, n_grams=(2,), checkpoint=at)
    assert torch.equal(whole.losses, resumed.losses)
    assert torch.equal(whole.records["kl"], resumed.records["kl"])
    assert all(torch.equal(whole.params[n], resumed.params[n]) for n in whole.params)
    one = texts.clone()
    one[1, 7] = (one[1, 7] + 1) % 6
    for changed, says in [
        ({"texts": one}, "data: "),
        ({"settings": replace(settings, seeds=[0, 2])}, r"seeds: \[0, 1\] there, \[0, 2\] here"),
        ({"n_grams": (1,)}, r"data: .*n_grams \[2\].* there, .*n_grams \[1\]"),
        ({"watched": 100}, "data: .*watched 1024. there, .*watched 100. here"),
    ]:
        again = {"texts": texts, "settings": settings, "n_grams": (2,), **changed}
        with pytest.raises(ParameterError, match="of another run. " + says):
            st.train_text(TINY, params, checkpoint=at, **again)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (chain(5), "texts of 5 tokens.*at least 6 tokens for windows of 4"),
        (chain() + 1, "1 to 6.*below the vocabulary of 6"),
        (torch.zeros(0, dtype=torch.int64), "texts of 0 tokens"),
    ],
)
def test_a_text_that_does_not_fit_is_refused(text, message):
    with pytest.raises(ParameterError, match=message):
        st.train_text(TINY, TINY.init([0.5], [0]), text[None], st.Settings(1, batch=4))


@pytest.mark.parametrize("n_grams", [(0,), (2, 6), (-1,)])
def test_n_grams_longer_than_a_window_are_refused(n_grams):
    settings = st.Settings(1, batch=4)
    with pytest.raises(ParameterError, match="windows of 4 tokens and the next one hold 1 to 5"):
        st.train_text(TINY, TINY.init([0.5], [0]), chain()[None], settings, n_grams=n_grams)


def test_logged_divergences_are_from_the_n_gram_law_of_each_windows_own_end():
    texts = torch.stack([chain(300), chain(300, 1)])
    params = TINY.init([0.3], [0, 1], torch.float64)
    settings = st.Settings(1, lr=3e-3, batch=8, logged=[0])
    history = st.train_text(TINY, params, texts, settings, n_grams=(1, 2, 3), watched=40)
    found = history.records["kl"][0]
    even = torch.linspace(0, 295, 40).long()
    for r, text in enumerate(texts):
        windows = text[even[:, None] + torch.arange(4)]
        own = {name: p[r : r + 1] for name, p in params.items()}
        log_p = TINY(own, windows[None])[0, :, -1].log_softmax(-1)
        for k, n in enumerate((1, 2, 3)):
            law = n_gram_law(text, n, 6).reshape([6] * n)  # the last tokens in reading order, y
            each = [
                float((p.exp() * (p - law[tuple(window[4 - n + 1 :].tolist())].log())).sum())
                for p, window in zip(log_p, windows, strict=True)
            ]
            assert float(found[r, k]) == pytest.approx(sum(each) / 40)
