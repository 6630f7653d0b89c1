"""RIBES: how well a translation keeps the order of the reference's words.

Isozaki, Hirao, Duh, Sudoh and Tsukada (2010), https://aclanthology.org/D10-1092, section 3, with
the brevity penalty of the program that the authors published later. For a hypothesis of h words and
a reference of r words, where n hypothesis words align, at the reference positions k_1 ... k_n in
the hypothesis' order::

    NKT   = |{(i, j): i < j and k_i < k_j}| / (n (n - 1) / 2)     normalised Kendall's tau
    P     = n / h                                                 unigram precision
    BP    = min(1, exp(1 - r / h))                                brevity penalty
    RIBES = NKT * P^alpha * BP^beta                               alpha 0.25, beta 0.10

NKT is 0 if fewer than two words align, but 1 if the reference has one word and it aligns. Of
several references the best counts, and a corpus gets the mean of its sentences. The numbers equal
those of the official program, version 1.03.1.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from nmtflex import __version__
from nmtflex.errors import DataError

ALPHA, BETA = 0.25, 0.10

# Contexts grow word by word up to this many words; what is still ambiguous then is resolved by
# sorting, whose time does not depend on the length of repeated passages.
_MAX_GROWN = 16

_Group = tuple[Sequence[int], Sequence[int]]  # positions in hypothesis and in reference


class RibesScore(NamedTuple):
    """RIBES of a corpus and of each sentence, 0-1, and how they were computed."""

    value: float
    sentences: list[float]
    signature: str


def word_ribes(
    hypotheses: Sequence[Sequence[str]],
    *references: Sequence[Sequence[str]],
    alpha: float = ALPHA,
    beta: float = BETA,
    case_sensitive: bool = False,
) -> RibesScore:
    """Return the RIBES of sentences given as lists of words.

    Args:
        hypotheses: Sentences.
        references: One sequence of sentences for each reference.
        alpha: Exponent of the precision, at least 0.
        beta: Exponent of the brevity penalty, at least 0.
        case_sensitive: Keep case; as in the official program, it is lowered otherwise.

    Raises:
        DataError: The numbers of sentences differ, there are none, or a reference has no words.
    """
    _check(hypotheses, references)
    sentences = [
        sentence_ribes(words, several, alpha=alpha, beta=beta, case_sensitive=case_sensitive)
        for words, *several in zip(hypotheses, *references, strict=True)
    ]
    case = "mixed" if case_sensitive else "lc"
    signature = (
        f"nrefs:{len(references)}|case:{case}|alpha:{alpha:g}|beta:{beta:g}|ribes:1.03.1|"
        f"version:nmtflex-{__version__}"
    )
    return RibesScore(math.fsum(sentences) / len(sentences), sentences, signature)


def sentence_ribes(
    hypothesis: Sequence[str],
    references: Sequence[Sequence[str]],
    *,
    alpha: float = ALPHA,
    beta: float = BETA,
    case_sensitive: bool = False,
) -> float:
    """Return the RIBES, 0-1, of one sentence against the best of its references.

    Args:
        hypothesis: Words.
        references: A list of words for each reference.
        alpha: Exponent of the precision, at least 0.
        beta: Exponent of the brevity penalty, at least 0.
        case_sensitive: Keep case; as in the official program, it is lowered otherwise.

    Raises:
        ValueError: There is no reference, a reference has no words, or an exponent is negative.
    """
    if not references or not all(references):
        raise ValueError(f"RIBES needs references of at least one word, not {references!r}")
    if alpha < 0 or beta < 0:
        raise ValueError(f"alpha and beta must be at least 0, not {alpha} and {beta}")
    if not case_sensitive:
        hypothesis = [word.lower() for word in hypothesis]
        references = [[word.lower() for word in reference] for reference in references]
    if not hypothesis:
        return 0.0
    return max(_score(hypothesis, reference, alpha, beta) for reference in references)


def _check(
    hypotheses: Sequence[Sequence[str]], references: Sequence[Sequence[Sequence[str]]]
) -> None:
    if not references:
        raise ValueError(f"{len(hypotheses)} hypotheses, but no references were given")
    for number, sentences in enumerate(references, start=1):
        name = f"reference {number}" if len(references) > 1 else "the reference"
        if len(sentences) != len(hypotheses):
            line = min(len(sentences), len(hypotheses)) + 1
            lacking = "reference" if len(sentences) < len(hypotheses) else "hypothesis"
            raise DataError(
                f"{len(hypotheses)} hypotheses, but {name} has {len(sentences)} lines; "
                f"line {line} has no {lacking}"
            )
        for line, words in enumerate(sentences, start=1):
            if not words:
                raise DataError(
                    f"line {line}: {name} is empty, for which RIBES is not defined; remove the "
                    f"line, or write its reference"
                )
    if not hypotheses:
        raise DataError("no sentences to score")


def _score(hypothesis: Sequence[str], reference: Sequence[str], alpha: float, beta: float) -> float:
    ranks = _align(hypothesis, reference)
    if len(ranks) < 2 and not len(ranks) == len(reference) == 1:
        return 0.0
    precision = len(ranks) / len(hypothesis)
    brevity = min(1.0, math.exp(1 - len(reference) / len(hypothesis)))
    return _kendall(ranks) * precision**alpha * brevity**beta


def _kendall(ranks: Sequence[int]) -> float:
    """Return the share of increasing pairs; equal ranks do not increase."""
    if all(one < other for one, other in pairwise(ranks)):
        return 1.0
    increasing = 0
    before: list[int] = []
    for rank in ranks:
        place = bisect_left(before, rank)
        increasing += place
        before.insert(place, rank)
    return increasing / (len(ranks) * (len(ranks) - 1) / 2)


def _align(hypothesis: Sequence[str], reference: Sequence[str]) -> list[int]:
    """Return the reference positions of the hypothesis words that align, in the hypothesis' order.

    A word that occurs once in both aligns. If it occurs more often in either, its context grows by
    one word at a time, first with the words to its left, then instead with those to its right,
    until either sequence occurs once in both. So two words may align with the same one.
    """
    sentences = hypothesis, reference
    found: dict[int, int] = {}
    left = right = _grow([(range(len(hypothesis)), range(len(reference)))], 0, found, sentences)
    size = 0
    while left or right:
        size += 1
        if size > _MAX_GROWN:
            _align_by_sorting(hypothesis, reference, found)
            break
        left = _grow(left, -size, found, sentences)
        right = _grow(right, size, found, sentences)
    return [found[place] for place in sorted(found)]


def _grow(
    groups: Sequence[_Group],
    offset: int,
    found: dict[int, int],
    sentences: tuple[Sequence[str], Sequence[str]],
) -> list[_Group]:
    """Split the places with the same context by the word at an offset from each.

    Args:
        groups: Places in both sentences with the same context.
        offset: Where the context grows, in words; negative to the left.
        found: Alignment by hypothesis place; extended by the places now unique in both.
        sentences: Hypothesis and reference.

    Returns:
        The new groups that still have an unaligned hypothesis place, and a reference place.
    """
    hypothesis, reference = sentences
    grown: list[_Group] = []
    for in_hypothesis, in_reference in groups:
        parts: dict[str, tuple[list[int], list[int]]] = {}
        end = len(reference)
        for place in in_reference:
            if 0 <= place + offset < end:
                word = reference[place + offset]
                if word in parts:
                    parts[word][1].append(place)
                else:
                    parts[word] = ([], [place])
        end = len(hypothesis)
        for place in in_hypothesis:
            if 0 <= place + offset < end and (part := parts.get(hypothesis[place + offset])):
                part[0].append(place)
        for part in parts.values():
            mine, theirs = part
            if len(mine) == len(theirs) == 1:
                found.setdefault(mine[0], theirs[0])
            elif not all(map(found.__contains__, mine)):
                grown.append(part)
    return grown


def _align_by_sorting(
    hypothesis: Sequence[str], reference: Sequence[str], found: dict[int, int]
) -> None:
    """Find what unlimited contexts would find, in time n (log n)^2 for n words."""
    right = _shortest_unique(hypothesis, reference)
    left = _shortest_unique(hypothesis[::-1], reference[::-1])[::-1]
    for place, ((before, mirrored), (after, rank)) in enumerate(zip(left, right, strict=True)):
        if min(before, after) < math.inf:
            found.setdefault(place, len(reference) - 1 - mirrored if before <= after else rank)


def _shortest_unique(
    hypothesis: Sequence[str], reference: Sequence[str]
) -> list[tuple[float, int]]:
    """Find for each hypothesis place the shortest sequence from there that is unique in both.

    Let m be the longest prefix that the hypothesis from that place shares with itself from any
    other place, and r1 and r2 the longest two that it shares with the reference from any place. The
    sequence has max(m, r2) + 1 words if that is at most r1. Suffixes that share most are neighbours
    in sorted order.

    Returns:
        Its length in words, infinite if there is none, and its place in the reference.
    """
    size = len(hypothesis)
    numbers: dict[str, int] = {}
    coded = [numbers.setdefault(word, len(numbers)) for word in (*hypothesis, *reference)]
    coded.insert(size, len(numbers))  # two unique marks end the sentences
    coded.append(len(numbers) + 1)
    order, shared = (array.tolist() for array in _sorted_suffixes(np.array(coded)))
    alone = [0] * size  # max(m, r2)
    best = [(0, -1)] * size  # r1 and its place
    upwards = zip(order, [0, *shared], strict=True)
    downwards = zip(reversed(order), [0, *reversed(shared)], strict=True)
    for sweep in (upwards, downwards):
        mine = second = 0
        first = 0, -1
        for place, common in sweep:
            mine, second = min(mine, common), min(second, common)
            first = min(first[0], common), first[1]
            if place < size:
                lesser, best[place] = sorted((best[place], first))
                alone[place] = max(alone[place], mine, second, lesser[0])
                mine = len(coded)
            else:
                first, second = (len(coded), place - size - 1), first[0]
    return [
        (longest + 1 if longest < rank[0] else math.inf, rank[1])
        for longest, rank in zip(alone, best, strict=True)
    ]


def _sorted_suffixes(
    coded: npt.NDArray[np.int64],
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Sort the suffixes of a sequence by prefix doubling.

    Returns:
        The places where they begin, [N], and the length each shares with the next, [N - 1].
    """
    count = len(coded)
    ranks = [coded]  # of the first 1, 2, 4, ... elements from each place
    while ranks[-1].max() < count - 1:
        following = np.zeros_like(coded)
        following[: -(1 << len(ranks) - 1)] = ranks[-1][1 << len(ranks) - 1 :] + 1
        ranks.append(np.unique(ranks[-1] * (count + 1) + following, return_inverse=True)[1])
    order = np.argsort(ranks[-1])
    one, other = order[:-1].copy(), order[1:].copy()
    shared = np.zeros_like(one)
    for power, rank in reversed(list(enumerate(ranks))):
        step = (rank[one] == rank[other]) << power
        one, other, shared = one + step, other + step, shared + step
    return order, shared
