"""Terms that take the place of the words that a translation has for them, by attention."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import regex

from nmtflex.decoding.traces import Numbers
from nmtflex.text.edges import Edges
from nmtflex.text.pipeline import SidePipeline
from nmtflex.text.subwords.bpe import MARKER
from nmtflex.text.tokenizers.char import UNSPACED
from nmtflex.text.vocabulary import UNK

DIGITS = 5  # of a weight
PRIVATE = range(0xF0000, 0xFFFFE)  # characters that no text has
_WORD = regex.compile(r"[\p{L}\p{N}]")


class Wanted(NamedTuple):
    """A text that must come out for the source tokens [start, stop), which are of some words."""

    text: str
    start: int
    stop: int
    words: int


class Region(NamedTuple):
    """Tokens [start, stop) of a translation that a text takes the place of."""

    start: int
    stop: int
    text: str


class Units:
    """The words of a translation as its text shows them, each of some tokens.

    Args:
        side: The target side.
        edges: Of its words.
        ids: T tokens.
    """

    def __init__(self, side: SidePipeline, edges: Edges, ids: Sequence[int]) -> None:
        numbers = np.array(ids, dtype=np.int64)
        inner = edges.between(numbers[:-1], numbers[1:]) if len(ids) else np.zeros(0, dtype=bool)
        starts = [0, *(1 + np.flatnonzero(inner)).tolist()] if len(ids) else []
        bounds = list(pairwise([*starts, len(ids)]))
        texts = ["".join(edges.text(number) for number in ids[a:b]) for a, b in bounds]
        shown = [place for place, text in enumerate(texts) if text]  # a space may be a token
        self.bounds = [bounds[place] for place in shown]
        self.texts = [texts[place] for place in shown]
        self.unspaced = side.tokenizer.name == "char"  # a unit may be less than a word

    def __len__(self) -> int:
        return len(self.texts)

    def word(self, place: int) -> bool:
        """Whether a unit is more than punctuation."""
        return self.texts[place] == UNK or _WORD.search(self.texts[place]) is not None

    def weights(self, weights: Numbers) -> Numbers:
        """Return the mean attention weights [U, S] of each unit's tokens, given those of tokens."""
        return np.array([weights[start:stop].mean(0) for start, stop in self.bounds])


def present(
    side: SidePipeline,
    edges: Edges,
    ids: Sequence[int],
    wanted: Sequence[Wanted],
    fixed: int = 0,
) -> list[Region | None]:
    """Return where a translation has each of some texts already, as words of its own.

    Args:
        side: The target side.
        edges: Of its words.
        ids: The translation.
        wanted: The longest of them are looked for first.
        fixed: First tokens, whose unknown words stand for other texts.
    """
    units = Units(side, edges, ids)
    taken = np.zeros(len(units), dtype=bool)
    found: list[Region | None] = [None] * len(wanted)
    for index in sorted(range(len(wanted)), key=lambda index: -len(wanted[index].text)):
        texts = Units(side, edges, side.encode(wanted[index].text)).texts
        for first in range(len(units) - len(texts) + 1 if texts else 0):
            here = slice(first, first + len(texts))
            if UNK in texts and units.bounds[first][0] < fixed:
                continue
            if units.texts[here] == texts and not taken[here].any():
                taken[here] = True
                start, stop = units.bounds[first][0], units.bounds[first + len(texts) - 1][1]
                found[index] = Region(start, stop, wanted[index].text)
                break
    return found


def placed(
    side: SidePipeline,
    edges: Edges,
    ids: Sequence[int],
    wanted: Sequence[Wanted],
    weights: Numbers | None,
    fixed: int = 0,
) -> list[Region]:
    """Return which tokens of a translation each of some texts takes the place of.

    That is where it stands already, or else the word that attends most to the source tokens it is
    for; of several texts, the one with the greatest weight chooses first. A text for several source
    words also takes the place of neighbours whose greatest weight is on these, up to as many words.
    A text that finds no word is put behind the last one.

    Args:
        side: The target side.
        edges: Of its words.
        ids: The translation, T tokens.
        wanted: The texts.
        weights: [T or more, S] of attention; None if the model has none.
        fixed: First tokens, which are not changed.

    Returns:
        Regions in order; those inside the fixed tokens are left out.
    """
    units = Units(side, edges, ids)
    regions = present(side, edges, ids, wanted, fixed)
    free = np.array([
        units.word(place)
        and start >= fixed
        and not any(region and region.start <= start < region.stop for region in regions)
        for place, (start, _) in enumerate(units.bounds)
    ], dtype=bool)  # fmt: skip
    left = [index for index, region in enumerate(regions) if region is None]
    # Less is noise, which depends on what else was in the batch.
    seen = np.zeros((0, 0)) if weights is None else units.weights(weights).round(DIGITS)
    while left and free.any() and weights is not None:
        masses = np.array([
            np.where(free, seen[:, wanted[index].start : wanted[index].stop].sum(1), -np.inf)
            for index in left
        ])
        which, place = np.unravel_index(masses.argmax(), masses.shape)
        text = wanted[index := left.pop(int(which))]
        first, last = _widened(units, seen, free, text, int(place))
        free[first : last + 1] = False
        regions[index] = Region(units.bounds[first][0], units.bounds[last][1], text.text)
    behind = [Region(len(ids), len(ids), wanted[index].text) for index in left]
    inside = sorted(region for region in regions if region and region.start >= fixed)
    return inside + behind


