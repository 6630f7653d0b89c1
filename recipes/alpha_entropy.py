"""How sharply the slots of memory attention look at the source: the entropy of alpha.

    nmtflex translate RUN --attention-output attention.jsonl < test.src > /dev/null
    python recipes/alpha_entropy.py attention.jsonl

Each slot's alpha is scaled to sum 1 over the S source positions; its entropy, in nats, is 0 where
the slot holds one position alone and ln S where it holds all alike. Prints the mean over slots and
sentences, and the mean of ln S. Slots that hold nothing (alpha 0 to the file's six digits) have no
entropy; they are left out and counted.
"""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Iterable
from pathlib import Path
from statistics import fmean
from typing import NamedTuple


class Entropies(NamedTuple):
    """Of a file."""

    mean: float  # of a slot, in nats
    greatest: float  # mean of what it could be
    empty: int  # slots left out


def entropies(lines: Iterable[str]) -> Entropies:
    """Return how sharp the slots of an attention file are; sentences without words are left out.

    Raises:
        ValueError: No sentence has a slot that holds something.
    """
    found, greatest, empty = [], [], 0
    for line in lines:
        alpha = json.loads(line)["alpha"]  # [S][K]
        if alpha is None:
            continue
        slots = [slot for slot in zip(*alpha, strict=True) if sum(slot) > 0]
        empty += len(alpha[0]) - len(slots)
        if slots:
            found.append(fmean(map(_entropy, slots)))
            greatest.append(math.log(len(alpha)))
    if not found:
        raise ValueError("no slot holds anything")
    return Entropies(fmean(found), fmean(greatest), empty)


def _entropy(slot: tuple[float, ...]) -> float:
    total = sum(slot)
    return -sum(one / total * math.log(one / total) for one in slot if one > 0)


if __name__ == "__main__":
    try:
        with Path(sys.argv[1]).open(encoding="utf-8") as file:
            result = entropies(file)
    except (OSError, ValueError) as error:
        sys.exit(f"alpha_entropy.py: {sys.argv[1]}: {error}")
    left_out = f"; {result.empty:,} empty slots left out" if result.empty else ""
    sys.stdout.write(
        f"entropy of alpha {result.mean:.3f} nats, at most {result.greatest:.3f}{left_out}\n"
    )
