"""The steps for each chunk of raw pairs, in any process: tokenise, filter, encode."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import chain, compress
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from nmtflex.corpus.filters import Filter, Mask
from nmtflex.corpus.inputs import Lines
from nmtflex.text.pipeline import TextPipeline
from nmtflex.text.tokenizers import Tokenizer


class Tokenised(NamedTuple):
    """A chunk's kept pairs as tokens; each side's are joined by spaces, which pickles fast."""

    texts: tuple[str, str]
    lengths: tuple[list[int], list[int]]
    kept: Mask  # of the chunk's pairs
    dropped: Counter[str]


class EncodedText(NamedTuple):
    """A chunk's kept pairs as ids: one array a side, and the number of ids in each sentence."""

    ids: tuple[npt.NDArray[np.uint32], npt.NDArray[np.uint32]]
    lengths: tuple[list[int], list[int]]
    kept: Mask  # of the chunk's pairs
    dropped: Counter[str]


class Tokenise:
    """First pass over training text.

    Args:
        tokenizers: Source and target tokenizer.
        rules: Which pairs are kept.
    """

    def __init__(self, tokenizers: Sequence[Tokenizer], rules: Filter) -> None:
        self._source, self._target = tokenizers
        self._rules = rules

    def __call__(self, lines: Lines) -> Tokenised:
        """Tokenise and filter a chunk."""
        source, target = self._source, self._target
        tokens = zip(map(source.words, lines[0]), map(target.words, lines[1]), strict=True)
        pairs, kept, dropped = self._rules.split(tokens)
        texts = [" ".join(chain.from_iterable(pair[side] for pair in pairs)) for side in (0, 1)]
        lengths = [[len(pair[side]) for pair in pairs] for side in (0, 1)]
        return Tokenised((texts[0], texts[1]), (lengths[0], lengths[1]), kept, dropped)


class Encode:
    """Encodes raw text with a finished pipeline.

    Args:
        folder: The saved pipeline.
        rules: Which pairs are kept; None keeps all.
    """

    def __init__(self, folder: Path, rules: Filter | None) -> None:
        self._pipeline = TextPipeline.load(folder)
        self._rules = rules

    def __call__(self, lines: Lines) -> EncodedText:
        """Tokenise, filter and encode a chunk."""
        source, target = self._pipeline.source, self._pipeline.target
        pairs = list(zip(map(source.words, lines[0]), map(target.words, lines[1]), strict=True))
        kept, dropped = np.ones(len(pairs), bool), Counter[str]()
        if self._rules:
            pairs, kept, dropped = self._rules.split(pairs)
        sources = [source.encode_words(words) for words, _ in pairs]
        targets = [target.encode_words(words) for _, words in pairs]
        lengths = list(map(len, sources)), list(map(len, targets))
        if self._rules:
            fits = list(map(self._rules.fits, *lengths))
            dropped["subwords"] = fits.count(False)
            kept[kept] = fits
            sources, targets = list(compress(sources, fits)), list(compress(targets, fits))
            lengths = list(map(len, sources)), list(map(len, targets))
        return EncodedText((_flat(sources), _flat(targets)), lengths, kept, dropped)


def _flat(sentences: list[list[int]]) -> npt.NDArray[np.uint32]:
    return np.fromiter(chain.from_iterable(sentences), np.uint32)
