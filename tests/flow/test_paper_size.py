"""The language page's script and its cell for published weights, as they stand, at toy size."""

import math
import os
import re
import runpy
import subprocess
import sys
from argparse import Namespace
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
from tests.sources.hub_server import HubServer
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import GPT2Config, GPT2LMHeadModel

from tokenspace.flow.network import DiT
from tokenspace.nn.checkpoint import load
from tokenspace.sources import ranges

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "notebooks/flow/language.py").read_text()
SMALLER = {
    "50257, 768": "11, 8", "Windows(ids, 1024)": "Windows(ids, 6)", "steps=200_000": "steps=4",
    "batch=480, micro=20": "batch=8, micro=2", "warmup=2500": "warmup=2",
    "depth=12, heads=12": "depth=1, heads=2, conditioning=8",
}  # fmt: skip


def block(kind: str, holding: str) -> str:
    """The code block of the page that holds a text."""
    blocks = re.findall(rf"# ```{kind}\n((?:#.*\n)+?)# ```\n", PAGE)
    (found,) = (each for each in blocks if holding in each)
    return "".join(line[2:] + "\n" for line in found.splitlines())


@pytest.fixture
def script(tmp_path: Path) -> Path:
    """The page's training script with small numbers, and the ids that it reads."""
    text = block("python", "train_flow.py")
    for old, new in SMALLER.items():
        assert text.count(old) == 1, f"{old} isn't in the page's script any more"
        text = text.replace(old, new)
    path = tmp_path / "train_flow.py"
    path.write_text(text)
    torch.save(torch.arange(300) * 7 % 13 % 11, tmp_path / "openwebtext-gpt2.pt")
    return path


def test_the_page_s_script_trains_under_torchrun_as_it_does_alone_and_goes_on(
    script: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two processes, by the page's own command, end where one does: dropout and bf16 included."""
    program, *arguments = block("bash", "train_flow.py").split()
    assert program == "torchrun"
    assert arguments == ["--nproc-per-node", "8", "train_flow.py"]
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", *arguments]
    command[command.index("8")] = "2"
    env = os.environ | {"CUDA_VISIBLE_DEVICES": "", "OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        command, cwd=script.parent, env=env, capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr[-2000:]
    saved = script.with_name("run.safetensors")
    header, together = load(saved)
    assert (header["step"], header["stopped"]) == (4, "")

    monkeypatch.chdir(script.parent)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    text = script.read_text()
    script.write_text(text.replace("steps=4", "steps=6"))
    runpy.run_path(script.name, run_name="__main__")  # one process takes up what two left
    assert load(saved)[0]["step"] == 6
    saved.unlink()
    script.write_text(text)
    runpy.run_path(script.name, run_name="__main__")
    alone = load(saved)[1]
    for section in ("model", "ema"):
        for name, tensor in alone[section].items():
            torch.testing.assert_close(together[section][name], tensor, atol=2e-6, rtol=0)
    loss, their_loss = (each["records"]["loss"][-1] for each in (alone, together))
    assert float(their_loss) == pytest.approx(float(loss), rel=1e-4)


# --- published weights


def spelled(vocabulary: list[str]) -> Tokenizer:
    found = Tokenizer(models.WordLevel({word: i for i, word in enumerate(vocabulary)}, "?"))
    found.pre_tokenizer = pre_tokenizers.Whitespace()
    return found


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[HubServer]:
    monkeypatch.setattr(ranges, "PAUSE", 0.0)
    monkeypatch.delenv("HF_TOKEN", raising=False)
    with HubServer() as server:
        server.use(monkeypatch, tmp_path / "cache")
        yield server


def publish_model(path: Path, V: int) -> None:
    """A file of the released kind: the tensors of both models and of the optimizer in one."""
    torch.manual_seed(0)
    network = DiT(24, V, depth=2, heads=12, conditioning=8)
    state = {
        f"backbone.{n}": t + 0.2 * torch.randn(t.shape) for n, t in network.state_dict().items()
    }
    state |= {
        "backbone.vocab_embed.embedding": torch.randn(V, 24),
        "backbone.rotary_emb.inv_freq": torch.ones(1),
        "proposal.loc": torch.tensor(4.9563), "proposal.scale": torch.tensor(0.9637),
        "proposal.entropy": torch.tensor(7.02),
    }  # fmt: skip
    torch.save({"model": state, "ema": state, "opt": {}, "args": Namespace(lr=1e-5)}, path)


def test_the_page_s_cell_reads_published_weights_and_judges_from_the_hub(
    hub: HubServer, tmp_path: Path
) -> None:
    """Its perplexity is that of the samples' text, in the ids of the judge."""
    words = ["?", *"abcdefghij"]
    writer, reader = spelled(words), spelled(words[::-1])
    torch.manual_seed(0)
    scorer = GPT2LMHeadModel(
        GPT2Config(n_layer=1, n_embd=8, n_head=2, vocab_size=11, n_positions=16)
    )
    scorer.save_pretrained(tmp_path / "scorer")
    files = {each.name: each.read_bytes() for each in (tmp_path / "scorer").iterdir()}
    hub.add("toy/writer", {"tokenizer.json": writer.to_str().encode()})
    hub.add("toy/scorer", files | {"tokenizer.json": reader.to_str().encode()})
    publish_model(tmp_path / "released.pt", len(words))

    cells = re.split(r"\n# %%.*\n", PAGE)
    (imports,) = (cell for cell in cells if "import matplotlib.pyplot as plt" in cell)
    (cell,) = (cell for cell in cells if "read_released(Path(released))" in cell)
    said: list[str] = []
    page = SimpleNamespace(device="cpu", say=said.append)
    scope = {
        "page": page, "on": {"device": "cpu"}, "single_precision": {"dtype": torch.float32},
        "fresh": lambda which=0: torch.Generator().manual_seed(which),
        "released": str(tmp_path / "released.pt"), "tokenizer": "toy/writer",
        "scorer": "toy/scorer", "released_n": 6, "released_length": 8,
    }  # fmt: skip
    exec(imports + "\n" + cell, scope)

    made = scope["made"]
    assert made.shape == (6, 8)
    assert len(scope["paper_plan"].gammas) == 7
    total, scored = 0.0, 0
    for row in made.tolist():
        ids = torch.tensor([[reader.token_to_id(words[token]) for token in row]])
        with torch.no_grad():
            laws = scorer.eval()(ids).logits[0].double().log_softmax(-1)
        total -= float(laws[:-1].gather(1, ids[0, 1:, None]).sum())
        scored += len(row) - 1
    assert scope["paper_scale"] == pytest.approx(math.exp(total / scored), rel=1e-4)
    assert "nats. The first sample: " in said[0]
    assert {"tokenizer.json", "model.safetensors", "config.json"} <= set(hub.sent())
