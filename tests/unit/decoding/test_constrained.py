"""The search under constraints, against all translations there are and against plain loops."""

from __future__ import annotations

import itertools
import random

import pytest
import torch
from table_model import TableModel, repeats

from nmtflex.config import SearchConfig
from nmtflex.decoding.constrained import constrained_search
from nmtflex.decoding.constraints import FREE, Constraints
from nmtflex.decoding.search import beam_search
from nmtflex.text.edges import Edges
from nmtflex.text.pipeline import SidePipeline
from nmtflex.text.subwords.bpe import BPE
from nmtflex.text.tokenizers import build_tokenizer
from nmtflex.text.vocabulary import EOS_ID, UNK_ID, Vocabulary


def edges(tokens: str, tokenizer: str = "none", subwords: BPE | None = None) -> Edges:
    vocabulary = Vocabulary(tokens.split(" "), [1] * len(tokens.split(" ")))
    return Edges(SidePipeline("xx", build_tokenizer({"name": tokenizer}), subwords, vocabulary))


WORDS = edges("a b c d e f g h i j k l m n o p q r s t u v w x y z")


def search(models, sources, constraints, config, words=WORDS, **more):
    return constrained_search(models, sources, config, constraints=constraints, edges=words, **more)


def contains(ids: list[int], terms: list[list[int]]) -> bool:
    """Whether terms stand in a translation side by side, one after the other in any order."""
    if not terms:
        return True
    for index, term in enumerate(terms):
        others = terms[:index] + terms[index + 1 :]
        for start in range(len(ids) - len(term) + 1):
            # What is between is no token, so that nothing reaches across the term.
            rest = [*ids[:start], -1, *ids[start + len(term) :]]
            if ids[start : start + len(term)] == term and contains(rest, others):
                return True
    return False


def all_translations(model, source, limit, prefix, terms, alpha=1.0):
    """All translations that meet constraints: by ids their log-probability, and the best ids."""
    found = {}
    for length in range(limit + 1):
        for ids in itertools.product((UNK_ID, 4, 5), repeat=length):
            if list(ids[: len(prefix)]) != prefix or not contains(list(ids), terms):
                continue
            words = [*ids, EOS_ID]
            steps = [model.defined(source, list(ids[:at])) for at in range(len(words))]
            found[ids] = sum(values[word] for values, word in zip(steps, words, strict=True))
    best = max(found, key=lambda ids: found[ids] / (len(ids) + 1) ** alpha)
    return found, list(best)


@pytest.mark.parametrize(
    ("prefix", "terms"),
    [
        ([], [[4]]),
        ([], [[4, 5]]),
        ([], [[4, 5], [UNK_ID]]),
        ([], [[4], [5]]),
        ([], [[4], [4]]),
        ([], [[5, 4, UNK_ID]]),
        ([5, 5], []),
        ([5], [[4]]),
        ([4], [[4]]),
        ([UNK_ID, 5], [[4, 5]]),
    ],
)
def test_a_huge_beam_finds_every_translation_that_meets_the_constraints(prefix, terms) -> None:
    for seed in range(2):
        model, source = TableModel(6, seed=seed), [4, 5]
        config = SearchConfig(beam=1000, max_length=5)
        [found] = search([model], [source], [Constraints(prefix, terms)], config)
        expected, best = all_translations(model, source, 5, prefix, terms)
        assert {tuple(one.ids) for one in found} == set(expected)
        assert len(found) == len(expected)
        assert found[0].ids == best
        for one in found:
            total = expected[tuple(one.ids)]
            assert one.log_probability == pytest.approx(total, abs=1e-12)
            assert one.score == pytest.approx(total / (len(one.ids) + 1), abs=1e-12)


@pytest.mark.parametrize("size", [1, 2])
def test_words_of_constraints_may_repeat_an_ngram_and_others_may_not(size: int) -> None:
    sources = [[4, 5], [6], [5, 6, 7], [7, 7]]
    for seed in range(4):
        model = TableModel(9, seed=seed, eos_bonus=-2.0)
        config = SearchConfig(beam=3, max_length=9, no_repeat_ngram=size)
        free = search([model], sources, [FREE] * 4, config)
        assert free == beam_search([model], sources, config)
        for hypotheses in search([model], sources, [Constraints([4, 4, 4], [])] * 4, config):
            for one in hypotheses:
                assert one.ids[:3] == [4, 4, 4]
                assert not any(repeats(one.ids[:end], size) for end in range(4, len(one.ids) + 1))
        terms = [[5, 6], [5, 6]]
        for hypotheses in search([model], sources, [Constraints([], terms)] * 4, config):
            assert all(contains(one.ids, terms) for one in hypotheses)


def cases(count: int, seed: int = 0) -> tuple[list[list[int]], list[Constraints]]:
    """Sources, and constraints of up to three terms and a prefix."""
    draw = random.Random(seed)

    def ids(least: int, most: int) -> list[int]:
        return [draw.randrange(4, 30) for _ in range(draw.randint(least, most))]

    sources = [ids(1, 7) for _ in range(count)]
    terms = [[ids(1, 3) for _ in range(draw.randint(0, 3))] for _ in range(count)]
    return sources, [Constraints(ids(0, 2), each) for each in terms]


