"""Windows and the count of score computations, for any shape, length, gate and threshold."""

from __future__ import annotations

import functools
import math
from fractions import Fraction
from typing import NamedTuple

import pytest
import torch
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from steps import SIZES, build, step

from nmtflex.attention import Limits
from nmtflex.config import (
    AbcConfig,
    FlexibleConfig,
    GlobalConfig,
    LocalMConfig,
    LocalPConfig,
    MemoryConfig,
    MochaConfig,
    ModelConfig,
    MonotonicConfig,
    NoneConfig,
    RfaConfig,
    ScanningConfig,
    SearchConfig,
)
from nmtflex.decoding.search import beam_search
from nmtflex.decoding.tally import Tally
from nmtflex.model.build import build_model
from nmtflex.ops.attend import Penalty, window_below
from nmtflex.text.vocabulary import BOS_ID, EOS_ID, PAD_ID

FEW = settings(max_examples=20, derandomize=True)
SOME = settings(max_examples=40, derandomize=True)
MANY = settings(max_examples=120, derandomize=True)
DTYPES = st.sampled_from([torch.float32, torch.float64])
GATES = st.sampled_from([0.0, 1.0, 5e-324, 1e-40, 1e-30, 1e-8]) | st.floats(0, 1)
SIGMAS = st.sampled_from([0.5, 1.5, 5.0]) | st.floats(0.1, 20)
TAUS = st.sampled_from([0.0, 1e-6, 1.38]) | st.floats(1e-6, 50)


class Situation(NamedTuple):
    """Hypotheses before a step of flexible attention."""

    sigma: float
    gate: torch.Tensor  # [N]
    focus: torch.Tensor  # [N]
    lengths: torch.Tensor  # [N]

    def penalty(self, n: int, position: int) -> torch.Tensor:
        penalty = Penalty(self.gate[n : n + 1], self.focus[n : n + 1], self.sigma)
        return penalty.at(torch.tensor([[position]])).squeeze()

    def nearest(self, n: int) -> int:
        """The position nearest the focus, the first of two, in exact arithmetic."""
        focus = Fraction(self.focus[n].item())
        return min(range(int(self.lengths[n])), key=lambda s: abs(s - focus))


@st.composite
def situations(draw):
    """Hypotheses, and a threshold."""
    lengths = draw(st.lists(st.integers(1, 24), min_size=1, max_size=3))
    gates = [draw(GATES) for _ in lengths]
    focuses = [
        draw(
            st.floats(0, length - 1)
            | st.integers(0, length - 1).map(float)
            | st.integers(0, 2 * length - 2).map(lambda halves: halves / 2)
        )
        for length in lengths
    ]
    dtype = draw(DTYPES)
    situation = Situation(
        draw(SIGMAS),
        torch.tensor(gates, dtype=dtype),
        torch.tensor(focuses, dtype=dtype),
        torch.tensor(lengths),
    )
    return situation, draw(TAUS | thresholds_at_an_edge(situation))


@st.composite
def thresholds_at_an_edge(draw, situation):
    """The penalty of a position itself, or the next number above it."""
    n = draw(st.integers(0, len(situation.lengths) - 1))
    penalty = situation.penalty(n, draw(st.integers(0, int(situation.lengths[n]) - 1)))
    if draw(st.booleans()):
        penalty = torch.nextafter(penalty, torch.tensor(math.inf, dtype=penalty.dtype))
    tau = penalty.item()
    assume(tau == 0 or tau >= 1e-30)
    return tau


@MANY
@given(situations())
def test_the_window_is_the_positions_below_the_threshold_or_the_nearest(situation_and_tau):
    situation, tau = situation_and_tau
    penalty = Penalty(situation.gate, situation.focus, situation.sigma)
    start, stop = window_below(tau, penalty, situation.lengths)
    for n, length in enumerate(situation.lengths.tolist()):
        below = [s for s in range(length) if situation.penalty(n, s) < tau]
        assert list(range(start[n], stop[n])) == (below or [situation.nearest(n)])


@st.composite
def batches(draw):
    """Lengths of sentences, and the sentence of each hypothesis in ascending order."""
    lengths = draw(st.lists(st.integers(1, 12), min_size=1, max_size=4))
    of = st.integers(0, len(lengths) - 1)
    return lengths, sorted(draw(st.lists(of, min_size=1, max_size=6)))


def numbers(seed, *size, dtype=torch.float64):
    return torch.randn(size, generator=torch.Generator().manual_seed(seed), dtype=dtype)


def encoded(lengths, dtype=torch.float64):
    """Encoder states and their mask."""
    states = numbers(1, len(lengths), max(lengths), SIZES.states, dtype=dtype)
    return states, torch.arange(max(lengths)) < torch.tensor(lengths)[:, None]


