"""Scores of outputs against references: all numbers by hand or by an official program."""

from __future__ import annotations

import json
import lzma
import re
import sys
from pathlib import Path

import pytest
from sacrebleu.metrics.lib_ter import translation_edit_rate

from nmtflex.config import ScoreConfig
from nmtflex.errors import DataError
from nmtflex.scoring.evaluation import Scorer, check_parallel, file_segmentation, read_texts
from nmtflex.scoring.significance import Resampling

SHARED = Path(__file__).parents[4] / "shared"
TINY_KYTEA = Path(__file__).parents[2] / "fixtures/tiny.kytea"
BLEU = 100 * 0.2**0.25  # of "a b c d e" against "a b c d f": 4/5, 3/4, 2/3 and 1/2 match


def prepared(output, *references, **options):
    """Return a scorer of lists of lines, and the output as a text."""
    config = ScoreConfig(**options)
    segmentation = file_segmentation(config)
    texts = [segmentation.text(f"r{number}", lines) for number, lines in enumerate(references, 1)]
    return Scorer(segmentation, texts, config), segmentation.text("h", output)


def evaluated(output, *references, **options):
    scorer, text = prepared(output, *references, **options)
    return scorer.evaluate(text)


def test_every_score_by_hand():
    found = evaluated(["a b c d e"], ["a b c d f"], ribes=True, ter=True)
    assert found.bleu.value == pytest.approx(BLEU)
    assert found.ribes.value == pytest.approx(0.8**0.25)
    assert found.ter.value == pytest.approx(20)
    assert list(found.scores) == ["BLEU", "chrF2", "TER", "RIBES"]
    plain = found.to_dict()
    assert plain["precisions"] == pytest.approx((80, 75, 200 / 3, 50))
    assert (plain["brevity_penalty"], plain["hypothesis_length"]) == (1, 5)
    assert plain["reference_length"] == 5
    assert {key: plain[key] for key in ("bleu", "chrf", "ter", "ribes", "sentences")} == {
        "bleu": found.bleu.value,
        "chrf": found.chrf.value,
        "ter": found.ter.value,
        "ribes": found.ribes.value,
        "sentences": 1,
    }


def test_what_is_not_asked_for_is_not_there():
    found = evaluated(["a"], ["a"])
    assert (found.ribes, found.ter, found.cps) == (None, None, None)
    assert not {"ribes", "ter", "cps"} & set(found.to_dict())


@pytest.mark.parametrize(
    ("tokenize", "words"),
    [
        ("13a", ["a", ",", "b", "日本"]),
        ("none", ["a,", "b\u3000日本"]),
        ("char", ["a", ",", "b", "日", "本"]),
        ("intl", ["a", ",", "b", "日本"]),
        ("zh", ["a", ",", "b", "日", "本"]),
        ("ja-mecab", ["a", ",", "b", "日本"]),
    ],
)
def test_ribes_has_the_words_of_bleu(tokenize, words):
    scorer, text = prepared(["a, b\u3000日本"], ["a, b\u3000日本"], tokenize=tokenize, ribes=True)
    assert text.words == [words]
    found = scorer.evaluate(text)
    assert (found.ribes.value, found.bleu.parts.hypothesis_length) == (1, len(words))
    assert f"|tok:{tokenize}" in found.bleu.signature
    end = "none" if tokenize == "none" else rf"{tokenize}\S*-sacrebleu-[\d.]+"
    assert re.search(rf"\|segmenter:{end}$", found.ribes.signature)


def test_case():
    pair = ["A b c d e"], ["a b c d e"]
    kept = evaluated(*pair, ribes=True, ter=True)
    assert kept.bleu.value == pytest.approx(BLEU)
    assert (kept.ribes.value, kept.ter.value) == (1, 0)
    assert "|case:lc|" in kept.ribes.signature
    lowered = evaluated(*pair, ribes=True, lowercase=True, case_sensitive=True)
    assert (lowered.bleu.value, lowered.chrf.value) == (100, 100)
    assert lowered.ribes.value == pytest.approx(0.8**0.25)
    assert "|case:lc|" in lowered.bleu.signature
    assert "|case:mixed|" in lowered.ribes.signature


