"""BLEU and seconds by the length of the source."""

from __future__ import annotations

import itertools
import math
from types import SimpleNamespace

import pytest

pytest.importorskip("matplotlib")

from nmtflex.errors import DataError
from nmtflex.evaluation.run_scores import run_bleu
from nmtflex.figures import lengths
from nmtflex.figures.lengths import bleu_by_length, by_length, seconds_by_length
from nmtflex.scoring.buckets import Bucket
from nmtflex.text.pipeline import SidePipeline
from nmtflex.text.tokenizers import build_tokenizer
from nmtflex.text.vocabulary import Vocabulary


class Parrot:
    """Translates each line by itself, letter for letter, and notes what it was asked."""

    def __init__(self) -> None:
        side = SidePipeline(
            "x", build_tokenizer({"name": "none"}), None, Vocabulary("abcd", [1] * 4)
        )
        self.pipeline = SimpleNamespace(source=side, target=side)
        self.decoded: list[list[int]] = []

    def n_best(self, lines, count):
        assert count == 1
        return [[SimpleNamespace(words=line.split())] for line in lines]

    def translate_ids(self, ids, count=None):
        self.decoded.append([len(one) for one in ids])


SOURCES = ["a b c d", "", "a b", "d c b a d", "a"]


def test_bleu_is_that_of_the_sentences_of_each_length():
    references = ["a b c d", "b", "a c", "d c b a a", "b"]
    parrot = Parrot()
    found = bleu_by_length(parrot, SOURCES, references, [2, 4])
    assert [(one.label, one.sentences) for one in found] == [("1-2", 2), ("3-4", 1), (">4", 1)]
    target = parrot.pipeline.target
    assert found[0].score == run_bleu(target, [["a", "b"], ["a"]], ["a c", "b"]).value
    assert found[1].score == pytest.approx(100)
    assert found[2].score == pytest.approx(100 * (4 / 5 * 3 / 4 * 2 / 3 * 1 / 2) ** 0.25)


def test_a_length_that_no_sentence_has():
    found = bleu_by_length(Parrot(), ["a"], ["a"], [2, 4])
    assert [one.score for one in found][1:] == [None, None]


def test_each_length_is_decoded_apart_and_its_median_counts(monkeypatch):
    # Each measurement looks at the clock twice: 1, 5 and 3 seconds of the first length, and so on.
    steps = itertools.accumulate(itertools.cycle([0, 1, 0, 5, 0, 3]))
    monkeypatch.setattr(lengths, "time", SimpleNamespace(perf_counter=lambda: float(next(steps))))
    parrot = Parrot()
    found = seconds_by_length(parrot, SOURCES, [2], 3)
    assert parrot.decoded == [[4, 2, 5, 1]] + [[2, 1]] * 3 + [[4, 5]] * 3  # warm-up first
    assert [one.score for one in found] == [1.5, 1.5]


@pytest.mark.parametrize("sources", [["", " "], [""]])
def test_a_split_of_empty_lines(sources):
    with pytest.raises(DataError, match="no sentence of the split has words"):
        bleu_by_length(Parrot(), sources, sources, [10])
    with pytest.raises(DataError, match="no sentence of the split has words"):
        seconds_by_length(Parrot(), sources, [10], 1)


def buckets(*scores: float | None, sentences: int = 7) -> list[Bucket[float]]:
    labels = ["1-10", "11-20", ">20"]
    return [
        Bucket(label, 1, None, 0 if score is None else sentences, score)
        for label, score in zip(labels, scores, strict=True)
    ]


def test_a_line_a_run_over_the_lengths_that_some_run_has(texts):
    runs = [("a", buckets(0.5, 0.25, None)), ("b", buckets(1.0, None, None, sentences=9))]
    figure = by_length(runs, "Time", "time (milliseconds a sentence)", "test · beam 5", factor=1000)
    [axes] = figure.axes
    first, second = axes.lines
    assert list(first.get_ydata()) == [500, 250]
    assert second.get_ydata()[0] == 1000
    assert math.isnan(second.get_ydata()[1])
    assert axes.get_ylim()[0] == 0
    found = "|".join(texts(figure))
    assert "1-10" in found
    assert "n = 7 to 9" in found
    assert "n = 0 to 7" in found
    assert ">20" not in found
    for text in ("Time", "time (milliseconds a sentence)", "test · beam 5", "(words)", "a", "b"):
        assert text in found


def test_one_run_needs_no_legend(texts):
    figure = by_length([("a", buckets(30.0, 20.0, 10.0))], "BLEU", "BLEU (0 to 100)", "a · test")
    assert not figure.legends
    assert [text for text in texts(figure) if "n = " in text] in ([], ["n = 7"] * 3)
