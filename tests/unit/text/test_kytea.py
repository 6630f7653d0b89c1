from __future__ import annotations

import contextlib
import gzip
import hashlib
import json
import lzma
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nmtflex.errors import DataError
from nmtflex.text.tokenizers import KyteaTokenizer, build_restorer, build_tokenizer
from nmtflex.text.tokenizers.kytea_model import characters_of, check_model, read_model

TINY = Path(__file__).parents[2] / "fixtures/tiny.kytea"
SHARED = Path(__file__).parents[4] / "shared"


@pytest.fixture(scope="module")
def kytea():
    pytest.importorskip("vaporetto")
    return KyteaTokenizer(TINY)


@pytest.fixture
def packed(tmp_path):
    """Write the model in some packing."""
    pytest.importorskip("vaporetto")

    def write(data):
        path = tmp_path / "model.bin"
        path.write_bytes(data)
        return path

    return write


def test_splits_and_joins_japanese(kytea):
    line = "私はNew Yorkへ行く。"
    tokens = kytea.tokenize(line)
    assert tokens == ["私", "は", "New", "York", "へ", "行", "く", "。"]
    assert kytea.detokenize(tokens) == line
    assert kytea.pieces(line)[3] == " "


def test_keeps_the_ideographic_space(kytea):
    assert kytea.tokenize("東京\u3000大学") == ["東京", "\u3000", "大学"]


@given(line=st.text(st.characters(exclude_characters="\n")))
def test_pieces_are_the_line(kytea, line):
    assert "".join(kytea.pieces(line)) == line


def test_what_vaporetto_refuses_is_put_back(kytea):
    assert kytea.tokenize("東京\0へ\ud800行く") == ["東京", "\0", "へ", "\ud800", "行", "く"]


def test_rare_kanji_are_of_the_class_other_as_in_kytea(kytea):
    def lengths(line):
        return list(map(len, kytea.pieces(line)))

    for line in ("本{}本", "{}る{}犬", "東京{}"):
        for rare in "𠮟𩸽𠮷\U0002f800":
            assert lengths(line.replace("{}", rare)) == lengths(line.replace("{}", "😀"))
    assert kytea.pieces("𠮟る")[0] == "𠮟"


def test_a_model_knows_its_characters():
    known = characters_of(TINY.read_bytes())
    assert known.startswith("KTHRDO ")
    assert set("私東京Ｎ") <= set(known)
    assert characters_of(b"") == ""


def test_describes_the_model_by_its_hash(kytea):
    about = kytea.describe()
    digest = hashlib.sha256(TINY.read_bytes()).hexdigest()
    assert about["sha256"] == digest
    assert about["version"].startswith("vaporetto ")
    assert (
        kytea.signature()
        == f"segmenter:kytea-{about['version'].replace(' ', '-')}|model:" + (digest[:12])
    )


def test_packed_models_are_the_same_model(kytea, packed):
    zstandard = pytest.importorskip("zstandard")
    for pack in (gzip.compress, lzma.compress, zstandard.compress):
        tokenizer = KyteaTokenizer(packed(pack(TINY.read_bytes())))
        assert tokenizer.describe() == kytea.describe()
        assert tokenizer.tokenize("東京へ行く") == ["東京", "へ", "行", "く"]


def test_the_model_is_saved_unpacked(packed, tmp_path):
    KyteaTokenizer(packed(gzip.compress(TINY.read_bytes()))).save_model(tmp_path / "copy")
    assert (tmp_path / "copy").read_bytes() == TINY.read_bytes()


def test_a_model_that_changed_meanwhile_is_not_saved(packed, tmp_path):
    path = packed(TINY.read_bytes())
    tokenizer = KyteaTokenizer(path)
    path.write_bytes(TINY.read_bytes() + b"x")
    with pytest.raises(DataError, match=r"model\.bin: changed while it was in use"):
        tokenizer.save_model(tmp_path / "copy")


def test_joining_needs_no_model():
    assert build_restorer({"name": "kytea"})("東京 へ New York") == "東京へNew York"


def test_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "vaporetto", None)
    with pytest.raises(DataError, match=r"pip install vaporetto"):
        KyteaTokenizer(TINY)


def test_says_what_to_pass():
    pytest.importorskip("vaporetto")
    with pytest.raises(DataError, match="needs a model; give KyTea's file with --kytea-model"):
        build_tokenizer({"name": "kytea"})


