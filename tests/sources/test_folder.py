"""Model folders: index and shards, tied and untied, padding, fp8 and its scales."""

from collections.abc import Callable
from pathlib import Path
from tempfile import mkdtemp

import pytest
import torch
from tests.sources.checkpoints import (
    EMBED,
    HEAD,
    INDEX,
    SHARDS,
    config,
    index,
    random_rows,
    save,
    sharded,
    single,
    write,
)

from tokenspace.errors import SourceError, TableError
from tokenspace.sources import check_rows, load_table

ROWS, OUT = random_rows(40, 8, seed=1), random_rows(40, 8, seed=2)


Place = Callable[[dict[str, bytes]], Path | str]


@pytest.fixture(params=["folder", "hub"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Place:
    """Puts a model's files in a folder or on a Hub; returns what `load_table` is given."""
    if request.param == "folder":
        return lambda files: write(Path(mkdtemp(dir=tmp_path)), files)
    server = request.getfixturevalue("hub")
    return lambda files: "org/model" if server.add("org/model", files) else ""


def test_a_sharded_model_gives_either_side(tmp_path: Path) -> None:
    folder = write(tmp_path, sharded(ROWS, OUT))
    table = load_table(folder)
    assert torch.equal(table.rows, ROWS)
    assert (table.stored, table.tied, table.side) == ("BF16", False, "input")
    assert (table.tokenizer_size, table.padded_rows, table.token(0)) == (37, 3, "t0")
    assert EMBED in table.origin
    assert torch.equal(load_table(folder, side="output").rows, OUT)


def test_shards_without_an_index_are_searched(tmp_path: Path) -> None:
    files = sharded(ROWS, OUT)
    del files[INDEX]
    folder = write(tmp_path, files)
    assert torch.equal(load_table(folder).rows, ROWS)
    assert torch.equal(load_table(folder, side="output").rows, OUT)


def test_an_index_that_names_a_missing_shard(place: Place) -> None:
    files = sharded(ROWS, OUT)
    del files[SHARDS[0]]
    spec = place(files)
    with pytest.raises(SourceError, match=f"index puts {EMBED} in {SHARDS[0]}, which isn't among"):
        load_table(spec)
    assert torch.equal(load_table(spec, side="output").rows, OUT)


def test_an_index_that_maps_a_tensor_to_the_wrong_shard(place: Place) -> None:
    files = sharded(ROWS, OUT)
    spec = place(files | {INDEX: index({EMBED: SHARDS[0], HEAD: SHARDS[0]})})
    with pytest.raises(SourceError, match=f"puts {HEAD} in {SHARDS[0]}, whose header doesn't list"):
        load_table(spec, side="output")
    with pytest.raises(SourceError, match=f"puts {EMBED} in an empty name, which isn't among"):
        load_table(place(files | {INDEX: index({EMBED: ""})}))


def test_an_index_that_points_outside_its_folder_is_not_followed(tmp_path: Path) -> None:
    write(tmp_path, {"secret.safetensors": save({EMBED: ROWS})})
    folder = write(tmp_path / "model", {INDEX: index({EMBED: "../secret.safetensors"})})
    with pytest.raises(SourceError, match="isn't among its files"):
        load_table(folder)


@pytest.mark.parametrize("content", [b"<html>", b"[3]", b"{}", b'{"weight_map": 3}'])
def test_an_index_that_is_not_one(content: bytes, tmp_path: Path) -> None:
    folder = write(tmp_path, sharded(ROWS, OUT) | {INDEX: content})
    with pytest.raises(SourceError, match=f"{INDEX} isn't (a shard index|JSON)"):
        load_table(folder)


WTE = "language_model.wte.weight"


@pytest.mark.parametrize(
    ("config_json", "tensors", "tied", "says"),
    [
        (config(tied=True), [EMBED], True, ""),
        (config(tied=False), [EMBED], False, "says tie_word_embeddings: false, yet no tensor"),
        (config(text_config={"tie_word_embeddings": True}), [WTE], True, ""),
        (config(architectures=["GPT2LMHeadModel"]), [WTE, "h.0.ln_1.weight"], True, ""),
        (
            config(architectures=["BertModel"]),
            [EMBED, "x"],
            None,
            "doesn't say .* tied.*Bert",
        ),
    ],
)
def test_without_an_output_matrix_the_configuration_says_whether_it_is_tied(
    config_json: bytes, tensors: list[str], tied: bool | None, says: str, place: Place
) -> None:
    spec = place(single(dict.fromkeys(tensors, ROWS)) | {"config.json": config_json})
    assert load_table(spec).tied is tied
    assert torch.equal(load_table(spec).rows, ROWS)
    if says:
        with pytest.raises(TableError, match=says):
            load_table(spec, side="output")
    else:
        table = load_table(spec, side="output")
        assert (table.tied, table.side, table.tokenizer_size) == (True, "output", None)
        assert torch.equal(table.rows, ROWS)


def test_an_unknown_tensor_lists_candidates(place: Place) -> None:
    spec = place(sharded(ROWS, OUT))
    with pytest.raises(TableError, match=f"no tensor embed_tokens. Candidates: .*{EMBED}"):
        load_table(spec, tensor="embed_tokens")


def test_a_flag_is_not_believed_against_the_files(tmp_path: Path) -> None:
    folder = write(tmp_path, single({EMBED: ROWS, HEAD: OUT}, tied=True))
    table = load_table(folder, side="output")
    assert table.tied is False
    assert torch.equal(table.rows, OUT)
    assert f"hold {HEAD}, which differs from {EMBED}" in table.notes[0]
    write(tmp_path, single({EMBED: ROWS, HEAD: ROWS}, tied=True))
    assert (load_table(folder).tied, load_table(folder).notes) == (True, ())


def test_the_lack_of_an_output_matrix_in_one_shard_of_two_says_nothing(tmp_path: Path) -> None:
    files = sharded(ROWS, OUT) | {"config.json": config()}
    folder = write(tmp_path, files)
    assert load_table(folder / SHARDS[0]).tied is None
    with pytest.raises(TableError, match="doesn't say that it is tied"):
        load_table(folder / SHARDS[0], side="output")


@pytest.mark.parametrize("more", [{"text_config": "llama"}, {"architectures": "Llama"}])
@pytest.mark.parametrize("stored", [torch.float32, torch.float8_e4m3fn])
def test_settings_of_the_wrong_kind_are_as_good_as_absent(
    more: dict, stored: torch.dtype, tmp_path: Path
) -> None:
    files = single({EMBED: ROWS.to(stored)})
    files["config.json"] = config(**more, quantization_config="none")
    assert load_table(write(tmp_path, files)).rows.dtype == stored


def test_extra_prediction_heads_are_not_the_table(tmp_path: Path) -> None:
    tensors = {"model.layers.92.embed_tokens.weight": OUT, EMBED: ROWS}
    assert torch.equal(load_table(write(tmp_path, single(tensors))).rows, ROWS)


def test_several_likely_tables_ask_for_a_name(tmp_path: Path) -> None:
    names = ["encoder.embed_tokens.weight", "decoder.embed_tokens.weight"]
    folder = write(tmp_path, single(dict.fromkeys(names, ROWS)))
    with pytest.raises(
        TableError, match=r"several tensors .*decoder.*encoder.*Name one with tensor"
    ):
        load_table(folder)
    assert load_table(folder, tensor=names[1]).rows.shape == (40, 8)


@pytest.mark.parametrize(
    ("files", "message"),
    [
        ({}, "has no safetensors. Its files: none"),
        ({"README.md": b"x"}, "has no safetensors. Its files: README.md"),
        (
            {"pytorch_model.bin": b"x"},
            r"files: pytorch_model.bin. Pickled .*never loaded here.*refs/pr/N",
        ),
        (
            {"a.gguf": b"x", "b.gguf": b"x"},
            "no safetensors. Its files: a.gguf, b.gguf. Pass the path of one",
        ),
        ({"config.json": b"<html>", "model.safetensors": b""}, "config.json isn't JSON .*<html>"),
    ],
)
def test_a_folder_without_a_table_says_what_it_has(
    files: dict[str, bytes], message: str, place: Place
) -> None:
    with pytest.raises(SourceError, match=message):
        load_table(place(files))


@pytest.mark.parametrize("name", ["vocab.txt", "vocab.json"])
def test_other_tokenizer_files_are_read(name: str, tmp_path: Path) -> None:
    content = {"vocab.txt": b"[PAD]\na\nb\n", "vocab.json": b'{"[PAD]": 0, "a": 1, "b": 2}'}
    table = load_table(write(tmp_path, single({EMBED: ROWS}) | {name: content[name]}))
    assert (table.tokens, table.tokenizer_size, table.padded_rows) == (["[PAD]", "a", "b"], 3, 37)


def test_a_gap_in_the_vocabulary_is_no_token(tmp_path: Path) -> None:
    files = single({EMBED: ROWS}) | {"vocab.json": b'{"a": 0, "z": 39}'}
    table = load_table(write(tmp_path, files))
    assert (table.padded_rows, table.token(5)) == (0, "<row 5: no token>")
    assert (table.unnamed_rows, table.entries_without_row) == (38, 0)


def test_a_broken_tokenizer_costs_the_labels_not_the_table(tmp_path: Path) -> None:
    files = single({EMBED: ROWS}) | {"tokenizer.json": b"<html>"}
    with pytest.warns(UserWarning, match=r"tokenizer\.json can't be read .*padded rows"):
        table = load_table(write(tmp_path, files))
    assert (table.tokens, table.tokenizer_size, table.padded_rows) == (None, None, 0)


E4M3 = torch.float8_e4m3fn
SCALES = {
    "one number": (torch.tensor(3.0), torch.full((6, 4), 3.0)),
    "one per row": (torch.arange(6.0)[:, None], torch.arange(6.0)[:, None].expand(6, 4)),
    "a vector of rows": (torch.arange(6.0), torch.arange(6.0)[:, None].expand(6, 4)),
}


@pytest.mark.parametrize("kind", SCALES)
@pytest.mark.parametrize("ending", ["_scale", "_scale_inv"])
def test_fp8_is_multiplied_by_its_scale(kind: str, ending: str, tmp_path: Path) -> None:
    scale, spread = SCALES[kind]
    rows = random_rows(6, 4, E4M3)
    table = load_table(write(tmp_path, single({EMBED: rows, EMBED + ending: scale})))
    assert table.stored == "F8_E4M3"
    assert table.rows.dtype == torch.float32
    assert torch.equal(table.rows, rows.float() * spread)
    assert table.origin.endswith(f"times {EMBED}{ending}")


def test_a_scale_of_another_shape_is_refused(tmp_path: Path) -> None:
    files = single({EMBED: random_rows(6, 4, E4M3), EMBED + "_scale_inv": torch.ones(2, 2)})
    with pytest.raises(TableError, match=r"scale .* has shape \(2, 2\), which doesn't fit .*6, 4"):
        load_table(write(tmp_path, files))


def test_scaled_fp8_without_its_scale_is_refused(tmp_path: Path) -> None:
    rows = random_rows(6, 4, E4M3)
    others = {"model.layers.0.q.weight": rows, "model.layers.0.q.weight_scale": torch.tensor(2.0)}
    folder = write(tmp_path, single({EMBED: rows} | others))
    with pytest.raises(
        TableError, match=f"F8_E4M3 and its scale is missing: no tensor {EMBED}_scale"
    ):
        load_table(folder)
    files = single({EMBED: rows})
    files["config.json"] = config(text_config={"quantization_config": {"quant_method": "fp8"}})
    with pytest.raises(TableError, match=r"its scale is missing.*quantization_config says fp8"):
        load_table(write(tmp_path, files))


def test_plain_fp8_is_cast(tmp_path: Path) -> None:
    rows = random_rows(6, 4, E4M3)
    table = load_table(write(tmp_path, single({EMBED: rows, "logit_scale": torch.tensor(2.0)})))
    assert (table.stored, table.rows.dtype) == ("F8_E4M3", E4M3)
    assert torch.equal(check_rows(table.rows), rows.float())
