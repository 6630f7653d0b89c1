"""CPS, counted by hand on models whose every step is known."""

from __future__ import annotations

import random
from typing import NamedTuple

import pytest
import torch
from table_model import Predicting, TableModel
from test_translator import PIPELINE
from torch import Tensor

from nmtflex.attention import Limits
from nmtflex.config import (
    AttentionConfig,
    BatchConfig,
    FlexibleConfig,
    GlobalConfig,
    LocalMConfig,
    MemoryConfig,
    ModelConfig,
    NoneConfig,
    SearchConfig,
)
from nmtflex.decoding.search import beam_search
from nmtflex.decoding.tally import Tally
from nmtflex.decoding.traces import trace_pairs
from nmtflex.decoding.translator import Translator
from nmtflex.model.build import build_model
from nmtflex.model.seq2seq import Seq2Seq
from nmtflex.text.vocabulary import BOS_ID, EOS_ID

A, B = 4, 5
IMPOSSIBLE = -60.0


class Counted(NamedTuple):
    computed: Tensor


class Step(NamedTuple):
    output: Tensor
    state: tuple[Tensor, ...]
    trace: Counted | None


class Script(Predicting):
    """Log-probabilities by the words so far, and a number of score computations by each step.

    Args:
        rules: (first word of the source, words so far) to {word: log-probability}.
        costs: (words of the source, words so far) to score computations.
    """

    def __init__(self, rules, costs, encoding: int = 0) -> None:
        self.rules, self.costs, self.encoding = rules, costs, encoding
        self.device = torch.device("cpu")
        self.seen: list[tuple[int, list[int]]] = []  # source length and words so far of each pair

    def encode(self, source: Tensor, lengths: Tensor, *, traced: bool = True):
        start = torch.full((len(source), 1), BOS_ID)
        return [row[:length].tolist() for row, length in zip(source, lengths, strict=True)], (
            start,
        )

    def step(self, memory, rows, state, tokens, trace=False) -> Step:
        history = torch.cat([state[0], tokens[:, None]], dim=1)
        log_probs = torch.full((len(rows), 6), IMPOSSIBLE, dtype=torch.float64)
        computed = []
        for n, row in enumerate(rows.tolist()):
            words = history[n, 2:].tolist()
            for word, value in self.rules(memory[row][0], words).items():
                log_probs[n, word] = value
            self.seen.append((len(memory[row]), words))
            computed.append(self.costs(len(memory[row]), words))
        return Step(log_probs, (history,), Counted(torch.tensor(computed)) if trace else None)

    def encoding_computations(self, lengths: Tensor) -> Tensor:
        return self.encoding * lengths


def count(models, sources, beam: int, **options) -> Tally:
    tally = Tally()
    beam_search(models, sources, SearchConfig(beam=beam, **options), tally)
    return tally


def some_words(first: int, words: list[int]) -> dict[int, float]:
    """As many words as the source's first one says, from 4 on."""
    return {EOS_ID: -0.1} if len(words) == first - 4 else {A: -0.1}


def test_the_mean_over_sentences_of_computations_over_steps():
    """Two words and EOS at 10, 11, 12; no word and EOS at 30: 33 / 3 and 30 / 1, mean 20.5."""
    model = Script(some_words, lambda length, words: 10 * length + len(words))
    tally = count([model], [[6], [4, 4, 4]], beam=1)
    assert tally.cps == (33 / 3 + 30 / 1) / 2
    assert tally.encoding == 0


def test_the_step_that_only_eos_is_left_to_counts_too():
    model = Script(lambda *_: {A: -0.1}, lambda _, words: 1 + len(words))
    assert count([model], [[4]], beam=1, max_length=3).cps == (1 + 2 + 3 + 4) / 4


def test_finished_hypotheses_are_no_pairs():
    """Beam 3. Step 1 ends one and keeps a and b; step 2 ends a, goes on with b a; step 3 ends."""

    def rules(_first, words):
        if not words:
            return {EOS_ID: -0.1, A: -0.2, B: -0.3}
        return {EOS_ID: -0.1} if words in ([A], [B, A]) else {A: -0.1}

    costs = {(): 7, (A,): 5, (B,): 3, (B, A): 9}
    model = Script(rules, lambda _, words: costs[tuple(words)])
    tally = count([model], [[4, 4]], beam=3)
    assert sorted(words for _, words in model.seen) == [[], [A], [B], [B, A]]
    assert tally.cps == (7 + 5 + 3 + 9) / 4


def test_a_sentence_that_is_done_costs_nothing_while_others_go_on():
    model = Script(some_words, lambda length, _: length)
    together = count([model], [[4], [9, 4, 4, 4]], beam=1)
    assert together.cps == (1 + 4) / 2
    assert len(model.seen) == 1 + 6


def test_encoding_is_reported_apart():
    model = Script(some_words, lambda *_: 3, encoding=3)
    tally = count([model], [[5], [4, 4, 4]], beam=1)
    assert tally.cps == 3
    assert tally.encoding == (3 * 1 + 3 * 3) / 2