def test_another_model_than_described_is_refused():
    pytest.importorskip("vaporetto")
    digest = hashlib.sha256(TINY.read_bytes()).hexdigest()
    with pytest.raises(DataError, match=f"begins with {digest[:12]}, .* with 0123456789ab;"):
        build_tokenizer({"name": "kytea", "sha256": "0123456789abcdef"}, TINY)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", r"model\.bin: not a .*KyTea.*: it begins with b''"),
        (b"some text\n" * 9, r"not a .*KyTea.*: it begins with b'some text\\nso'"),
        (b"KyTea 0.4.0 T utf8\n-notags\n", "a KyTea model of form 'T', but only binary"),
        (b"KyTea 0.4.0 B euc\n\x01", "a KyTea model for 'euc' text"),
        (b"KyTea 0.4.0 B utf8\n\x01\0\0", "a damaged KyTea model: failed to fill"),
        (b"\x1f\x8b\x08\0garbage", "packed and damaged: "),
        (gzip.compress(TINY.read_bytes())[:-99], "packed and damaged: Compressed file ended"),
        (lzma.compress(TINY.read_bytes())[:-99], "packed and damaged: "),
        (b"\x28\xb5\x2f\xfd", "packed and damaged: the zstd data ends too early"),
        (b"\x28\xb5\x2f\xfd" + b"\x7f" * 99, "packed and damaged: zstd"),
        (TINY.read_bytes()[:3000], "a damaged KyTea model: failed to fill whole buffer; copy"),
    ],
)
def test_what_is_no_good_model(packed, data, message):
    with pytest.raises(DataError, match=message):
        KyteaTokenizer(packed(data))


def test_a_model_that_ends_its_process(packed, monkeypatch):
    monkeypatch.setattr("nmtflex.text.tokenizers.kytea_model._TRIAL", "import os; os.abort()")
    with pytest.raises(DataError, match=r"model\.bin: a damaged KyTea model: it cannot be load"):
        check_model(b"", packed(b""))


@pytest.mark.parametrize("place", range(40, 3000, 370))
def test_flipped_bits_never_end_this_process(packed, place):
    data = bytearray(TINY.read_bytes())
    data[place : place + 4] = b"\xff\xff\xff\x7f"
    path = packed(bytes(data))
    try:
        KyteaTokenizer(path)
    except DataError as error:
        assert f"{path}: a damaged KyTea model" in str(error)  # noqa: PT017


def test_a_missing_model_is_named(tmp_path):
    with pytest.raises(DataError, match=r"jp\.bin: No such file or directory; give KyTea's model"):
        read_model(tmp_path / "jp.bin")


def test_equals_kytea():
    pytest.importorskip("vaporetto")
    oracle = SHARED / "oracles/wat_japanese.jsonl.xz"
    if not oracle.exists():
        pytest.skip("KyTea's outputs are not here")
    tokenizer = KyteaTokenizer(SHARED / "data/kytea_model/kytea-tanaka-kftt.bin.xz")
    rows = [json.loads(row) for row in lzma.decompress(oracle.read_bytes()).split(b"\n") if row]
    rows = [row for row in rows if "normalized" in row and "segmented" in row]
    assert len(rows) == 877
    assert [
        row for row in rows if " ".join(tokenizer.tokenize(row["normalized"])) != row["segmented"]
    ] == []


@pytest.mark.parametrize("pack", [gzip.compress, lzma.compress, "zstd"])
def test_a_model_that_unpacks_without_end_is_not_unpacked(packed, monkeypatch, pack):
    zstandard = pytest.importorskip("zstandard")
    pack = zstandard.compress if pack == "zstd" else pack
    path = packed(pack(bytes(10_000_000)))
    assert path.stat().st_size < 20_000
    monkeypatch.setattr("nmtflex.text.tokenizers.kytea_model.MOST", 1_000_000)
    with pytest.raises(DataError, match=r"model\.bin: packed and damaged: .*(more than|too much)"):
        read_model(path)


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="needs a bound on memory that holds")
def test_a_number_that_asks_for_terabytes_is_refused_in_one_line(packed):
    data = TINY.read_bytes()
    start = data.index(b"KTHRDO")
    for place in range(start, start + 60):
        path = packed(data[:place] + b"\xff\xff\xff\xef" + data[place + 4 :])
        with contextlib.suppress(DataError):
            check_model(path.read_bytes(), path)
