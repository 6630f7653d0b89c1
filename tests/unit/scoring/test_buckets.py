"""Scores by source length."""

from __future__ import annotations

import pytest
from of_lines import corpus_ribes, word_bleu

from nmtflex.errors import DataError
from nmtflex.scoring.buckets import EDGES, Bucket, score_by_length


def count(hypotheses, *references):
    return hypotheses, *references


def test_every_length_has_its_bucket():
    lengths = [1, 10, 11, 20, 21, 50, 51, 400]
    sentences = [f"h{length}" for length in lengths]
    assert score_by_length(count, lengths, sentences, edges=EDGES) == [
        Bucket("1-10", 1, 10, 2, (["h1", "h10"],)),
        Bucket("11-20", 11, 20, 2, (["h11", "h20"],)),
        Bucket("21-30", 21, 30, 1, (["h21"],)),
        Bucket("31-40", 31, 40, 0, None),
        Bucket("41-50", 41, 50, 1, (["h50"],)),
        Bucket(">50", 51, None, 2, (["h51", "h400"],)),
    ]


def test_empty_sources_are_not_lost():
    buckets = score_by_length(count, [0, 5, 0, 1], list("abcd"), list("efgh"), edges=[1, 5])
    assert [(bucket.label, bucket.score) for bucket in buckets] == [
        ("0", (["a", "c"], ["e", "g"])),
        ("1", (["d"], ["h"])),
        ("2-5", (["b"], ["f"])),
        (">5", None),
    ]


def test_a_single_bucket():
    assert score_by_length(count, [3], ["a"], edges=[]) == [Bucket(">0", 1, None, 1, (["a"],))]


def test_bleu_and_ribes():
    hypotheses, references = [list("abcd"), list("xbcd")], [list("abcd"), list("abcd")]
    short, long = score_by_length(word_bleu, [3, 9], hypotheses, references, edges=[5])
    assert (short.score.value, long.score.value) == (100, 0)
    lines = ["a b c d", "b a c d"]
    buckets = score_by_length(corpus_ribes, [3, 9], lines, lines[:1] * 2, lines, edges=[5])
    assert [bucket.score.value for bucket in buckets] == [1, 1]


@pytest.mark.parametrize("edges", [[0, 10], [10, 10], [20, 10], [-1]])
def test_edges_must_rise(edges):
    with pytest.raises(ValueError, match=r"^edges must .* at least 1, not ") as caught:
        score_by_length(count, [1], ["a"], edges=edges)
    assert str(caught.value).endswith(str(edges))


def test_unequal_counts():
    with pytest.raises(DataError, match=r"^2 sources, but 1 sentences$"):
        score_by_length(count, [1, 2], ["a"])
    with pytest.raises(DataError, match=r"^1 sources, but 3 sentences$"):
        score_by_length(count, [1], ["a"], ["a", "b", "c"])
