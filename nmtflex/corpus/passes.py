"""What is done with each chunk of raw pairs, in whichever process: tokenise, filter, encode."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, islice
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from nmtflex.corpus.readers import read_pairs
from nmtflex.errors import DataError
from nmtflex.text.pipeline import TextPipeline
from nmtflex.text.tokenizers import build_tokenizer

CHUNK = 1000  # pairs
REASONS = ("empty", "too_long", "ratio")  # to drop a training pair

Lines = tuple[list[str], list[str]]  # source and target, line by line
TokenPair = tuple[list[str], list[str]]  # of one sentence pair


def read_chunks(source: Path, target: Path) -> Iterator[Lines]:
    """Yield chunks of a corpus's pairs.

    Raises:
        DataError: The files have different numbers of lines, or none.
    """
    pairs = read_pairs(source, target)
    empty = True
    while chunk := list(islice(pairs, CHUNK)):
        empty = False
        yield [line for line, _ in chunk], [line for _, line in chunk]
    if empty:
        raise DataError(f"{source} and {target} are empty; a corpus needs at least one line")


@dataclass(frozen=True)
class Filter:
    """Which training pairs are kept.

    Args:
        max_length: Tokens before BPE allowed on the source and on the target side; 0: no limit.
        max_ratio: How many times longer one side may be than the other; 0: no limit.
    """

    max_length: tuple[int, int] = (0, 0)
    max_ratio: float = 0.0

    def reason(self, source: Sequence[str], target: Sequence[str]) -> str | None:
        """Say which of ``REASONS`` a pair of token lists is dropped for, or None if it is kept."""
        lengths = len(source), len(target)
        if not min(lengths):
            return "empty"
        if any(limit and n > limit for n, limit in zip(lengths, self.max_length, strict=True)):
            return "too_long"
        if self.max_ratio and max(lengths) > self.max_ratio * min(lengths):
            return "ratio"
        return None

    def split(self, pairs: Iterable[TokenPair]) -> tuple[list[TokenPair], Counter[str]]:
        """Return the token pairs kept, and how many were dropped for each reason."""
        kept, dropped = [], Counter[str]()
        for pair in pairs:
            if reason := self.reason(*pair):
                dropped[reason] += 1
            else:
                kept.append(pair)
        return kept, dropped


class Tokenised(NamedTuple):
    """A chunk's kept pairs as tokens: a side's tokens joined by spaces, which pickles fast."""

    texts: tuple[str, str]
    lengths: tuple[list[int], list[int]]
    dropped: Counter[str]


class Encoded(NamedTuple):
    """A chunk's kept pairs as ids: a side's ids in one array, and the ids in each sentence."""

    ids: tuple[npt.NDArray[np.uint32], npt.NDArray[np.uint32]]
    lengths: tuple[list[int], list[int]]
    dropped: Counter[str]


class Tokenise:
    """First pass over training text.

    Args:
        tokenizers: Source and target tokenizer, as their ``describe`` says.
        rules: Which pairs are kept.
    """

    def __init__(self, tokenizers: Sequence[dict[str, Any]], rules: Filter) -> None:
        self._source, self._target = map(build_tokenizer, tokenizers)
        self._rules = rules

    def __call__(self, lines: Lines) -> Tokenised:
        """Tokenise and filter a chunk."""
        source, target = self._source, self._target
        tokens = zip(map(source.tokenize, lines[0]), map(target.tokenize, lines[1]), strict=True)
        pairs, dropped = self._rules.split(tokens)
        texts = [" ".join(chain.from_iterable(pair[side] for pair in pairs)) for side in (0, 1)]
        lengths = [[len(pair[side]) for pair in pairs] for side in (0, 1)]
        return Tokenised((texts[0], texts[1]), (lengths[0], lengths[1]), dropped)


class Encode:
    """Raw text to ids by a finished pipeline.

    Args:
        folder: Where the pipeline is saved.
        rules: Which pairs are kept; None keeps all.
    """

    def __init__(self, folder: Path, rules: Filter | None) -> None:
        self._pipeline = TextPipeline.load(folder)
        self._rules = rules

    def __call__(self, lines: Lines) -> Encoded:
        """Tokenise, filter and encode a chunk."""
        source, target = self._pipeline.source, self._pipeline.target
        pairs = list(zip(map(source.words, lines[0]), map(target.words, lines[1]), strict=True))
        dropped = Counter[str]()
        if self._rules:
            pairs, dropped = self._rules.split(pairs)
        sources = [source.encode_words(words) for words, _ in pairs]
        targets = [target.encode_words(words) for _, words in pairs]
        return Encoded(
            (_flat(sources), _flat(targets)),
            (list(map(len, sources)), list(map(len, targets))),
            dropped,
        )


def _flat(sentences: list[list[int]]) -> npt.NDArray[np.uint32]:
    return np.fromiter(chain.from_iterable(sentences), np.uint32)
