"""The pairs of a large corpus sorted by length, by counting instead of comparing.

Pairs of equal lengths come in random order. Shuffling all pairs before sorting gives the same
result, but with random memory access: 20 million pairs would take several times as long.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from nmtflex.ops.compiled import entry
from nmtflex.ops.draws import drawn

Numbers = NDArray[np.int32]
Counts = NDArray[np.int64]


def shuffled_by_length(
    source: Numbers, target: Numbers, draw: np.random.Generator
) -> tuple[Numbers, Counts]:
    """Sort the pairs with a source by width, target and source, equal ones in random order.

    The width is the length of the longer side, with one special token added to the target.

    Args:
        source: Tokens of each source, [P].
        target: Tokens of each target, [P].
        draw: Random number generator.

    Returns:
        Numbers of pairs, and how many have each width from 0 on.
    """
    groups = np.zeros((int(target.max()) + 1, int(source.max()) + 1), np.int64)
    _count(source, target, groups)
    groups[:, 0] = 0
    targets, sources = np.nonzero(groups)
    widths = np.maximum(sources, targets + 1)
    order = np.lexsort((sources, targets, widths))
    places = targets[order], sources[order]
    sizes = groups[places]
    groups[places] = np.cumsum(sizes) - sizes  # where the next pair of these lengths goes
    pairs = np.empty(int(sizes.sum()), np.int32)
    _place(source, target, groups, pairs)
    _shuffle(pairs, sizes, int(draw.integers(1 << 63)))
    counts = np.zeros(int(widths.max(initial=0)) + 1, np.int64)
    np.add.at(counts, widths[order], sizes)
    return pairs, counts


@entry()
def _count(source, target, groups):  # type: ignore[no-untyped-def]
    for pair in range(len(source)):
        groups[target[pair], source[pair]] += 1


@entry()
def _place(source, target, groups, pairs):  # type: ignore[no-untyped-def]
    for pair in range(len(source)):
        if source[pair] > 0:
            place = groups[target[pair], source[pair]]
            pairs[place] = pair
            groups[target[pair], source[pair]] = place + 1


@entry()
def _shuffle(pairs, sizes, seed):  # type: ignore[no-untyped-def]
    """Shuffle the pairs of each group; groups are contiguous."""
    low, high = np.uint32(seed), np.uint32(seed >> 32)
    first = 0
    for size in sizes:
        for place in range(first + 1, first + size):
            random = np.uint64(drawn(np.uint32(place), low, high))
            other = first + np.int64((random * np.uint64(place - first + 1)) >> np.uint64(32))
            pairs[place], pairs[other] = pairs[other], pairs[place]
        first += size
