from __future__ import annotations

import pytest

from nmtflex.text.pipeline import SidePipeline
from nmtflex.text.subwords import Segmented
from nmtflex.text.tokenizers import NoneTokenizer
from nmtflex.text.vocabulary import UNK_ID, Vocabulary

LINES = {
    "bpe": ("the@@ atre s@@ o@@ on", "theatre soon"),
    "sentencepiece": ("▁the atre ▁so on ▁ <0xE7> <0x8C> <0xAB>", "theatre soon 猫"),
}


def side(marks, *tokens):
    vocabulary = Vocabulary(tokens, [1] * len(tokens))
    return SidePipeline("en", NoneTokenizer(), Segmented(marks), vocabulary)


@pytest.mark.parametrize("marks", LINES)
def test_input_stays_as_it_is_and_output_is_joined(marks):
    line, plain = LINES[marks]
    pipeline = side(marks, *dict.fromkeys(line.split()))
    assert pipeline.segment(line) == line.split()
    assert UNK_ID not in pipeline.encode(line)
    assert pipeline.decode(pipeline.encode(line)) == plain
    assert pipeline.plain(line) == plain
    assert pipeline.plain(plain) == plain


@pytest.mark.parametrize("marks", LINES)
def test_spans_are_those_of_the_pieces_and_words_have_no_marks(marks):
    line, plain = LINES[marks]
    pipeline = side(marks)
    assert [line[start:end] for start, end in pipeline.spans(line)] == line.split()
    attended = pipeline.attended_words(line)
    starts = pipeline.word_starts(pipeline.segment(line))
    assert [attended[start] for start in starts] == plain.split()


@pytest.mark.parametrize(
    ("marks", "line", "plain"),
    [
        ("bpe", "a b@@", "a b"),
        ("bpe", "no marks  here", "no marks  here"),
        ("bpe", "a@@ b @ c", "ab @ c"),
        ("sentencepiece", "no marks", "no marks"),
        ("sentencepiece", "▁a ▁ b c", "a bc"),
        ("sentencepiece", "a ▁b", "a b"),
        ("sentencepiece", "", ""),
    ],
)
def test_lines_are_joined_as_fairseq_joins_them(marks, line, plain):
    """fairseq's --remove-bpe: "@@ " is removed; or spaces are, and then ▁ becomes a space."""
    assert side(marks).plain(line) == plain
