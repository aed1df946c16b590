"""Public models from a Hub-shaped server on this machine: what travels, and what is refused."""

import errno
from pathlib import Path

import pytest
import torch
from huggingface_hub import scan_cache_dir
from tests.sources.checkpoints import (
    EMBED,
    HEAD,
    SHARDS,
    config,
    random_rows,
    save,
    sharded,
    single,
    write,
)
from tests.sources.hub_server import HubServer, point_at

from tokenspace.errors import SourceError, TableError, UnreachableError
from tokenspace.sources import hf, load_table

ROWS, OUT = random_rows(500, 16, seed=1), random_rows(500, 16, seed=2)
FILE = "model.safetensors"


def header_bytes(file: bytes) -> int:
    return 8 + int.from_bytes(file[:8], "little")


def kept(folder: Path) -> list[Path]:
    return [p for p in folder.rglob("*") if p.is_file() and "tables" in p.parts]


@pytest.mark.parametrize(
    ("side", "tensor", "rows", "shard"),
    [("input", EMBED, ROWS, SHARDS[0]), ("output", HEAD, OUT, SHARDS[1])],
)
def test_of_a_sharded_model_only_one_tensor_travels(
    side: str, tensor: str, rows: torch.Tensor, shard: str, hub: HubServer
) -> None:
    files = sharded(ROWS, OUT)
    commit = hub.add("org/model", files)
    table = load_table("org/model", side=side)
    assert torch.equal(table.rows, rows)
    assert (table.name, table.stored, table.tied) == ("org/model", "BF16", False)
    assert (table.tokenizer_size, table.padded_rows) == (497, 3)
    assert table.origin == f"org/model@{commit[:12]}: {tensor}"
    sent = hub.sent()
    assert sent[shard] == header_bytes(files[shard]) + rows.nbytes
    small = {name: len(data) for name, data in files.items() if name not in SHARDS}
    assert {name: n for name, n in sent.items() if name not in ("api", shard)} == small


def test_a_second_load_reads_the_disk(hub: HubServer, monkeypatch: pytest.MonkeyPatch) -> None:
    commit = hub.add("org/model", sharded(ROWS, OUT))
    load_table("org/model")
    before = hub.sent()
    table = load_table("org/model")
    assert torch.equal(table.rows, ROWS)
    after = hub.sent()
    assert {n: after[n] for n in after if n != "api"} == {
        n: before[n] for n in before if n != "api"
    }
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    asked = len(hub.seen)
    assert torch.equal(load_table("org/model").rows, ROWS)
    assert torch.equal(load_table(f"org/model@{commit}").rows, ROWS)
    assert len(hub.seen) == asked
    with pytest.raises(UnreachableError, match=r"HF_HUB_OFFLINE is set .* offline here: minilm"):
        load_table("org/other")


def test_revisions_are_kept_apart(hub: HubServer) -> None:
    hub.add("org/model", single({EMBED: OUT}), revision="step1000")
    hub.add("org/model", single({EMBED: ROWS}))
    assert torch.equal(load_table("org/model").rows, ROWS)
    assert torch.equal(load_table("org/model", revision="step1000").rows, OUT)
    assert torch.equal(load_table("org/model@step1000").rows, OUT)
    assert torch.equal(load_table("org/model").rows, ROWS)
    hub.add("org/model", single({EMBED: OUT}))  # the branch moves
    assert torch.equal(load_table("org/model").rows, OUT)


def test_a_model_another_tool_downloaded_is_not_fetched_again(hub: HubServer) -> None:
    from huggingface_hub import constants, hf_hub_download

    hub.add("org/model", sharded(ROWS, OUT))
    for name in sharded(ROWS, OUT):
        hf_hub_download(
            "org/model", name, endpoint=constants.ENDPOINT, cache_dir=constants.HF_HUB_CACHE
        )
    before = hub.sent()
    assert torch.equal(load_table("org/model").rows, ROWS)
    after = hub.sent()
    assert all(after[name] == before[name] for name in before if name != "api")


# What the server may do wrong, and what is said about it.
BAD = {
    "ignore-range": r"bytes 0-7, the server answered 200 .*none, \d+ bytes.*pass its path",
    "html": r"the server answered 200 with .* bytes of text/html, which weren't read",
    "wrong-range": r"asked for bytes \d+-\d+, the server answered 206 with Content-Range bytes 0-",
    "whole-as-part": r"the server answered 206 with Content-Range bytes 0-7/\d+, \d+ bytes",
    "long": "the server sent more than it was asked for",
    "silent": r"cut off after 0 of 16000 bytes and 4 more tries brought nothing",
    "other-commit": r"asked for commit \w{40}, the server has 0{40}",
    "missing": r"org/model lists a file that it doesn't serve: Entry not found",
}


