from __future__ import annotations

import json
import lzma
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nmtflex.errors import DataError
from nmtflex.text.tokenizers import (
    TOKENIZERS,
    CharTokenizer,
    MecabTokenizer,
    MosesTokenizer,
    NoneTokenizer,
    build_tokenizer,
)

ORACLE = Path(__file__).parents[4] / "shared/oracles/moses_tokenizer.jsonl.xz"
LINES = st.text(st.characters(exclude_characters="\0\n\r", exclude_categories=["Cs"]))


@pytest.fixture(scope="module")
def moses():
    return {language: MosesTokenizer(language) for language in ("en", "de")}


@pytest.fixture(scope="module", params=["ipadic", "unidic-lite"])
def mecab(request):
    pytest.importorskip("MeCab")
    pytest.importorskip(request.param.replace("-", "_"))
    return MecabTokenizer(request.param)


def test_none_splits_at_ascii_white_space_alone():
    line = " a\tb  c\u3000d e\u00a0f g\u0085h \u2028\r"
    assert NoneTokenizer().tokenize(line) == [
        "a",
        "b",
        "c\u3000d",
        "e\u00a0f",
        "g\u0085h",
        "\u2028",
    ]
    assert NoneTokenizer().detokenize(["a", "b"]) == "a b"


@pytest.mark.parametrize("name", TOKENIZERS)
def test_white_space_alone_gives_no_tokens(name):
    settings = {"moses": {"language": "en"}}.get(name, {})
    if name == "mecab":
        pytest.importorskip("MeCab")
    tokenizer = build_tokenizer({"name": name, **settings})
    for line in ("", " ", " \t \r"):
        assert tokenizer.tokenize(line) == []
    assert tokenizer.detokenize([]) == ""


@pytest.mark.parametrize(
    ("line", "tokens"),
    [
        ("He's here.", "He &apos;s here ."),
        ("Mr. Smith", "Mr. Smith"),
        ("I saw Mr.", "I saw Mr ."),  # a period that ends the line is split off
        ("Wait ...", "Wait ..."),
        ("a.. b", "a .. b"),
        (".", "."),
        ("..", ".."),
        ("A & B | C", "A &amp; B &#124; C"),
        ("x [1] <y>", "x &#91; 1 &#93; &lt; y &gt;"),
    ],
)
def test_moses_by_hand(moses, line, tokens):
    assert moses["en"].tokenize(line) == tokens.split(" ")


def test_moses_takes_the_language_of_a_region():
    assert MosesTokenizer("de-AT").tokenize("ca. 3 km") == ["ca.", "3", "km"]
    assert MosesTokenizer("de_DE").tokenize("ca. 3 km") == ["ca.", "3", "km"]


def test_moses_detokenises_and_unescapes(moses):
    line = "He's \"here\" & [there], isn't he?"
    assert moses["en"].detokenize(moses["en"].tokenize(line)) == line


def test_moses_equals_the_perl_script(moses):
    if not ORACLE.exists():
        pytest.skip("the script's outputs are not here")
    rows = [json.loads(row) for row in lzma.decompress(ORACLE.read_bytes()).split(b"\n") if row]
    wrong = [
        row for row in rows if moses[row["language"]].tokenize(row["text"]) != row["moses"].split()
    ]
    assert len(rows) == 1500
    assert wrong == []


def test_moses_surface_maps_entities_to_one_character(moses):
    assert moses["en"].surface("&apos;s") == ("'s", [0, 0, 0, 0, 0, 0, 1])
    assert moses["en"].surface("a&b") == ("a&b", [0, 1, 2])
    text, owners = moses["en"].surface("word")
    assert (text, list(owners)) == ("word", [0, 1, 2, 3])


def test_char_shows_spaces_and_escapes_the_sign_for_them():
    tokens = CharTokenizer().tokenize("a ▁\\▁\u3000")
    assert tokens == ["a", "▁", "\\▁", "\\", "\\▁", "\u3000"]
    assert CharTokenizer().detokenize(tokens) == "a ▁\\▁\u3000"
    assert CharTokenizer().surface("▁")[0] == " "
    assert CharTokenizer().surface("\\▁") == ("▁", [0, 0])


@given(LINES)
def test_char_is_exactly_reversible(line):
    tokens = CharTokenizer().tokenize(line)
    assert CharTokenizer().detokenize(tokens) == (line if line.strip(" \t\v\f") else "")
    assert all(token and " " not in token for token in tokens)


@pytest.mark.parametrize("name", TOKENIZERS)
def test_tokens_hold_no_space_and_are_not_empty(name):
    if name == "mecab":
        pytest.importorskip("MeCab")
    settings = {"moses": {"language": "en"}}.get(name, {})
    tokenizer = build_tokenizer({"name": name, **settings})

    @given(LINES)
    def check(line):
        for token in tokenizer.tokenize(line):
            assert token
            assert " " not in token
            assert "\n" not in token

    check()


def test_mecab_splits_and_joins_japanese(mecab):
    line = "私はNew Yorkへ行く。"
    tokens = mecab.tokenize(line)
    assert tokens == ["私", "は", "New", "York", "へ", "行く", "。"]
    assert mecab.detokenize(tokens) == line


def test_mecab_keeps_the_ideographic_space(mecab):
    assert mecab.tokenize("東京\u3000大阪") == ["東京", "\u3000", "大阪"]


def test_mecab_joins_latin_words_alone_by_spaces(mecab):
    assert mecab.detokenize(["Café", "Noir", "と", "3", "D", "10"]) == "Café Noirと3D10"


def test_mecab_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "MeCab", None)
    with pytest.raises(DataError, match="pip install mecab-python3"):
        MecabTokenizer()


def test_mecab_says_which_dictionary_to_install(monkeypatch):
    pytest.importorskip("MeCab")
    monkeypatch.setitem(sys.modules, "unidic_lite", None)
    with pytest.raises(DataError, match="pip install unidic-lite"):
        MecabTokenizer("unidic-lite")


def test_a_description_makes_the_same_tokenizer(mecab):
    for tokenizer in (NoneTokenizer(), MosesTokenizer("de"), CharTokenizer(), mecab):
        again = build_tokenizer(tokenizer.describe())
        assert type(again) is type(tokenizer)
        assert again.describe() == tokenizer.describe()


def test_an_unknown_tokenizer_names_the_nearest():
    with pytest.raises(DataError, match="unknown tokenizer 'mose'; did you mean moses"):
        build_tokenizer({"name": "mose"})
