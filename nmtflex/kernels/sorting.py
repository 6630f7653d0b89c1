"""The pairs of a large corpus sorted by length: counting instead of comparing.

Pairs of the same lengths come in random order. Shuffling all pairs before they are sorted gives the
same, but reads memory all over the place: twenty million pairs would take several times as long.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from nmtflex.kernels.compiled import entry

Numbers = NDArray[np.int32]


def shuffled_by_length(
    source: Numbers, target: Numbers, draw: np.random.Generator
) -> tuple[Numbers, NDArray[np.int64]]:
    """Sort the pairs with a source by width, target and source, those alike in random order.

    The width is that of the longer side, the target counted with one special more.

    Args:
        source: Tokens of each source, [P].
        target: Tokens of each target, [P].
        draw: Where random numbers come from.

    Returns:
        Numbers of pairs, and how many have each width from 0 on.
    """
    longest = 1 + max(int(source.max(initial=0)), int(target.max(initial=0)))
    everything = np.arange(len(source), dtype=np.int32)
    by_rest, _ = _sorted(everything, source, target, 2 * longest, False)
    del everything
    pairs, counts = _sorted(by_rest, source, target, longest, True)
    del by_rest
    _shuffle(pairs, source, target, draw.integers(0, 1 << 32, len(pairs), np.uint32))
    return pairs, counts


def _sorted(
    pairs: Numbers, source: Numbers, target: Numbers, most: int, by_width: bool
) -> tuple[Numbers, NDArray[np.int64]]:
    """Sort pairs by a key of at most ``most``, keeping their order among equals; count the keys."""
    counts = np.zeros(most + 1, np.int64)
    _count(source, target, by_width, counts)
    out = np.empty(int(counts.sum()), np.int32)
    _place(pairs, source, target, by_width, np.cumsum(counts) - counts, out)
    return out, counts


@entry()
def _count(source, target, by_width, counts):  # type: ignore[no-untyped-def]
    for pair in range(len(source)):
        if source[pair] > 0:
            counts[_key(source[pair], target[pair], by_width)] += 1


@entry()
def _place(pairs, source, target, by_width, starts, out):  # type: ignore[no-untyped-def]
    for pair in pairs:
        if source[pair] > 0:
            key = _key(source[pair], target[pair], by_width)
            out[starts[key]] = pair
            starts[key] += 1


@entry()
def _key(source, target, by_width):  # type: ignore[no-untyped-def]
    """Return the width, or a number that orders the pairs of one width by target, then source."""
    width = max(source, target + 1)
    if by_width:
        return width
    # A target shorter than the width has a source of just that width.
    return target if target + 1 < width else target + source


@entry()
def _shuffle(pairs, source, target, random):  # type: ignore[no-untyped-def]
    """Shuffle the pairs of the same lengths by random numbers below 2^32, one each."""
    first = 0
    for place in range(len(pairs)):
        pair, before = pairs[place], pairs[first]
        if source[pair] != source[before] or target[pair] != target[before]:
            first = place
        other = first + ((np.uint64(random[place]) * np.uint64(place - first + 1)) >> np.uint64(32))
        pairs[place] = pairs[np.int64(other)]
        pairs[np.int64(other)] = pair
