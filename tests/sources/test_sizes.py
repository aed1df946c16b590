"""How large tables and models are, by a catalogue, by headers alone, or by assumption."""

import os
from pathlib import Path

import pytest
from tests.sources.checkpoints import EMBED, random_rows, sharded, single
from tests.sources.hub_server import HubServer

from tokenspace.sources import hf_models, load_table, packaged_tables
from tokenspace.sources.sizes import ASSUMED, Sizes

ROWS, OUT = random_rows(500, 16, seed=1), random_rows(500, 16, seed=2)


def test_packaged_tables_are_here_and_have_the_rows_that_are_read() -> None:
    sizes = Sizes(network=False)
    for entry in packaged_tables():
        found = sizes(entry.name)
        assert (found.table_bytes, found.model_bytes, found.known) == (0, 0, True)
        if entry.installed:
            assert (found.rows, found.width) == tuple(load_table(entry.name).rows.shape)


def test_of_a_model_on_the_hub_only_headers_travel(hub: HubServer) -> None:
    files = sharded(ROWS, OUT)
    hub.add("org/model", files)
    found = Sizes()("org/model")
    assert (found.rows, found.width, found.origin) == (500, 16, "huggingface.co")
    assert found.table_bytes == ROWS.nbytes
    weights = {name: data for name, data in files.items() if name.endswith(".safetensors")}
    headers = {name: 8 + int.from_bytes(data[:8], "little") for name, data in weights.items()}
    assert found.model_bytes == sum(len(data) - headers[name] for name, data in weights.items())
    sent = hub.sent()
    assert {name: sent[name] for name in weights} == headers


def test_what_was_fetched_before_need_not_travel_again(hub: HubServer) -> None:
    hub.add("org/model", single({EMBED: ROWS}))
    load_table("org/model")
    found = Sizes()("org/model")
    assert found.table_bytes == 0
    assert found.model_bytes > ROWS.nbytes / 2
    assert "cache" in found.origin


def test_a_model_that_cannot_be_had_is_assumed_and_the_next_is_still_asked_for(
    hub: HubServer,
) -> None:
    hub.add("org/model", single({EMBED: ROWS}))
    sizes = Sizes()
    missing = sizes("org/missing")
    assert not missing.known
    assert (missing.rows, missing.width) == (ASSUMED["rows"], ASSUMED["width"])
    assert "no such public model" in missing.origin
    assert sizes("org/model").known


def test_without_a_network_nothing_is_asked_twice(
    hub: HubServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    from huggingface_hub import constants

    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    sizes = Sizes()
    first, second = sizes("org/one"), sizes("org/two")
    assert "HF_HUB_OFFLINE is set" in first.origin
    assert second.origin.endswith("the Hub was not asked")
    assert not hub.seen


def test_the_catalogue_knows_every_model_that_is_certain_to_exist(hub: HubServer) -> None:
    sizes = Sizes()
    for model in hf_models():
        if model.certain:
            found = sizes(model.id)
            assert found.known
            assert found.numbers > found.rows * found.width
            assert sizes(f"{model.id}@step0").rows == found.rows
    assert not hub.seen


def test_a_file_is_looked_at_where_it_lies(tmp_path: Path) -> None:
    data = single({EMBED: ROWS})["model.safetensors"]
    path = tmp_path / "table.safetensors"
    path.write_bytes(data)
    found = Sizes(network=False)(str(path))
    assert (found.rows, found.width, found.table_bytes) == (500, 16, 0)
    assert Sizes(network=False)(os.fspath(tmp_path / "nothing.npy")).rows == 0