@SOME
@given(batches(), TAUS | st.just(math.inf), DTYPES, SIGMAS)
def test_flexible_weights_sum_to_1_in_the_window_and_the_focus_stays_in_the_source(
    batch, tau, dtype, sigma
):
    lengths, rows = batch
    attention = build(FlexibleConfig(sigma=sigma)).to(dtype)
    states, mask = encoded(lengths, dtype)
    memory = attention.prepare(states, mask, Limits(tau))
    rows = torch.tensor(rows)
    state = tuple(part[rows] for part in attention.start(states))
    tolerance = 50 * torch.finfo(dtype).eps
    for number in range(3):
        query = numbers(number, len(rows), SIZES.query, dtype=dtype)
        embedded = numbers(number + 9, len(rows), SIZES.feedback, dtype=dtype)
        _, state, _, trace = step(attention, query, embedded, memory, rows, state, trace=True)
        for n, row in enumerate(rows.tolist()):
            start, stop = trace.window_start[n].item(), trace.window_stop[n].item()
            assert 0 <= start < stop <= lengths[row]
            assert trace.computed[n] == stop - start
            weights = trace.weights[n]
            assert weights[start:stop].sum().item() == pytest.approx(1, abs=tolerance)
            assert (weights[:start] == 0).all()
            assert (weights[stop:] == 0).all()
            assert 0 <= state[0][n] <= (lengths[row] - 1) * (1 + tolerance)


@SOME
@given(batches(), st.integers(1, 5), st.integers(0, 30))
def test_the_window_of_local_m_is_what_lies_within_reach_of_the_step(batch, reach, number):
    lengths, rows = batch
    attention = build(LocalMConfig(window=reach))
    memory = attention.prepare(*encoded(lengths))
    state, at = (torch.full((len(rows),), number),), torch.tensor(rows)
    query, embedded = numbers(2, len(rows), SIZES.query), numbers(3, len(rows), SIZES.feedback)
    _, state, _, trace = step(attention, query, embedded, memory, at, state, trace=True)
    for n, row in enumerate(rows):
        centre = min(number, lengths[row] - 1)
        expected = [s for s in range(lengths[row]) if abs(s - centre) <= reach]
        assert list(range(trace.window_start[n], trace.window_stop[n])) == expected
        assert trace.computed[n] == len(expected)
    assert state[0].tolist() == [number + 1] * len(rows)


@SOME
@given(batches(), st.integers(1, 5), DTYPES, st.integers(0, 1000), st.floats(0, 30))
def test_the_window_of_local_p_is_what_lies_within_reach_of_the_centre(
    batch, reach, dtype, seed, push
):
    lengths, rows = batch
    attention = build(LocalPConfig(window=reach)).to(dtype)
    attention.centre[2].weight.data *= push  # anywhere, the ends included
    memory, at = attention.prepare(*encoded(lengths, dtype)), torch.tensor(rows)
    query = numbers(seed, len(rows), SIZES.query, dtype=dtype)
    embedded = numbers(3, len(rows), SIZES.feedback, dtype=dtype)
    trace = step(attention, query, embedded, memory, at, (), trace=True).trace
    for n, row in enumerate(rows):
        centre = trace.focus[n].item()
        assert 0 <= centre <= lengths[row]
        distances = [abs(s - centre) for s in range(lengths[row])]
        rounded = centre != round(centre)  # whole numbers are exact
        assume(not rounded or all(abs(d - reach) > 1e-5 for d in distances))
        expected = [s for s, distance in enumerate(distances) if distance <= reach]
        assert list(range(trace.window_start[n], trace.window_stop[n])) == expected
        assert trace.computed[n] == len(expected)


class Recorder:
    """A model, and what each of its steps was given and looked at."""

    def __init__(self, model):
        self.model = model
        self.device, self.attending = model.device, model.attending
        self.encode = model.encode
        self.encoding_computations = model.encoding_computations
        self.log_probs, self.best_words = model.log_probs, model.best_words
        self.steps = []

    def step(self, memory, rows, state, tokens, trace=False):
        output = self.model.step(memory, rows, state, tokens, trace)
        self.steps.append((rows.tolist(), tokens.tolist(), state[-1], output.trace))
        return output