@pytest.mark.parametrize("kind", BAD)
def test_a_server_that_misbehaves_is_refused(kind: str, hub: HubServer, tmp_path: Path) -> None:
    hub.add("org/model", single({EMBED: ROWS, "other": torch.zeros(99)}))
    hub.misbehave[FILE] = kind
    with pytest.raises(SourceError, match=BAD[kind]):
        load_table("org/model")
    assert ROWS.nbytes not in {path.stat().st_size for path in kept(tmp_path)}
    hub.misbehave.clear()
    assert torch.equal(load_table("org/model").rows, ROWS)


def test_a_whole_file_sent_for_a_range_is_not_read_to_its_end(hub: HubServer) -> None:
    """The connection is dropped: a mirror that ignores Range must not cost gigabytes."""
    data = save({EMBED: torch.zeros(2**23, 1)})
    hub.add("org/model", {FILE: data})
    hub.misbehave[FILE] = "ignore-range"
    with pytest.raises(SourceError, match="the server answered 200"):
        load_table("org/model")
    assert hub.sent()[FILE] < len(data) / 2


@pytest.mark.parametrize("length", [1, 15, 16, 1000])
def test_a_short_answer_is_resumed_where_it_stopped(length: int, hub: HubServer) -> None:
    rows = random_rows(length, 16, seed=3)
    files = single({"first": torch.ones(3), EMBED: rows})
    hub.add("org/model", files)
    hub.misbehave[FILE] = "cut"
    assert torch.equal(load_table("org/model").rows, rows)
    assert hub.sent()[FILE] == header_bytes(files[FILE]) + rows.nbytes


def test_a_file_truncated_on_the_server(hub: HubServer) -> None:
    files = single({"other": torch.zeros(99), EMBED: ROWS})
    hub.add("org/model", files)
    hub.misbehave[FILE] = "truncate"
    size = len(files[FILE]) // 2
    with pytest.raises(SourceError, match=rf"truncated on the server: .* needed, it has {size}"):
        load_table("org/model")
    hub.add("org/empty", files | {FILE: b""})
    hub.misbehave.clear()
    with pytest.raises(SourceError, match=r"truncated on the server: bytes 0 to 8 .*it has 0"):
        load_table("org/empty")


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (
            b"<!DOCTYPE html><html></html>",
            r"not a safetensors file .*b'<!DOCTYP'.*web page",
        ),
        (b"version https://git-lfs.github.com/spec/v1", "Git LFS pointer"),
        ((10**9).to_bytes(8, "little") + b"{}", "not a safetensors file"),
        (b"\xe8\x03\0\0\0\0\0\0{}", r"truncated on the server: bytes 8 to 1008 .* it has 10"),
        (b"\x02\0\0\0\0\0\0\0{}", "none of its 0 tensors .*It has no tensors at all"),
    ],
)
def test_a_file_that_is_not_what_its_name_says(data: bytes, message: str, hub: HubServer) -> None:
    hub.add("org/model", {"config.json": config(), FILE: data})
    with pytest.raises((SourceError, TableError), match=message):
        load_table("org/model")
    assert hub.sent()[FILE] <= len(data)


