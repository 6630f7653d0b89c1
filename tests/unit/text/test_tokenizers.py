"""What holds for every tokenizer, and the two simplest ones."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nmtflex.config.text import Dictionary, Normalization, TokenizerName
from nmtflex.errors import DataError
from nmtflex.text.normalize import NORMALIZERS
from nmtflex.text.tokenizers import (
    ASCII_SPACE,
    TOKENIZERS,
    CharTokenizer,
    NoneTokenizer,
    build_restorer,
    build_tokenizer,
)
from nmtflex.text.tokenizers.mecab import DICTIONARIES

MODEL = Path(__file__).parents[2] / "fixtures/tiny.kytea"
NEEDS = {"mecab": "MeCab", "kytea": "vaporetto"}
DESCRIPTIONS = [
    {"name": "none"},
    {"name": "char"},
    {"name": "moses", "language": "en"},
    {"name": "moses", "language": "de", "aggressive": True, "escape": False},
    *({"name": "moses", "language": language} for language in ("fr", "fi", "ca", "tdt", "cs")),
    {"name": "mecab"},
    {"name": "kytea"},
    {"name": "kytea", "normalize": "wat-width"},
    {"name": "char", "normalize": "nfkc"},
]

ANY_TEXT = st.text(st.characters(exclude_characters="\n"))  # lone surrogates and NUL among it
TROUBLE = st.lists(
    st.sampled_from([
        *" \t\r\v\f\0\x1f\u00a0\u0085\u2028\u3000\ufeff\u200f\u202e\ud83d\udc00",
        "👨\u200d👩", "e\u0301", "ﾊﾟ", "が", "𠮟", "東京", "行く", "New", "Ｙｏｒｋ", "...", ".'",
        "'", "&amp;", "@-@", "a-b", ",", "\\▁", "▁", "|", "[", "kniha'", "-", "li", "3", "۳",
    ])
).map("".join)  # fmt: skip
LINES = ANY_TEXT | TROUBLE


@pytest.fixture(
    scope="module", params=DESCRIPTIONS, ids=lambda each: "-".join(map(str, each.values()))
)
def tokenizer(request):
    name = request.param["name"]
    if name in NEEDS:
        pytest.importorskip(NEEDS[name])
    return build_tokenizer(request.param, MODEL)


@pytest.mark.sampled(3)
@given(line=LINES)
def test_tokens_hold_no_space_and_are_not_empty(tokenizer, line):
    for token in tokenizer.tokenize(line):
        assert token
        assert " " not in token
        assert "\n" not in token


@pytest.mark.sampled(3)
@given(tokens=st.lists(TROUBLE | ANY_TEXT.filter(bool)))
def test_any_tokens_can_be_joined(tokenizer, tokens):
    assert "\n" not in tokenizer.detokenize(tokens)


@pytest.mark.sampled(3)
@given(line=LINES)
def test_surfaces_cover_their_tokens(tokenizer, line):
    for token in tokenizer.tokenize(line):
        raw, owners = tokenizer.surface(token)
        assert raw
        assert len(owners) == len(token)
        assert all(0 <= owner < len(raw) for owner in owners)


@pytest.mark.sampled(3)
@given(line=LINES)
def test_a_restorer_does_what_detokenize_does(tokenizer, line):
    tokens = tokenizer.tokenize(line)
    restore = build_restorer(tokenizer.describe())
    assert restore(" ".join(tokens)) == tokenizer.detokenize(tokens)
    assert restore(tokenizer.text(line)) == tokenizer.detokenize(tokens)


@pytest.mark.parametrize("line", ["", " ", " \t \r", "\v\f"])
def test_white_space_alone_has_no_words(tokenizer, line):
    assert tokenizer.words(line) == []
    assert tokenizer.detokenize([]) == ""


def test_a_carriage_return_at_the_end_is_no_token(tokenizer):
    assert tokenizer.tokenize("東京 a.\r") == tokenizer.tokenize("東京 a.")


@pytest.mark.sampled(3)
def test_a_line_of_a_million_characters(tokenizer):
    line = "東京へ行く。New York, " * 50_000
    assert len(tokenizer.tokenize(line)) >= 100_000


def test_a_description_makes_the_same_tokenizer(tokenizer):
    again = build_tokenizer(tokenizer.describe(), MODEL)
    assert type(again) is type(tokenizer)
    assert again.describe() == tokenizer.describe()


def test_another_process_gets_the_same_tokenizer(tokenizer):
    again = pickle.loads(pickle.dumps(tokenizer))
    assert again.describe() == tokenizer.describe()
    assert again.tokenize("東京へ 行く") == tokenizer.tokenize("東京へ 行く")


def test_a_signature_names_the_tokenizer():
    assert NoneTokenizer().signature() == "segmenter:none"
    normalized = build_tokenizer({"name": "char", "normalize": "nfkc"})
    assert normalized.signature() == "segmenter:char|normalize:nfkc"


def test_an_unknown_tokenizer_names_the_nearest():
    for build in (build_tokenizer, build_restorer):
        with pytest.raises(DataError, match="unknown tokenizer 'mose'; did you mean moses"):
            build({"name": "mose"})


def test_the_options_name_all_there_are():
    assert set(get_args(TokenizerName)) == set(TOKENIZERS)
    assert set(get_args(Normalization)) == set(NORMALIZERS)
    assert get_args(Dictionary) == DICTIONARIES


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


@given(LINES)
def test_none_keeps_all_but_the_white_space(line):
    tokenizer = NoneTokenizer()
    kept = line.translate(dict.fromkeys(map(ord, ASCII_SPACE)))
    assert tokenizer.detokenize(tokenizer.tokenize(line)).replace(" ", "") == kept


def test_char_shows_spaces_and_escapes_the_sign_for_them():
    tokens = CharTokenizer().tokenize("a ▁\\▁\u3000")
    assert tokens == ["a", "▁", "\\▁", "\\", "\\▁", "\u3000"]
    assert CharTokenizer().detokenize(tokens) == "a ▁\\▁\u3000"
    assert CharTokenizer().surface("▁")[0] == " "
    assert CharTokenizer().surface("\\▁") == ("▁", [0, 0])


def test_char_keeps_white_space_at_either_end_and_alone():
    assert CharTokenizer().tokenize("  a ") == ["▁", "▁", "a", "▁"]
    assert CharTokenizer().tokenize("  ") == ["▁", "▁"]


@given(LINES)
def test_char_restores_every_line_but_for_its_dos_end(line):
    tokenizer = CharTokenizer()
    tokens = tokenizer.tokenize(line)
    assert tokenizer.detokenize(tokens) == line.rstrip("\r")
    assert build_restorer({"name": "char"})(" ".join(tokens)) == line.rstrip("\r")
    assert len(tokens) == len(line.rstrip("\r"))
