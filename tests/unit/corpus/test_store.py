from __future__ import annotations

import json

import numpy as np
import pytest

from nmtflex.config import FORMAT
from nmtflex.corpus.store import StoreWriter, TokenStore, id_type, open_prepared
from nmtflex.errors import DataError
from nmtflex.text.pipeline import SidePipeline, TextPipeline
from nmtflex.text.tokenizers import NoneTokenizer
from nmtflex.text.vocabulary import Vocabulary


@pytest.fixture
def prepared(tmp_path):
    """Write a prepared folder by hand: two sentences on either side of valid."""
    folder = tmp_path / "enja"
    (folder / "raw").mkdir(parents=True)
    sides = [
        SidePipeline(language, NoneTokenizer(), None, Vocabulary(["a", "b", "c"], [1] * 3))
        for language in ("en", "ja")
    ]
    TextPipeline(*sides).save(folder / "pipeline")
    for side in ("source", "target"):
        with StoreWriter(folder / f"valid.{side}", "<u2") as writer:
            writer.append([4, 5, 6], [2, 1])
    (folder / "raw/valid.source.txt").write_bytes("a\u0085 b\nc\n".encode())
    files = [path for path in folder.rglob("*") if path.is_file()]
    manifest = {
        "format": FORMAT,
        "splits": {"valid": {"source": {"dtype": "<u2"}, "target": {"dtype": "<u2"}}},
        "files": {str(path.relative_to(folder)): {"bytes": path.stat().st_size} for path in files},
    }
    (folder / "manifest.json").write_text(json.dumps(manifest))
    return folder


def test_the_type_follows_the_vocabulary():
    assert id_type(65536) == "<u2"  # ids up to 65535
    assert id_type(65537) == "<u4"


@pytest.mark.parametrize("dtype", ["<u2", "<u4"])
def test_what_is_written_is_read(tmp_path, dtype):
    with StoreWriter(tmp_path / "train.source", dtype) as writer:
        writer.append([7, 8, 9], [2, 0, 1])
        writer.append([], [])
        writer.append(np.array([65535]), np.array([1, 0]))
    store = TokenStore(tmp_path / "train.source", dtype)
    assert [store[i].tolist() for i in range(len(store))] == [[7, 8], [], [9], [65535], []]
    assert store[-2].tolist() == [65535]
    assert store.lengths.tolist() == [2, 0, 1, 1, 0]
    assert store.lengths.dtype == np.int32
    assert (tmp_path / "train.source.bin").stat().st_size == 4 * int(dtype[-1])
    assert (tmp_path / "train.source.offsets").stat().st_size == 6 * 8


def test_a_store_without_tokens(tmp_path):
    with StoreWriter(tmp_path / "valid.source", "<u2") as writer:
        writer.append([], [0, 0])
    store = TokenStore(tmp_path / "valid.source", "<u2")
    assert [store[i].tolist() for i in range(len(store))] == [[], []]


@pytest.mark.parametrize("index", [3, -4])
def test_no_sentence_beyond_the_end(tmp_path, index):
    with StoreWriter(tmp_path / "x", "<u2") as writer:
        writer.append([1, 2, 3], [1, 1, 1])
    with pytest.raises(IndexError, match=f"sentence {index} of 3"):
        TokenStore(tmp_path / "x", "<u2")[index]


def test_a_prepared_folder_opens(prepared):
    corpus = open_prepared(str(prepared))
    assert corpus.splits == ["valid"]
    assert corpus.store("valid", "source").lengths.tolist() == [2, 1]
    assert corpus.raw("valid", "source") == ["a\u0085 b", "c"]
    assert corpus.fingerprint == open_prepared(prepared).fingerprint