def test_several_references():
    found = evaluated(["a b c d e"], ["a b c d f"], ["a b c d e"], ribes=True, ter=True)
    assert (found.bleu.value, found.ribes.value, found.ter.value) == (100, 1, 0)
    assert all(score.signature.startswith("nrefs:2|") for score in found.scores.values())


def test_ter_reads_lines_under_13a_and_words_otherwise():
    pair = ["日 本"], ["日本"]
    lines = evaluated(*pair, ter=True).ter
    assert lines.value == pytest.approx(200)
    assert "segmenter" not in lines.signature
    words = evaluated(*pair, ter=True, tokenize="char").ter
    assert words.value == 0
    assert "|segmenter:char-sacrebleu-" in words.signature


def test_wat_in_japanese():
    pytest.importorskip("vaporetto")
    options = {"wat": "ja", "kytea_model": TINY_KYTEA}
    found = evaluated(["彼 は東京へ行く。［１］"], ["彼は東京へ行く。"], **options)
    assert (found.bleu.value, found.ribes.value) == (100, 1)
    for signature in (found.bleu.signature, found.ribes.signature):
        assert re.search(r"\|wat\Wja\|segmenter:kytea-vaporetto-[\d.]+\|model:\w{12}$", signature)
    assert "|smooth:none|" in found.bleu.signature


def test_wat_with_mecab_says_that_it_is_a_variant():
    found = evaluated(["東京へ行く"], ["東京へ 行く"], wat="ja", segmenter="mecab", ter=True)
    assert (found.ribes.value, found.ter.value) == (1, 0)
    for score in (found.bleu, found.ribes, found.ter):
        assert re.search(r"variant:mecab\|segmenter:mecab-ipadic-[\d.]+$", score.signature)


def test_wat_in_english_keeps_case():
    found = evaluated(["Ｈello, world !"], ["Hello , world!"], wat="en")
    assert found.ribes.value == 1
    assert "|segmenter:moses-sacremoses-" in found.bleu.signature
    found = evaluated(["hello, world !"], ["Hello , world!"], wat="en")
    assert found.ribes.value == pytest.approx(0.75**0.25)
    assert "|case:mixed|" in found.ribes.signature


def test_wat_without_a_good_model(tmp_path):
    pytest.importorskip("vaporetto")
    path = tmp_path / "jp.bin"
    with pytest.raises(DataError, match=re.escape(f"{path}: No such file")):
        file_segmentation(ScoreConfig(wat="ja", kytea_model=path))
    assert ScoreConfig(wat="ja").needs_model  # of a run its own; see tests/cli/test_eval.py
    assert not ScoreConfig(wat="ja", segmenter="mecab").needs_model


def test_missing_package(monkeypatch):
    monkeypatch.setitem(sys.modules, "MeCab", None)
    monkeypatch.delitem(sys.modules, "sacrebleu.tokenizers.tokenizer_ja_mecab", raising=False)
    message = r"^--tokenize ja-mecab needs MeCab and IPADIC; run pip install mecab-python3 ipadic$"
    with pytest.raises(DataError, match=message):
        file_segmentation(ScoreConfig(tokenize="ja-mecab"))


def test_reference_without_words_names_its_line():
    for text in ("", " ", "\u3000"):
        with pytest.raises(DataError, match=r"^r2:3: an empty reference, which RIBES cannot"):
            evaluated(["a"] * 3, ["a"] * 3, ["a", "a", text], ribes=True)
    assert evaluated([""], ["\u3000"], tokenize="none", ribes=True).ribes.value == 0
    assert evaluated(["a", "b"], ["a", ""]).sentences == 2


