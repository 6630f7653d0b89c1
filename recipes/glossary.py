"""Glossaries measured: do the terms come out, what becomes of BLEU, and how long does it take?

    python recipes/glossary.py RUN TRAIN TEST [--sentences 300] [--rounds 5] [--beam 5]

TRAIN and TEST are prefixes of parallel text, as for preprocess. There are two settings, drawn with
the seed 1. Words are paired with words of the reference by how often they occur together in TRAIN
(Dice).

- reference: one source word whose reference word the model does not produce, and mostly a second
  one whose reference word it does;
- invented: one source word, whose reference word is replaced by a name that no model has seen. The
  row without a glossary is scored against the references as they were.

Both are decoded without terms, with terms put where attention finds their places, and by the search
under constraints that serves runs without alignments. They take turns on one thread; a time is the
median over the rounds of its ratio to that without terms.
"""

from __future__ import annotations

import argparse
import collections
import copy
import itertools
import random
import re
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import sacrebleu

import nmtflex
from nmtflex.corpus.readers import find_text, read_lines
from nmtflex.text.glossary import Glossary, Occurrence

NAMES = ("Quendalix", "Zorvath 300", "Brimtosch", "Kalyxo-Prime", "Vurnegal")
WORD = re.compile(r"\w+")
LEAST, CERTAIN, SHORTEST = 0.12, 0.3, 4


class Case(NamedTuple):
    """A source line with its terms; its reference with them, and as it was."""

    source: str
    reference: str
    plain: str
    terms: dict[str, str]


class Pairs:
    """Reference words by source word, with the strength of the association.

    Args:
        sources: Lines.
        references: Their translations.
    """

    def __init__(self, sources: list[str], references: list[str]) -> None:
        self._left: collections.Counter[str] = collections.Counter()
        self._right: collections.Counter[str] = collections.Counter()
        self._both: collections.Counter[tuple[str, str]] = collections.Counter()
        for source, reference in zip(sources, references, strict=True):
            left, right = set(WORD.findall(source)), set(WORD.findall(reference))
            self._left.update(left)
            self._right.update(right)
            self._both.update(itertools.product(left, right))

    def of(self, source: str, reference: str, least: float) -> list[tuple[str, str]]:
        """Return the pairs of a line whose Dice coefficient is at least ``least``."""
        found = []
        words = [word for word in WORD.findall(reference) if len(word) >= SHORTEST]
        for left in WORD.findall(source):
            if len(left) < SHORTEST or source.count(left) > 1 or not words:
                continue
            value, right = max((self._dice(left, word), word) for word in words)
            if value >= least:
                found.append((left, right))
        return found

    def _dice(self, left: str, right: str) -> float:
        both = self._both[left, right]
        return 2 * both / (self._left[left] + self._right[right]) if both > 1 else 0.0


def from_references(
    pairs: Pairs, lines: list[tuple[str, str, str]], draw: random.Random
) -> list[Case]:
    """Return the cases of the first setting."""
    cases = []
    for source, reference, output in lines:
        found = pairs.of(source, reference, LEAST)
        there = set(WORD.findall(output))
        missing = [pair for pair in found if pair[1] not in there]
        if not missing:
            continue
        chosen = [draw.choice(missing)]
        others = [pair for pair in found if pair[1] in there and pair[0] != chosen[0][0]]
        if others and draw.random() < 0.6:
            chosen.append(draw.choice(others))
        cases.append(Case(source, reference, reference, dict(chosen)))
    return cases


def with_names(pairs: Pairs, lines: list[tuple[str, str, str]], draw: random.Random) -> list[Case]:
    """Return the cases of the second setting."""
    cases = []
    for source, reference, _ in lines:
        found = [
            (left, right)
            for left, right in pairs.of(source, reference, CERTAIN)
            if WORD.findall(reference).count(right) == 1
        ]
        if found:
            left, right = draw.choice(found)
            name = draw.choice(NAMES)
            renamed = re.sub(rf"\b{right}\b", name, reference)
            cases.append(Case(source, renamed, reference, {left: name}))
    return cases


class LineTerms(Glossary):
    """A glossary of its own for each line.

    Args:
        cases: Their lines differ.
    """

    def __init__(self, cases: list[Case]) -> None:
        super().__init__({})
        self._found = {case.source: Glossary(case.terms).find(case.source) for case in cases}

    def find(self, line: str) -> list[Occurrence]:
        """Return the terms of one of the lines."""
        return self._found[line]


def searching(translator: nmtflex.Translator) -> nmtflex.Translator:
    """Return a translator that does with terms what one without alignments does."""
    other = copy.copy(translator)
    other.__class__ = type("Searching", (type(translator),), {"aligned": False})
    return other


def measured(
    name: str, translator: nmtflex.Translator, cases: list[Case], rounds: int
) -> Iterator[str]:
    """Translate cases in turns, and yield the rows of a table."""
    lines, terms = [case.source for case in cases], LineTerms(cases)
    other = searching(translator)
    ways: dict[str, Callable[[], list[list[nmtflex.Translation]]]] = {
        "no glossary": lambda: translator.n_best(lines, 1),
        "attention": lambda: translator.n_best(lines, 1, glossary=terms),
        "search": lambda: other.n_best(lines, 1, glossary=terms),
    }
    seconds = {way: [0.0] * rounds for way in ways}
    found: dict[str, list[str]] = {}
    for turn, (way, run) in itertools.product(range(-1, rounds), ways.items()):
        start = time.process_time()
        found[way] = [best.text for (best,) in run()]
        if turn >= 0:
            seconds[way][turn] = time.process_time() - start
    for way, texts in found.items():
        pairs = [
            (text, word)
            for text, case in zip(texts, cases, strict=True)
            for word in case.terms.values()
        ]
        kept = sum(
            bool(re.search(rf"(?<!\w){re.escape(word)}(?!\w)", text)) for text, word in pairs
        )
        references = [case.plain if way == "no glossary" else case.reference for case in cases]
        bleu = sacrebleu.corpus_bleu(texts, [references]).score
        ratios = [a / b for a, b in zip(seconds[way], seconds["no glossary"], strict=True)]
        yield (
            f"| {name} | {way} | {kept} of {len(pairs)} | {bleu:.2f} | "
            f"{statistics.median(ratios):.2f} ({min(ratios):.2f}-{max(ratios):.2f}) |\n"
        )


def main() -> None:
    """Measure both settings and print a table."""
    parser = argparse.ArgumentParser()
    for name in ("run", "train", "test"):
        parser.add_argument(name, type=Path)
    parser.add_argument("--sentences", type=int, default=300)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--beam", type=int, default=5)
    options = parser.parse_args()
    translator = nmtflex.load(options.run, beam=options.beam, threads=1)
    sides = translator.pipeline.source, translator.pipeline.target

    def read(prefix: Path) -> list[list[str]]:
        return [list(read_lines(find_text(prefix, side.language))) for side in sides]

    pairs = Pairs(*read(options.train))
    unique = dict(zip(*read(options.test), strict=True))
    outputs = [best.text for (best,) in translator.n_best(list(unique), 1)]
    lines = list(zip(unique, unique.values(), outputs, strict=True))
    sys.stdout.write("| terms | way | come out | BLEU | time |\n| --- | --- | --- | --- | --- |\n")
    for name, draws in (("reference", from_references), ("invented", with_names)):
        cases = draws(pairs, lines, random.Random(1))[: options.sentences]
        for row in measured(name, translator, cases, options.rounds):
            sys.stdout.write(row)


if __name__ == "__main__":
    main()
