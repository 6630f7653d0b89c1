"""A run's BLEU: in its own words, or detokenised where they are Moses'."""

from __future__ import annotations

import re

import pytest

from nmtflex.errors import DataError
from nmtflex.scoring.run_bleu import run_bleu
from nmtflex.text.pipeline import SidePipeline
from nmtflex.text.tokenizers import build_tokenizer
from nmtflex.text.vocabulary import Vocabulary


def side(tokens, **tokenizer):
    vocabulary = Vocabulary(tokens, [1] * len(tokens))
    return SidePipeline("xx", build_tokenizer(tokenizer), None, vocabulary)


def passed(target, line):
    """Return the words of a line that a model has translated to itself."""
    return target.decode_words(target.encode(line))


def test_words_by_hand():
    target = side(list("abcde"), name="none")
    # 4/5 words, 3/4 pairs, 2/3 triples and 1/2 fours match.
    score = run_bleu(target, [passed(target, "a b c d e")], ["a b c  d f"])
    assert score.value == pytest.approx(100 * 0.2**0.25)
    assert "|tok:none|" in score.signature
    assert score.signature.endswith("|segmenter:none")


def test_punctuation_stays_with_its_word():
    target = side(["a", "b", "c", "d", "."], name="none")
    assert run_bleu(target, [passed(target, "a b c d .")], ["a b c d."]).value < 100


def test_unknown_word_is_wrong_even_where_the_reference_has_it_too():
    target = side(["a", "b", "c"], name="none")
    # The unknown words differ: the hypothesis reads "<unk>".
    assert run_bleu(target, [passed(target, "a b c d")], ["a b c d"]).value < 100


def test_characters_with_spaces():
    target = side(["a", "b", "c", "▁"], name="char")
    score = run_bleu(target, [passed(target, "ab c")], ["ab c"])
    assert score.value == 100
    assert score.signature.endswith("|segmenter:char")
    assert run_bleu(target, [passed(target, "abc")], ["ab c"]).value < 100


def test_moses_is_detokenised():
    target = side(["Hello", ",", "world", "!"], name="moses", language="en")
    score = run_bleu(target, [passed(target, "Hello, world!")], ["Hello, world!"])
    assert score.value == 100
    assert "|tok:13a|" in score.signature
    assert "segmenter" not in score.signature


def test_mecab_names_its_dictionary():
    pytest.importorskip("MeCab")
    pytest.importorskip("ipadic")
    line = "東京都に住んでいます"
    target = side([], name="mecab", dictionary="ipadic")
    words = target.words(line)
    target = side(sorted(set(words)), name="mecab", dictionary="ipadic")
    score = run_bleu(target, [passed(target, line)], [line])
    assert score.value == 100
    assert re.search(r"\|tok:none\|.*\|segmenter:mecab-ipadic-[\d.]+$", score.signature)


@pytest.mark.parametrize("name", ["none", "char"])
def test_unequal_counts(name):
    target = side(["a"], name=name)
    with pytest.raises(DataError, match=r"^1 hypotheses, but 2 references$"):
        run_bleu(target, [["a"]], ["a", "a"])