def test_the_fingerprint_changes_with_a_file_and_not_with_where_it_was_made(prepared):
    before = open_prepared(prepared).fingerprint
    manifest = json.loads((prepared / "manifest.json").read_text())
    (prepared / "manifest.json").write_text(json.dumps(manifest | {"made_of": "elsewhere"}))
    assert open_prepared(prepared).fingerprint == before
    manifest["files"]["valid.source.bin"]["sha256"] = "0" * 64
    (prepared / "manifest.json").write_text(json.dumps(manifest))
    assert open_prepared(prepared).fingerprint != before


def test_a_split_that_is_not_there(prepared):
    corpus = open_prepared(prepared)
    with pytest.raises(DataError, match="no split 'test'; there is valid"):
        corpus.store("test", "source")
    with pytest.raises(DataError, match="no split 'dev'"):
        corpus.raw("dev", "target")


def test_train_has_no_raw_text(prepared):
    corpus = open_prepared(prepared)
    corpus.manifest["splits"]["train"] = {}
    with pytest.raises(DataError, match=r"enja: .* train"):
        corpus.raw("train", "source")


def test_a_folder_that_is_not_there_or_not_prepared(tmp_path):
    with pytest.raises(DataError, match="none: no such folder; make it with nmtflex preprocess"):
        open_prepared(tmp_path / "none")
    with pytest.raises(DataError, match=r"not a prepared folder.* manifest\.json"):
        open_prepared(tmp_path)


@pytest.mark.parametrize("content", ['{"a": 1}', '{"format": "1", "splits": {}, "files": {}}'])
def test_another_json_file_is_no_manifest(tmp_path, content):
    (tmp_path / "manifest.json").write_text(content)
    with pytest.raises(DataError, match=r"manifest\.json: not the manifest"):
        open_prepared(tmp_path)


def test_a_newer_format_is_refused(prepared):
    manifest = json.loads((prepared / "manifest.json").read_text())
    (prepared / "manifest.json").write_text(json.dumps(manifest | {"format": FORMAT + 1}))
    with pytest.raises(DataError, match=f"format {FORMAT + 1} is newer than {FORMAT}"):
        open_prepared(prepared)


def test_a_truncated_file_is_found(prepared):
    path = prepared / "valid.source.bin"
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(DataError, match=r"valid\.source\.bin: 5 bytes, but 6 were written"):
        open_prepared(prepared)


def test_a_missing_file_is_found(prepared):
    (prepared / "valid.source.offsets").unlink()
    with pytest.raises(DataError, match=r"valid\.source\.offsets: missing"):
        open_prepared(prepared)


def change(prepared, **values):
    """Change the manifest, None for a key that goes."""
    path = prepared / "manifest.json"
    manifest = json.loads(path.read_text()) | values
    path.write_text(json.dumps({k: v for k, v in manifest.items() if v is not None}))


SIDE = {"dtype": "<u2"}
BOTH = {"source": SIDE, "target": SIDE}


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"splits": ["valid"]}, "no splits, or no files"),
        ({"files": None}, "no splits, or no files"),
        ({"splits": {"../valid": BOTH}}, r"'\.\./valid'"),
        ({"splits": {"valid": {"source": SIDE}}}, r".*type of valid\.target"),
        ({"splits": {"valid": BOTH | {"source": {"dtype": "O"}}}}, r".*type of valid\.source"),
        ({"splits": {"train": BOTH}}, r".*train\.source\.bin"),
    ],
)
def test_a_manifest_that_is_damaged_says_where(prepared, values, message):
    change(prepared, **values)
    with pytest.raises(DataError, match=rf"manifest\.json: not the manifest .*: {message}"):
        open_prepared(prepared)


@pytest.mark.parametrize("name", ["../other", "/etc/passwd", "raw/../../other", "a\0b"])
def test_a_manifest_names_no_file_outside_its_folder(prepared, name):
    files = json.loads((prepared / "manifest.json").read_text())["files"]
    change(prepared, files=files | {name: {"bytes": 1}})
    with pytest.raises(DataError, match="inside the folder"):
        open_prepared(prepared)


