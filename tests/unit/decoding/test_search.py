from __future__ import annotations

import itertools
import random

import pytest
import torch
from table_model import Output, Predicting, TableModel, repeats, slow_beam_search

from nmtflex.config import SearchConfig
from nmtflex.decoding.search import beam_search
from nmtflex.errors import RunError
from nmtflex.text.vocabulary import BOS_ID, EOS_ID, PAD_ID, UNK_ID


def sentences(count: int, seed: int = 0, longest: int = 7) -> list[list[int]]:
    draw = random.Random(seed)
    return [
        [draw.randrange(4, 30) for _ in range(draw.randrange(1, longest + 1))] for _ in range(count)
    ]


@pytest.mark.parametrize("beam", [1, 2, 3, 5, 8])
@pytest.mark.parametrize("alpha", [0.0, 1.0])
@pytest.mark.parametrize("grain", [0.0, 0.5, 4.0])  # no ties, many, hardly anything else
@pytest.mark.parametrize("vocabulary", [6, 12])
def test_equals_a_slow_search(beam: int, alpha: float, grain: float, vocabulary: int) -> None:
    model = TableModel(vocabulary, seed=beam, grain=grain)
    sources = sentences(9, seed=vocabulary)
    config = SearchConfig(beam=beam, length_penalty=alpha, max_length=6)
    found = beam_search([model], sources, config)
    for source, hypotheses in zip(sources, found, strict=True):
        assert hypotheses == slow_beam_search(model, source, beam, alpha, limit=6)


@pytest.mark.parametrize("beam", [1, 2, 5])
@pytest.mark.parametrize("size", [1, 2, 3])
@pytest.mark.parametrize("grain", [0.0, 0.5])
def test_no_ngram_is_repeated(beam: int, size: int, grain: float) -> None:
    model = TableModel(7, seed=beam, grain=grain, eos_bonus=-2.0)
    sources = sentences(9)
    config = SearchConfig(beam=beam, max_length=15, no_repeat_ngram=size)
    found = beam_search([model], sources, config)
    plain = beam_search([model], sources, SearchConfig(beam=beam, max_length=15))
    for source, hypotheses in zip(sources, found, strict=True):
        assert hypotheses == slow_beam_search(model, source, beam, 1.0, 15, size)
    assert any(
        repeats(one.ids[:end], size)
        for hypotheses in plain
        for one in hypotheses
        for end in range(1, len(one.ids) + 1)
    )


@pytest.mark.parametrize("beam", [1, 4])
def test_each_sentence_may_have_a_limit_of_its_own(beam: int) -> None:
    model = TableModel(12, seed=beam, eos_bonus=-3.0)
    sources = sentences(9)
    limits = [1, 3, 20, 2, 9, 4, 7, 5, 6]
    found = beam_search([model], sources, SearchConfig(beam=beam, max_length=9), limits=limits)
    for source, limit, hypotheses in zip(sources, limits, found, strict=True):
        assert hypotheses == slow_beam_search(model, source, beam, 1.0, min(limit, 9))
        assert all(len(hypothesis.ids) <= min(limit, 9) for hypothesis in hypotheses)


@pytest.mark.parametrize("wanted", [1, 2, 4])
@pytest.mark.parametrize("alpha", [0.0, 0.6, 1.0])
@pytest.mark.parametrize("grain", [0.0, 0.5])
def test_ending_early_changes_nothing_that_is_wanted(
    wanted: int, alpha: float, grain: float
) -> None:
    model = TableModel(8, seed=wanted, grain=grain, eos_bonus=2.0, entries=9973)
    sources = sentences(20)
    config = SearchConfig(beam=4, length_penalty=alpha, max_length=7)
    found = beam_search([model], sources, config, wanted=wanted)
    computed = sum(model.steps)
    for source, hypotheses in zip(sources, found, strict=True):
        whole = slow_beam_search(model, source, 4, alpha, 7)
        assert hypotheses[:wanted] == whole[:wanted]
    model.steps.clear()
    beam_search([model], sources, config)
    assert computed <= sum(model.steps)
    assert computed < sum(model.steps) or wanted > 1


