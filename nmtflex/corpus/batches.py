"""Batches of a split: bucketed by length, shuffled by seed and epoch.

The order of an epoch depends only on (seed, epoch) and the lengths, so resuming needs only a
position in it, and no sentence is read to compute it. It takes about 13 bytes a pair: the lengths
of both sides, the pair's number and a part of its batch; 8 more while it is computed.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from nmtflex.corpus.sorting import shuffled_by_length
from nmtflex.corpus.store import LinkStore, TokenStore
from nmtflex.text.vocabulary import BOS_ID, EOS_ID, PAD_ID

Ids = NDArray[np.int64]
Sentence = Sequence[int] | NDArray[np.integer]
Pairs = NDArray[np.integer]  # numbers of pairs in a store, from 0

LARGE = 1 << 23  # pairs; from here on, sorting by comparison takes too long
WIDEST = 1 << 24  # entries of a table of both lengths: 128 MB
ALL = slice(None)


class BatchLinks(NamedTuple):
    """The links of B pairs: L numbers each."""

    places: Ids  # [L], of each link in [B, T, S] laid flat
    shares: NDArray[np.float32]  # [L], 1 / links of the same target token
    linked: int  # target tokens with a link


class Batch(NamedTuple):
    """Padded token ids of B pairs."""

    source: Ids  # [B, S]
    lengths: Ids  # [B] source tokens
    target_in: Ids  # [B, T] begin-of-sentence and the target
    target_out: Ids  # [B, T] the target and end-of-sentence
    num_tokens: int  # target tokens, including end-of-sentence
    links: BatchLinks | None = None  # if they were asked for


class Batches:
    """The pairs of a split, cut into batches.

    Args:
        source: Source tokens.
        target: Target tokens, as many sentences.
        tokens: Maximum tokens of a batch: sentences times the longest side, including padding. A
            longer pair makes a batch of its own.
        sentences: Sentences a batch; overrides ``tokens``.
        links: Between the tokens of the pairs, if they are wanted.
    """

    stretch: float = 1.0  # how much wider batches become than stored lengths say

    def __init__(
        self,
        source: TokenStore,
        target: TokenStore,
        tokens: int,
        sentences: int | None = None,
        links: LinkStore | None = None,
    ) -> None:
        self.source = source
        self.target = target
        self.tokens = tokens
        self.sentences = sentences
        self.links = links

    @property
    def usable(self) -> Pairs:
        """The pairs with a non-empty source; valid and test may have empty ones."""
        return np.flatnonzero(self.source.lengths)

    def widths(self, pairs: Pairs | slice = ALL) -> NDArray[np.int32]:
        """Return the width of pairs in a batch: the positions of the longer side."""
        return np.maximum(self.source.lengths[pairs], self.target.lengths[pairs] + 1)

    def order(self, seed: int, epoch: int) -> list[Pairs]:
        """Return the pairs of each batch of an epoch, in training order."""
        draw = np.random.default_rng([seed, epoch])
        sides = self.source.lengths, self.target.lengths
        if len(sides[0]) >= LARGE and int(sides[0].max()) * int(sides[1].max()) < WIDEST:
            batches = self._cut(*shuffled_by_length(*sides, draw))
        else:
            batches = self._cut(*self._by_length(draw.permutation(self.usable)))
        return [batches[place] for place in draw.permutation(len(batches)).tolist()]

    def count(self) -> int:
        """Return how many batches an epoch has; all have as many."""
        return len(self._cut(self.usable, np.bincount(self.widths(self.usable))))

    def in_order(self) -> list[Pairs]:
        """Return batches sorted by length, for validation."""
        return self._cut(*self._by_length(self.usable))

    def _by_length(self, pairs: Pairs) -> tuple[Pairs, Ids]:
        """Sort pairs by width, target and source, keeping their order among equals.

        Returns:
            The pairs, and how many have each width from 0 on.
        """
        widths = self.widths(pairs)
        keys = (self.source.lengths[pairs], self.target.lengths[pairs], widths)
        return pairs[np.lexsort(keys)], np.bincount(widths)

    def _cut(self, pairs: Pairs, counts: Ids) -> list[Pairs]:
        """Cut pairs sorted by width into batches; ``counts`` has the pairs of each width."""
        widths = np.repeat(np.arange(len(counts), dtype=np.min_scalar_type(len(counts))), counts)
        batches, first = [], 0
        while first < len(pairs):
            count = self._fitting(widths, first)
            batches.append(pairs[first : first + count])
            first += count
        return batches

    def _fitting(self, widths: NDArray[np.unsignedinteger], first: int) -> int:
        """Count the pairs from ``first`` on, widths ascending, that fit in a batch."""
        if self.sentences:
            return self.sentences
        count = max(1, self.tokens // int(widths[first]))
        last = min(first + count, len(widths)) - 1
        return max(1, min(count, self.tokens // int(widths[last])))

    def target_tokens(self, batches: list[Pairs]) -> int:
        """Count target tokens, including end-of-sentence, without reading them."""
        return sum(int(self.target.lengths[pairs].sum()) + len(pairs) for pairs in batches)

    def read(self, pairs: Pairs) -> tuple[list[Sentence], list[Sentence]]:
        """Return the ids of the pairs' sources and targets."""
        return [self.source[pair] for pair in pairs], [self.target[pair] for pair in pairs]

    def notes(self) -> Iterator[str]:
        """Yield what the user should know of them."""
        yield from ()

    def collate(self, pairs: Pairs) -> Batch:
        """Read the pairs and pad them."""
        sources, targets = self.read(pairs)
        lengths = np.array([len(source) for source in sources], dtype=np.int64)
        longest = max(len(target) for target in targets) + 1
        source = np.full((len(pairs), int(lengths.max())), PAD_ID, dtype=np.int64)
        target_in = np.full((len(pairs), longest), PAD_ID, dtype=np.int64)
        target_out = target_in.copy()
        target_in[:, 0] = BOS_ID
        for row, (x, y) in enumerate(zip(sources, targets, strict=True)):
            source[row, : len(x)] = x
            target_in[row, 1 : len(y) + 1] = y
            target_out[row, : len(y)] = y
            target_out[row, len(y)] = EOS_ID
        num_tokens = sum(len(target) + 1 for target in targets)
        links = None
        if self.links is not None:
            found = self.read_links(self.links, pairs, (sources, targets))
            links = _laid_out(found, longest, source.shape[1])
        return Batch(source, lengths, target_in, target_out, num_tokens, links)

    def read_links(
        self, links: LinkStore, pairs: Pairs, sides: tuple[list[Sentence], list[Sentence]]
    ) -> list[Ids]:
        """Return the links [n, 2] of each pair, between the places of the sentences ``sides``."""
        return [links[int(pair)] for pair in pairs]


def _laid_out(links: Sequence[Ids], steps: int, positions: int) -> BatchLinks:
    """Return the links of pairs in a batch padded to ``steps`` x ``positions``."""
    rows = np.repeat(np.arange(len(links)), [len(own) for own in links])
    source, target = np.concatenate(links).T
    steps_of = rows * steps + target
    counts = np.bincount(steps_of, minlength=1)
    shares = (1 / counts[steps_of]).astype(np.float32)
    return BatchLinks(steps_of * positions + source, shares, int(np.count_nonzero(counts)))