def test_numbers_of_lines():
    with pytest.raises(DataError) as caught:
        evaluated(["a", "b", ""], ["a", "b"])
    assert str(caught.value) == (
        "h has 3 lines, but r1 has 2; they must be parallel, and h:3 has no counterpart"
    )
    with pytest.raises(DataError, match=r"^r1 has 1 line, but r2 has 2; .* r2:2 has no count"):
        evaluated(["a"], ["a"], ["a", "b"])
    with pytest.raises(DataError, match=r"^r1 is empty: no lines to score$"):
        evaluated([], [])
    check_parallel(("h", 2), ("h", 2))


def test_sentences_by_hand():
    scorer, text = prepared(
        ["a b c d e", "b a c", ""], ["a b c d f"] * 3, ["x", "a b c", "a"], ribes=True, ter=True
    )
    columns, signature = scorer.by_sentence(text)
    names = ["bleu", "chrf", "ribes", "ter", "hypothesis_length", "reference_length"]
    assert list(columns) == names
    assert columns["bleu"][0] == pytest.approx(BLEU)
    assert columns["bleu"][2] == 0
    assert columns["ribes"] == pytest.approx([0.8**0.25, 2 / 3, 0])
    assert columns["ter"] == pytest.approx([100 / 3, 25, 100 / 3])  # of the references' mean length
    assert columns["hypothesis_length"] == [5, 3, 0]
    assert columns["reference_length"] == [5, 3, 1]  # the closer one
    assert "|eff:yes|tok:13a|smooth:exp|" in signature


def test_sentences_have_the_mean_of_ribes():
    pairs = ["a b c d", "c a b", "d"], ["a b c d", "a b c", "a"]
    scorer, text = prepared(*pairs, ribes=True, wat="en")
    columns, signature = scorer.by_sentence(text)
    assert sum(columns["ribes"]) / 3 == pytest.approx(scorer.evaluate(text).ribes.value)
    assert "|segmenter:moses-" in signature


def test_by_length():
    scorer, text = prepared(["a b c d e", "a b c d e"], ["a b c d e", "a b c d f"])
    buckets = scorer.by_length(text, [10, 11])
    found = {bucket.label: (bucket.sentences, bucket.score) for bucket in buckets}
    assert [found[label][0] for label in ("1-10", "11-20", ">50")] == [1, 1, 0]
    assert found["1-10"][1].value == 100
    assert found["11-20"][1].value == pytest.approx(BLEU)
    assert found[">50"][1] is None


def test_comparisons():
    lines = [f"a b c d {index}" for index in range(30)]
    worse = [line.replace("c d", "d c") for line in lines]
    scorer, text = prepared(lines, lines, tokenize="none", ribes=True, ter=True)
    other = scorer.segmentation.text("worse", worse)
    rows = scorer.compare({"best": text, "worse": other}, Resampling(samples=100, seed=3))
    assert [(row.metric, row.system) for row in rows] == [
        (metric, system)
        for metric in ("BLEU", "chrF2", "TER", "RIBES")
        for system in ("best", "worse")
    ]
    assert {row.p_value for row in rows[::2]} == {None}
    assert [row.p_value for row in rows[1::2]] == pytest.approx([1 / 101] * 4)
    assert rows[-1].score == pytest.approx(0.9)  # one of ten pairs falls
    assert all("|bs:100|seed:3|" in row.signature for row in rows)
    assert rows[-1].signature.endswith("|segmenter:none")
    assert rows[4].signature.endswith("|segmenter:none")


