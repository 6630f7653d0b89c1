from __future__ import annotations

import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nmtflex.errors import DataError
from nmtflex.text.tokenizers import ASCII_SPACE, MecabTokenizer
from nmtflex.text.tokenizers import mecab as module
from nmtflex.text.tokenizers.japanese import join_words, original_pieces

JAPANESE = st.text(st.characters(exclude_categories=["Lu", "Ll", "Lt", "Lm", "Zs", "Cc"]))


@pytest.fixture(scope="module", params=["ipadic", "unidic-lite"])
def mecab(request):
    pytest.importorskip("MeCab")
    pytest.importorskip(request.param.replace("-", "_"))
    return MecabTokenizer(request.param)


def test_splits_and_joins_japanese(mecab):
    line = "私はNew Yorkへ行く。"
    tokens = mecab.tokenize(line)
    assert tokens == ["私", "は", "New", "York", "へ", "行く", "。"]
    assert mecab.detokenize(tokens) == line


def test_keeps_the_ideographic_space(mecab):
    assert mecab.tokenize("東京\u3000大阪") == ["東京", "\u3000", "大阪"]


@given(line=JAPANESE)
def test_text_without_latin_letters_and_white_space_is_restored(mecab, line):
    assert mecab.detokenize(mecab.tokenize(line)) == line


@given(line=st.text(st.characters(exclude_characters="\n")))
def test_no_character_but_ascii_white_space_is_lost(mecab, line):
    blanks = dict.fromkeys(map(ord, ASCII_SPACE))
    assert "".join(mecab.tokenize(line)) == line.translate(blanks)


def test_what_mecab_refuses_is_put_back(mecab):
    tokens = mecab.tokenize("東京\0へ\ud800 行く\udc00")
    assert "".join(tokens) == "東京\0へ\ud800行く\udc00"


def test_a_word_longer_than_mecab_allows(mecab):
    assert "".join(mecab.tokenize("a" * 100_000)) == "a" * 100_000


def test_long_lines_are_cut_at_sentences_and_spaces(mecab, monkeypatch):
    line = "私は東京へ行く。" * 40 + "a " * 40
    whole = mecab.tokenize(line)
    monkeypatch.setattr(module, "LONGEST", 17)
    assert mecab.tokenize(line) == whole


def test_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "MeCab", None)
    with pytest.raises(DataError, match="pip install mecab-python3"):
        MecabTokenizer()


def test_says_which_dictionary_to_install(monkeypatch):
    pytest.importorskip("MeCab")
    monkeypatch.setitem(sys.modules, "unidic_lite", None)
    with pytest.raises(DataError, match="pip install unidic-lite"):
        MecabTokenizer("unidic-lite")


def test_an_unknown_dictionary_names_what_there_is():
    with pytest.raises(DataError, match=r"'unidic'; there is ipadic and unidic-lite; did you mean"):
        MecabTokenizer("unidic")


def test_a_broken_dictionary_is_named(monkeypatch, tmp_path):
    pytest.importorskip("MeCab")
    import ipadic

    monkeypatch.setattr(ipadic, "DICDIR", str(tmp_path))
    with pytest.raises(
        DataError, match=rf"dictionary in {tmp_path}; run .* --force-reinstall ipad"
    ):
        MecabTokenizer()


def test_latin_words_alone_are_joined_by_spaces():
    assert join_words(["Café", "Noir", "と", "3", "D", "10"]) == "Café Noirと3D10"
    assert join_words(["Ｎｅｗ", "Ｙｏｒｋ", "市"]) == "Ｎｅｗ Ｙｏｒｋ市"
    assert join_words([]) == ""
    assert join_words(["", "a", "", "b"]) == "a b"


def test_original_pieces_skip_what_was_left_out():
    assert original_pieces(["??", "c"], " \0\ud800 \v c") == ["\0\ud800", "c"]
    assert original_pieces([" ", "?", " "], " \0 ") == [" ", "\0", " "]