def count_by_hand(config, tau, length, carried, trace, n):
    """The scores that one hypothesis needs in one step, position by position."""
    positions = range(length)
    if isinstance(config, FlexibleConfig):
        gate, focus = trace.gate[n].item(), carried[n].item()
        penalties = [gate * ((s - focus) * (s - focus)) / (2 * config.sigma**2) for s in positions]
        scored = max(1, sum(penalty < tau for penalty in penalties))
        left = sum(penalty < tau + 2 for penalty in penalties) > scored
        return scored + (config.remainder and tau < math.inf and left)
    if isinstance(config, LocalMConfig):
        centre = min(int(carried[n]), length - 1)
        return sum(abs(s - centre) <= config.window for s in positions)
    if isinstance(config, LocalPConfig):
        centre = trace.focus[n].item()
        return sum(abs(s - centre) <= config.window for s in positions)
    if isinstance(config, ScanningConfig):
        begin, stop = int(carried[n]), int(trace.focus[n])
        chunk = getattr(config, "chunk", 0) if stop < length else 0
        return min(stop + 1, length) - begin + min(chunk, stop + 1)
    return length if config.kind == "global" else numbers_of(config)


def numbers_of(config):
    """The slots or features that stand for the source, whatever its length."""
    if config.kind == "rfa":
        return config.features * {"fourier": 2, "positive": 1}[config.feature_map]
    return getattr(config, "K", 0)


@functools.cache
def small_model(config, decoder):
    torch.manual_seed(3)
    shape = ModelConfig.from_flat(
        attention=config, decoder=decoder, embedding_size=4, encoder_size=2, decoder_size=4
    )
    model = build_model(shape, 9, 9, 9).double().eval()
    for parameter in model.parameters():
        parameter.data.normal_()
    return model


def averages(sources, counts):
    """Scores a (hypothesis, step) pair, for each sentence; then the mean."""
    ratios = [sum(counts[row]) / len(counts[row]) for row in range(len(sources))]
    return sum(ratios) / len(ratios)


@pytest.mark.parametrize(
    "config",
    [
        NoneConfig(),
        GlobalConfig(),
        LocalMConfig(window=1),
        LocalPConfig(window=2),
        FlexibleConfig(),
        FlexibleConfig(sigma=0.7, gate_feedback=False),
        FlexibleConfig(remainder=True),
        MemoryConfig(K=3),
        AbcConfig(K=3),
        RfaConfig(features=3, feature_map="fourier"),
        RfaConfig(features=3, feature_map="positive"),
        MonotonicConfig(),
        MochaConfig(chunk=2),
    ],
    ids=str,
)
def test_cps_is_a_count_one_by_one(config):
    @FEW
    @given(
        st.lists(st.lists(st.integers(4, 8), min_size=1, max_size=12), min_size=1, max_size=5),
        TAUS | st.just(math.inf),
        st.integers(1, 4),
        st.integers(1, 6),
        st.sampled_from(["bahdanau", "luong"]),
    )
    def check(sources, tau, beam, max_length, decoder):
        model = small_model(config, decoder)
        limits = Limits(tau) if model.gated else Limits()
        recorder, tally = Recorder(model.limited(limits)), Tally()
        search = SearchConfig(beam=beam, max_length=max_length)
        found = beam_search([recorder], sources, search, tally)
        counts = [[] for _ in sources]
        for rows, _, carried, trace in recorder.steps:
            for n, row in enumerate(rows):
                length = len(sources[row])
                counts[row].append(count_by_hand(config, tau, length, carried, trace, n))
        assert tally.cps == pytest.approx(averages(sources, counts), abs=1e-12)
        assert tally.encoding == pytest.approx(
            sum(numbers_of(config) * len(source) for source in sources) / len(sources)
        )
        # The first step has one hypothesis; in each later one every slot of the beam has one
        # until it is finished, the step of EOS included.
        for hypotheses, counted in zip(found, counts, strict=True):
            assert len(hypotheses) == beam
            assert len(counted) == sum(len(h.ids) + 1 for h in hypotheses) - (beam - 1)
        assert all(token == BOS_ID for token in recorder.steps[0][1])
        for _, tokens, _, _ in recorder.steps[1:]:  # nothing follows an end
            assert not {PAD_ID, EOS_ID} & set(tokens)

    check()


@FEW
@given(st.lists(st.lists(st.integers(4, 8), min_size=1, max_size=12), min_size=2, max_size=4), TAUS)
def test_cps_of_a_batch_is_the_mean_of_its_sentences_alone(sources, tau):
    model = small_model(FlexibleConfig(), "bahdanau").limited(Limits(tau))
    config = SearchConfig(beam=3, max_length=5)

    def cps(batch):
        tally = Tally()
        beam_search([model], batch, config, tally)
        return tally.cps

    alone = [cps([source]) for source in sources]
    assert cps(sources) == pytest.approx(sum(alone) / len(alone), abs=1e-12)