def test_the_edits_of_ter_are_computed_once(monkeypatch):
    calls = []

    def counted(words, reference):
        calls.append((tuple(words), tuple(reference)))
        return translation_edit_rate(words, reference)

    monkeypatch.setattr("sacrebleu.metrics.ter.translation_edit_rate", counted)
    scorer, text = prepared(["a b c", "d e", "d e"], ["a c b", "d f", "d e"], ter=True)
    evaluation = scorer.evaluate(text)
    rows = {row.metric: row for row in scorer.compare({"a": text}, Resampling(samples=9))}
    columns, _ = scorer.by_sentence(text)
    assert rows["TER"].score == evaluation.ter.value == pytest.approx(100 * 2 / 7)
    assert columns["ter"] == pytest.approx([100 / 3, 50, 0])
    assert len(calls) == len(set(calls)) == 3


@pytest.mark.parametrize(
    ("line", "tokenize", "unspaced"),
    [
        ("空白のない文がここにあります", "13a", "r1"),
        ("空白のない文がここにあります", "none", "r1"),
        ("空白のない文がここにあります", "char", None),
        ("空白 の ない 文 が ここ に あり ます", "13a", None),
    ],
)
def test_text_without_spaces_is_noticed(line, tokenize, unspaced):
    scorer, text = prepared([line], [line], tokenize=tokenize)
    assert scorer.unspaced(text) == unspaced


def test_text_without_spaces_on_one_side():
    scorer, text = prepared(["空白のない文がここにあります"], ["空白 の ない 文 が ここ に ある"])
    assert scorer.unspaced(text) == "h"


def test_tokenized_text_is_noticed():
    lines = ["a b .", "a b"]
    scorer, text = prepared(lines, ["a b.", "a b"])
    assert scorer.tokenized(text) == "h"
    scorer, text = prepared(["a b. c .", "a b."], ["a b.", "a b."])
    assert scorer.tokenized(text) is None
    scorer, text = prepared(lines, lines, tokenize="none")
    assert scorer.tokenized(text) is None


def test_files(tmp_path):
    path = tmp_path / "h"
    path.write_bytes("a\u0085b\nc\u2028\r\n".encode())  # lines end at line feeds alone
    (text,) = read_texts([path], file_segmentation(ScoreConfig(tokenize="none")))
    assert (text.name, len(text)) == (str(path), 2)
    assert text.words == [["a\u0085b"], ["c\u2028"]]


@pytest.mark.skipif(not SHARED.is_dir(), reason="needs the outputs of the official programs")
class TestOfficial:
    def rows(self, name):
        return [
            json.loads(row) for row in lzma.open(SHARED / "oracles" / name, "rt", encoding="utf-8")
        ]

    def test_multi_bleu(self):
        for row in self.rows("multi_bleu.jsonl.xz"):
            found = evaluated(row["hypotheses"], row["references"], tokenize="none").bleu
            assert f"BLEU = {found.value:.2f}, {found.parts}" == row["multi_bleu"].strip()

    def test_ribes(self):
        (row,) = self.rows("ribes_corpus.json.xz")
        options = {"tokenize": "none", "ribes": True, "case_sensitive": True}
        found = evaluated(row["hypotheses"], row["references"], **options).ribes
        assert found.value == pytest.approx(row["ribes"], abs=1e-9)

    def test_wat(self):
        pytest.importorskip("vaporetto")
        rows = [
            row for row in self.rows("wat_japanese.jsonl.xz") if {"raw", "rejoined"} <= set(row)
        ]
        rows = [row for row in rows if row["rejoined"]]
        outputs = [rows[place - (place % 5 == 0)] for place in range(len(rows))]  # some are wrong
        model = SHARED / "data/kytea_model/kytea-tanaka-kftt.bin.xz"
        sides = [[row["raw"] for row in side] for side in (outputs, rows)]
        found = evaluated(*sides, wat="ja", kytea_model=model)
        words = [[row["rejoined"] for row in side] for side in (outputs, rows)]
        expected = evaluated(*words, tokenize="none", ribes=True, case_sensitive=True)
        assert found.bleu.value == expected.bleu.value < 90
        assert found.ribes.value == expected.ribes.value < 0.9
