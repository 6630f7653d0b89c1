"""Words of a translation matched with those of its source, one to one as far as possible.

A model attends to the noun when it writes an article, so the greatest weight of each target word
links more words to a noun than translate it. Here words compete for each other.

Legend: T target and S source words of a sentence.
"""

from __future__ import annotations

import numpy as np

from nmtflex.decoding.traces import Numbers

WordLink = tuple[int, int]  # source word, target word
ROUNDS = 10
LEAST = 0.1  # of a target word's weights, after the rounds; below, two words only happen to be left
STRONG = 0.5


def linked_words(weights: Numbers) -> list[WordLink]:
    """Link words one to one as far as possible, then the rest to what they clearly attend to.

    First, weights are scaled in turns, so that no source word has more than 1 in all and each
    target word has 1: as in the algorithm of Sinkhorn and Knopp (1967), whose columns have an equal
    sum. The greatest weight then links two words, which leave the contest, and so on: the
    competitive linking of Melamed (2000), https://aclanthology.org/J00-2004. A target word left
    over is linked to the source word that has more than half of its weight.

    Args:
        weights: [T, S] attention weights; see ``word_weights``.

    Returns:
        Links in target order.
    """
    if not weights.size:
        return []
    left = _balanced(weights)
    shares = left.copy()
    found: dict[int, int] = {}
    for _ in range(min(left.shape)):
        target, source = divmod(int(left.argmax()), left.shape[1])
        if left[target, source] < LEAST:
            break
        found[target] = source
        left[target] = left[:, source] = -1
    for target, source in enumerate(shares.argmax(1).tolist()):
        if target not in found and shares[target, source] > STRONG:
            found[target] = source
    return [(source, target) for target, source in sorted(found.items())]


def _balanced(weights: Numbers) -> Numbers:
    """Scale columns to a sum of at most 1 and rows to 1, in turns."""
    least = np.finfo(np.float64).tiny
    found = np.maximum(weights, 0.0)
    for _ in range(ROUNDS):
        found = found / np.maximum(found.sum(0, keepdims=True), 1.0)
        found = found / np.maximum(found.sum(1, keepdims=True), least)
    return found