class Tree(Predicting):
    """Log-probabilities of the words EOS, UNK, a and b (ids 3, 1, 4, 5) by prefix."""

    device = torch.device("cpu")

    def __init__(self, probabilities: dict[str, list[float]], default: list[float]) -> None:
        self.prefixes = [""]
        self.rows = {prefix: torch.tensor(row) for prefix, row in probabilities.items()}
        self.default = torch.tensor(default)

    def encode(self, source, lengths, *, traced=True):
        return None, (torch.zeros(len(source), dtype=torch.int64),)

    def step(self, memory, rows, state, tokens, trace=False):
        nodes = []
        for node, token in zip(state[0].tolist(), tokens.tolist(), strict=True):
            prefix = self.prefixes[node] + {BOS_ID: "", UNK_ID: "u", 4: "a", 5: "b"}[token]
            self.prefixes.append(prefix)
            nodes.append(len(self.prefixes) - 1)
        log_probs = torch.full((len(nodes), 6), -torch.inf, dtype=torch.float64)
        for row, node in enumerate(nodes):
            values = self.rows.get(self.prefixes[node], self.default)
            log_probs[row, [EOS_ID, UNK_ID, 4, 5]] = values.double()
        return Output(log_probs, (torch.tensor(nodes),))


def test_a_hopeless_hypothesis_keeps_others_from_taking_its_slot() -> None:
    # Beam 3, at most 9 words. The empty translation ends at once with the score -2, so what falls
    # below -20 is hopeless: "b" is, but "ba" keeps "a EOS" (-26) from ending. "aa" then has two
    # good children and needs both slots, for the second one, "aab", is the best translation.
    model = Tree(
        {
            "": [-2.0, -30.0, -0.2, -25.0],
            "a": [-25.8, -30.0, -0.1, -28.0],
            "b": [-30.0, -30.0, -0.1, -30.0],
            "aa": [-30.0, -30.0, -0.7, -0.8],
            "aaa": [-1.39, -1.39, -1.39, -1.39],
            "aab": [-0.01, -30.0, -30.0, -30.0],
        },
        default=[-0.01, -30.0, -30.0, -30.0],
    )
    config = SearchConfig(beam=3, max_length=9)
    [whole] = beam_search([model], [[4]], config)
    [[best, *_]] = beam_search([model], [[4]], config, wanted=1)
    assert whole[0].ids == [4, 4, 5]
    assert best == whole[0]
    assert best.score == pytest.approx((-0.2 - 0.1 - 0.8 - 0.01) / 4, abs=1e-6)


def test_beam_1_is_greedy_search() -> None:
    model = TableModel(20, eos_bonus=1.0)
    for source, [hypothesis] in zip(
        sentences(20), beam_search([model], sentences(20), SearchConfig(beam=1)), strict=True
    ):
        ids: list[int] = []
        total = 0.0
        while not ids or ids[-1] != EOS_ID:
            values = model.defined(source, ids)
            values[PAD_ID] = values[BOS_ID] = -torch.inf
            token = max(range(20), key=values.__getitem__)
            if len(ids) == 3 * len(source) + 20:
                token = EOS_ID
            ids.append(token)
            total += values[token]
        assert hypothesis.ids == ids[:-1]
        assert hypothesis.log_probability == pytest.approx(total, abs=1e-12)
        assert hypothesis.score == pytest.approx(total / len(ids), abs=1e-12)


def test_a_huge_beam_finds_every_translation() -> None:
    model = TableModel(5)  # UNK and one word: 1 + 2 + 4 + 8 translations of up to three words
    source = [4, 4]
    [found] = beam_search([model], [source], SearchConfig(beam=1000, max_length=3))
    expected = {}
    for length in range(4):
        for ids in itertools.product((UNK_ID, 4), repeat=length):
            steps = [model.defined(source, list(ids[:at])) for at in range(length + 1)]
            words = [*ids, EOS_ID]
            expected[ids] = sum(values[word] for values, word in zip(steps, words, strict=True))
    assert len(found) == 15
    assert {tuple(hypothesis.ids) for hypothesis in found} == set(expected)
    for hypothesis in found:
        total = expected[tuple(hypothesis.ids)]
        assert hypothesis.log_probability == pytest.approx(total, abs=1e-12)
        assert hypothesis.score == pytest.approx(total / (len(hypothesis.ids) + 1), abs=1e-12)
    assert [h.score for h in found] == sorted((h.score for h in found), reverse=True)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
@pytest.mark.parametrize("grain", [0.0, 0.25])
def test_a_sentence_does_not_depend_on_its_batch(dtype: torch.dtype, grain: float) -> None:
    model = TableModel(90, grain=grain, dtype=dtype, eos_bonus=3.0)
    sources = sentences(16, seed=3, longest=30)
    config = SearchConfig(beam=5)
    together = beam_search([model], sources, config)
    alone = [beam_search([model], [source], config)[0] for source in sources]
    shuffled = random.Random(1).sample(range(16), 16)
    mixed = beam_search([model], [sources[at] for at in shuffled], config)
    assert together == alone
    assert [together[at] for at in shuffled] == mixed


