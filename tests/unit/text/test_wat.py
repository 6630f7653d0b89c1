from __future__ import annotations

import json
import lzma
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nmtflex.errors import DataError, OptionError
from nmtflex.text.tokenizers import NoneTokenizer
from nmtflex.text.wat import (
    build_segmenter,
    build_wat,
    build_wat_restorer,
    normalize_japanese,
    rejoin_japanese,
    segment_japanese,
)

TINY = Path(__file__).parents[2] / "fixtures/tiny.kytea"
SHARED = Path(__file__).parents[4] / "shared"


@pytest.fixture(scope="module")
def kytea():
    pytest.importorskip("vaporetto")
    return build_segmenter({"name": "kytea"}, TINY)


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("文［１．２］", "文"),
        ("文［１］［２］", "文［１］"),  # one number
        ("［１２］", "［１２］"),  # something has to stand before it
        ("文[12]", "文［１２］"),  # ASCII is no full width when numbers are looked for
        ("文［１］ ", "文［１］"),
        ("日 本\u3000語 3 つ", "日本語３つ"),
        (" 日  本 ", "日本"),
        ("a 日 Ａ b  c", "ａ 日 Ａ ｂ ｃ"),
        ("3 D 4", "３ Ｄ ４"),
        ("É a é 1", "É ａ é１"),  # an accented letter protects no space
        (" a ", " ａ "),
        ("\"x\" 'y'-~`\\", "”ｘ”’ｙ’−〜｀＼"),
        ("ｶﾅ｡ é", "ｶﾅ｡é"),
        ("文［１］\r", "文"),
        ("", ""),
    ],
)
def test_normalise_by_hand(line, expected):
    assert normalize_japanese(line) == expected


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("１ ２ ３ 人", "１２３ 人"),
        ("１ ． ５ 倍", "１．５ 倍"),
        ("１ ． ２ ． ３", "１．２ ． ３"),  # a single pass
        ("１ ． ２ ． ３ ． ４", "１．２ ． ３．４"),
        ("． ５", "． ５"),
        ("Ａ Ｂ ｃ Ｄ", "ＡＢｃ Ｄ"),  # a small letter does not join a capital
        ("ｄ ｎ ａ Ａ", "ｄｎａ Ａ"),
        ("A B a b 1 2", "A B a b 1 2"),
        ("Ａ １", "Ａ １"),
        ("１\t２", "１\t２"),
        ("", ""),
    ],
)
def test_rejoin_by_hand(line, expected):
    assert rejoin_japanese(line) == expected


def test_segments_trim_and_collapse_spaces(kytea):
    assert segment_japanese(" 私は Ａ ", kytea) == "私 は Ａ"
    assert segment_japanese("", kytea) == ""


def test_japanese_words(kytea):
    line = "私 は3.14 New Yorkへ行く。［１］"
    expected = ["私", "は", "３．１４", "Ｎｅｗ", "Ｙｏｒｋ", "へ", "行", "く", "。"]
    assert build_wat("ja", kytea).tokenize(line) == expected
    assert build_wat_restorer("ja")(" ".join(expected)) == "私は３．１４Ｎｅｗ Ｙｏｒｋへ行く。"
    assert build_wat("ja", kytea).detokenize(expected) == "私は３．１４Ｎｅｗ Ｙｏｒｋへ行く。"


def test_english_words():
    line = "“Ｈｅ’ｓ ［here］ 〜 −１．５”."
    expected = "&quot; He &apos;s &#91; here &#93; ~ -1.5 &quot; ."
    assert build_wat("en").tokenize(line) == expected.split()
    assert build_wat_restorer("en")(expected) == '"He\'s [here] ~ -1.5".'
    assert build_wat("en").detokenize(expected.split()) == '"He\'s [here] ~ -1.5".'


def test_signatures(kytea):
    assert build_wat("ja", kytea).signature() == f"wat:ja|{kytea.signature()}"
    assert build_wat("en").signature().startswith("wat:en|segmenter:moses-sacremoses-")
    about = build_wat("ja", kytea).describe()
    assert about == {**kytea.describe(), "name": "wat-ja", "segmenter": "kytea"}
    assert build_wat("en").describe()["name"] == "wat-en"


def test_mecab_is_a_variant():
    pytest.importorskip("MeCab")
    mecab = build_segmenter({"name": "mecab"})
    wat = build_wat("ja", mecab)
    assert wat.tokenize("私は東京へ行く。") == ["私", "は", "東京", "へ", "行く", "。"]
    assert wat.signature().startswith("wat:ja|variant:mecab|segmenter:mecab-ipadic-")


def test_what_there_is_no_procedure_for(kytea):
    with pytest.raises(OptionError, match="ja and en, not for 'zh'"):
        build_wat("zh")
    with pytest.raises(OptionError, match="for ja needs a segmenter; give --kytea-model"):
        build_wat("ja")
    with pytest.raises(OptionError, match="for en takes no segmenter, not 'kytea'"):
        build_wat("en", kytea)
    with pytest.raises(OptionError, match=r"kytea or mecab, not .* 'none'"):
        build_segmenter(NoneTokenizer().describe())
    with pytest.raises(DataError, match="needs a model"):
        build_segmenter({"name": "kytea"})


@given(line=st.text(st.characters(exclude_characters="\n")))
def test_any_line_has_words_without_white_space(kytea, line):
    for words in (build_wat("ja", kytea).tokenize(line), build_wat("en").tokenize(line)):
        assert all(word and not set(word) & set(" \t\n") for word in words)


@given(st.text("ａＺ１．漢 ", max_size=12))
def test_rejoining_only_takes_spaces_away(line):
    assert rejoin_japanese(line).replace(" ", "") == line.replace(" ", "")


@pytest.fixture(scope="module")
def oracle():
    path = SHARED / "oracles/wat_japanese.jsonl.xz"
    if not path.exists():
        pytest.skip("the scripts' outputs are not here")
    return [json.loads(row) for row in lzma.decompress(path.read_bytes()).split(b"\n") if row]


def test_normalises_as_the_scripts_do(oracle):
    rows = [row for row in oracle if "raw" in row]
    assert len(rows) == 1009
    assert [row for row in rows if normalize_japanese(row["raw"]) != row["normalized"]] == []


def test_rejoins_as_the_scripts_do(oracle):
    rows = [row for row in oracle if "segmented" in row]
    assert len(rows) == 1668
    assert [row for row in rows if rejoin_japanese(row["segmented"]) != row["rejoined"]] == []


def test_whole_procedure(oracle):
    pytest.importorskip("vaporetto")
    model = SHARED / "data/kytea_model/kytea-tanaka-kftt.bin.xz"
    kytea = build_segmenter({"name": "kytea"}, model)
    words = build_wat("ja", kytea).tokenize
    rows = [row for row in oracle if "raw" in row and "rejoined" in row]
    assert len(rows) == 877
    wrong = [row for row in rows if segment_japanese(row["normalized"], kytea) != row["segmented"]]
    wrong += [row for row in rows if " ".join(words(row["raw"])) != row["rejoined"]]
    assert wrong == []
