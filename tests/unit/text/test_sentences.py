from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nmtflex.text.sentences import BLOCK, sentences, usual_space

MARKS = " \t\r\v\f\x1c\x85\xa0\u2028\u3000.!?。！？、，,;:\"'“”「」()[]1２aBZé\u0301안京\u200b😀।"
TEXTS = st.text(st.sampled_from(MARKS) | st.characters(exclude_characters="\n"), max_size=60)


@given(TEXTS, st.sampled_from(["en", "ja", "de", "zh-CN", "fr", "src", "x.y", ""]))
@settings(max_examples=300)
def test_sentences_are_the_text_again(text, language):
    found = list(sentences(text, language))
    assert "".join(found) == text
    assert all(found)


@pytest.mark.parametrize(
    ("language", "text", "count"),
    [
        ("en", "Dr. Smith came at 3 p.m. on Monday. He left.  Did he? Yes!", 4),
        ("ja", "吾輩は猫である。名前はまだ無い。「そうか。」", 3),
        ("ja", "本当？\u3000はい。", 2),
        ("de", "Das ist z.B. Herr Dr. Müller. Er kam.", 2),
        ("zh-CN", "你好。我是人！", 2),
        ("tok", "He came . She left .", 2),
        ("en", "no end", 1),
        ("en", "", 0),
    ],
)
def test_ends_of_sentences(language, text, count):
    assert len(list(sentences(text, language))) == count


@pytest.mark.parametrize(
    "whole",
    [
        ["i came . ", "he left .  ", "did he ? ", "yes ! ! ", "no"],
        ["he said &quot; i came . &quot; ", "she left . ", "&quot; why ? &quot; ", "he asked ."],
        ["( he came . ) ", "« who ? » ", "»so !« war es . ", "er ging ."],
        [' " a . " ', '" b . " ', "c"],
        ["er kam um 3.30 uhr mit dr. müller , z.b. ... am abend . . . ", "dann ging er ."],
    ],
)
def test_tokenized_text_needs_no_capital_letters(whole):
    assert list(sentences("".join(whole), "de")) == whole


def test_running_text_may_have_spaces_before_its_marks():
    text = "« Quoi ? » dit-il, et voilà ! pas plus."  # French
    assert len(list(sentences(text, "fr"))) == 1


def test_white_space_stays_with_the_sentence_before():
    assert list(sentences("Hello there.\u3000 次です。\r", "en")) == [
        "Hello there.\u3000 ",
        "次です。\r",
    ]


@pytest.mark.parametrize("sentence", ["これは本です。", "「A。」 ", "That is it. "])
def test_a_long_text_is_split_as_its_parts_are(sentence):
    count = 3 * BLOCK // len(sentence)
    whole = list(sentences("x" * (2 * BLOCK) + "です。" + sentence * count, "ja"))
    assert whole == ["x" * (2 * BLOCK) + "です。", *[sentence] * count]


@pytest.mark.parametrize(
    ("text", "space"),
    [("A cat.", " "), ("猫。", ""), ("ネコ 。", " "), ("「猫」", ""), ("京都", ""), ("서울", " "),
     ("ＯＫ！", ""), ("", " "), ("。", "")],
)  # fmt: skip
def test_the_usual_space(text, space):
    assert usual_space(text) == space
