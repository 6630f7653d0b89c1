from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from test_sentences import TEXTS

from nmtflex.text.paragraphs import ParagraphSplitter
from nmtflex.text.pipeline import SidePipeline, TextPipeline
from nmtflex.text.sentences import sentences
from nmtflex.text.tokenizers import build_tokenizer
from nmtflex.text.vocabulary import Vocabulary

EMPTY = Vocabulary([], [])


def splitter(join: int, longest: int, source: str = "none", target: str = "none"):
    def side(language, name):
        return SidePipeline(language, build_tokenizer({"name": name}), None, EMPTY)

    return ParagraphSplitter(
        TextPipeline(side("en", source), side("ja", target)), join=join, longest=longest
    )


@given(TEXTS, st.integers(1, 4), st.integers(1, 9), st.sampled_from(["none", "char"]))
def test_units_and_spaces_are_the_line_again(line, join, longest, name):
    split = splitter(join, longest, name, name)
    found = split.split(line)
    pairs = zip(found.units, found.spaces, strict=True)
    assert found.lead + "".join(unit + space for unit, space in pairs) == line
    assert not (found.lead + "".join(found.spaces)).strip()
    for unit in found.units:
        assert unit
        assert unit == unit.strip()
        words = len(unit) if name == "char" else len(re.findall("[^ \t\r\v\f]+", unit))
        assert words <= longest
    assert split.join(found, found.units) == line


@given(TEXTS, st.integers(1, 5))
def test_a_unit_is_at_most_so_many_sentences(line, join):
    found = splitter(join, 1000).split(line)
    alone = [one.strip() for one in sentences(line, "en") if one.strip()]
    left = "".join("".join(alone).split())
    assert "".join("".join(found.units).split()) == left
    assert len(found.units) >= -(-len(alone) // join)
    if join == 1:
        assert found.units == alone


@pytest.mark.parametrize(
    ("join", "longest", "sizes"),
    [(1, 100, [1] * 7), (3, 100, [3, 2, 2]), (5, 100, [4, 3]), (9, 100, [7]), (5, 6, [2, 2, 2, 1]),
     (7, 8, [2, 2, 2, 1]), (2, 3, [1] * 7)],
)  # fmt: skip
def test_windows_are_even_and_within_the_length(join, longest, sizes):
    """Seven sentences of three words."""
    line = " ".join(f"It is {how}." for how in ("cold", "wet", "dark", "old", "new", "hot", "dry"))
    found = splitter(join, longest).split(line)
    assert [unit.count(".") for unit in found.units] == sizes


@pytest.mark.parametrize(
    ("line", "longest", "units"),
    [
        ("one two, three four five", 3, ["one two,", "three four five"]),
        ("one two three four five six", 4, ["one two three", "four five six"]),
        ("one two three four five", 100, ["one two three four five"]),
        ("one; two three four five six seven", 4, ["one; two three four", "five six seven"]),
    ],
)
def test_a_long_sentence_is_cut_at_clauses_else_at_words(line, longest, units):
    assert splitter(1, longest).split(line).units == units


def test_a_long_sentence_without_spaces_is_cut_between_tokens():
    split = splitter(1, 4, "char", "char")
    assert split.split("吾輩は猫であるが名前").units == ["吾輩は猫", "である", "が名前"]
    assert split.split("吾輩は、猫である").units == ["吾輩は、", "猫である"]


@pytest.mark.sampled(4)
@pytest.mark.parametrize("word", ["a" * 1000, "、" * 1000, "a, " * 400, "「" * 77])
def test_any_length_ends(word):
    for name in ("none", "char"):
        found = splitter(2, 5, name).split(word * 5)
        assert found.lead + "".join(map("".join, zip(*found[1:], strict=True))) == word * 5


@pytest.mark.parametrize(
    ("line", "texts", "joined"),
    [
        ("One. Two.", ["猫。", "犬。"], "猫。犬。"),
        ("猫。犬。", ["A.", "B."], "A. B."),
        (" One.  Two.\t", ["猫。", "犬。"], " 猫。  犬。\t"),
        ("猫。\u3000犬。\r", ["A.", "B."], "A.\u3000B.\r"),
        ("One. 猫。Two.", ["No.", "犬。", "Yes."], "No. 犬。Yes."),
        ("A.", [""], ""),
        ("One.\tTwo. ", [" 猫。 ", "犬。\u3000"], "猫。\t犬。 "),
    ],
)
def test_usual_spaces_are_those_of_the_target(line, texts, joined):
    split = splitter(1, 100, "char", "char")
    paragraph = split.split(line)
    assert len(paragraph.units) == len(texts)
    assert split.join(paragraph, texts) == joined


def test_words_between_spaces_are_always_joined_by_spaces():
    split = splitter(1, 100, "none", "none")
    assert split.join(split.split("One . Two ."), ["京都", "ネコ 。"]) == "京都 ネコ 。"
