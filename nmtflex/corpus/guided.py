"""Links between the words of training pairs, spread to subwords, in a prepared folder.

A pass of its own over the raw text, once it is encoded: it splits and filters each pair again, and
writes the links of the pairs that were kept, then those of joined samples. ``SPLIT.links`` is a
store like those of tokens; a pair's numbers are source place, target place, source place, .. of
its subwords.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import accumulate, product
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from nmtflex.corpus.concat import Pair, join_lines
from nmtflex.corpus.filters import Filter
from nmtflex.corpus.links import Link, LinkedLines, check_inside, parse_links
from nmtflex.corpus.store import StoreWriter
from nmtflex.text.pipeline import SidePipeline, TextPipeline


class SpreadLinks(NamedTuple):
    """The links of a chunk's kept pairs: all numbers, and how many each pair has."""

    numbers: npt.NDArray[np.uint32]
    lengths: list[int]
    lost: int = 0  # links of joined sentences whose words are others in the joined line


@dataclass
class LinkCount:
    """The links of a split."""

    links: int = 0  # between subwords
    lost: int = 0  # between words


def write_links(
    chunks: Iterable[SpreadLinks], base: Path, dtype: str, progress: Callable[[int], None]
) -> LinkCount:
    """Write the links of a split, and count them.

    Args:
        chunks: Those of all pairs, in order, and of joined samples after them.
        base: Path of the store.
        dtype: numpy type of the places.
        progress: Called with the pairs done.
    """
    pairs, count = 0, LinkCount()
    with StoreWriter(base, dtype) as writer:
        for chunk in chunks:
            writer.append(chunk.numbers, chunk.lengths)
            pairs += len(chunk.lengths)
            count.links += len(chunk.numbers) // 2
            count.lost += chunk.lost
            progress(pairs)
    return count


class Spread:
    """Spreads links between words to their subwords, with a finished pipeline.

    Every subword of a word is linked to every subword of the words it is linked to.

    Args:
        folder: The saved pipeline.
        rules: Which pairs are kept; None keeps all.
    """

    def __init__(self, folder: Path, rules: Filter | None) -> None:
        self._pipeline = TextPipeline.load(folder)
        self._rules = rules

    def __call__(self, lines: LinkedLines) -> SpreadLinks:
        """Split, filter and link a chunk.

        Raises:
            DataError: A line is malformed, or links a word beyond its sentence.
        """
        numbers: list[int] = []
        lengths: list[int] = []
        sides = self._pipeline.source, self._pipeline.target
        for number, (*pair, line) in enumerate(zip(*lines[:3], strict=True), lines.first):
            where = f"{lines.path}:{number}"
            links = parse_links(line, where).possible
            words = [side.words(text) for side, text in zip(sides, pair, strict=True)]
            pieces = [side.split_words(own) for side, own in zip(sides, words, strict=True)]
            if self._dropped(words, pieces):
                continue
            source, target = map(_places, sides, pieces)
            check_inside(links, (len(source), len(target)), where)
            own = _subword_links(links, source, target)
            numbers += own
            lengths.append(len(own))
        return SpreadLinks(np.array(numbers, np.uint32), lengths)

    def _dropped(self, words: list[list[str]], pieces: list[list[str]]) -> bool:
        """Whether a pair is not among those that were encoded."""
        if self._rules is None:
            return False
        return bool(self._rules.reason(*words)) or not self._rules.fits(*map(len, pieces))


class SpreadJoined:
    """Spreads the links of sentences to the subwords of samples that they are joined to.

    A word of a sentence is the word of the joined line with the same letters at the same place. A
    tokenizer may split other words where two sentences meet; their links are counted as lost.

    Args:
        folder: The saved pipeline.
    """

    def __init__(self, folder: Path) -> None:
        pipeline = TextPipeline.load(folder)
        self._sides = pipeline.source, pipeline.target

    def __call__(self, samples: Sequence[Sequence[Pair]]) -> SpreadLinks:
        """Link the samples of a chunk."""
        numbers: list[int] = []
        lengths: list[int] = []
        lost = 0
        for group in samples:
            found = [parse_links(pair.links, "").possible for pair in group]
            lines = zip(*(pair.lines for pair in group), strict=True)
            sides = zip(self._sides, lines, strict=True)
            (source, sources), (target, targets) = (_in_joined(*side) for side in sides)
            links = [
                (one[first], other[second])
                for own, one, other in zip(found, sources, targets, strict=True)
                for first, second in own
                if first in one and second in other
            ]
            lost += sum(map(len, found)) - len(links)
            spread = _subword_links(links, source, target)
            numbers += spread
            lengths.append(len(spread))
        return SpreadLinks(np.array(numbers, np.uint32), lengths, lost)


def _in_joined(
    side: SidePipeline, lines: Sequence[str]
) -> tuple[dict[int, list[int]], list[dict[int, int]]]:
    """Find the words of sentences in the line that joins them.

    Returns:
        The places of the joined words' subwords, by the number of the word; and for each sentence,
        the numbers of its words in the joined line, by their numbers in the sentence.
    """
    pieces = side.split_words(side.words(join_lines(side, lines)))
    there = {place: number for number, place in enumerate(_letters(side, pieces))}
    found = []
    before = 0
    for line in lines:
        own = _letters(side, side.split_words(side.words(line)))
        moved = enumerate((before + start, word) for start, word in own)
        found.append({number: there[place] for number, place in moved if place in there})
        before += sum(len(word) for _, word in own)
    return _places(side, pieces), found


def _letters(side: SidePipeline, pieces: list[str]) -> list[tuple[int, str]]:
    """Return each word as alignments count, with the number of letters before it."""
    tokens = side.join(pieces)
    words = defaultdict[int, str](str)
    for number, token in zip(side.tokenizer.word_numbers(tokens), tokens, strict=True):
        if number >= 0:
            words[number] += token
    starts = accumulate(map(len, words.values()), initial=0)
    return list(zip(starts, words.values(), strict=False))


def _subword_links(
    links: Iterable[Link], source: dict[int, list[int]], target: dict[int, list[int]]
) -> list[int]:
    """Link every subword of a word to every subword of the words it is linked to, in order."""
    spread = sorted(both for one, other in links for both in product(source[one], target[other]))
    return [place for both in spread for place in both]


def _places(side: SidePipeline, pieces: list[str]) -> dict[int, list[int]]:
    """Return the places of each word's subwords, by the number of the word."""
    found = defaultdict[int, list[int]](list)
    for place, number in enumerate(side.word_numbers(pieces)):
        if number >= 0:
            found[number].append(place)
    return found
