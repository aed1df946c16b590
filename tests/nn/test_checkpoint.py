"""A checkpoint comes back as it was, is written whole or not at all, and is refused in words."""

import json
import os
from argparse import Namespace

import pytest
import torch
from safetensors.torch import load_file, save_file

from tokenspace import files
from tokenspace.errors import ParameterError, SourceError
from tokenspace.nn import checkpoint
from tokenspace.nn.checkpoint import Checkpoint, load_weights

SECTIONS = {"model": {"a.b": torch.arange(6.0).reshape(2, 3)}, "records": {"loss": torch.ones(2)}}


@pytest.fixture
def saved(tmp_path):
    found = Checkpoint(tmp_path / "new" / "state", {"seed": 3, "sizes": (1, 2)}, [0, 2, 4])
    found.save({"step": 3, "logged": [0, 2]}, SECTIONS)
    return found


def test_it_comes_back_as_it_was(saved):
    header, sections = saved.load()
    assert (header["step"], header["identity"]) == (3, {"seed": 3, "sizes": [1, 2]})
    assert sections.keys() == SECTIONS.keys()
    assert all(torch.equal(sections[s][n], t) for s in SECTIONS for n, t in SECTIONS[s].items())
    assert Checkpoint(saved.path.with_name("none"), {}).load() is None


@pytest.mark.parametrize(
    ("identity", "logged", "message"),
    [
        ({"seed": 4, "sizes": (1, 2)}, [0, 2], r"state is of another run\. seed: 3 there, 4 here"),
        ({"seed": 3}, [0, 2], r"sizes: \[1, 2\] there, None here"),
        ({"seed": 3, "sizes": (1, 2)}, [0, 3], r"logged: \[0, 2\] there, \[0, 3\] here"),
    ],
)
def test_another_run_is_refused_and_left_as_it_is(saved, identity, logged, message):
    before = saved.path.read_bytes()
    with pytest.raises(ParameterError, match=message):
        Checkpoint(saved.path, identity, logged).load()
    assert saved.path.read_bytes() == before


def cut(raw, share):
    return raw[: int(len(raw) * share)]


def flipped(raw, at):
    return raw[:at] + bytes([raw[at] ^ 1]) + raw[at + 1 :]


@pytest.mark.parametrize(
    "damage",
    [
        lambda raw: b"", lambda raw: b"{}", lambda raw: cut(raw, 0.5), lambda raw: raw[:-1],
        lambda raw: flipped(raw, len(raw) - 3),  # a number of a tensor
        lambda raw: raw.replace(b'\\"step\\": 3', b'\\"step\\": 4'),
    ],
)  # fmt: skip
def test_a_damaged_file_is_said(saved, damage):
    raw = damage(saved.path.read_bytes())
    assert raw != saved.path.read_bytes()
    saved.path.write_bytes(raw)
    with pytest.raises(SourceError, match=rf"state \({len(raw):,} bytes\) is no checkpoint"):
        saved.load()


@pytest.mark.parametrize("metadata", [None, {"run": "[]"}, {"run": json.dumps({"step": 1})}])
def test_a_file_of_something_else_is_said(saved, metadata):
    save_file(load_file(saved.path), saved.path, metadata=metadata)
    with pytest.raises(SourceError, match="is no checkpoint of a training run, or a damaged one"):
        saved.load()


@pytest.mark.parametrize("when", ["writing", "moving"])
def test_an_interrupted_save_leaves_the_file_before(saved, monkeypatch, when):
    whole = checkpoint.save_file

    def halved(tensors, path, metadata):
        whole(tensors, path, metadata)
        if when == "writing":
            os.truncate(path, path.stat().st_size // 2)
            raise KeyboardInterrupt

    def move(one, two):
        raise KeyboardInterrupt

    monkeypatch.setattr(checkpoint, "save_file", halved)
    monkeypatch.setattr(files.os, "replace", move)
    with pytest.raises(KeyboardInterrupt):
        saved.save({"step": 4, "logged": [0, 2, 4]}, SECTIONS)
    assert saved.load()[0]["step"] == 3
    assert list(saved.path.parent.iterdir()) == [saved.path]


def test_weights_load_from_every_wrapping(tmp_path):
    donor = torch.nn.Sequential(torch.nn.Linear(2, 3), torch.nn.Linear(3, 1))
    inside = donor.state_dict()
    torch.save({f"_orig_mod.{n}": t for n, t in inside.items()}, tmp_path / "compiled.pt")
    ddp = {"model": {f"module.{n}": t for n, t in inside.items()}, "args": Namespace()}
    torch.save(ddp, tmp_path / "ddp.pt")
    more = {"backbone.proposal": torch.ones(1)}
    released = {f"backbone.{n}": t for n, t in inside.items()} | more
    torch.save({"ema": {}, "model": released}, tmp_path / "released.pt")
    save_file(inside, tmp_path / "bare.safetensors")
    half = {n: t / 2 for n, t in inside.items()}
    Checkpoint(tmp_path / "ours.safetensors", {}).save({}, {"model": inside, "ema": half})
    for path in tmp_path.iterdir():
        fresh = torch.nn.Sequential(torch.nn.Linear(2, 3), torch.nn.Linear(3, 1))
        load_weights(fresh, path)
        assert all(torch.equal(t, inside[n]) for n, t in fresh.state_dict().items()), path
    load_weights(fresh, tmp_path / "ours.safetensors", "ema")
    assert torch.equal(fresh[0].weight, donor[0].weight / 2)


def test_weights_that_do_not_fit_are_refused_by_name(tmp_path):
    torch.save(torch.nn.Linear(3, 2).state_dict(), tmp_path / "wide.pt")
    with pytest.raises(SourceError, match=r"weight is \(2, 3\) there, \(2, 2\) here"):
        load_weights(torch.nn.Linear(2, 2), tmp_path / "wide.pt")
    with pytest.raises(SourceError, match=r"4 of 4 missing \(0.weight, 0.bias, 1.weight\)"):
        load_weights(torch.nn.Sequential(*[torch.nn.Linear(2, 2)] * 2), tmp_path / "wide.pt")
    (tmp_path / "wide.pt").write_bytes((tmp_path / "wide.pt").read_bytes()[:1000])
    with pytest.raises(SourceError, match="1,000 bytes"):
        load_weights(torch.nn.Linear(3, 2), tmp_path / "wide.pt")
    with pytest.raises(SourceError, match=r"no.safetensors \(missing\) can't be read"):
        load_weights(torch.nn.Linear(3, 2), tmp_path / "no.safetensors")
