"""Parallel text with the long tail of a real vocabulary, of any size.

Words are drawn one by one by the law of Zipf and Mandelbrot, 1953: the word of rank r = 1, 2, ...
has the probability ::

    p(r) = c / (r + 2.7)^s

with s near 1 for natural languages. A word is a stem of one or more syllables, such as "ta" or
"kori", and an ending of consonants; onsets and vowels differ in frequency, and frequent words are
short. A stem ends in a vowel, so different parts make different words.

The target is a function of the source: each word becomes another one, syllable by syllable and
ending by ending, so that what is learned of a word's parts carries over to rare words; and the
words of a sentence are swapped in pairs: 1 2 3 4 5 becomes 2 1 4 3 5.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from nmtflex.config import GenerateZipfConfig
from nmtflex.corpus.parallel import OnProgress, describe_split, open_splits

LANGUAGES = ("src", "tgt")
OFFSET = 2.7  # Mandelbrot's, for English
BLOCK = 1 << 15  # pairs generated at once
GUIDES = 4  # entries a word in the lookup table

# Each onset with each vowel is a syllable; the first ones are most frequent.
ONSETS = (
    ("t", "n", "r", "s", "l", "k", "d", "m", "p", "b", "v", "g", "f", "st", "tr", "h", "pr", "kr"),
    ("k", "m", "y", "n", "h", "r", "w", "z", "sh", "g", "ch", "j", "ts", "b", "ky", "d", "my", "p"),
)
VOWELS = (("e", "a", "i", "o", "u"), ("a", "u", "o", "i", "e"))
ENDINGS = (
    ("", "n", "s", "r", "t", "ns", "st", "nd", "ng", "m", "rs", "lt"),
    ("", "x", "q", "ff", "lk", "c", "ss", "th", "mp", "rk", "bs", "ft"),
)
MOST_SYLLABLES = 8

Words = NDArray[np.int64]  # numbers of words; 0 is the most frequent


class Spelling(NamedTuple):
    """All words of a side, concatenated, each with a space after it."""

    text: NDArray[np.uint8]
    starts: NDArray[np.int64]
    sizes: NDArray[np.int64]  # letters of each word, and the space

    def lines(self, words: Words, lengths: NDArray[np.int64]) -> NDArray[np.uint8]:
        """Write sentences, a line each, as UTF-8.

        Args:
            words: All their words.
            lengths: Number of words in each sentence, at least 1.
        """
        sizes = self.sizes[words]
        ends = np.cumsum(sizes)
        places = np.repeat(self.starts[words] - (ends - sizes), sizes)
        places += np.arange(len(places))
        text = self.text[places]
        text[ends[np.cumsum(lengths) - 1] - 1] = ord("\n")
        return text


class Law:
    """Draws words by Zipf's and Mandelbrot's law.

    Args:
        types: Number of distinct words.
        exponent: Zipf's s.
    """

    def __init__(self, types: int, exponent: float) -> None:
        weights = (np.arange(1, types + 1) + OFFSET) ** -exponent
        self.probabilities = weights / weights.sum()
        self._ends = np.cumsum(self.probabilities)
        self._ends[-1] = 1.0
        # Where to begin looking in the table of words: much faster than bisection.
        grid = np.arange(GUIDES * types) / (GUIDES * types)
        self._guides = np.searchsorted(self._ends, grid, side="right")

    def draw(self, rng: np.random.Generator, count: int) -> Words:
        """Return ``count`` independent words."""
        uniform = rng.random(count)
        words = self._guides[(uniform * len(self._guides)).astype(np.int64)]
        late = np.flatnonzero(self._ends[words] <= uniform)
        while len(late):
            words[late] += 1
            late = late[self._ends[words[late]] <= uniform[late]]
        return words


def generate_zipf(config: GenerateZipfConfig, progress: OnProgress = lambda *_: None) -> list[str]:
    """Write the splits; the same configuration writes the same ones.

    Args:
        config: What to write and where.
        progress: Called with the stage and the pairs done.

    Returns:
        A line about each split.

    Raises:
        DataError: Files of a split already exist, or ``--out`` is not a folder.
    """
    sizes = {"train": config.train, "valid": config.valid, "test": config.test}
    described = []
    with open_splits(config.out, list(sizes), LANGUAGES) as files:
        progress("making words", 0)
        law = Law(config.types, config.exponent)
        spellings = spell(config.types, np.random.default_rng([config.seed, len(sizes)]))
        for number, (split, pairs) in enumerate(sizes.items()):
            rng = np.random.default_rng([config.seed, number])
            seen, tokens = np.zeros(config.types, bool), 0
            for first in range(0, pairs, BLOCK):
                count = min(BLOCK, pairs - first)
                lengths = rng.integers(config.min_length, config.max_length, count, endpoint=True)
                words = law.draw(rng, int(lengths.sum()))
                seen[words] = True
                tokens += len(words)
                sides = words, exchange(words, lengths)
                for file, side, spelling in zip(files[split], sides, spellings, strict=True):
                    file.write(spelling.lines(side, lengths).data)
                progress(f"writing {split}", first + count)
            about = tokens, int(seen.sum())
            described.append(describe_split(config.out / split, pairs, LANGUAGES, [about, about]))
    return described


def exchange(words: Words, lengths: NDArray[np.int64]) -> Words:
    """Swap the words of each sentence in pairs; an odd last one stays."""
    last = np.repeat(np.cumsum(lengths), lengths) - 1  # of the sentence that a word is in
    place = np.arange(len(words))
    odd = (place - (last + 1 - np.repeat(lengths, lengths))) % 2
    return words[np.minimum(place + 1 - 2 * odd, last)]


def spell(types: int, rng: np.random.Generator) -> tuple[Spelling, Spelling]:
    """Spell the words of both sides, short ones first."""
    stems = make_stems(types // 3 + len(ENDINGS[0]), rng)
    # The more frequent its parts, the more frequent a word.
    parts = np.arange(1, len(stems) + 1)[:, None] * np.arange(1, len(ENDINGS[0]) + 1)
    chosen = np.argsort(parts, axis=None, kind="stable")[:types]
    stem, ending = np.divmod(chosen, len(ENDINGS[0]))
    source, target = (_spell_side(side, stems[stem], ending) for side in range(2))
    return source, target


def make_stems(count: int, rng: np.random.Generator) -> NDArray[np.uint8]:
    """Draw distinct stems, short ones first.

    Returns:
        [count, MOST_SYLLABLES]: syllable numbers, from 1; 0 after a stem's end.
    """
    onsets, vowels = (_falling(len(parts[0])) for parts in (ONSETS, VOWELS))
    likely = np.outer(onsets, vowels).ravel()
    drawn = np.empty((0, MOST_SYLLABLES), np.uint8)
    while len(drawn) < count:
        place = len(drawn) + np.arange(count)
        syllables = 1 + rng.choice(len(likely), (count, MOST_SYLLABLES), p=likely).astype(np.uint8)
        # Twice the syllables that this many stems need if syllables were equally likely.
        lengths = np.minimum(1 + 2 * np.log(1 + place / 8) / np.log(len(likely)), MOST_SYLLABLES)
        syllables[np.arange(MOST_SYLLABLES) >= lengths.astype(int)[:, None]] = 0
        drawn = np.concatenate([drawn, syllables])
        codes = drawn.astype(np.uint64) @ (1 << (7 * np.arange(MOST_SYLLABLES, dtype=np.uint64)))
        _, first = np.unique(codes, return_index=True)
        drawn = drawn[np.sort(first)]
    return drawn[:count]


def _falling(count: int) -> NDArray[np.float64]:
    """Return falling probabilities for the parts of words."""
    weights = 1 / (np.arange(count) + 2.0)
    return weights / weights.sum()


def _spell_side(side: int, stems: NDArray[np.uint8], endings: NDArray[np.int64]) -> Spelling:
    """Write the words of a side.

    Args:
        side: 0 for the source, 1 for the target.
        stems: Syllables of each word, [types, MOST_SYLLABLES].
        endings: Number of each word's ending, [types].
    """
    syllables = ["", *(onset + vowel for onset in ONSETS[side] for vowel in VOWELS[side])]
    last = [f"{ending} " for ending in ENDINGS[side]]
    letters = "".join(syllables + last).encode()
    lengths = np.array([len(part) for part in syllables + last])
    starts = np.cumsum(lengths) - lengths
    tails = (endings[:, None] + len(syllables)).astype(np.uint8)
    parts = np.concatenate([stems, tails], axis=1)  # [types, parts]
    sizes = lengths[parts].sum(axis=1)
    flat = parts.ravel()
    ends = np.cumsum(lengths[flat])
    places = np.repeat(starts[flat] - (ends - lengths[flat]), lengths[flat])
    places += np.arange(len(places))
    return Spelling(np.frombuffer(letters, np.uint8)[places], np.cumsum(sizes) - sizes, sizes)
