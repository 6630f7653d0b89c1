"""The spans of elements, against a plain search of all runs."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest

from nmtflex.markup.passages import ROOT, Mark, Passage
from nmtflex.markup.placing import best_run, place
from nmtflex.markup.proportion import by_position


def by_search(scores) -> tuple[int, int] | None:
    """Try all runs: the greatest sum, then the shortest, then the first."""
    runs = [
        (-sum(scores[start:end]), end - start, start, end)
        for start in range(len(scores))
        for end in range(start + 1, len(scores) + 1)
    ]
    best = min(runs, default=(0,))
    return best[2:] if best[0] < 0 else None


@pytest.mark.parametrize("seed", range(200))
def test_the_best_run(seed):
    random = Random(seed)
    scores = random.choices([1, -1, -(1 << 40)], [3, 3, 1], k=random.randint(0, 12))
    assert best_run(np.array(scores, dtype=np.int64)) == by_search(scores)


def passage(text: str, *marks: tuple[int, int, int]) -> Passage:
    """Make a passage of marks: parent, start and end."""
    return Passage(text, marks=[Mark(parent, [], start=a, end=b) for parent, a, b in marks])


def numbered(text: str) -> list[tuple[int, int]]:
    return [(place, place + 1) for place, letter in enumerate(text) if letter != " "]


def linked(text: str, target: str, sources: list[int | None]):
    """Link each letter of the target to a letter of the text."""
    own, others = numbered(text), numbered(target)
    return [
        (own[source], other)
        for source, other in zip(sources, others, strict=True)
        if source is not None
    ]


def found(text, target, sources, *marks) -> list[str]:
    spans = place(passage(text, *marks), target, linked(text, target, sources))
    return [target[start:end] for start, end in spans]


def test_words_for_an_element_outweigh_words_against_it():
    bold = ROOT, 2, 5  # b c
    assert found("a b c d", "W X Y Z", [0, 1, 2, 3], bold) == ["X Y"]
    assert found("a b c d", "W X Y Z", [1, 0, 2, 2], bold) == ["Y Z"]
    assert found("a b c d", "W X Y Z", [1, 1, 0, 2], bold) == ["W X"]
    assert found("a b c d", "V W X Y Z", [1, 1, 0, 2, 2], bold) == ["V W X Y Z"]
    assert found("a b c d", "W X Y Z", [1, 0, 0, 2], bold) == ["W"]  # the first of equal ones


def test_what_is_placed_as_a_whole_replaces_no_other_words():
    own = passage("a b c", (ROOT, 2, 3))
    own.marks[0].whole = True
    links = linked("a b c", "U V W X Y", [1, 1, 0, 1, 2])
    assert place(own, "U V W X Y", links) == [(0, 3)]
    assert place(own, "U V", [((0, 1), (0, 1)), ((4, 5), (2, 3))]) == [(2, 2)]


def test_words_without_a_link_are_inside_only_between_others():
    bold = ROOT, 2, 5
    assert found("a b c d", "U V W X Y Z", [None, 1, None, 2, None, 3], bold) == ["V W X"]


def test_an_element_with_all_words_has_all_words():
    assert found("a b", "X Y Z", [None, 0, None], (ROOT, 0, 3), (0, 0, 3)) == ["X Y Z", "X Y Z"]


def test_children_lie_within_their_parent_and_siblings_apart():
    outer, inner = (ROOT, 0, 5), (0, 2, 3)
    assert found("a b c d", "W X Y Z", [1, 3, 0, 2], outer, inner) == ["Y Z", ""]
    one, other = (ROOT, 0, 3), (ROOT, 4, 5)
    # All of a b would be around c, which is placed first since it is shorter.
    assert found("a b c d", "V W X Y Z", [0, 1, 2, 1, 1], one, other) == ["V W", "X"]


def test_an_element_without_links_takes_words_that_have_none_beside_its_neighbour():
    bold = ROOT, 2, 3
    assert found("a b c", "X Y Z", [0, None, 2], bold) == ["Y"]
    assert found("a b c", "X Z", [0, 2], bold) == [""]


def test_part_of_a_word_that_stays():
    water = Passage("H2O da", marks=[Mark(ROOT, [], start=1, end=2)])
    assert place(water, "das H2O", [((4, 6), (0, 3)), ((0, 3), (4, 7))]) == [(5, 6)]
    assert place(water, "das H²O", [((4, 6), (0, 3)), ((0, 3), (4, 7))]) == [(4, 7)]


@pytest.mark.parametrize("seed", range(300))
def test_spans_are_nested_as_their_elements(seed):
    random = Random(seed)
    size, length = random.randint(1, 8), random.randint(0, 8)
    text, target = " ".join("s" * size), " ".join("t" * length)
    marks: list[tuple[int, int, int]] = []

    def add(parent: int, start: int, end: int, depth: int) -> None:
        while start < end and random.random() < 0.7:
            first = random.randint(start, end)
            last = random.randint(first, end)
            marks.append((parent, 2 * first, max(2 * first, 2 * last - 1)))
            if depth < 3:
                add(len(marks) - 1, first, last, depth + 1)
            start = last

    add(ROOT, 0, size, 0)
    links = linked(text, target, random.choices([None, *range(size)], k=length))
    own = passage(text, *marks)
    for mark in own.marks:
        mark.whole = random.random() < 0.2
        mark.spaced = random.random() < 0.5, random.random() < 0.5
    spans = place(own, target, links)
    for number, (mark, (start, end)) in enumerate(zip(own.marks, spans, strict=True)):
        outer = (0, len(target)) if mark.parent == ROOT else spans[mark.parent]
        assert outer[0] <= start <= end <= outer[1]
        for other in range(number):
            if own.marks[other].parent == mark.parent:
                low, high = spans[other]
                assert high <= start or end <= low


def test_links_by_position():
    text, target = "ein Hund da", "a dog, there it is"
    shown = [(text[a:b], target[c:d]) for (a, b), (c, d) in by_position(text, target)]
    assert shown == [
        ("ein", "a"), ("ein", "dog,"), ("Hund", "there"), ("da", "it"), ("da", "is")
    ]  # fmt: skip
    assert by_position("", "a") == by_position("a", " ") == []
    assert len(by_position("犬が走る", "犬 runs")) == 2
