"""Models with random weights by length: what is decoded and trained, and the bytes counted."""

from __future__ import annotations

import math
from types import SimpleNamespace

import pytest
import torch

from nmtflex.attention.flexible import FlexibleAttention
from nmtflex.bench import decoding as bench
from nmtflex.bench import synthetic
from nmtflex.bench.decoding import Ratio, ratio, working_memory
from nmtflex.bench.random_model import bytes_in, ready
from nmtflex.config import BenchConfig, DeviceConfig, ModelConfig
from nmtflex.model.decoders.fused_attention import FusedAttention
from nmtflex.ops.linear.packed import Int8


@pytest.fixture
def at_home(monkeypatch):
    """Let what would run in a process of its own run here, and note what was asked for."""
    asked = []

    def call(function, *arguments):
        asked.append(arguments)
        return function(*arguments)

    monkeypatch.setattr(synthetic, "in_fresh_process", call)
    return asked


def shape(mechanism: str, backbone: str = "recurrent+bahdanau") -> ModelConfig:
    (model,) = BenchConfig(synthetic=True, backbones=backbone, mechanisms=mechanism).models()
    return model


def subject(model: ModelConfig, wanted: synthetic.SyntheticTask, length: int):
    return synthetic.SyntheticSubject(ready(wanted.model(model)), wanted, length)


def random_sources(lengths: list[int], steps: int = 4, **options) -> synthetic.SyntheticTask:
    usual = {
        "words": 500, "repeats": 2, "tau": 1.2, "beam": 2, "batch_sentences": 3, "int8": False,
    }  # fmt: skip
    device = DeviceConfig(threads=1)
    return synthetic.SyntheticTask(lengths, steps, **(usual | options), device=device)


def test_sentences_a_batch_are_those_of_the_longest():
    assert random_sources([100, 10_000], beam=5, batch_sentences=64).sentences == 2
    assert random_sources([10_000_000]).sentences == 1
    assert random_sources([100]).sentences == 3


def test_all_mechanisms_over_lengths(at_home):
    said = []
    wanted = random_sources([5, 90])
    rows = synthetic.bench_synthetic(BenchConfig(synthetic=True).models(), wanted, said.append)
    assert [(row.attention, row.length) for row in rows] == [
        (kind, length) for kind in ("flexible", "global", "memory") for length in (5, 90)
    ]
    flexible, short, long = rows[1], rows[2], rows[3]
    # Within sigma sqrt(2 tau / g) = 3.3 of the focus there are 4 positions at the ends, which the
    # focus leaves at once, and 7 (or, between two positions, 6) further in.
    assert 5 < flexible.cps < 7
    assert (short.cps, long.cps, rows[5].cps) == (5, 90, 64)
    assert all(row.ratio == Ratio(1, 1, 1) for row in rows[::2])
    assert long.ratio == ratio(long.milliseconds, short.milliseconds)
    assert all(len(row.milliseconds.rounds) == len(row.encoder.rounds) == 2 for row in rows)
    assert all(row.bytes.peak > 50e6 for row in rows)
    assert all(row.training is row.bytes.training is None for row in rows)
    kinds = ["flexible", "global", "memory"]
    assert [model.attention.kind for _, model in at_home] == kinds
    assert said[2:5] == [
        "memory of model 3 of 3, in its own process",
        "counting; 3 sentences a batch",
        "round 1 of 2",
    ]


@pytest.mark.parametrize("int8", [False, True])
def test_random_models_decode_in_8_bits(int8):
    model = ready(random_sources([7]).model(shape("flexible")), int8)
    assert isinstance(model.output.projection.fast, Int8) == int8


def test_every_hypothesis_lives_for_all_steps_and_the_focus_travels(monkeypatch):
    wanted = random_sources([7], steps=4)
    seen = []
    attend = FlexibleAttention.forward

    def note(self, query, feedback, memory, rows, state, trace=False):
        gate = self.gate(query, feedback)
        seen.append((len(rows), set(state[0].tolist()), set(gate.tolist())))
        return attend(self, query, feedback, memory, rows, state, trace)

    monkeypatch.setattr(FlexibleAttention, "forward", note)
    subject(shape("flexible"), wanted, 7).decode()
    assert seen == [
        (3, {0.0}, {0.5}),
        (6, {2.0}, {0.5}),
        (6, {4.0}, {0.5}),
        (6, {6.0}, {0.5}),
    ]


def test_reading_the_source_is_not_a_token_s_time(monkeypatch):
    wanted = random_sources([7], steps=5)
    decoding = subject(shape("global"), wanted, 7)
    looks = iter([10.0, 14.0, 14.75])  # begin, read, end
    monkeypatch.setattr(bench, "time", SimpleNamespace(perf_counter=lambda: next(looks)))
    clocked = decoding.clock()
    assert (clocked.encoder, clocked.whole) == (4, 4.75)
    assert clocked.milliseconds == pytest.approx(750 / (3 * 5))


def test_as_many_steps_as_the_source_has_positions():
    wanted = random_sources([3, 6], steps=0)
    model = ready(wanted.model(shape("global")))
    calls = []
    [(attention, _)] = model.parts()["attention"]
    attention.register_forward_hook(lambda *_: calls.append(1))
    for length in wanted.lengths:
        calls.clear()
        synthetic.SyntheticSubject(model, wanted, length).decode()
        assert len(calls) == length


def test_without_a_threshold_all_positions_are_computed():
    wanted = random_sources([9], tau=math.inf)
    assert subject(shape("flexible"), wanted, 9).cps() == 9


