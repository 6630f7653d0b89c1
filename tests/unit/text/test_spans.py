from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nmtflex.text.pipeline import SidePipeline
from nmtflex.text.spans import spans_of
from nmtflex.text.subwords.bpe import BPE, escape
from nmtflex.text.tokenizers import (
    CharTokenizer,
    MosesTokenizer,
    NoneTokenizer,
    build_tokenizer,
)
from nmtflex.text.vocabulary import Vocabulary

MOSES = MosesTokenizer("en")
HYPHENS = MosesTokenizer("en", aggressive=True)
NFKC = build_tokenizer({"name": "none", "normalize": "nfkc"})
NFKC_CHARACTERS = build_tokenizer({"name": "char", "normalize": "nfkc"})
WIDTH = build_tokenizer({"name": "moses", "language": "en", "normalize": "wat-half-width"})
LINES = st.text(st.characters(exclude_characters="\0\n", exclude_categories=["Cs"]))


def texts(tokenizer, line, merges=None):
    bpe = BPE(merges) if merges is not None else None
    pipeline = SidePipeline("en", tokenizer, bpe, Vocabulary([], []))
    spans = pipeline.spans(line)
    assert len(spans) == len(pipeline.segment(line))
    return [line[start:end] for start, end in spans]


@pytest.mark.parametrize(
    ("tokenizer", "merges", "line", "expected"),
    [
        (NoneTokenizer(), None, " ab  c\u00a0d ", ["ab", "c\u00a0d"]),
        (NoneTokenizer(), [], "ab a", ["a", "b", "a"]),
        (NoneTokenizer(), [("a", "b")], "abc  c", ["ab", "c", "c"]),
        (NoneTokenizer(), [], "@@ x", ["@", "@", "@", "x"]),  # the escape belongs to the first
        (MOSES, None, 'He\'s  "in".', ["He", "'s", '"', "in", '"', "."]),
        (MOSES, None, "a & b", ["a", "&", "b"]),
        (MOSES, None, "x\u00a0y\u3000z", ["x", "y", "z"]),
        (MOSES, None, "a\x01b c", ["a\x01b", "c"]),  # the script drops control characters
        (MOSES, [], "it's", ["i", "t", "'", "'", "'", "'", "'", "'", "s"]),  # &apos; in pieces
        (CharTokenizer(), None, " a▁", [" ", "a", "▁"]),
        (HYPHENS, None, "well-known @-@", ["well", "-", "known", "@", "-", "@"]),
        (HYPHENS, [], "a-b", ["a", "-", "-", "-", "b"]),  # @-@ in pieces
        (NFKC, None, "ｶﾞａ\u3000㍿ e\u0301x", ["ｶﾞａ", "㍿", "e\u0301x"]),
        (NFKC, [], "㍿", ["㍿"] * 4),
        (NFKC_CHARACTERS, None, "aｶﾞ①", ["a", "ｶﾞ", "①"]),
        (WIDTH, None, "Ｈｅ’ｓ “ｉｎ”．", ["Ｈｅ", "’ｓ", "“", "ｉｎ", "”", "．"]),
    ],
)
def test_the_text_behind_each_subword(tokenizer, merges, line, expected):
    assert texts(tokenizer, line, merges) == expected


class Shouting(NoneTokenizer):
    """Changes characters, as a normalising tokenizer does."""

    def tokenize(self, line):
        return [word.upper() + "!" * 5 for word in super().tokenize(line)]


ALL = [NoneTokenizer(), MOSES, HYPHENS, CharTokenizer(), Shouting(), NFKC, NFKC_CHARACTERS, WIDTH]
MEETING = st.text("eｶﾞﾊﾟ\u0301\u0316㍿ﬁ '-@&.\u3000")


@given(st.sampled_from(ALL), st.booleans(), LINES | MEETING)
def test_spans_lie_in_the_line_and_never_go_back(tokenizer, subwords, line):
    bpe = BPE([("a", "b")]) if subwords else None
    spans = spans_of(line, tokenizer.tokenize(line), tokenizer, bpe)
    assert all(0 <= start <= end <= len(line) for start, end in spans)
    assert spans == sorted(spans)


@given(st.text("@\ue000a", min_size=1, max_size=9))
def test_what_the_escape_adds_belongs_to_the_character_before_it(word):
    """Without merges each symbol is a piece; what stands from a place on is as long as escaped."""
    rests = [len(escape(word[place:])) for place in range(len(word) + 1)]
    owners = [place for place in range(len(word)) for _ in range(rests[place] - rests[place + 1])]
    spans = spans_of(word, [word], NoneTokenizer(), BPE([]))
    assert spans == [(place, place + 1) for place in owners]


def test_a_long_run_is_no_slower_than_other_text():
    """It took the square of its length: a minute for this one."""
    line = "@" * 30_000
    assert spans_of(line, [line], NoneTokenizer(), None) == [(0, len(line))]
    assert len(spans_of(line, [line], NoneTokenizer(), BPE([]))) == 2 * len(line) - 1


@given(LINES)
def test_words_of_the_text_are_found_exactly(line):
    assert texts(NoneTokenizer(), line) == NoneTokenizer().tokenize(line)
