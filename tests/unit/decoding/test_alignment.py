"""Words and the words they were read from."""

from __future__ import annotations

import numpy as np
import pytest

from nmtflex.decoding.alignment import Alignment, align
from nmtflex.decoding.traces import SentenceTrace
from nmtflex.decoding.translation import Translation
from nmtflex.text.pipeline import SidePipeline, TextPipeline
from nmtflex.text.subwords.bpe import BPE
from nmtflex.text.tokenizers import build_tokenizer
from nmtflex.text.vocabulary import Vocabulary


def pipeline(tokenizer: str = "none", bpe: BPE | None = None) -> TextPipeline:
    about = {"name": tokenizer} | ({"language": "en"} if tokenizer == "moses" else {})
    side = SidePipeline("xx", build_tokenizer(about), bpe, Vocabulary("abcd", [1] * 4))
    return TextPipeline(side, side)


def translation(tokens: str, words: str, weights: list | None) -> Translation:
    steps = len(tokens.split()) + 1
    fields = dict.fromkeys(SentenceTrace._fields) | {"computed": np.full(steps, 2)}
    trace = SentenceTrace(**fields | {"weights": None if weights is None else np.array(weights)})
    return Translation(words, tokens.split(), words.split(), 0.0, 0.0, trace)


def test_each_word_is_read_from_where_it_looked_most():
    weights = [[0.1, 0.6, 0.3], [0.8, 0.1, 0.1], [0.3, 0.3, 0.4], [0.0, 0.0, 1.0]]
    found = align(pipeline(), "a  b c", translation("x y z", "x y z", weights))
    assert found == Alignment(["a", "b", "c"], ["x", "y", "z"], [1, 0, 2])


def test_ties_go_to_the_first():
    found = align(pipeline(), "a b", translation("x", "x", [[0.5, 0.5], [0, 1]]))
    assert found.attended == [0]


def test_a_word_that_looked_at_nothing_is_of_the_last():
    weights = [[1.0, 0.0, 0.0], [0.0, 0.0, 0.0], [0.0, 0.0, 0.0]]
    found = align(pipeline(), "a b c", translation("x y", "x y", weights))
    assert found.attended == [0, 2]


def test_pieces_of_words_add_up():
    codes = BPE([("a", "b</w>")])
    assert codes.split("cab") == ["c@@", "ab"]
    # "cab" is attended less than "d" by either piece, but more by both; so is the word "xy".
    weights = [
        [0.3, 0.3, 0.4],  # x@@
        [0.3, 0.3, 0.4],  # y
        [0.1, 0.1, 0.8],  # z
        [1.0, 0.0, 0.0],  # </s>
    ]
    made = translation("x@@ y z", "xy z", weights)
    found = align(pipeline(bpe=codes), "cab d", made)
    assert found == Alignment(["cab", "d"], ["xy", "z"], [0, 1])
    weights[1] = [0.0, 0.0, 1.0]
    made = translation("x@@ y z", "xy z", weights)
    assert align(pipeline(bpe=codes), "cab d", made).attended == [1, 1]


def test_source_words_are_those_of_the_raw_line():
    found = align(pipeline("moses"), "don't", translation("x", "x", [[0.2, 0.8], [1, 0]]))
    assert found.source == ["don", "'t"]
    assert found.attended == [1]


def test_what_replaces_an_unknown_word_is_shown():
    made = translation("<unk> y", "b y", [[0.2, 0.8], [0.9, 0.1], [1, 0]])
    assert align(pipeline(), "a b", made).target == ["b", "y"]


def test_words_after_a_replacement_of_several_stay_beside_their_sources():
    weights = [[0.2, 0.8], [0.9, 0.1], [0.2, 0.8], [1, 0]]
    made = translation("<unk> y <unk>", "b1 b2 y", weights)._replace(cuts=[2, 1, 0])
    found = align(pipeline(), "a b", made)
    assert (found.target, found.attended) == (["b1", "b2", "y"], [1, 1, 0])


def test_without_a_source_or_a_translation_there_are_no_words():
    empty = Translation("", [], [], 0.0, 0.0, None)
    assert align(pipeline(), " ", empty) == Alignment([], [], [])
    silent = translation("", "", [[0.5, 0.5]])
    assert align(pipeline(), "a b", silent) == Alignment(["a", "b"], [], [])


def test_a_mechanism_without_weights_is_a_mistake_of_the_caller():
    with pytest.raises(ValueError, match="no weights to align 'x y' by"):
        align(pipeline(), "a", translation("x y", "x y", None))
