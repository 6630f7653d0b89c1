"""Where words stand in raw text, with every tokenizer."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pieces import model_bytes

from nmtflex.text.pipeline import SidePipeline
from nmtflex.text.places import source_places, target_places
from nmtflex.text.subwords.bpe import BPE
from nmtflex.text.subwords.sentencepiece import SentencePiece
from nmtflex.text.tokenizers import build_tokenizer
from nmtflex.text.vocabulary import Vocabulary

KYTEA = Path(__file__).parents[2] / "fixtures" / "tiny.kytea"
MOSES = {"name": "moses", "language": "en"}
LINES = st.text(st.characters(exclude_characters="\0\n", exclude_categories=["Cs"]))


def side(about, subwords=None, model=None) -> SidePipeline:
    return SidePipeline("en", build_tokenizer(about, model), subwords, Vocabulary([], []))


def shown(text, places) -> list[str | None]:
    last = 0
    for span in filter(None, places):
        assert last <= span[0] < span[1] <= len(text)  # in order and apart
        last = span[1]
    return [None if span is None else text[slice(*span)] for span in places]


def both(own, line) -> tuple[list[str | None], list[str | None], str]:
    """Return the words found in a source, and in the text that its words make as a target."""
    words = own.words(line)
    text = own.tokenizer.detokenize(words)
    return (
        shown(line, source_places(own, line)),
        shown(text, target_places(own, text, words)),
        text,
    )


@pytest.mark.parametrize(
    ("about", "line", "expected"),
    [
        ({"name": "none"}, " ab  c\u00a0d ", ["ab", "c\u00a0d"]),
        (
            MOSES,
            'He\'s "in" & [out]<.',
            ["He", "'s", '"', "in", '"', "&", "[", "out", "]", "<", "."],
        ),
        (MOSES, "it costs 3,5 $ (or so)!", ["it", "costs", "3,5", "$", "(", "or", "so", ")", "!"]),
        ({**MOSES, "aggressive": True}, "well-known", ["well", "-", "known"]),
        ({**MOSES, "escape": False}, "a | 'b' x", ["a", "|", "'", "b", "'", "x"]),
        ({"name": "char"}, "ab ▁c 犬が", ["ab", "▁c", "犬", "が"]),
        ({"name": "mecab"}, "私は New York へ行く。", None),
        ({"name": "none", "normalize": "nfkc"}, "ｶﾞａ　㍿ x", None),
    ],
)
def test_words_of_every_tokenizer(about, line, expected):
    own = side(about)
    if about["name"] == "mecab":
        expected = own.words(line)
    source, target, text = both(own, line)
    if "normalize" not in about:
        assert source == target == expected
        return
    assert source == ["ｶﾞａ", "㍿", "x"]
    assert target == text.split()


def test_words_of_kytea():
    own = side({"name": "kytea"}, model=KYTEA)
    line = "私は Ｎｅｗ Ｙｏｒｋ へ行く。"
    source, target, text = both(own, line)
    assert source == own.words(line)
    assert target == own.words(line)
    assert text != line


@pytest.mark.parametrize(
    "subwords", [BPE([("a", "b</w>")]), SentencePiece(model_bytes())], ids=["bpe", "sentencepiece"]
)
@pytest.mark.parametrize("about", [{"name": "none"}, MOSES], ids=["none", "moses"])
def test_subwords_are_joined_to_words(about, subwords):
    own = side(about, subwords)
    assert both(own, "cab the  eaten tea")[:2] == (["cab", "the", "eaten", "tea"],) * 2
    own.longest = len(own.segment("cab the"))
    assert shown("cab the eaten", source_places(own, "cab the eaten")) == ["cab", "the"]


def test_a_word_that_its_text_does_not_show_has_no_place():
    own = side({"name": "none"})
    words = ["one", "two", "three", "one"]
    assert shown("one, 2 three one", target_places(own, "one, 2 three one", words)) == [
        "one", None, "three", "one"
    ]  # fmt: skip
    far = f"one {'-' * 40} two"
    assert shown(far, target_places(own, far, ["one", "two"])) == ["one", None]
    assert target_places(own, "", ["one"]) == [None]
    assert target_places(own, "one", []) == []


@pytest.mark.parametrize("name", ["none", "char", "moses", "nfkc"])
@given(line=LINES)
def test_places_are_in_order_whatever_the_text(name, line):
    plain = {"name": "none", "normalize": "nfkc"} if name == "nfkc" else {"name": name}
    own = side({**MOSES, **plain} if name == "moses" else plain)
    source, target, _ = both(own, line)
    assert len(source) == len(target) == own.num_words(line)
