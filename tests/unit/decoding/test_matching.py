"""Words matched one to one."""

from __future__ import annotations

import numpy as np
import pytest

from nmtflex.decoding.character_links import character_links
from nmtflex.decoding.matching import LEAST, ROUNDS, STRONG, linked_words
from nmtflex.decoding.translation import Translation
from nmtflex.text.pipeline import SidePipeline, TextPipeline
from nmtflex.text.tokenizers import build_tokenizer
from nmtflex.text.vocabulary import Vocabulary


def by_loops(weights) -> list[tuple[int, int]]:
    """Scale, then match, one number at a time."""
    table = [list(row) for row in weights]
    rows, columns = range(len(table)), range(len(table[0]))
    for _ in range(ROUNDS):
        for column in columns:
            total = sum(table[row][column] for row in rows)
            for row in rows:
                table[row][column] /= max(1.0, total)
        for row in rows:
            total = sum(table[row])
            table[row] = [value / total for value in table[row]]
    found: dict[int, int] = {}
    while True:
        free = [
            (-table[row][column], row, column)
            for row in rows
            for column in columns
            if row not in found and column not in found.values()
        ]
        if not free or -min(free)[0] < LEAST:
            break
        _, row, column = min(free)
        found[row] = column
    for row in rows:
        best = max(table[row])
        if row not in found and best > STRONG:
            found[row] = table[row].index(best)
    return [(found[row], row) for row in sorted(found)]


@pytest.mark.parametrize("seed", range(50))
def test_against_plain_loops(seed):
    random = np.random.default_rng(seed)
    weights = random.dirichlet(np.full(random.integers(1, 7), 0.4), random.integers(1, 7)) + 1e-6
    assert linked_words(weights) == by_loops(weights)


def test_an_article_leaves_the_noun_to_the_noun():
    weights = np.array([[0.1, 0.9], [0.0, 1.0]])  # "a dog" attends to "Hund", not to "ein"
    assert weights.argmax(1).tolist() == [1, 1]
    assert linked_words(weights) == [(0, 0), (1, 1)]


def test_a_word_left_over_needs_most_of_its_weight():
    compound = np.array([[1.0, 0.0], [0.0, 1.0], [0.0, 1.0]])
    assert linked_words(compound) == [(0, 0), (1, 1), (1, 2)]
    weak = np.array([[1.0, 0.0], [0.0, 1.0], [0.5, 0.5]])
    assert linked_words(weak) == [(0, 0), (1, 1)]


def test_words_without_weights_have_no_links():
    assert linked_words(np.zeros((0, 0))) == []
    assert linked_words(np.zeros((2, 3))) == []
    assert linked_words(np.array([[0.0, 0.0], [0.3, 0.7]])) == [(1, 1)]


def pipeline() -> TextPipeline:
    def side(name: str) -> SidePipeline:
        return SidePipeline("en", build_tokenizer({"name": name}), None, Vocabulary([], []))

    return TextPipeline(side("none"), side("char"))


def test_links_between_characters():
    tokens = list("xy▁z")
    translation = Translation("xy z", tokens, tokens, 0.0, 0.0, None, links=[(1, 0), (0, 1)])
    assert character_links(pipeline(), " ab  c", translation) == [
        ((5, 6), (0, 2)),
        ((1, 3), (3, 4)),
    ]
    shorter = translation._replace(text="z")  # the first word is not there
    assert character_links(pipeline(), " ab  c", shorter) == [((1, 3), (0, 1))]
    assert character_links(pipeline(), "", translation._replace(text="", words=[], links=[])) == []
