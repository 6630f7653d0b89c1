"""Batches of a split: bucketed by length, shuffled by seed and epoch.

The order of an epoch follows from (seed, epoch) alone, so that a position in it is all that
resuming needs.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from nmtflex.corpus.store import TokenStore
from nmtflex.text.vocabulary import BOS_ID, EOS_ID, PAD_ID

Ids = NDArray[np.int64]


class Batch(NamedTuple):
    """Padded token ids of B pairs."""

    source: Ids  # [B, S]
    lengths: Ids  # [B] source tokens
    target_in: Ids  # [B, T] begin-of-sentence and the target
    target_out: Ids  # [B, T] the target and end-of-sentence
    num_tokens: int  # target tokens, end-of-sentence counted


class Batches:
    """The pairs of a split, cut into batches.

    Args:
        source: Source tokens.
        target: Target tokens, as many sentences.
        tokens: Most tokens of a batch: sentences times its longest side, padding counted. A longer
            pair makes a batch alone.
        sentences: Sentences a batch; takes the place of ``tokens`` where given.
    """

    def __init__(
        self, source: TokenStore, target: TokenStore, tokens: int, sentences: int | None = None
    ) -> None:
        self.source = source
        self.target = target
        self.tokens = tokens
        self.sentences = sentences
        self.widths = np.maximum(source.lengths, target.lengths + 1)
        # An empty source cannot be read; training data has none, valid and test may.
        self.usable = np.flatnonzero(source.lengths)

    def order(self, seed: int, epoch: int) -> list[Ids]:
        """Return the pairs of each batch of an epoch, in the order of training."""
        draw = np.random.default_rng([seed, epoch])
        batches = self._cut(draw.permutation(self.usable))
        return [batches[place] for place in draw.permutation(len(batches))]

    def in_order(self) -> list[Ids]:
        """Return batches by length, for validation."""
        return self._cut(self.usable)

    def _cut(self, pairs: Ids) -> list[Ids]:
        """Sort pairs by length, keeping their order among equals, and cut."""
        keys = (self.source.lengths[pairs], self.target.lengths[pairs], self.widths[pairs])
        pairs = pairs[np.lexsort(keys)]
        widths = self.widths[pairs]
        batches, first = [], 0
        while first < len(pairs):
            count = self._fitting(widths, first)
            batches.append(pairs[first : first + count])
            first += count
        return batches

    def _fitting(self, widths: Ids, first: int) -> int:
        """Count the pairs from ``first`` on, widths ascending, that make a batch."""
        if self.sentences:
            return self.sentences
        count = max(1, self.tokens // int(widths[first]))
        last = min(first + count, len(widths)) - 1
        return max(1, min(count, self.tokens // int(widths[last])))

    def target_tokens(self, batches: list[Ids]) -> int:
        """Count target tokens, end-of-sentence counted, without reading them."""
        return sum(int(self.target.lengths[pairs].sum()) + len(pairs) for pairs in batches)

    def collate(self, pairs: Ids) -> Batch:
        """Read the pairs and pad them."""
        sources = [self.source[pair] for pair in pairs]
        targets = [self.target[pair] for pair in pairs]
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
        return Batch(source, lengths, target_in, target_out, num_tokens)
