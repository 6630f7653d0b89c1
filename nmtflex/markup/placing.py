"""Where the elements of a passage stand in its translation.

A link says that the words of a source span became those of a target span. An element gets the
contiguous target span with the greatest number of words linked to its own, less the words inside
that are linked to others; the shortest of equal ones, then the first. Words without links count
nothing, so they are inside only between linked ones. Children lie within their parent, and siblings
apart: the spans of two siblings can only overlap if one contains the other, since a linked word is
for one of them and against the other. Therefore the shortest is placed first, and longer ones leave
out what is taken.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from nmtflex.markup.passages import ROOT, Mark, Passage

Span = tuple[int, int]
Link = tuple[Span, Span]  # of a word in the text and in its translation, in characters
Numbers = npt.NDArray[np.int64]
NEVER = -(1 << 40)  # outweighs all words
DEEPEST = 64  # elements inside each other; deeper, the first one gets all words of its parent


def place(passage: Passage, target: str, links: Sequence[Link]) -> list[Span]:
    """Return the span in a translation of each mark of a passage.

    A mark without characters, or whose words are linked to nothing, gets an empty span beside the
    translation of its neighbours; an element may get words there that are linked to nothing too.

    Args:
        passage: The source.
        target: The translation.
        links: In the order of the target, whose spans do not overlap.
    """
    children: dict[int, list[int]] = {}
    for number, mark in enumerate(passage.marks):
        children.setdefault(mark.parent, []).append(number)
    spans: list[Span] = [(0, 0)] * len(passage.marks)
    all_links = np.array(links, dtype=np.int64).reshape(-1, 4)
    todo = [(ROOT, 0, (0, len(passage.text)), (0, len(target)))]
    while todo:
        parent, depth, source, region = todo.pop()
        if parent not in children:
            continue
        known = all_links if depth < DEEPEST else all_links[:0]
        siblings = _Siblings(passage.text, target, known, source, region)
        marks = [passage.marks[number] for number in children[parent]]
        for number, mark, span in zip(children[parent], marks, siblings.place(marks), strict=True):
            spans[number] = span
            todo.append((number, depth + 1, (mark.start, mark.end), span))
    return spans


class _Siblings:
    """Places the children of one element.

    Args:
        text: Of the passage.
        target: The translation.
        links: [L, 4], all of them: start and end in the text, and in the translation.
        source: Where the parent stands in the text.
        region: Where the parent stands in the translation.
    """

    def __init__(self, text: str, target: str, links: Numbers, source: Span, region: Span) -> None:
        self._text = text
        self._target = target
        self._source = source
        self._region = region
        first = np.searchsorted(links[:, 2], region[0])
        last = np.searchsorted(links[:, 3], region[1], "right")
        self._links = links[first : max(first, last)]
        self._order = np.argsort(self._links[:, 0], kind="stable")  # that of the source
        self._starts = self._links[self._order, 0]
        self._ends = np.maximum.accumulate(self._links[self._order, 1])
        self._free = np.ones(len(self._links), dtype=bool)
        self._taken: list[Span] = []  # in order

    def place(self, marks: Sequence[Mark]) -> list[Span]:
        """Return the span of each child."""
        found: dict[int, Span] = {}
        waiting = []
        for number, mark in enumerate(marks):
            if mark.start == mark.end:
                continue
            if self._fills(mark) and not mark.whole:
                found[number] = self._region
                self._taken.append(self._region)
            elif run := self._best_run(mark):
                waiting.append((run[1] - run[0], number))
        for _, number in sorted(waiting):
            if run := self._best_run(marks[number]):
                found[number] = self._take(run, marks[number])
        for number, mark in enumerate(marks):
            if number not in found:
                found[number] = self._beside(mark)
        return [found[number] for number in range(len(marks))]

    def _fills(self, mark: Mark) -> bool:
        """Whether a child has all words of its parent."""
        start, end = self._source
        around = self._text[start : mark.start] + self._text[mark.end : end]
        return not around.strip()

    def _best_run(self, mark: Mark) -> Span | None:
        """Return the best run of free links, start and end; None if none speaks for the child."""
        start = np.searchsorted(self._ends, mark.start, "right")
        own = self._order[start : max(start, np.searchsorted(self._starts, mark.end))]
        own = own[_belongs(self._links[own], mark)]
        if not len(own):
            return None
        first, last = int(own.min()), int(own.max()) + 1
        scores = np.full(last - first, NEVER if mark.whole else -1)
        scores[own - first] = 1
        scores[~self._free[first:last]] = NEVER
        run = best_run(scores)
        return run and (run[0] + first, run[1] + first)

    def _take(self, run: Span, mark: Mark) -> Span:
        """Return the span of a run; part of a word, as in H<sub>2</sub>O, if the word stays."""
        self._free[run[0] : run[1]] = False
        first, last = self._links[run[0]].tolist(), self._links[run[1] - 1].tolist()
        start, end = first[2], last[3]
        if mark.start > first[0] and self._stays(first):
            start += mark.start - first[0]
        if mark.end < last[1] and self._stays(last):
            end -= last[1] - mark.end
        insort(self._taken, (start, end))
        return start, end

    def _stays(self, link: Sequence[int]) -> bool:
        """Whether a word and its translation are the same."""
        return self._text[link[0] : link[1]] == self._target[link[2] : link[3]]

    def _beside(self, mark: Mark) -> Span:
        """Return the span of a child that no link speaks for."""
        at = self._anchor(mark)
        if mark.start < mark.end and not mark.whole:
            gap = self._gap(at)
            if any(map(str.isalnum, self._target[slice(*gap)])):
                insort(self._taken, gap)
                return gap
        return at, at

    def _anchor(self, mark: Mark) -> int:
        """Return the place next to the translation of a neighbour, outside of all siblings.

        The neighbour is the word before it, if only that one touches it; otherwise the word after
        it, if there is one.
        """
        if mark.start <= self._source[0]:
            return self._region[0]
        if mark.end >= self._source[1]:
            return self._region[1]
        before = self._links[self._links[:, 1] <= mark.start]
        after = self._links[self._links[:, 0] >= mark.end]
        if len(before) and (mark.spaced == (False, True) or not len(after)):
            at = int(before[before[:, 1].argmax(), 3])
            around = self._around(at)
            return around[1] if around else at
        at = int(after[after[:, 0].argmin(), 2]) if len(after) else self._region[1]
        around = self._around(at)
        return around[0] if around else at

    def _around(self, at: int) -> Span | None:
        """Return the span of the sibling around a place, if there is one."""
        number = bisect_left(self._taken, (at, at))
        if number and self._taken[number - 1][0] < at < self._taken[number - 1][1]:
            return self._taken[number - 1]
        return None

    def _gap(self, at: int) -> Span:
        """Return the words at a place that are linked to nothing, without white space around."""
        start, end = self._region
        number = int(np.searchsorted(self._links[:, 2], at))
        other = bisect_left(self._taken, (at, at))
        if number:
            start = max(start, int(self._links[number - 1, 3]))
        if number < len(self._links):
            end = min(end, int(self._links[number, 2]))
        if other:
            start = max(start, self._taken[other - 1][1])
        if other < len(self._taken):
            end = min(end, self._taken[other][0])
        if not start <= at <= end:
            return at, at
        inside = self._target[start:end]
        start += len(inside) - len(inside.lstrip())
        return start, start + len(inside.strip())


def _belongs(links: Numbers, mark: Mark) -> npt.NDArray[np.bool_]:
    """Whether at least half of a source word is in an element, or all of the element in a word."""
    start, end = links[:, 0], links[:, 1]
    common = np.minimum(end, mark.end) - np.maximum(start, mark.start)
    return (common > 0) & ((2 * common >= end - start) | (common == mark.end - mark.start))


def best_run(scores: Numbers) -> Span | None:
    """Return the run with the greatest sum, the shortest, then the first; None if none exceeds 0.

    Args:
        scores: Of links, 1 for and less against.
    """
    if not len(scores):
        return None
    sums = np.concatenate([[0], np.cumsum(scores)])
    before, after = sums[:-1], sums[1:]
    least = np.minimum.accumulate(before)
    starts = np.maximum.accumulate(np.where(before == least, np.arange(len(scores)), 0))
    totals = after - least
    if totals.max() <= 0:
        return None
    ends = np.flatnonzero(totals == totals.max())
    end = int(ends[(ends - starts[ends]).argmin()])
    return int(starts[end]), end + 1
