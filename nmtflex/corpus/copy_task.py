"""The copy task: the target is the source, a sequence of random symbols.

Britz, Guan and Luong (2017), https://aclanthology.org/D17-1040, the toy copying experiment:
100,000 training and 1,000 validation sequences over 20 symbols, with random lengths between 0 and
L, for L in {10, 50, 100, 200}.

Departures: the shortest sequence has one symbol, or ``min_length``, since a pair with an empty side
cannot be trained on (``preprocess`` drops it), and there is a test split. Lengths and symbols are
independent and uniform. Training sequences may repeat, as independent draws do; a validation or
test sequence already drawn for any split gets new symbols and keeps its length. If a length has too
few sequences (there are 20 of length 1, all of them in training), the repetition stays.
"""

from __future__ import annotations

import random
from typing import NamedTuple

from nmtflex.config import GenerateCopyConfig
from nmtflex.corpus.parallel import OnProgress, Splits, numbered

LANGUAGES = ("src", "tgt")

_TRIES = 100  # draws of the same length before a held-out sequence may be a repetition


class CopyTask(NamedTuple):
    """The splits, and how many sequences of valid and test repeat an earlier one."""

    splits: Splits
    repeated: dict[str, int]


def generate_copy(config: GenerateCopyConfig, progress: OnProgress = lambda *_: None) -> CopyTask:
    """Draw the copy task; the same configuration draws the same sequences.

    Args:
        config: What to draw.
        progress: Called with the stage and the pairs done.
    """
    rng = random.Random(config.seed)
    width = len(str(config.vocabulary - 1))
    symbols = [f"s{number:0{width}}" for number in range(config.vocabulary)]

    def draw(length: int) -> str:
        return " ".join(rng.choices(symbols, k=length))

    places = numbered(config.train, "drawing train", progress)
    drawn = {"train": [draw(rng.randint(config.min_length, config.max_length)) for _ in places]}
    seen = set(drawn["train"])
    repeated = {}
    for split, size in (("valid", config.valid), ("test", config.test)):
        drawn[split] = []
        repeated[split] = 0
        for _ in numbered(size, f"drawing {split}", progress):
            length = rng.randint(config.min_length, config.max_length)
            line = next((new for _ in range(_TRIES) if (new := draw(length)) not in seen), None)
            if line is None:
                line = draw(length)
                repeated[split] += 1
            seen.add(line)
            drawn[split].append(line)
    return CopyTask(
        {split: [(line, line) for line in lines] for split, lines in drawn.items()}, repeated
    )
