"""Texts in files of every kind, and in datasets from a local Hub; what can't be told is asked."""

import gzip
import io
import json

import pandas as pd
import pytest
from tests.sources.hub_server import HubServer

from tokenspace.errors import SourceError
from tokenspace.sources import load_corpus

TEXT = "To be, or not to be.\nThat is the question."
LINES = TEXT.split("\n")


def jsonl(rows: list[dict]) -> bytes:
    return "\n".join(json.dumps(row, ensure_ascii=False) for row in rows).encode()


def parquet(**columns: list) -> bytes:
    buffer = io.BytesIO()
    pd.DataFrame(columns).to_parquet(buffer)
    return buffer.getvalue()


ROWS = [{"id": i, "text": line} for i, line in enumerate(LINES)]
FILES = {
    "a.txt": TEXT.encode(),
    "a.txt.gz": gzip.compress(TEXT.encode()),
    "a.jsonl": jsonl(ROWS),
    "a.jsonl.gz": gzip.compress(jsonl([*ROWS, {"id": 2, "text": None}])),
    "a.parquet": parquet(id=[0, 1, 2], text=[*LINES, None], title=["", "x", "y"]),
    "data/only.parquet": parquet(n=[1, 2], words=LINES),
}


@pytest.mark.parametrize("name", FILES)
def test_the_same_text_from_every_kind_of_file(hub: HubServer, tmp_path, name):
    path = tmp_path / name.rpartition("/")[2]
    path.write_bytes(FILES[name])
    assert load_corpus(path).text == TEXT
    assert load_corpus(str(path)).text == TEXT
    commit = hub.add("datasets/org/plays", {"README.md": b"# Plays", name: FILES[name]})
    for spec in ("org/plays", f"org/plays/{name}"):
        found = load_corpus(spec)
        assert found.text == TEXT
        assert found.name == "org/plays"
        assert found.origin == f"dataset org/plays@{commit[:12]}, file {name}"


def test_the_one_training_file_is_taken(hub: HubServer):
    hub.add("datasets/org/plays", {"test.txt": b"no", "train.txt": b"yes", "notes.pdf": b"%PDF"})
    assert load_corpus("org/plays").text == "yes"
    assert "test.txt" not in hub.sent()


def test_of_several_files_one_is_named(hub: HubServer):
    hub.add("datasets/org/plays", {f"train-{i}.txt": f"part {i}".encode() for i in range(12)})
    with pytest.raises(SourceError, match="12 files of text; name one as org/plays/FILE"):
        load_corpus("org/plays")
    assert load_corpus("org/plays/train-7.txt").text == "part 7"


def test_a_second_time_without_a_network(hub: HubServer, monkeypatch):
    hub.add("datasets/org/plays", {"a.txt": b"late"})
    assert load_corpus("org/plays").text == "late"
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    asked = len(hub.seen)
    assert load_corpus("org/plays").text == "late"
    assert len(hub.seen) == asked
    with pytest.raises(SourceError, match=r"this dataset isn't in the cache yet.*'shakespeare'"):
        load_corpus("org/others")


def test_a_model_of_the_same_name_is_another_thing(hub: HubServer):
    hub.add("org/name", {"a.txt": b"of the model"})
    with pytest.raises(SourceError, match="org/name: no such public dataset at http"):
        load_corpus("org/name")
    hub.add("datasets/org/name", {"a.txt": b"of the dataset"})
    assert load_corpus("org/name").text == "of the dataset"


@pytest.mark.parametrize(
    ("files", "spec", "says"),
    [
        ({"a.bin": b"x"}, "org/d", r"0 files of text; name one.* It has none \(.txt"),
        ({"a.txt": b"x"}, "org/d/b.txt", "no file b.txt; .* It has a.txt"),
        ({"a.txt": b" \n"}, "org/d", "org/d is empty"),
        ({"a.txt": b"a\0b"}, "org/d", "org/d is binary: a zero byte at 1 of 3"),
        ({"a.txt": "é".encode("latin1")}, "org/d", "org/d is not UTF-8: byte 0xe9"),
        ({"a.txt": b"short"}, "org/d", "5 characters, fewer than the 6 needed here"),
        ({"a.jsonl": b'{"a": "x"}\n{oh'}, "org/d", "line 2 is no JSON"),
        ({"a.jsonl": b'["x"]'}, "org/d", "line 1 is no JSON object"),
        ({"a.jsonl": jsonl([{"q": "x", "a": "y"}])}, "org/d", "more than one .*: q, a. Call"),
        ({"a.jsonl": jsonl([{"n": 1}])}, "org/d", "no column of text"),
        ({"a.jsonl": b"\n\n"}, "org/d", "is empty"),
        ({"a.parquet": parquet(q=["x"], a=["y"])}, "org/d", "more than one .*: q, a. Call"),
        ({"a.parquet": b"PAR1 and no more"}, "org/d", "org/d can't be read: .*[Pp]arquet"),
        ({"a.parquet": b""}, "org/d", "org/d can't be read"),
        ({"a.txt.gz": b"no gzip"}, "org/d", "org/d can't be read"),
    ],
)
def test_datasets_that_cannot_be_used(hub: HubServer, files, spec, says):
    hub.add("datasets/org/d", files)
    with pytest.raises(SourceError, match=says):
        load_corpus(spec, least=6 if "fewer" in says else 1)


def test_a_missing_file_is_not_looked_for_on_the_hub(hub: HubServer):
    for spec in ("texts/none.txt", "./none.jsonl", "none"):
        with pytest.raises(SourceError, match="can't be read"):
            load_corpus(spec)
    assert not hub.seen


def test_a_file_at_home_is_found(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "x.txt").write_text(TEXT)
    assert load_corpus("~/x.txt").text == TEXT


@pytest.mark.parametrize("kind", ["html", "missing"])
def test_a_server_that_misbehaves_is_said(hub: HubServer, kind):
    hub.add("datasets/org/d", {"a.txt": TEXT.encode() * 100})
    hub.misbehave["a.txt"] = kind
    with pytest.raises(SourceError, match="org/d"):
        load_corpus("org/d")


def test_a_file_as_other_systems_write_it(tmp_path):
    path = tmp_path / "a.txt"
    path.write_bytes("\ufeffab\r\nc".encode())
    assert load_corpus(path).text == "ab\nc"
    path.write_bytes(b"")
    with pytest.raises(SourceError, match="is empty"):
        load_corpus(path)
    with pytest.raises(SourceError, match="can't be read"):
        load_corpus(tmp_path)


def test_the_packaged_text_is_whole():
    assert len(load_corpus().text) == 5_053_984
