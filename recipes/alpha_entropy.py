"""How sharply the slots of memory attention look at the source: the entropy of alpha.

    nmtflex translate RUN --attention-output attention.jsonl < test.src > /dev/null
    python recipes/alpha_entropy.py attention.jsonl

Each slot's alpha is scaled to sum 1 over the S source positions; its entropy, in nats, is 0 where
the slot holds one position alone and ln S where it holds all alike. Prints the mean over slots and
sentences, and the mean of ln S.
"""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Iterable
from pathlib import Path

import numpy as np


def entropies(lines: Iterable[str]) -> tuple[float, float]:
    """Return the mean entropy of a slot and its greatest possible mean, in nats.

    Args:
        lines: Of an attention file, of a run with memory attention; sentences without words are
            left out.
    """
    found, greatest = [], []
    for line in lines:
        alpha = json.loads(line)["alpha"]  # [S][K]
        if alpha is None:
            continue
        share = np.array(alpha) / np.sum(alpha, axis=0)
        terms = share * np.log(share, out=np.zeros_like(share), where=share > 0)
        found.append(-terms.sum(axis=0).mean())
        greatest.append(math.log(len(alpha)))
    return float(np.mean(found)), float(np.mean(greatest))


if __name__ == "__main__":
    with Path(sys.argv[1]).open(encoding="utf-8") as file:
        mean, most = entropies(file)
    sys.stdout.write(f"entropy of alpha {mean:.3f} nats, at most {most:.3f}\n")