def test_a_redirect_is_followed_and_the_token_stays_at_home(
    hub: HubServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HF_TOKEN", "hf_secret")
    files = single({EMBED: ROWS})
    hub.add("org/model", files)
    with HubServer() as other:
        other.add("org/model", files)
        hub.misbehave[FILE], hub.elsewhere = "redirect", other.url
        assert torch.equal(load_table("org/model").rows, ROWS)
        assert other.sent()[FILE] == header_bytes(files[FILE]) + ROWS.nbytes
        assert all("authorization" not in request.headers for request in other.seen)
    assert all(r.headers["authorization"] == "Bearer hf_secret" for r in hub.seen if FILE in r.path)


@pytest.mark.parametrize("to", ["", "file:///etc/passwd?", "http://127.0.0.1:1"])
def test_a_redirect_to_nowhere_ends(to: str, hub: HubServer) -> None:
    hub.add("org/model", single({EMBED: ROWS}))
    hub.misbehave[FILE], hub.elsewhere = "redirect", to
    with pytest.raises(SourceError, match="org/model"):
        load_table("org/model")


def test_a_server_error_is_tried_again_then_said(
    hub: HubServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("huggingface_hub.utils._http.time.sleep", lambda seconds: None)
    hub.add("org/model", single({EMBED: ROWS}))
    hub.misbehave[FILE] = "busy"
    with pytest.raises(
        UnreachableError, match=r"org/model at main.* answered HTTP 500; try again later"
    ):
        load_table("org/model")
    assert sum(FILE in request.path for request in hub.seen) == 4


def test_models_that_cannot_be_had(hub: HubServer) -> None:
    hub.add("org/gated", single({EMBED: ROWS}), gated=True)
    hub.add("org/model", single({EMBED: ROWS}))
    for spec, message in {
        "org/absent": r"org/absent: no such public model at http.*HTTP 401.*hf auth login",
        "org/gated": r"org/gated is gated: accept its terms at http.*/org/gated, then `hf auth",
        "org/model@nope": "org/model has no revision nope",
        "org/..": r"can't be the id of a model",
    }.items():
        with pytest.raises(SourceError, match=message):
            load_table(spec)


def test_the_flag_of_a_tied_model_with_a_head_of_its_own_is_left_open(hub: HubServer) -> None:
    """To compare the two matrices both would have to travel."""
    hub.add("org/model", single({EMBED: ROWS, HEAD: OUT}, tied=True))
    table = load_table("org/model", side="output")
    assert torch.equal(table.rows, OUT)
    assert table.tied is None
    assert "was not compared" in table.notes[0]


def test_addresses_and_bare_ids_are_recognized(hub: HubServer) -> None:
    hub.add("org/model", single({EMBED: ROWS}), revision="v1")
    for address in ("https://huggingface.co/org/model/tree/v1", f"{hub.url}/org/model@v1"):
        assert torch.equal(load_table(address).rows, ROWS)
    with pytest.raises(SourceError, match=r"^gpt2: no such public model .*no such file or folder"):
        load_table("gpt2")


@pytest.mark.parametrize(
    "path", ["data/missing.pt", "./org", "./org/model", "~/none.npy", "a/b.gguf", ""]
)
def test_a_missing_path_is_not_looked_for_on_hugging_face(path: str, hub: HubServer) -> None:
    with pytest.raises(SourceError, match="no such file, folder"):
        load_table(path)
    assert not hub.seen


def test_something_that_is_no_hub(hub: HubServer) -> None:
    hub.misbehave["api"] = "html"
    with pytest.raises(
        SourceError, match=r"didn't answer as Hugging Face does.*HF_ENDPOINT.*login page"
    ):
        load_table("org/model")


def test_no_network_names_what_works_without_one(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    point_at(monkeypatch, "http://127.0.0.1:1", tmp_path)
    monkeypatch.setenv("TOKENSPACE_RUN", str(tmp_path))
    with pytest.raises(UnreachableError) as caught:
        load_table("org/model")
    assert "org/model: http://127.0.0.1:1 can't be" in (tmp_path / "unreached.txt").read_text()
    message = str(caught.value)
    assert "http://127.0.0.1:1 can't be reached" in message
    assert message.endswith("Tables that work offline here: minilm, smollm2, glove.")


def test_a_lost_network_leaves_what_was_fetched(
    hub: HubServer, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    hub.add("org/model", sharded(ROWS, OUT))
    load_table("org/model")
    point_at(monkeypatch, "http://127.0.0.1:1", tmp_path / "cache")
    assert torch.equal(load_table("org/model").rows, ROWS)
    with pytest.raises(SourceError, match=r"can't be reached.*work offline"):
        load_table("org/model", side="output")


def test_a_cache_that_cannot_be_written(
    hub: HubServer, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "file").write_text("not a folder")
    hub.use(monkeypatch, tmp_path / "file")
    hub.add("org/model", single({EMBED: ROWS}))
    with pytest.raises(SourceError, match=r"the cache in .*file can't be used \(.*HF_HUB_CACHE"):
        load_table("org/model")


def test_a_full_disk(hub: HubServer, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    hub.add("org/model", single({EMBED: ROWS}))
    fetch = hf.fetch

    def full(url: str, where: str, start: int, end: int, *rest: object) -> int:
        if end - start == ROWS.nbytes:
            raise OSError(errno.ENOSPC, "No space left on device")
        return fetch(url, where, start, end, *rest)

    monkeypatch.setattr(hf, "fetch", full)
    with pytest.raises(SourceError, match=r"can't be used \(No space left on device\)\. Free some"):
        load_table("org/model")
    assert not [p for p in kept(tmp_path) if "part" in p.name]
    assert ROWS.nbytes not in {path.stat().st_size for path in kept(tmp_path)}


def test_a_read_only_cache_still_gives_what_it_holds(
    hub: HubServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    hub.add("org/model", sharded(ROWS, OUT))
    load_table("org/model")

    def refuse(*_: object) -> None:
        raise OSError(errno.EROFS, "Read-only file system")

    monkeypatch.setattr(hf, "keeping", refuse)
    assert torch.equal(load_table("org/model").rows, ROWS)
    with pytest.raises(SourceError, match="Read-only file system"):
        load_table("org/model", side="output")


def test_the_cache_stays_one_that_huggingface_understands(hub: HubServer, tmp_path: Path) -> None:
    hub.add("org/model", sharded(ROWS, OUT))
    load_table("org/model")
    found = scan_cache_dir(tmp_path / "cache")
    assert [repo.repo_id for repo in found.repos] == ["org/model"]
    assert found.warnings == []


def test_a_folder_of_that_name_comes_first(
    hub: HubServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "org").mkdir()
    write(tmp_path / "org" / "model", single({EMBED: OUT}))
    hub.add("org/model", single({EMBED: ROWS}))
    assert torch.equal(load_table("org/model").rows, OUT)
