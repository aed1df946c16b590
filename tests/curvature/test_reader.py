"""Reading tiny models: against their own logits, one text at a time, and where they can't be."""

import pytest
import torch
from accelerate import cpu_offload
from tests.curvature.tiny import gpt2, llama, neox, tokenizer
from torch import nn

from tokenspace.curvature import curvature, encode, load_reader, read, reader_of
from tokenspace.curvature.reader import NO_NORM
from tokenspace.errors import ParameterError, SourceError

IDS = [[1, 2, 3], [4, 5, 6, 7, 4, 8], [2]]


class Squash(nn.Module):
    """A norm under a name that nobody would look for."""

    def forward(self, x):
        return x / x.square().mean(-1, keepdim=True).sqrt()


def with_squash():
    model = llama()
    model.model.norm = Squash()
    return model


# --- the final norm


@pytest.mark.parametrize(
    ("model", "norm", "tied"),
    [
        (llama(), "model.norm", False),
        (llama(tied=True), "model.norm", True),
        (gpt2(), "transformer.ln_f", True),
        (neox(), "gpt_neox.final_layer_norm", False),
        (neox(tied=True), "gpt_neox.final_layer_norm", True),
    ],
)
def test_of_any_family_the_final_norm_is_found_and_tying_is_said(model, norm, tied, tmp_path):
    model.save_pretrained(tmp_path)
    tokenizer().save_pretrained(tmp_path)
    for found in (reader_of(model), load_reader(tmp_path)):
        assert (found.norm, found.tied) == (norm, tied)
        assert found.logits_error < 1e-5


def test_a_norm_that_is_not_found_is_asked_for():
    with pytest.raises(ParameterError, match=r"LlamaForCausalLM wasn't found.*norm='path.*layers"):
        reader_of(with_squash())


def test_a_norm_that_is_named_is_used():
    found = reader_of(with_squash(), norm="model.norm")
    z = read(found, IDS).points.z
    assert found.norm == "model.norm"
    assert len(z) == 10


def test_a_norm_that_does_not_exist_or_feed_the_output_is_refused():
    with pytest.raises(ParameterError, match=r"no module 'model.final'.*Its norms:.*model.norm"):
        reader_of(llama(), norm="model.final")
    with pytest.raises(ParameterError, match="isn't what the output matrix reads"):
        reader_of(llama(), norm="model.layers.0.input_layernorm")


def test_a_model_without_norm_can_be_said_to_have_none():
    model = llama()
    model.model.norm = nn.Identity()
    with pytest.raises(ParameterError, match="norm='none'"):
        reader_of(model)
    assert reader_of(model, norm=NO_NORM).logits_error < 1e-5


def test_a_model_without_an_output_matrix_at_hand_is_refused():
    with pytest.raises(ParameterError, match="LlamaModel has no output matrix"):
        reader_of(llama().model)
    offloaded = cpu_offload(
        llama(), torch.device("cpu")
    )  # as device_map does with what has no room
    with pytest.raises(ParameterError, match="output matrix of LlamaForCausalLM was left"):
        reader_of(offloaded)


# --- points


@pytest.mark.parametrize("model", [llama(), gpt2(), neox()])
def test_points_are_those_of_the_models_own_logits(model):
    found = read(reader_of(model), IDS)
    row = model(torch.tensor(IDS[1:2])).logits[0].double().softmax(-1)
    values, ids = row.topk(2, dim=-1)
    of_text = (found.text == 1).nonzero().flatten()
    torch.testing.assert_close(found.points.p1[of_text], values[:, 0], rtol=1e-5, atol=1e-7)
    torch.testing.assert_close(found.points.p2[of_text], values[:, 1], rtol=1e-5, atol=1e-7)
    assert found.points.top1[of_text].tolist() == ids[:, 0].tolist()
    V = model.get_output_embeddings().weight.double()
    torch.testing.assert_close(found.points.v2[of_text], V[ids[:, 1]])
    logits = (found.points.scale[:, None] * found.points.z) @ V.T
    torch.testing.assert_close(logits[of_text].softmax(-1), row, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("tokens", [1, 7, 1000])
def test_batches_do_not_change_what_is_read(tokens):
    found = reader_of(llama())
    together, alone = read(found, IDS, tokens=tokens), [read(found, [row]) for row in IDS]
    apart = torch.cat([curvature(r.points).dense() for r in alone])
    z = torch.cat([r.points.z for r in alone])
    torch.testing.assert_close(together.points.z, z, rtol=0, atol=1e-5)  # the model runs in fp32
    torch.testing.assert_close(curvature(together.points).dense(), apart, rtol=0, atol=1e-4)
    assert together.text.tolist() == [0] * 3 + [1] * 6 + [2]
    assert together.position.tolist() == [0, 1, 2, 0, 1, 2, 3, 4, 5, 0]
    assert together.points.kept.tolist() == list(range(10))


# --- BOS


@pytest.mark.parametrize("adds_bos", [True, False])
@pytest.mark.parametrize("text", ["hello world!", "<s> hello world!"])
def test_there_is_one_bos_or_none_whatever_the_tokenizer_does(adds_bos, text):
    found = reader_of(llama(), tokenizer(adds_bos))
    assert encode(found, [text], bos=True) == [[0, 1, 2, 3]]
    assert encode(found, [text], bos=False) == [[1, 2, 3]]
    assert read(found, [[0, 1, 2, 3]]).ids == [[0, 1, 2, 3]]  # the ids are in the result


def test_a_bos_that_does_not_exist_and_an_empty_text_are_refused():
    found = reader_of(llama(), tokenizer(adds_bos=False, has_bos=False))
    with pytest.raises(ParameterError, match="no BOS token"):
        encode(found, ["hello"], bos=True)
    with pytest.raises(ParameterError, match="'' has no tokens"):
        encode(found, [""], bos=False)
    with pytest.raises(ParameterError, match="no tokens"):
        read(reader_of(llama()), [[1], []])


# --- loading


def test_a_model_spread_over_devices_in_its_own_type_reads_the_same(tmp_path):
    model = neox().bfloat16()
    model.save_pretrained(tmp_path)
    tokenizer().save_pretrained(tmp_path)
    found = load_reader(tmp_path, dtype="auto", device_map="auto")
    assert found.rows.dtype == torch.bfloat16
    torch.testing.assert_close(
        read(found, IDS).points.z, read(reader_of(model), IDS).points.z, rtol=0, atol=1e-6
    )


def test_what_is_no_model_says_so(tmp_path):
    with pytest.raises(SourceError, match="holds no tokenizer"):
        load_reader(tmp_path)
    (tmp_path / "tokenizer.json").write_text("{}")
    with pytest.raises(SourceError, match="can't be loaded as a causal model"):
        load_reader(tmp_path)
    with pytest.raises(SourceError, match="minilm holds a table and no causal language model"):
        load_reader("minilm")
