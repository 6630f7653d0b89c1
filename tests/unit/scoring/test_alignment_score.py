"""Alignment error rate, by hand and by a loop over links."""

from __future__ import annotations

import random

import pytest

from nmtflex.corpus.links import Links
from nmtflex.scoring.alignment import score_alignments


def gold(*links: tuple[int, int], possible: tuple = ()) -> Links:
    return Links(sorted(links), sorted({*links, *possible}))


def test_without_possible_links_it_is_one_minus_f1():
    # The example of NLTK's alignment_error_rate: one of three links is right.
    found = score_alignments([[(0, 0), (1, 2), (2, 1)]], [gold((0, 0), (1, 1), (2, 2))])
    assert found.aer == pytest.approx(100 * 2 / 3)
    assert (found.precision, found.recall) == pytest.approx((100 / 3, 100 / 3))


def test_all_sure_links_and_any_possible_ones_are_no_error():
    expected = gold((0, 0), (1, 1), possible=((2, 1), (2, 2)))
    found = score_alignments([[(0, 0), (1, 1), (2, 2)]], [expected])
    assert (found.aer, found.precision, found.recall) == (0, 100, 100)


def test_by_hand():
    # A = {00 11 22 33}, S = {00 12}, P = S + {11 22}: A & S = 1, A & P = 3.
    expected = gold((0, 0), (1, 2), possible=((1, 1), (2, 2)))
    found = score_alignments([[(0, 0), (1, 1), (2, 2), (3, 3)]], [expected])
    assert found.aer == pytest.approx(100 * (1 - (1 + 3) / (4 + 2)))
    assert found.precision == pytest.approx(75)
    assert found.recall == pytest.approx(50)
    assert found.signature == "links:4|sure:2|possible:4"


def test_counts_are_pooled_over_the_sentences():
    random.seed(1)
    words = range(5)
    every = [(s, t) for s in words for t in words]
    sentences = [
        (random.sample(every, 5), random.sample(every, n), random.sample(every, 4))
        for n in (0, 1, 3, 6)
    ]
    links = sure = right = allowed = 0
    for own, certain, maybe in sentences:
        for link in own:
            links += 1
            right += link in certain
            allowed += link in certain or link in maybe
        sure += len(certain)
    found = score_alignments(
        [own for own, _, _ in sentences],
        [gold(*certain, possible=tuple(maybe)) for _, certain, maybe in sentences],
    )
    assert found.aer == pytest.approx(100 * (1 - (right + allowed) / (links + sure)))
    assert found.precision == pytest.approx(100 * allowed / links)
    assert found.recall == pytest.approx(100 * right / sure)


def test_nothing_found_is_all_wrong():
    found = score_alignments([[]], [gold((0, 0))])
    assert (found.aer, found.precision, found.recall) == (100, 0, 0)


def test_without_a_sure_link_there_is_no_rate():
    with pytest.raises(ValueError, match="no sure link in 1 sentences"):
        score_alignments([[(0, 0)]], [gold(possible=((0, 0),))])
    with pytest.raises(ValueError, match="zip"):
        score_alignments([], [gold((0, 0))])