def test_an_ensemble_computes_what_its_models_do_together():
    models = [Script(some_words, lambda *_, cost=cost: cost, encoding=cost) for cost in (2, 5)]
    tally = count(models, [[5], [6, 4]], beam=1)
    assert tally.cps == 7
    assert tally.encoding == 7 * 1.5


def test_nothing_translated_has_no_mean():
    assert Tally().cps is None
    assert Tally().encoding is None
    translator = Translator([TableModel(30)], PIPELINE)
    tally = Tally()
    assert translator.translate_ids([[], []], tally) == [
        [([], 0.0, 0.0, ())],
        [([], 0.0, 0.0, ())],
    ]
    assert (tally.cps, tally.encoding) == (None, None)


def build(attention: AttentionConfig) -> Seq2Seq:
    torch.manual_seed(2)
    config = ModelConfig.from_flat(
        attention=attention, embedding_size=6, encoder_size=4, decoder_size=8
    )
    model = build_model(config, 30, 30, 12).double().eval()
    for parameter in model.parameters():
        parameter.data.normal_(std=0.7)
    return model


DRAW = random.Random(4)
LENGTHS = [7, 0, 1, 12, 3, 3, 0, 9]
SOURCES = [[DRAW.randrange(1, 30) for _ in range(length)] for length in LENGTHS]
REAL = [length for length in LENGTHS if length]


def tally_of(model, batch: int = 64, beam: int = 3, sources=None) -> Tally:
    tally = Tally()
    search, size = SearchConfig(beam=beam, max_length=9), BatchConfig(batch_sentences=batch)
    Translator([model], PIPELINE, search, size).translate_ids(sources or SOURCES, tally)
    return tally


@pytest.mark.parametrize(
    ("attention", "cps", "encoding"),
    [
        (GlobalConfig(), sum(REAL) / len(REAL), 0.0),
        (FlexibleConfig(), sum(REAL) / len(REAL), 0.0),
        (NoneConfig(), 0.0, 0.0),
        (LocalMConfig(window=12), sum(REAL) / len(REAL), 0.0),
        (MemoryConfig(K=5), 5.0, 5 * sum(REAL) / len(REAL)),
    ],
    ids=lambda value: getattr(value, "kind", None),
)
def test_what_each_mechanism_costs(attention, cps, encoding):
    """Empty sources are not counted, and neither padding nor the beam's width makes it dearer."""
    for beam in (1, 4):
        tally = tally_of(build(attention), beam=beam)
        assert tally.cps == pytest.approx(cps, rel=1e-12)
        assert tally.encoding == pytest.approx(encoding, rel=1e-12)


def test_a_window_is_counted_as_far_as_it_reaches_into_the_sentence():
    """Local-m, D = 2, greedy, 6 words: centres 0, 1, 2, ... see 3, 4, 5, 5, 4, 3, then 3 each."""
    model = build(LocalMConfig(window=2))
    [[best]] = Translator([model], PIPELINE, SearchConfig(beam=1, max_length=9)).translate_ids([
        [4, 5, 6, 7, 8, 9]
    ])
    seen = [3, 4, 5, 5, 4, 3, 3, 3, 3, 3][: len(best.ids) + 1]
    assert len(seen) > 3
    tally = tally_of(model, beam=1, sources=[[4, 5, 6, 7, 8, 9]])
    assert tally.cps == pytest.approx(sum(seen) / len(seen))


@pytest.mark.parametrize("kind", list(AttentionConfig.variants()))
def test_the_batch_changes_nothing(kind):
    model = build(AttentionConfig.variants()[kind]())
    if model.gated:
        model = model.limited(Limits(0.5))
    expected = tally_of(model, batch=1)
    for size in (3, 64):
        assert tally_of(model, size).cps == pytest.approx(expected.cps, rel=1e-12)
        assert tally_of(model, size).encoding == expected.encoding


def test_a_threshold_computes_less():
    model = build(FlexibleConfig())
    found = [tally_of(model.limited(Limits(tau))).cps for tau in (0.0, 0.2, 1.0, float("inf"))]
    assert found[0] == 1.0
    assert found == sorted(set(found))


def test_counting_changes_no_translation():
    model = build(FlexibleConfig()).limited(Limits(0.5))
    search = SearchConfig(beam=3, max_length=9)
    sources = [source for source in SOURCES if source]
    assert beam_search([model], sources, search, Tally()) == beam_search([model], sources, search)


@pytest.mark.parametrize("kind", list(AttentionConfig.variants()))
def test_greedy_search_costs_what_the_traces_of_its_translations_say(kind):
    model = build(AttentionConfig.variants()[kind]())
    if model.gated:
        model = model.limited(Limits(0.5))
    search, tally = SearchConfig(beam=1, max_length=9), Tally()
    found = Translator([model], PIPELINE, search).translate_ids(SOURCES, tally)
    pairs = [(source, best.ids) for source, [best] in zip(SOURCES, found, strict=True)]
    means = [trace.computed.mean() for trace in trace_pairs(model, pairs) if trace]
    assert len(means) == len(REAL)
    assert tally.cps == pytest.approx(sum(means) / len(means), rel=1e-12)