def test_n_best_is_sorted_without_duplicates_and_within_the_maximum_length() -> None:
    model = TableModel(30)
    sources = sentences(10, longest=12)
    for limit, config in (
        (None, SearchConfig(beam=6)),
        (4, SearchConfig(beam=6, max_length=4)),
    ):
        for source, found in zip(sources, beam_search([model], sources, config), strict=True):
            assert len(found) == 6
            scores = [hypothesis.score for hypothesis in found]
            assert scores == sorted(scores, reverse=True)
            assert len({tuple(hypothesis.ids) for hypothesis in found}) == 6
            for hypothesis in found:
                assert len(hypothesis.ids) <= (limit or 3 * len(source) + 20)
                assert not {PAD_ID, BOS_ID, EOS_ID} & set(hypothesis.ids)


def test_a_model_that_never_ends_is_stopped_by_each_sentence_length() -> None:
    model = TableModel(6, eos_bonus=-1000.0)
    sources = [[4], [4, 5, 4]]
    found = beam_search([model], sources, SearchConfig(beam=3))
    assert [{len(h.ids) for h in hypotheses} for hypotheses in found] == [{23}, {29}]
    for source, hypotheses in zip(sources, found, strict=True):
        for hypothesis in hypotheses:
            words = [*hypothesis.ids, EOS_ID]
            total = sum(
                model.defined(source, hypothesis.ids[:at])[word] for at, word in enumerate(words)
            )
            assert hypothesis.log_probability == pytest.approx(total, rel=1e-12)


def test_finished_sentences_leave_the_batch() -> None:
    model = TableModel(6, eos_bonus=-1000.0)
    beam_search([model], [[4], [4, 5, 4]], SearchConfig(beam=3))
    # Both to step 23, where the first ends; then only the second's three hypotheses.
    assert model.steps == [2] + 23 * [6] + 6 * [3]


class Fixed(Predicting):
    """A model with one distribution, whatever came before."""

    device = torch.device("cpu")

    def __init__(self, log_probs: list[float]) -> None:
        self.row = torch.tensor(log_probs, dtype=torch.float64)

    def encode(self, source, lengths, *, traced=True):
        return None, (torch.zeros(len(source), 0),)

    def step(self, memory, rows, state, tokens, trace=False):
        return Output(self.row.repeat(len(rows), 1), state)


def test_ties_break_by_lowest_word_then_by_rank() -> None:
    # PAD and BOS would win if they were allowed; words 4, 5, 6 are equal, EOS never comes first.
    model = Fixed([0.0, -9.0, 0.0, -3.0, -1.0, -1.0, -1.0])
    [found] = beam_search([model], [[4]], SearchConfig(beam=2, max_length=2))
    # First step: 4 before 5. Second: of 44, 45, 46, 54, 55, 56 the lowest last words, 44 and 54.
    assert [hypothesis.ids for hypothesis in found] == [[4, 4], [5, 4]]
    assert [hypothesis.log_probability for hypothesis in found] == [-5.0, -5.0]


def test_a_finished_hypothesis_takes_a_slot() -> None:
    # EOS is best at once; then one slot is left, and the best word's EOS takes it.
    model = Fixed([-9.0, -9.0, -9.0, -1.0, -2.0, -3.0])
    [found] = beam_search([model], [[4]], SearchConfig(beam=2, length_penalty=0.0))
    assert [(h.ids, h.score) for h in found] == [([], -1.0), ([4], -3.0)]


@pytest.mark.parametrize("value", ["nan", "inf"])
def test_a_broken_model_is_an_error(value: str) -> None:
    model = Fixed([-1.0, -1.0, -1.0, -1.0, float(value)])
    with pytest.raises(RunError, match=f"log-probability of {value}: its weights are broken"):
        beam_search([model], [[4]], SearchConfig(beam=2))


def test_a_model_without_continuation_is_an_error() -> None:
    model = Fixed([-1.0, -torch.inf, -1.0, -torch.inf, -torch.inf])
    with pytest.raises(RunError, match="gives every continuation the probability 0"):
        beam_search([model], [[4]], SearchConfig(beam=2))


def test_an_ensemble_averages_probabilities() -> None:
    low, high = Fixed([-9.0, -9.0, -9.0, -2.0, -1.0]), Fixed([-9.0, -9.0, -9.0, -0.5, -1.5])
    [found] = beam_search([low, high], [[4]], SearchConfig(beam=1, length_penalty=0.0))
    average = torch.tensor([-2.0, -0.5], dtype=torch.float64).exp().mean().log().item()
    assert found[0].ids == []
    assert found[0].score == pytest.approx(average, abs=1e-12)
