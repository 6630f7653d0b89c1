"""Byte-pair encoding of words: learned by subword-nmt, applied here with the same results.

Every piece but the last of its word ends in ``@@``. So that words of the text that contain ``@@``
survive, words are escaped first: U+E000 goes between every two ``@`` that touch or have only U+E000
between them; this is undone exactly.
"""

from __future__ import annotations

import contextlib
import heapq
import io
import re
from collections.abc import Callable, Iterable, Mapping
from itertools import pairwise
from pathlib import Path
from typing import Any

from nmtflex.errors import DataError
from nmtflex.text.subwords.base import Draw, Subwords
from nmtflex.text.subwords.drawing import draw_merges

MARKER = "@@"
HEADER = "#version: 0.2"
LEARN_FROM = 200_000  # most frequent distinct words; subword-nmt needs about 1 kB for each
STEP = 20  # merges between two progress reports
LONG = 100  # symbols of a word; from here on a heap is faster than a search
MergeRanks = Mapping[tuple[str, str], int]
END = "</w>"  # subword-nmt's mark on a word's last character
_CLASH = re.compile("@(?=\ue000*@)")
_ESCAPED = re.compile("@\ue000(?=\ue000*@)")


def escape(word: str) -> str:
    """Separate neighbouring ``@``."""
    return _CLASH.sub("@\ue000", word) if "@" in word else word


def clashes(word: str) -> set[int]:
    """Return the places of the ``@`` after which ``escape`` inserts U+E000."""
    return {found.start() for found in _CLASH.finditer(word)}


def unescape(word: str) -> str:
    """Undo ``escape``."""
    return _ESCAPED.sub("@", word) if "@" in word else word


class BPE(Subwords):
    """Learned merges.

    Args:
        merges: Pairs of symbols in the order learned.
    """

    title = "BPE"
    sampled_by = "--bpe-dropout"

    def __init__(self, merges: Iterable[tuple[str, str]]) -> None:
        self.ranks: dict[tuple[str, str], int] = {}
        for rank, pair in enumerate(merges):
            self.ranks.setdefault(pair, rank)

    def split(self, word: str) -> list[str]:
        """Split a word into pieces."""
        symbols = _symbols(word)
        apply = _apply if len(symbols) < LONG else _apply_to_long
        return _pieces(apply(symbols, self.ranks))

    def drawing(self, word: str, alpha: float | None, dropout: float) -> Draw | None:
        """Draw with BPE dropout; see ``draw_merges``."""
        if not dropout:
            return None
        symbols, rank = _symbols(word), self.ranks.get
        return lambda random: _pieces(draw_merges(symbols, rank, dropout, random))

    def join(self, pieces: Iterable[str]) -> list[str]:
        """Join pieces to words."""
        words, word = [], ""
        for piece in pieces:
            if piece.endswith(MARKER):
                word += piece.removesuffix(MARKER)
            else:
                words.append(unescape(word + piece))
                word = ""
        return [*words, unescape(word)] if word else words

    def closes(self, piece: str) -> bool:
        """Whether a piece is a word's last: it has no ``@@``."""
        return not piece.endswith(MARKER)

    def bounds(self, word: str) -> list[tuple[int, int]]:
        """Return each piece's characters; what ``escape`` puts after an "@" belongs to it."""
        wide = clashes(word)
        owners = [place for place in range(len(word)) for _ in range(1 + (place in wide))]
        found, start = [], 0
        for piece in self.split(word):
            stop = start + len(piece.removesuffix(MARKER))
            found.append((owners[start], owners[stop - 1] + 1))
            start = stop
        return found

    def _key(self) -> Any:
        return self.ranks

    def describe(self) -> dict[str, Any]:
        """Return the number of merges, which may be 0."""
        return {"bpe": len(self.ranks)}

    def save(self, folder: Path, side: str) -> None:
        """Write the codes in subword-nmt's format."""
        lines = [HEADER, *map(" ".join, self.ranks)]
        (folder / f"{side}.codes").write_bytes(("\n".join(lines) + "\n").encode())

    @classmethod
    def load(cls, path: Path) -> BPE:
        """Read a codes file.

        Raises:
            DataError: The file is missing or is not in subword-nmt's format.
        """
        try:
            return cls(_parse(path.read_bytes().decode(), path))
        except OSError as error:
            raise DataError(f"{path}: {error.strerror}") from error
        except UnicodeDecodeError as error:
            raise DataError(f"{path}: not valid UTF-8") from error


def _symbols(word: str) -> list[str]:
    word = escape(word)
    return [*word[:-1], word[-1] + END]


