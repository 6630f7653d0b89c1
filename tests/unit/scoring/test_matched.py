"""Words that a reference has too, against all alignments there are."""

from __future__ import annotations

import itertools
import random

import pytest

from nmtflex.scoring.matched import matched_words


def alignments(words: list[str], reference: list[str]):
    """Yield (edits, matched words) of every monotonic alignment of one word with one word."""
    for size in range(min(len(words), len(reference)) + 1):
        for own in itertools.combinations(range(len(words)), size):
            for other in itertools.combinations(range(len(reference)), size):
                equal = [
                    words[left] == reference[right] for left, right in zip(own, other, strict=True)
                ]
                gaps = len(words) + len(reference) - 2 * size
                matched = {place for place, same in zip(own, equal, strict=True) if same}
                yield gaps + equal.count(False), matched


@pytest.mark.parametrize("seed", range(60))
def test_an_alignment_of_fewest_edits_and_then_most_equal_words(seed: int) -> None:
    draw = random.Random(seed)
    words, reference = ([draw.choice("abc") for _ in range(draw.randrange(7))] for _ in range(2))
    every = list(alignments(words, reference))
    edits = min(edits for edits, _ in every)
    best = [matched for fewest, matched in every if fewest == edits]
    most = max(map(len, best))
    found = matched_words(words, reference)
    assert len(found) == len(words)
    assert {place for place, same in enumerate(found) if same} in [
        matched for matched in best if len(matched) == most
    ]


def test_a_word_in_another_place_is_wrong() -> None:
    assert matched_words(["b", "c", "a"], ["a", "b", "c"]) == [True, True, False]
    assert matched_words(["A"], ["a"]) == [False]
    assert matched_words([], ["a"]) == []
    assert matched_words(["a", "b"], []) == [False, False]
