"""Training sentences segmented anew in every epoch.

Stored ids are joined to words, and a segmentation of each word is drawn: from a unigram model (Kudo
2018) or with BPE dropout (Provilkov et al. 2020). A draw depends only on the seed, the epoch and
the pair, so that a resumed training and all processes draw the same.

Batches are planned by stored lengths. What is drawn is ``stretch`` times as long on average, so the
plan allows for as many fewer tokens.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from random import Random

import numpy as np
from numpy.typing import NDArray

from nmtflex.corpus.batches import Batches, Pairs, Sentence
from nmtflex.corpus.store import SIDES, LinkStore, PreparedCorpus
from nmtflex.errors import OptionError
from nmtflex.text.pipeline import SidePipeline
from nmtflex.text.vocabulary import UNK_ID

PROBED = 1000  # pairs that are drawn to estimate the stretch
CACHE_LIMIT = 1 << 17  # words
Stored = tuple[int, ...]  # the ids of a word
Drawing = Callable[[Random], Sequence[int]]


class Resegmenter(dict[Stored, Drawing]):
    """Draws segmentations of one side's sentences; keeps what it knows of each word.

    Args:
        side: With a subword model.
        alpha: As for ``Subwords.drawing``.
        dropout: Likewise.
    """

    def __init__(self, side: SidePipeline, alpha: float | None, dropout: float) -> None:
        super().__init__()
        if side.subwords is None:
            raise ValueError("words have no segmentations")
        self._side, self._subwords = side, side.subwords
        self._options = alpha, dropout
        tokens = side.vocabulary.tokens
        self._opens = np.array([*map(side.subwords.opens, tokens)])
        self._closes = np.array([*map(side.subwords.closes, tokens)])
        self.drawn = self.refused = 0  # words, and those with pieces outside the vocabulary

    def __call__(self, stored: Sentence, random: Random) -> Sentence:
        """Draw a segmentation; a sentence with an unknown token stays as it is."""
        ids = np.asarray(stored)
        if not len(ids) or (ids == UNK_ID).any():
            return stored
        bounds = [*np.flatnonzero(self._first(ids)).tolist(), len(ids)]
        numbers = ids.tolist()
        found: list[int] = []
        for start, stop in pairwise(bounds):
            found += self[tuple(numbers[start:stop])](random)
        return found

    def _first(self, ids: NDArray[np.integer]) -> NDArray[np.bool]:
        """Return which subwords begin a word; there is at least one subword."""
        first = self._opens[ids]
        first[1:] |= self._closes[ids[:-1]]
        first[0] = True
        return first

    def moved(
        self, links: NDArray[np.int64], side: int, stored: Sentence, drawn: Sentence
    ) -> NDArray[np.int64]:
        """Return links with all subwords of a word that were drawn, in place of those stored.

        Args:
            links: [n, 2], with all stored subwords of a word.
            side: Of the sentence: 0 source, 1 target.
            stored: The sentence as it is stored.
            drawn: As this object drew it.
        """
        before, after = np.asarray(stored), np.asarray(drawn)
        if not len(links) or (before == UNK_ID).any():
            return links
        words = links.copy()
        words[:, side] = (np.cumsum(self._first(before)) - 1)[links[:, side]]
        words = np.unique(words, axis=0)
        starts = np.append(np.flatnonzero(self._first(after)), len(after))
        first, stop = starts[words[:, side]], starts[words[:, side] + 1]
        spread = np.repeat(words, stop - first, axis=0)
        spread[:, side] = np.concatenate([*map(np.arange, first, stop)])
        return spread

    def __missing__(self, stored: Stored) -> Drawing:
        if len(self) >= CACHE_LIMIT:
            self.clear()
        vocabulary = self._side.vocabulary
        (word,) = self._subwords.join([vocabulary.token(number) for number in stored])
        draw = self._subwords.drawing(word, *self._options) if word else None

        def drawn(random: Random) -> Sequence[int]:
            self.drawn += 1
            ids = vocabulary.ids(draw(random)) if draw else stored
            if UNK_ID not in ids:
                return ids
            self.refused += 1
            return stored

        self[stored] = drawn
        return drawn


def resegmenters(
    corpus: PreparedCorpus, alpha: float | None, dropout: float
) -> list[Resegmenter | None]:
    """Return what draws each side's sentences; None for sides that stay as they are.

    Raises:
        OptionError: An option applies to neither side.
    """
    sides = corpus.pipeline.source, corpus.pipeline.target
    given = {"--subword-alpha": alpha, "--bpe-dropout": dropout or None}
    models = {
        name: side.subwords.called if side.subwords else "no subwords"
        for name, side in zip(SIDES, sides, strict=True)
    }
    applies = [side.subwords.sampled_by if side.subwords else None for side in sides]
    for flag, value in given.items():
        if value is not None and flag not in applies:
            described = " and ".join(f"{model} ({name})" for name, model in models.items())
            needs = "a SentencePiece model of type unigram" if flag == "--subword-alpha" else "BPE"
            raise OptionError(
                f"{flag} {value} needs {needs}, and {corpus.folder} has {described}"
                f"{_remedy(flag, applies)}"
            )
    return [
        Resegmenter(side, alpha, dropout) if flag and given[flag] is not None else None
        for side, flag in zip(sides, applies, strict=True)
    ]


def _remedy(flag: str, applies: Sequence[str | None]) -> str:
    other = next((one for one in applies if one not in (None, flag)), None)
    return f"; {other} applies to it" if other else "; preprocess with subwords, or leave it out"


def open_batches(
    corpus: PreparedCorpus,
    sides: Sequence[Resegmenter | None],
    tokens: int,
    sentences: int | None = None,
    linked: bool = False,
) -> Batches:
    """Return the batches of the training pairs, with links if wanted; see ``SampledBatches``."""
    if any(side is not None for side in sides):
        return SampledBatches(corpus, sides, tokens, sentences, linked)
    stores = corpus.store("train", "source"), corpus.store("train", "target")
    return Batches(*stores, tokens, sentences, corpus.links("train") if linked else None)


class SampledBatches(Batches):
    """Batches whose sentences are segmented anew in every epoch.

    Args:
        corpus: With training data.
        sides: What draws each side's sentences; None leaves them as they are.
        tokens: As for ``Batches``, of the sentences as they are drawn.
        sentences: Likewise.
        linked: Whether batches have links.
    """

    def __init__(
        self,
        corpus: PreparedCorpus,
        sides: Sequence[Resegmenter | None],
        tokens: int,
        sentences: int | None = None,
        linked: bool = False,
    ) -> None:
        stores = corpus.store("train", "source"), corpus.store("train", "target")
        super().__init__(*stores, tokens, sentences, corpus.links("train") if linked else None)
        self._sides = sides
        self._about = corpus.manifest["splits"]["train"]
        self._key = 0, 0
        usable = self.usable
        probed = usable[:: max(1, len(usable) // PROBED)]
        widths = [max(len(x), len(y) + 1) for x, y in zip(*self.read(probed), strict=True)]
        self.stretch = sum(widths) / int(self.widths(probed).sum())
        self.tokens = max(1, int(tokens / self.stretch))

    def order(self, seed: int, epoch: int) -> list[Pairs]:
        """Begin an epoch: sentences read from now on are drawn for it."""
        self._key = seed, epoch
        return super().order(seed, epoch)

    def read(self, pairs: Pairs) -> tuple[list[Sentence], list[Sentence]]:
        """Return the pairs, segmented for the present epoch."""
        stored = super().read(pairs)
        sources, targets = (
            [self._drawn(side, ids, int(pair)) for pair, ids in zip(pairs, found, strict=True)]
            for side, found in enumerate(stored)
        )
        return sources, targets

    def read_links(
        self, links: LinkStore, pairs: Pairs, sides: tuple[list[Sentence], list[Sentence]]
    ) -> list[NDArray[np.int64]]:
        """Return the links of pairs, moved to the subwords that were drawn."""
        found = super().read_links(links, pairs, sides)
        stored = super().read(pairs)
        for side, draw in enumerate(self._sides):
            if draw is not None:
                both = zip(found, stored[side], sides[side], strict=True)
                found = [draw.moved(own, side, before, after) for own, before, after in both]
        return found

    def _drawn(self, side: int, ids: Sentence, pair: int) -> Sentence:
        draw = self._sides[side]
        return ids if draw is None else draw(ids, self._random(pair, side))

    def _random(self, pair: int, side: int) -> Random:
        """Return the random numbers of a sentence."""
        seed, epoch = self._key
        return Random(((seed << 32 | epoch) << 64 | pair) << 1 | side)

    def notes(self) -> Iterator[str]:
        """Yield what is sampled, and what is not."""
        yield (
            f"segmentations are sampled: sentences are {self.stretch:.2f} times as long as stored, "
            f"and batches have as many fewer of them"
        )
        for name, side in zip(SIDES, self._sides, strict=True):
            if side is None:
                yield f"{name}: not sampled"
                continue
            if unknown := self._about[name]["unknown"]:
                yield (
                    f"{name}: sentences with unknown tokens ({unknown:,} in all) keep their stored "
                    f"segmentation"
                )
            if side.refused:
                share = 100 * side.refused / side.drawn
                yield (
                    f"{name}: {share:.1f} % of the words keep their stored segmentation, since "
                    f"the vocabulary lacks a piece of the sampled one"
                )
