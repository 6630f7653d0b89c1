"""Word alignments from attention weights."""

from __future__ import annotations

import numpy as np
import pytest

from nmtflex.decoding.links import attended_words, pharaoh_line
from nmtflex.text.pipeline import SidePipeline, TextPipeline
from nmtflex.text.subwords.bpe import BPE
from nmtflex.text.subwords.segmented import Segmented
from nmtflex.text.tokenizers import build_tokenizer
from nmtflex.text.vocabulary import Vocabulary

CODES = BPE([("a", "b</w>")])  # c@@ ab


def pipeline(source: str = "none", target: str = "none", subwords=None) -> TextPipeline:
    sides = [
        SidePipeline("xx", build_tokenizer({"name": name}), subwords, Vocabulary("abcd", [1] * 4))
        for name in (source, target)
    ]
    return TextPipeline(*sides)


def by_loops(weights, columns, rows) -> list[int]:
    """Sum and compare one number at a time; -1 is no word."""
    found = []
    for word in range(max(rows) + 1):
        totals = [0.0] * (max(columns) + 1)
        for row, own in enumerate(rows):
            for column, place in enumerate(columns):
                if own == word and place >= 0:
                    totals[place] += weights[row][column]
        found.append(totals.index(max(totals)))
    return found


def test_subwords_add_up_and_the_end_is_no_word():
    weights = np.array([
        [0.3, 0.3, 0.4],  # x@@
        [0.1, 0.2, 0.7],  # y
        [0.3, 0.3, 0.4],  # z
        [0.0, 0.0, 1.0],  # </s>
    ])
    found = attended_words(
        pipeline(subwords=CODES), "cab d", ["x@@", "y", "z"], ["xy", "z"], weights
    )
    assert found == by_loops(weights, [0, 0, 1], [0, 0, 1]) == [1, 0]
    assert pharaoh_line(found) == "1-0 0-1\n"


def test_pieces_of_segmented_text_are_no_words():
    weights = np.array([[0.3, 0.3, 0.4], [0.9, 0.0, 0.1], [1.0, 0.0, 0.0]])
    own = pipeline(subwords=Segmented("bpe"))
    assert attended_words(own, "c@@ ab d", ["x@@", "y"], ["xy"], weights) == [0]


@pytest.mark.parametrize("seed", range(5))
def test_characters_are_words_between_spaces(seed):
    line, text = "ab  c", " xy z"
    weights = np.random.default_rng(seed).random((len(text) + 1, len(line)))
    own = pipeline("char", "char")
    tokens = own.target.tokenizer.tokenize(text)
    found = attended_words(own, line, tokens, tokens, weights)
    assert found == by_loops(weights, [0, 0, -1, -1, 1], [-1, 0, 0, -1, 1])


def test_words_of_a_replacement_share_a_link():
    weights = np.array([[0.2, 0.8], [0.9, 0.1], [0.2, 0.8], [1.0, 0.0]])
    tokens, words = ["<unk>", "y", "<unk>"], ["b1", "b2", "y"]
    assert attended_words(pipeline(), "a b", tokens, words, weights, [2, 1, 0]) == [1, 1, 0]


def test_a_truncated_source_has_the_words_that_were_read():
    own = pipeline(subwords=CODES)
    own.source.longest = 2
    weights = np.array([[0.6, 0.4], [0.5, 0.5]])
    assert attended_words(own, "d cab d", ["x"], ["x"], weights) == [0]


def test_ties_go_to_the_first_word():
    assert attended_words(pipeline(), "a b", ["x"], ["x"], np.full((2, 2), 0.5)) == [0]


def test_without_words_there_are_no_links():
    assert attended_words(pipeline(), " ", [], [], None) == []
    assert attended_words(pipeline(), "a", [], [], np.ones((1, 1))) == []
    blank = pipeline("char", "char")  # U+3000 is a token, and no word
    assert attended_words(blank, "\u3000", ["x"], ["x"], np.ones((2, 1))) == []
    assert attended_words(blank, "a", ["\u3000"], ["\u3000"], np.ones((2, 1))) == []
    assert pharaoh_line([]) == "\n"
