"""Which training pairs are kept, and why the others are dropped."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from nmtflex.config import PreprocessConfig
from nmtflex.corpus.store import SIDES

REASONS = ("empty", "too_long", "ratio", "subwords")
MAX_WORDS, MAX_CHARACTERS, MAX_SUBWORDS = 100, 500, 1000  # of a sentence, by default

TokenPair = tuple[list[str], list[str]]  # of one sentence pair
Mask = npt.NDArray[np.bool]


@dataclass(frozen=True)
class Filter:
    """Which training pairs are kept.

    Args:
        max_length: Tokens before BPE allowed on the source and on the target side; 0: no limit.
        max_ratio: How many times longer one side may be than the other; 0: no limit.
        max_subwords: Subwords allowed on the source and on the target side; 0: no limit. Needs the
            BPE, so ``fits`` checks it.
    """

    max_length: tuple[int, int] = (0, 0)
    max_ratio: float = 0.0
    max_subwords: tuple[int, int] = (0, 0)

    def reason(self, source: Sequence[str], target: Sequence[str]) -> str | None:
        """Return which of ``REASONS`` a pair is dropped for before BPE, or None if it is kept."""
        lengths = len(source), len(target)
        if not min(lengths):
            return "empty"
        if any(limit and n > limit for n, limit in zip(lengths, self.max_length, strict=True)):
            return "too_long"
        if self.max_ratio and max(lengths) > self.max_ratio * min(lengths):
            return "ratio"
        return None

    def fits(self, source: int, target: int) -> bool:
        """Whether a pair with this many subwords is kept; otherwise its reason is "subwords"."""
        most = self.max_subwords
        return (not most[0] or source <= most[0]) and (not most[1] or target <= most[1])

    def split(self, pairs: Iterable[TokenPair]) -> tuple[list[TokenPair], Mask, Counter[str]]:
        """Return the kept token pairs, which ones they are, and the others' number by reason."""
        kept, mask, dropped = [], [], Counter[str]()
        for pair in pairs:
            reason = self.reason(*pair)
            mask.append(reason is None)
            if reason:
                dropped[reason] += 1
            else:
                kept.append(pair)
        return kept, np.array(mask, bool), dropped


def build_filter(
    config: PreprocessConfig, tokenizers: Iterable[str], with_bpe: Iterable[bool]
) -> Filter:
    """Build the filter of the options, with defaults for those not given.

    Args:
        config: The options.
        tokenizers: Names of the source and target tokenizers.
        with_bpe: Whether each side has BPE; without it, subwords are not limited.
    """
    words, subwords = config.max_length, config.max_subwords
    if words is None:
        limits = [MAX_CHARACTERS if name == "char" else MAX_WORDS for name in tokenizers]
    else:
        limits = [words, words]
    most = MAX_SUBWORDS if subwords is None else subwords
    source, target = (most if has else 0 for has in with_bpe)
    return Filter((limits[0], limits[1]), config.max_ratio, (source, target))


def describe_reasons(
    max_length: Collection[int], max_ratio: float, max_subwords: Collection[int] = (0, 0)
) -> dict[str, str]:
    """Describe why a ``Filter`` of these arguments drops pairs, without the rules that are off."""
    reasons = {"empty": "with an empty side"}
    if any(max_length):
        reasons["too_long"] = f"longer than {_of_sides(max_length)} tokens"
    if max_ratio:
        reasons["ratio"] = f"with a length ratio above {max_ratio:g}"
    if any(max_subwords):
        reasons["subwords"] = f"longer than {_of_sides(max_subwords)} subwords"
    return reasons


def _of_sides(limits: Collection[int]) -> str:
    if len(set(limits)) == 1:
        return str(next(iter(limits)))
    named = zip(limits, SIDES, strict=True)
    return " or ".join(f"{limit} ({side})" for limit, side in named if limit)