@pytest.mark.parametrize("beam", [1, 2, 3, 5, 20])
@pytest.mark.parametrize("bonus", [3.0, -1000.0])  # ends early, or never
def test_every_translation_meets_the_constraints(beam: int, bonus: float) -> None:
    model = TableModel(30, seed=beam, eos_bonus=bonus)
    sources, constraints = cases(30, seed=beam)
    config = SearchConfig(beam=beam, max_length=4)
    found = search([model], sources, constraints, config)
    for source, demanded, hypotheses in zip(sources, constraints, found, strict=True):
        assert 1 <= len(hypotheses) <= max(beam, 2)
        for one in hypotheses:
            assert one.ids[: len(demanded.prefix)] == demanded.prefix
            assert contains(one.ids, list(demanded.terms))
            assert len(one.ids) <= max(4, demanded.tokens)
            words = [*one.ids, EOS_ID]
            steps = [model.defined(source, one.ids[:at])[word] for at, word in enumerate(words)]
            assert one.log_probability == pytest.approx(sum(steps), rel=1e-12)


@pytest.mark.parametrize("wanted", [None, 1])
def test_without_constraints_it_is_beam_search(wanted: int | None) -> None:
    model = TableModel(12, grain=0.5)
    sources, _ = cases(20)
    config = SearchConfig(beam=4, max_length=6)
    expected = beam_search([model], sources, config, wanted=wanted)
    assert search([model], sources, [FREE] * 20, config, wanted=wanted) == expected


def test_a_prefix_that_the_search_takes_anyway_changes_nothing() -> None:
    model = TableModel(30, eos_bonus=1.0)
    sources, _ = cases(20)
    config = SearchConfig(beam=1)
    expected = beam_search([model], sources, config)
    prefixes = [Constraints(best.ids[:3], []) for (best,) in expected]
    assert search([model], sources, prefixes, config) == expected


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
def test_a_sentence_does_not_depend_on_its_batch(dtype: torch.dtype) -> None:
    model = TableModel(30, dtype=dtype, eos_bonus=3.0)
    sources, constraints = cases(15, seed=3)
    config = SearchConfig(beam=5)
    together = search([model], sources, constraints, config)
    pairs = zip(sources, constraints, strict=True)
    assert together == [search([model], [one], [other], config)[0] for one, other in pairs]
    order = random.Random(1).sample(range(15), 15)
    mixed = search(
        [model], [sources[at] for at in order], [constraints[at] for at in order], config
    )
    assert mixed == [together[at] for at in order]


def test_an_ensemble_averages_probabilities() -> None:
    models = [TableModel(6, seed=seed) for seed in (1, 2)]
    config = SearchConfig(beam=1000, max_length=3)
    [found] = search(models, [[4]], [Constraints([], [[5, 4]])], config)
    for one in found:
        total = 0.0
        for at, word in enumerate([*one.ids, EOS_ID]):
            values = [
                torch.tensor(model.defined([4], one.ids[:at]), dtype=torch.float64).exp()
                for model in models
            ]
            total += torch.stack(values).mean(0).log()[word].item()
        assert one.log_probability == pytest.approx(total, abs=1e-12)
    before = [[one, 5, 4] for one in (1, 4, 5)]
    behind = [[5, 4, one] for one in (1, 4, 5)]
    assert sorted(one.ids for one in found) == sorted([[5, 4], *before, *behind])


def test_of_terms_within_each_other_the_longest_is_met() -> None:
    model = TableModel(6, seed=4)
    config = SearchConfig(beam=100, max_length=4)
    [found] = search([model], [[4]], [Constraints([], [[5], [4, 5]])], config)
    expected, _ = all_translations(model, [4], 4, [], [[5], [4, 5]])
    assert {tuple(one.ids) for one in found} == set(expected)


def test_a_sentence_may_have_a_limit_of_its_own() -> None:
    model = TableModel(30, eos_bonus=-1000.0)
    sources, constraints = cases(10, seed=2)
    found = search([model], sources, constraints, SearchConfig(beam=3), limits=[3] * 10)
    for demanded, hypotheses in zip(constraints, found, strict=True):
        assert {len(one.ids) for one in hypotheses} == {max(3, demanded.tokens)}


def test_a_term_is_a_word_of_its_own_among_subwords() -> None:
    """With BPE a term begins where a word ends; the letters a@@ and b@@ begin words here."""
    bpe = edges("a@@ b@@ a b", subwords=BPE([]))
    config = SearchConfig(beam=1000, max_length=4)
    [found] = search([TableModel(8, seed=1)], [[4]], [Constraints([], [[4, 7]])], config, bpe)
    whole = {tuple(one.ids) for one in found}
    assert (4, 7) in whole  # "ab"
    assert (6, 4, 7) in whole  # "a ab"
    assert (5, 6, 4, 7) in whole  # "ba ab"
    assert not {(5, 4, 7), (4, 4, 7)} & whole  # "bab", "aab"
    assert (6, 5, 4, 7) in whole  # "a bab": no room for another word before the limit


def test_a_term_is_a_word_of_its_own_among_characters() -> None:
    """A term of letters has none beside it; "▁" is a space."""
    characters = edges("a b ▁ .", "char")
    config = SearchConfig(beam=1000, max_length=5)
    [found] = search(
        [TableModel(8, seed=1)], [[4]], [Constraints([], [[4, 5]])], config, characters
    )
    texts = {"".join(".a.b ."[0] if one < 4 else "ab_."[one - 4] for one in hypothesis.ids)
             for hypothesis in found}  # fmt: skip
    assert {"ab", "ab.", ".ab", "a_ab", "ab_ab", "aab_ab"[1:]} <= texts
    assert not {"aab", "aba", "bab_"} & texts