def _widened(
    units: Units, seen: Numbers, free: Numbers, wanted: Wanted, place: int
) -> tuple[int, int]:
    """Return the first and last of the units that a text takes the place of, with ``place``."""
    attended = seen.argmax(1)
    linked = free & (wanted.start <= attended) & (attended < wanted.stop)
    most = wanted.words
    if units.unspaced and UNSPACED.match(units.texts[place]):
        most = len(units)
    first = last = place
    while last - first + 1 < most and last + 1 < len(units) and linked[last + 1]:
        last += 1
    while last - first + 1 < most and first > 0 and linked[first - 1]:
        first -= 1
    return first, last


class Marked(NamedTuple):
    """A translation's words with marks in the place of texts."""

    filled: list[list[str]]  # what each word of the tokens became
    marks: dict[str, str]  # mark to text

    def unmarked(self, text: str) -> str:
        """Return a text with the marks replaced."""
        for mark, given in self.marks.items():
            text = text.replace(mark, given)
        return text

    def words(self, side: SidePipeline) -> list[list[str]]:
        """Return ``filled`` with the words of the texts instead of marks."""
        return [[part for word in words for part in self._parts(side, word)] for words in self[0]]

    def _parts(self, side: SidePipeline, word: str) -> list[str]:
        plain = self.unmarked(word)
        return [word] if plain == word else side.tokenizer.tokenize(plain) or [plain]


def marked(
    side: SidePipeline,
    ids: Sequence[int],
    regions: Sequence[Region],
    filled: Sequence[Sequence[str]],
    line: str = "",
) -> Marked:
    """Put a mark in the place of each region, which detokenizing treats as a word like its text.

    Args:
        side: The target side.
        ids: The translation.
        regions: In order.
        filled: What each word of the tokens becomes, where no region touches it.
        line: The raw source, whose characters no mark has.
    """
    pieces = [side.vocabulary.token(number) for number in ids]
    starts = side.word_starts(pieces)
    owners = np.repeat(np.arange(len(starts)), np.diff([*starts, len(ids)])).tolist()
    heads = list(range(len(starts)))  # of the words that are joined into one
    kept: list[list[str]] = [[] for _ in starts]
    touched: set[int] = set()
    marks, characters = dict[str, str](), _unused(line)
    place, behind = 0, list[str]()
    for start, stop, text in regions:
        # Detokenizers look at letters only: other characters might be marks of subwords.
        ends = [end if _WORD.match(end) else "" for end in (text[0], text[-1])]
        mark = next(characters).join(ends)
        marks[mark] = text
        if start == stop:
            behind.append(mark)
            continue
        for at in range(place, start):
            kept[heads[owners[at]]].append(pieces[at])
        first = heads[owners[start]]
        for word in range(owners[start], owners[stop - 1] + 1):
            heads[word] = first
            touched.add(word)
        kept[first].append(_as_piece(side, pieces[start], pieces[stop - 1], mark))
        place = stop
    for at in range(place, len(ids)):
        kept[heads[owners[at]]].append(pieces[at])
    result = [
        side.join(kept[word]) if word in touched else list(filled[word])
        for word in range(len(starts))
    ]
    if behind:
        result = [*result[:-1], [*(result[-1] if result else []), *behind]]
    return Marked(result, marks)


def _as_piece(side: SidePipeline, first: str, last: str, mark: str) -> str:
    """Return a mark as one piece that begins and ends a word where pieces did."""
    if side.subwords is None:
        return mark
    head = first[: int(side.subwords.opens(first))]
    tail = MARKER if last.endswith(MARKER) and not side.subwords.closes(last) else ""
    return head + mark + tail


def _unused(line: str) -> Iterator[str]:
    """Yield characters of private use that a line does not have."""
    return (chr(number) for number in PRIVATE if chr(number) not in line)
