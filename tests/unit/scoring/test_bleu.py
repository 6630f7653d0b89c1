"""BLEU and chrF against values worked out by hand, and against Moses' multi-bleu.perl."""

from __future__ import annotations

import json
import logging
import lzma
import math
import re
from pathlib import Path

import pytest

from nmtflex.errors import DataError
from nmtflex.scoring.bleu import corpus_bleu, corpus_chrf, lacks_spaces, word_bleu

ORACLES = Path(__file__).parents[4] / "shared" / "oracles"


def test_precisions_by_hand():
    # 4/5 words, 3/4 pairs, 2/3 triples and 1/2 fours match: their product is 1/5.
    score = corpus_bleu(["a b c d e"], ["a b c d f"])
    assert score.value == pytest.approx(100 * 0.2**0.25)
    assert score.signature.startswith("nrefs:1|case:mixed|eff:no|tok:13a|smooth:exp|version:")


def test_brevity_by_hand():
    assert corpus_bleu(["a b c d"], ["a b c d e"]).value == pytest.approx(100 * math.exp(-1 / 4))


def test_counts_are_summed_over_the_corpus():
    # 5 of 7 words, 3 of 5 pairs, 2 of 3 triples, 1 of 1 four: product 2/7; no brevity penalty.
    score = corpus_bleu(["a b c d", "e f x"], ["a b c d", "e g h"])
    assert score.value == pytest.approx(100 * (5 / 7 * 3 / 5 * 2 / 3) ** 0.25)


def test_perfect_is_a_hundred_at_most():
    assert corpus_bleu(["a b c d"], ["a b c d"]).value == 100
    assert corpus_chrf(["a b c d"], ["a b c d"]).value == 100


def test_case_counts():
    assert corpus_bleu(["A b c d"], ["a b c d"]).value < 100


def test_13a_parts_punctuation_and_none_does_not():
    assert corpus_bleu(["a b c d ."], ["a b c d."]).value == 100
    assert corpus_bleu(["a b c d ."], ["a b c d."], tokenize="none").value < 100


def test_characters():
    assert corpus_bleu(["日本語文"], ["日本語文"], tokenize="char").value == 100
    assert "tok:char" in corpus_bleu(["日本"], ["日本"], tokenize="char").signature


@pytest.mark.parametrize("space", ["\u3000", "\u00a0", "\u2009", "\u0085", "\x1c", "\u2028"])
def test_none_parts_at_ascii_white_space_alone(space):
    whole = f"a{space}b c d e"
    assert corpus_bleu([whole], [whole], tokenize="none").value == 100
    # Nothing but c, d and e is common.
    parted = corpus_bleu([whole], ["a b c d e"], tokenize="none").value
    three = corpus_bleu(["x c d e"], ["a b c d e"], tokenize="none").value
    assert parted == pytest.approx(three)


@pytest.mark.parametrize("space", [" ", "\t", "\r", "\v", "\f", " \t "])
def test_none_parts_at_all_ascii_white_space(space):
    assert corpus_bleu([f"a{space}b c d"], ["a b c d"], tokenize="none").value == 100


def test_white_space_at_the_end_of_a_word_counts():
    assert corpus_bleu(["a b c d\u3000"], ["a b c d"], tokenize="none").value < 100


def test_different_spaces_and_private_use_characters_are_different_words():
    words = ["a\u3000", "a\u00a0", "a\ue000", "a\ue000\ue000", "a\ue001", "a\ue000\ue001", "a", " "]
    for one in words:
        for other in words:
            score = word_bleu([[one, "b", "c", "d"]], [[other, "b", "c", "d"]])
            assert (score.value == 100) == (one == other)


def test_a_word_may_be_a_tab():
    # The char tokenizer has such tokens.
    assert word_bleu([["a", "\t", "b", "c"]], [["a", "\t", "b", "c"]]).value == 100
    assert word_bleu([["a", "b", "c", "d"]], [["a", "\t", "b", "c", "d"]]).value < 100


def test_chrf_by_hand():
    # One character of 3 and one pair of 2 differ, the triple too: precision = recall = 7/18.
    score = corpus_chrf(["abc"], ["abd"])
    assert score.value == pytest.approx(100 * (2 / 3 + 1 / 2 + 0) / 3)
    assert score.signature.startswith("nrefs:1|case:mixed|eff:yes|nc:6|nw:0|space:no|version:")


def test_empty_hypotheses_score_nothing():
    assert corpus_bleu(["", ""], ["a b c d", "e"]).value == 0
    assert corpus_bleu(["", ""], ["a b c d", "e"], tokenize="none").value == 0
    assert corpus_chrf(["", ""], ["a b c d", "e"]).value == 0


@pytest.mark.parametrize("score", [corpus_bleu, corpus_chrf, word_bleu])
def test_unequal_or_empty(score):
    with pytest.raises(DataError, match=r"^2 hypotheses, but 1 references$"):
        score(["a", "b"], ["a"])
    with pytest.raises(DataError, match=r"^no sentences to score$"):
        score([], [])


def test_tokenized_periods_warn_unless_told(caplog):
    lines = ["a b c ."] * 100
    with caplog.at_level(logging.WARNING, logger="sacrebleu"):
        corpus_bleu(lines, lines, tokenize="none")
        corpus_bleu(lines, lines, force=True)
        assert caplog.text == ""
        corpus_bleu(lines, lines)
        assert "forgot to detokenize" in caplog.text


@pytest.mark.parametrize(
    ("lines", "lacks"),
    [
        (["日本語の文には空白がありません。"], True),
        (["日本語 の 文 に は 空白 が あり ませ ん 。"], False),
        (["a text of short words"], False),
        (["Das Rindfleischetikettierungsgesetz gilt hier"], False),
        (["yes", "no", "7"], False),
        (["これは長い文なので数えられます", "short one"], True),
        ([], False),
        ([""], False),
    ],
)
def test_text_without_spaces(lines, lacks):
    assert lacks_spaces(lines) is lacks


@pytest.mark.skipif(not ORACLES.is_dir(), reason="needs the reference scores, kept elsewhere")
def test_equals_multi_bleu():
    with lzma.open(ORACLES / "multi_bleu.jsonl.xz", "rt", encoding="utf-8") as file:
        cases = [json.loads(line) for line in file]
    compared = 0
    for case in cases:
        expected, fours = re.match(
            r"BLEU = ([\d.]+), [\d.]+/[\d.]+/[\d.]+/([\d.]+)", case["multi_bleu"]
        ).groups()
        if float(fours) >= 1:  # with next to no matches sacrebleu smooths, and Moses says 0
            references = case["references"]
            references = [line[0] if isinstance(line, list) else line for line in references]
            score = corpus_bleu(case["hypotheses"], references, tokenize="none")
            assert f"{score.value:.2f}" == expected
            compared += 1
    assert compared >= 3
