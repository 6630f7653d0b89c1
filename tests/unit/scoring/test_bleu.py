"""BLEU, chrF and TER against values worked out by hand, and against Moses' multi-bleu.perl."""

from __future__ import annotations

import json
import lzma
import math
from pathlib import Path

import pytest
from of_lines import corpus_bleu, corpus_chrf, corpus_ter, sentence_bleu, word_bleu

from nmtflex.errors import DataError
from nmtflex.scoring.bleu import (
    chrf_metric,
    corpus_score,
    lacks_spaces,
    sentence_scores,
    ter_metric,
)

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


def test_case_is_lowered_on_request():
    score = corpus_bleu(["A b c d"], ["a b C d"], lowercase=True)
    assert score.value == 100
    assert "|case:lc|" in score.signature
    assert word_bleu([list("Abcd")], [list("abCd")], lowercase=True).value == 100
    assert corpus_bleu(["A b c d"], ["a b C d"], tokenize="none", lowercase=True).value == 100
    assert corpus_chrf(["ABC"], ["abc"], lowercase=True).value == 100
    assert corpus_chrf(["ABC"], ["abc"]).value == 0


def test_parts_read_as_multi_bleu_prints_them():
    score = corpus_bleu(["a b c d", "e f x"], ["a b c d", "e g h i"], tokenize="none")
    # 5 of 7 words, 3 of 5 pairs, 2 of 3 triples, 1 of 1 four; 7 words against 8.
    assert str(score.parts) == (
        "71.4/60.0/66.7/100.0 (BP=0.867, ratio=0.875, hyp_len=7, ref_len=8)"
    )
    assert score.parts.ratio == 7 / 8
    assert str(corpus_bleu([""], [""]).parts).endswith(
        "(BP=1.000, ratio=0.000, hyp_len=0, ref_len=0)"
    )
    assert corpus_chrf(["a"], ["a"]).parts is None


def test_no_four_in_common_is_nothing_unless_smoothed():
    one, other = [list("abcde")], [list("abcxy")]
    score = word_bleu(one, other)
    assert score.value == 0
    assert "|smooth:none|" in score.signature
    assert corpus_bleu(["a b c d e"], ["a b c x y"], tokenize="none") == score
    # 3/5, 2/4, 1/3, and half of 1/2.
    smoothed = word_bleu(one, other, smooth="exp")
    assert smoothed.value == pytest.approx(100 * (3 / 5 * 2 / 4 * 1 / 3 * 1 / 4) ** 0.25)
    assert corpus_bleu(["a b c d e"], ["a b c x y"]).value == pytest.approx(smoothed.value)
    # Nor is there a four in sentences of three words.
    assert word_bleu([list("abc")], [list("abc")]).value == 0


def test_several_references():
    # The closest length counts, of two as close the shorter; a word as often as in one reference.
    score = word_bleu([list("aaabc")], [list("aabx")], [list("aaybcz")])
    assert score.parts.precisions[:2] == pytest.approx((80, 75))  # aa once; ab, bc
    assert (score.parts.hypothesis_length, score.parts.reference_length) == (5, 4)
    assert score.signature.startswith("nrefs:2|")
    lines = corpus_bleu(["a a a b c"], ["a a b x"], ["a a y b c z"], tokenize="none")
    assert lines == score
    assert corpus_chrf(["abc"], ["xyz"], ["abc"]).value == 100
    assert corpus_ter(["a b c"], ["x y z"], ["a b c"]).value == 0


def test_ter_by_hand():
    # One shift and one substitution for four words.
    score = corpus_ter(["d a b x"], ["a b c D"])
    assert score.value == pytest.approx(50)
    assert score.signature.startswith("nrefs:1|case:lc|tok:tercom|")
    assert corpus_ter(["d a b x"], ["a b c D"], case_sensitive=True).value == 75
    assert corpus_ter(["x y z"], ["a"]).value == 300


def test_ter_of_words():
    hypotheses, references = [["a\u3000b", "c"]], [["a\u3000b", "d"]]
    assert corpus_score(ter_metric(words=True), hypotheses, references).value == 50
    assert corpus_ter(["a\u3000b c"], ["a\u3000b d"]).value == pytest.approx(100 / 3)


def test_sentences():
    scores = sentence_bleu(["a b c d e", "a b", ""], ["a b c d e", "a b", "x"])
    assert scores.values == [100, 100, 0]  # the order is at most the length
    assert scores.signature.startswith("nrefs:1|case:mixed|eff:yes|tok:13a|smooth:exp|version:")
    # 3/5, 2/4, 1/3, and half of 1/2.
    words = sentence_bleu([list("abcde")], [list("abcxy")], tokenize=None)
    assert words.values == [pytest.approx(100 * (3 / 5 * 2 / 4 * 1 / 3 * 1 / 4) ** 0.25)]
    lines = sentence_bleu(["A B C D E"], ["x"], ["a b c x y"], tokenize="none", lowercase=True)
    assert lines.values == words.values
    assert sentence_scores(chrf_metric(), ["abc", "x"], ["abc", "y"]).values == [100, 0]
    assert sentence_scores(ter_metric(), ["a b"], ["a c"], ["b d"]).values == [50]


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


@pytest.mark.parametrize("score", [corpus_bleu, corpus_chrf, corpus_ter, word_bleu, sentence_bleu])
def test_unequal_or_empty(score):
    with pytest.raises(DataError, match=r"^2 hypotheses, but 1 references$"):
        score(["a", "b"], ["a"])
    with pytest.raises(DataError, match=r"^2 hypotheses, but 3 references in reference 2$"):
        score(["a", "b"], ["a", "b"], ["a", "b", "c"])
    with pytest.raises(DataError, match=r"^no sentences to score$"):
        score([], [])
    with pytest.raises(ValueError, match=r"^2 hypotheses, but no references were given$"):
        score(["a", "b"])


def test_tokenized_periods_warn_unless_told(logged):
    lines = ["a b c ."] * 100
    corpus_bleu(lines, lines, tokenize="none")
    corpus_bleu(lines, lines, force=True)
    assert logged.getvalue() == ""
    corpus_bleu(lines, lines)
    assert "forgot to detokenize" in logged.getvalue()


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
    assert len(cases) == 5
    for case in cases:
        score = corpus_bleu(case["hypotheses"], case["references"], tokenize="none")
        assert f"BLEU = {score.value:.2f}, {score.parts}" == case["multi_bleu"]