def test_a_manifest_gives_sizes(prepared):
    files = json.loads((prepared / "manifest.json").read_text())["files"]
    change(prepared, files=files | {"valid.source.bin": {"bytes": "6"}})
    with pytest.raises(DataError, match=r"no size of 'valid\.source\.bin'"):
        open_prepared(prepared)


def store_of(prepared):
    return open_prepared(prepared).store("valid", "source")


@pytest.mark.parametrize("offsets", [[0, 2, 4], [1, 2, 3], [], [0]])
def test_offsets_of_other_tokens(prepared, offsets):
    path = prepared / "valid.source.offsets"
    path.write_bytes(np.array(offsets, "<i8").tobytes())
    with pytest.raises(DataError, match=r"valid\.source\.bin and \.offsets do not belong together"):
        TokenStore(prepared / "valid.source", "<u2")


@pytest.mark.parametrize("middle", [-1, 4, 2**62])
def test_offsets_that_go_back(prepared, middle):
    path = prepared / "valid.source.offsets"
    path.write_bytes(np.array([0, middle, 3], "<i8").tobytes())
    message = r"valid\.source\.bin and \.offsets are damaged at sentence [01]"
    with pytest.raises(DataError, match=message):
        _ = store_of(prepared).lengths
    with pytest.raises(DataError, match=message):
        list(map(store_of(prepared).__getitem__, range(2)))


def test_an_id_that_no_word_has(prepared):
    path = prepared / "valid.source.bin"
    path.write_bytes(np.array([4, 5, 7], "<u2").tobytes())  # three words have 4 to 6
    assert store_of(prepared)[0].tolist() == [4, 5]
    with pytest.raises(DataError, match="are damaged at sentence 1"):
        store_of(prepared)[1]


def test_bytes_that_are_no_whole_numbers(prepared):
    path = prepared / "valid.source.offsets"
    path.write_bytes(path.read_bytes() + b"\0")
    with pytest.raises(DataError, match=r"valid\.source\.offsets: 25 bytes .* multiple of 8"):
        TokenStore(prepared / "valid.source", "<u2")


def test_a_store_that_is_not_there(tmp_path):
    with pytest.raises(DataError, match=r"train\.source\.bin: No such file .*; prepare the folder"):
        TokenStore(tmp_path / "train.source", "<u2")


def test_sides_of_different_lengths(prepared):
    with StoreWriter(prepared / "valid.target", "<u2") as writer:
        writer.append([4, 5, 6], [1, 1, 1])
    files = json.loads((prepared / "manifest.json").read_text())["files"]
    change(prepared, files=files | {"valid.target.offsets": {"bytes": 32}})
    with pytest.raises(DataError, match="valid has different numbers"):
        store_of(prepared)


def test_a_store_that_is_cut_short_while_it_is_open(tmp_path):
    with StoreWriter(tmp_path / "train.source", "<u2") as writer:
        writer.append([7, 8, 9], [2, 1])
    store = TokenStore(tmp_path / "train.source", "<u2")
    assert store[1].tolist() == [9]
    (tmp_path / "train.source.bin").write_bytes(b"\7\0")
    with pytest.raises(DataError, match=r"train\.source\.bin: truncated"):
        store[0]


def test_lengths_are_read_in_blocks(tmp_path, monkeypatch):
    monkeypatch.setattr("nmtflex.corpus.store.BLOCK", 3)
    lengths = [2, 0, 5, 1, 1, 3, 4]
    with StoreWriter(tmp_path / "train.source", "<u2") as writer:
        writer.append(range(sum(lengths)), lengths)
    assert TokenStore(tmp_path / "train.source", "<u2").lengths.tolist() == lengths


def test_stores_are_opened_once(prepared):
    corpus = open_prepared(prepared)
    assert corpus.store("valid", "source") is corpus.store("valid", "source")
    assert corpus.store("valid", "source") is not corpus.store("valid", "target")
