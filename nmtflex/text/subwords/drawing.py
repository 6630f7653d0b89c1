"""Random segmentations of words, for training."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Callable, Sequence
from itertools import accumulate, pairwise
from random import Random
from typing import NamedTuple

Pair = tuple[str, str]


def draw_merges(
    symbols: Sequence[str], rank: Callable[[Pair], float | None], dropout: float, random: Random
) -> list[str]:
    """Merge symbols as BPE does, but leave out merges at random.

    Provilkov, Emelianenko and Voita (2020), https://aclanthology.org/2020.acl-main.170, algorithm
    1: before each merge, every possible one is left out with probability ``dropout``. The random
    numbers are drawn as subword-nmt draws them.

    Args:
        symbols: The characters of a word.
        rank: The place of a pair among the merges, or None.
        dropout: In [0, 1).
        random: Where random numbers come from.
    """
    merged = list(symbols)
    while len(merged) > 1:
        found = [
            (value, place)
            for place, pair in enumerate(pairwise(merged))
            if random.random() > dropout and (value := rank(pair)) is not None
        ]
        if not found:
            break
        best = min(found)
        chosen = merged[best[1]], merged[best[1] + 1]
        result, start = [], 0
        for place in (place for value, place in found if value == best[0]):
            if place < start or (merged[place], merged[place + 1]) != chosen:
                continue
            result += [*merged[start:place], "".join(chosen)]
            start = place + 2
        merged = [*result, *merged[start:]]
    return merged


class Edge(NamedTuple):
    """A piece of a lattice."""

    start: int  # its first character
    end: int
    score: float  # log-probability
    pieces: tuple[str, ...]  # itself, or the bytes of an unknown character


class Lattice:
    """All segmentations of a text, drawn in proportion to P(segmentation) ^ alpha.

    Kudo (2018), https://aclanthology.org/P18-1007, section 3.3, with l = infinity: forward
    filtering, backward sampling::

        f(0)    = 1
        f(end)  = sum of f(start) exp(alpha score) over the edges that end there
        P(edge) = f(start) exp(alpha score) / f(end)

    Args:
        edges: Ordered by their ends; some path leads through them.
        alpha: At least 0; with 0, all segmentations are equally likely.
    """

    def __init__(self, edges: Sequence[Edge], alpha: float) -> None:
        forward = {0: 0.0}  # ln f
        self._ending: dict[int, tuple[list[float], list[Edge]]] = {}
        self._length = edges[-1].end
        place = 0
        while place < len(edges):
            end = edges[place].end
            last = place
            while last < len(edges) and edges[last].end == end:
                last += 1
            usable = [edge for edge in edges[place:last] if edge.start in forward]
            place = last
            if not usable:
                continue
            logs = [forward[edge.start] + alpha * edge.score for edge in usable]
            highest = max(logs)
            sums = list(accumulate(math.exp(value - highest) for value in logs))
            forward[end] = highest + math.log(sums[-1])
            self._ending[end] = sums, usable

    def draw(self, random: Random) -> list[str]:
        """Draw a segmentation."""
        found: list[tuple[str, ...]] = []
        end = self._length
        while end:
            sums, edges = self._ending[end]
            place = bisect_left(sums, random.random() * sums[-1]) if len(edges) > 1 else 0
            edge = edges[place]
            found.append(edge.pieces)
            end = edge.start
        return [piece for pieces in reversed(found) for piece in pieces]