def _pieces(symbols: list[str]) -> list[str]:
    return [symbol + MARKER for symbol in symbols[:-1]] + [symbols[-1].removesuffix(END)]


def _apply(symbols: list[str], ranks: MergeRanks) -> list[str]:
    """Merge the earliest learned pair everywhere, and repeat until none is left."""
    while len(symbols) > 1:
        pairs = [pair for pair in pairwise(symbols) if pair in ranks]
        if not pairs:
            break
        symbols = _merge(symbols, min(pairs, key=ranks.__getitem__))
    return symbols


def _apply_to_long(symbols: list[str], ranks: MergeRanks) -> list[str]:
    """Do what ``_apply`` does, in time O(n log n).

    A heap holds pairs by rank and place; a merge looks only at its two neighbours.
    """
    symbols = list(symbols)
    after = list(range(1, len(symbols) + 1))  # the next remaining symbol
    before = list(range(-1, len(symbols) - 1))
    heap = [
        (rank, place, pair)
        for place, pair in enumerate(pairwise(symbols))
        if (rank := ranks.get(pair)) is not None
    ]
    heapq.heapify(heap)
    while heap:
        lowest, changed = heap[0][0], []
        while heap and heap[0][0] == lowest:  # from the left; new pairs wait for the next round
            _, place, pair = heapq.heappop(heap)
            other = after[place]
            if other == len(symbols) or (symbols[place], symbols[other]) != pair:
                continue  # already merged
            symbols[place] += symbols[other]
            symbols[other] = ""
            after[place] = after[other]
            if after[place] < len(symbols):
                before[after[place]] = place
            changed += [before[place], place]
        for place in changed:
            if place >= 0 and symbols[place] and after[place] < len(symbols):
                pair = (symbols[place], symbols[after[place]])
                if (rank := ranks.get(pair)) is not None:
                    heapq.heappush(heap, (rank, place, pair))
    return [symbol for symbol in symbols if symbol]


def _merge(symbols: list[str], pair: tuple[str, str]) -> list[str]:
    """Merge every occurrence of a pair, from the left."""
    first, second = pair
    merged, start, last = [], 0, len(symbols) - 1
    while start <= last:
        if start < last and symbols[start] == first and symbols[start + 1] == second:
            merged.append(first + second)
            start += 2
        else:
            merged.append(symbols[start])
            start += 1
    return merged


def _parse(text: str, path: Path | str) -> list[tuple[str, str]]:
    header, *lines = text.removesuffix("\n").split("\n")
    if header != HEADER:
        raise DataError(f"{path}:1: {header!r} is not the {HEADER!r} of BPE codes")
    pairs = []
    for number, line in enumerate(lines, 2):
        pair = tuple(line.split(" "))
        if len(pair) != 2:
            raise DataError(f"{path}:{number}: {line!r} is not a pair of symbols")
        pairs.append(pair)
    return pairs


def worth_learning_from(counts: Mapping[str, int]) -> dict[str, int]:
    """Return the ``LEARN_FROM`` most frequent words, which bounds the memory of learning."""
    usable = filter(_has_pairs, counts)
    words = heapq.nsmallest(LEARN_FROM, usable, key=lambda word: (-counts[word], word))
    return {word: counts[word] for word in words}


def _has_pairs(word: str) -> bool:
    """Whether subword-nmt, which splits at white space, sees the word whole, with a pair in it."""
    return len(word) > 1 and word.split() == [word]


class _Codes(io.StringIO):
    """The file that subword-nmt writes a header and then a line a merge to."""

    def __init__(self, learned: Callable[[int], None]) -> None:
        super().__init__(newline="\n")
        self._learned = learned
        self._lines = 0

    def write(self, text: str) -> int:
        """Take a line."""
        if not self._lines % STEP:
            self._learned(self._lines)
        self._lines += 1
        return super().write(text)


def learn_bpe(
    counts: Mapping[str, int], merges: int, learned: Callable[[int], None] = lambda _merges: None
) -> BPE:
    """Learn merges from word counts; fewer than requested if no pair occurs twice.

    Args:
        counts: Words before ``escape``, with their counts.
        merges: Maximum merges to learn.
        learned: Called now and then with the number learned so far.
    """
    from subword_nmt.learn_bpe import learn_bpe as learn

    words = [word for word in counts if _has_pairs(word)]
    if not words:
        return BPE([])  # subword-nmt fails without any pair
    codes = _Codes(learned)
    # Its progress bar and its remark on running out of pairs go to standard error.
    with contextlib.redirect_stderr(io.StringIO()):
        entries = (f"{escape(word)} {counts[word]}\n" for word in words)
        learn(entries, codes, merges, is_dict=True)
    return BPE(_parse(codes.getvalue(), "codes"))