FLOAT, LONG, UNITS, LAYERS = 4, 8, 256, 2  # bytes, bytes, of a layer, of ssru and transformer


@pytest.mark.parametrize(
    ("backbone", "mechanism", "state"),
    [
        ("recurrent+bahdanau", "global", lambda _: 2 * UNITS * FLOAT),  # h and c
        ("recurrent+luong", "global", lambda _: 3 * UNITS * FLOAT),  # and the attentional vector
        ("recurrent+ssru", "global", lambda _: LONG + LAYERS * UNITS * FLOAT),  # step number, c
        (
            "recurrent+ssru",
            "flexible",
            lambda _: LONG + LAYERS * (UNITS + 8) * FLOAT,
        ),  # a focus a head
        # A place for each step, keys and values of each layer; at first, two hypotheses were one.
        (
            "recurrent+transformer",
            "memory",
            lambda t: LONG + t * LONG + LAYERS * (t - 0.5) * 2 * UNITS * FLOAT,
        ),
    ],
)
def test_bytes_of_the_decoder_s_state(backbone, mechanism, state):
    wanted = random_sources([3, 6], steps=0)
    for length in wanted.lengths:
        one = subject(shape(mechanism, backbone), wanted, length)
        one.decode()
        assert one.paced.state_bytes == state(length)


@pytest.mark.parametrize(
    ("backbone", "mechanism", "memory"),
    [
        # States are read as values, and keys are of the decoder's size; one int64 for the length.
        ("recurrent+luong", "global", lambda s: 2 * s * UNITS * FLOAT + LONG),
        # 64 slots, however long the source is.
        ("recurrent+luong", "memory", lambda _: 64 * UNITS * FLOAT),
        # Keys and values of each layer, all heads together, and a length for each of 8 heads.
        ("recurrent+ssru", "global", lambda s: LAYERS * (2 * s * UNITS * FLOAT + 8 * LONG)),
    ],
)
def test_bytes_of_a_source(backbone, mechanism, memory):
    wanted = random_sources([3, 6])
    for length in wanted.lengths:
        one = subject(shape(mechanism, backbone), wanted, length)
        one.decode()
        assert one.paced.memory_bytes == memory(length)


def test_a_tensor_that_is_there_twice_counts_once():
    first, second = torch.zeros(3), torch.zeros(2, dtype=torch.long)
    assert bytes_in((first, (second, None, (first, 7)))) == 3 * 4 + 2 * 8


def test_each_attending_layer_has_a_focus_that_travels(monkeypatch):
    wanted = random_sources([7], steps=4)
    seen = []
    begin = FusedAttention.begin

    def note(self, *given):
        found = begin(self, *given)
        seen.append([set(found.before[:, at].ravel().tolist()) for at in range(LAYERS)])
        return found

    monkeypatch.setattr(FusedAttention, "begin", note)
    subject(shape("flexible", "recurrent+ssru"), wanted, 7).decode()
    assert seen == [[{place}] * LAYERS for place in (0.0, 2.0, 4.0, 6.0)]


def test_batches_of_training_are_small():
    # 2^23 pairs of positions: two sentences of 2,000 x 2,000, and never less than one.
    usual = {"steps": 0, "batch_sentences": 64, "training": True}
    assert random_sources([10, 2000], **usual).sentences == 2
    assert random_sources([10_000], **usual).sentences == 1
    assert random_sources([2000], **usual | {"steps": 100}).sentences == 32


def test_a_lesson_learns_every_target_token(monkeypatch):
    wanted = random_sources([6], steps=0, training=True)
    model = wanted.model(shape("global", "transformer+ssru"))
    lesson = synthetic.Lesson(model, wanted, 6)
    losses, weights = [], []
    of = model.loss
    monkeypatch.setattr(model, "loss", lambda *batch: losses.append(of(*batch)) or losses[-1])
    monkeypatch.setattr(
        model, "zero_grad", lambda **_: weights.extend(p.grad for p in model.parameters())
    )
    looks = iter([10.0, 10.9])
    monkeypatch.setattr(bench, "time", SimpleNamespace(perf_counter=lambda: next(looks)))
    assert lesson.clock() == pytest.approx(900 / (3 * 6))
    assert (losses[0].tokens, losses[0].sentences) == (3 * 6, 3)
    assert all(grad is not None for grad in weights)


def test_memory_of_some_work():
    held = []
    taken = working_memory(torch.device("cpu"), lambda: held.append(torch.ones(25_000_000)))
    assert 90e6 < taken < 130e6
    # What was freed before does not count.
    held.clear()
    taken = working_memory(torch.device("cpu"), lambda: held.append(torch.ones(10_000_000)))
    assert 30e6 < taken < 60e6


def test_training_is_measured_if_wanted(at_home):
    wanted = random_sources([4, 40], steps=0, training=True, repeats=1)
    rows = synthetic.bench_synthetic([shape("global", "transformer+transformer")], wanted)
    assert all(len(row.training.rounds) == 1 for row in rows)
    assert all(row.bytes.training >= 0 for row in rows)
    found = rows[1].to_dict()
    assert (found["backbone"], found["source_positions"]) == ("transformer+transformer", 40)
    cached = 39.5 * 2 * UNITS * FLOAT  # of the first step, half: both hypotheses were one
    # All layers know a step by the same place.
    assert found["state_bytes_per_hypothesis"] == LONG + 40 * LONG + LAYERS * cached
