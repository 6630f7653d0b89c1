"""What attention looked at, for given translations."""

from __future__ import annotations

import json
import random

import numpy as np
import pytest
import torch
from table_model import TableModel

from nmtflex.attention import ATTENTIONS, Limits
from nmtflex.config import AttentionConfig, FlexibleConfig, MemoryConfig, ModelConfig
from nmtflex.decoding.traces import SentenceTrace, attention_line, trace_pairs
from nmtflex.model.build import build_model
from nmtflex.model.seq2seq import Limited, Seq2Seq
from nmtflex.text.vocabulary import BOS_ID

DRAW = random.Random(6)
# Lengths of source and target: out of order, empty ones among them.
LENGTHS = [(3, 2), (0, 0), (1, 7), (9, 0), (6, 4), (0, 3), (14, 5), (2, 2)]
PAIRS = [
    ([DRAW.randrange(1, 20) for _ in range(s)], [DRAW.randrange(1, 20) for _ in range(t)])
    for s, t in LENGTHS
]
NONE, TAU = float("inf"), 0.4
CASES = [(config(), NONE) for config in ATTENTIONS]
CASES += [
    (FlexibleConfig(gate_feedback=False), TAU),
    (MemoryConfig(K=3, encoder_scoring="softmax"), NONE),
]


def build(attention, decoder: str | None = None, **options) -> Seq2Seq:
    torch.manual_seed(9)
    sizes = {"embedding_size": 5, "encoder_size": 4, "decoder_size": 8}
    config = ModelConfig.from_flat(attention=attention, decoder=decoder, **sizes, **options)
    model = build_model(config, 20, 20, 10).double().eval()
    for parameter in model.parameters():
        parameter.data.normal_(std=0.7)
    return model


@pytest.fixture(params=CASES, ids=lambda case: f"{case[0].kind}-{case[1]}")
def model(request: pytest.FixtureRequest) -> Limited:
    attention, tau = request.param
    return build(attention).limited(Limits(tau))


@torch.no_grad()
def step_alone(model: Limited, source: list[int], target: list[int]) -> list[dict]:
    """Step one sentence; return the trace of each step, its row as plain lists."""
    memory, state = model.encode(torch.tensor([source]), torch.tensor([len(source)]))
    found = []
    for word in [BOS_ID, *target]:
        output = model.step(memory, torch.tensor([0]), state, torch.tensor([word]), trace=True)
        state = output.state
        fields = output.trace._asdict()
        found.append({name: None if x is None else x[0].tolist() for name, x in fields.items()})
    return found


def same(found, expected) -> bool:
    if found is None or expected is None:
        return found is expected
    found, expected = np.asarray(found), np.asarray(expected)
    return found.shape == expected.shape and np.allclose(found, expected, rtol=0, atol=1e-12)


def test_equals_stepping_each_sentence_alone(model):
    traces = trace_pairs(model, PAIRS)
    assert len(traces) == len(PAIRS)
    for (source, target), trace in zip(PAIRS, traces, strict=True):
        if not source:
            assert trace is None
            continue
        steps = step_alone(model, source, target)
        for name in SentenceTrace._fields:
            parts = [step[name] for step in steps]
            expected = None if parts[0] is None else parts
            if name == "alpha" and expected is not None:  # of the sentence, not of a step
                assert all(part == parts[0] for part in parts)
                expected = parts[0]
            assert same(getattr(trace, name), expected), name


def test_everything_is_as_long_as_it_says(model):
    for (source, target), trace in zip(PAIRS, trace_pairs(model, PAIRS), strict=True):
        if trace is None:
            continue
        steps = len(target) + 1
        assert trace.computed.shape == (steps,)
        assert trace.computed.dtype.kind == "i"
        for name in ("gate", "focus", "window_start", "window_stop"):
            assert getattr(trace, name) is None or getattr(trace, name).shape == (steps,)
        if trace.weights is not None:
            assert trace.weights.shape == (steps, len(source))
        assert (trace.alpha is None) == (trace.beta is None)
        if trace.alpha is not None:
            slots = trace.alpha.shape[1]
            assert trace.alpha.shape == (len(source), slots)
            assert trace.beta.shape == (steps, slots)
            assert same(trace.weights, trace.beta @ trace.alpha.T)


@pytest.mark.parametrize("size", [1, 3])
def test_the_batch_changes_nothing(model, size):
    for one, other in zip(trace_pairs(model, PAIRS, size), trace_pairs(model, PAIRS), strict=True):
        assert (one is None) == (other is None)
        for name in SentenceTrace._fields if one else ():
            assert same(getattr(one, name), getattr(other, name)), name


def test_a_window_is_where_the_weights_are():
    for trace in trace_pairs(build(FlexibleConfig()).limited(Limits(TAU)), PAIRS):
        if trace is None:
            continue
        assert (trace.window_stop - trace.window_start == trace.computed).all()
        for weights, start, stop in zip(
            trace.weights, trace.window_start, trace.window_stop, strict=True
        ):
            assert (weights[start:stop] > 0).all()
            assert weights[:start].sum() == weights[stop:].sum() == 0


def test_no_pairs_give_no_traces():
    assert trace_pairs(build(FlexibleConfig()), []) == []
    assert trace_pairs(build(FlexibleConfig()), [([], [4]), ([], [])]) == [None, None]


def test_a_model_in_bfloat16_is_shown_in_full_numbers():
    model = build(FlexibleConfig()).float()
    model.autocast = True
    trace = trace_pairs(model, PAIRS)[0]
    assert {part.dtype for part in (trace.weights, trace.gate, trace.focus)} == {np.dtype("f8")}


class Silent(TableModel):
    """Keeps to the protocol, and has no attention to speak of."""

    def step(self, *arguments, trace=False):
        return Quiet(*super().step(*arguments[:4]))


class Quiet:
    trace = None

    def __init__(self, output, state):
        self.output, self.state = output, state


def test_a_model_without_traces_is_named():
    with pytest.raises(ValueError, match="Silent returns no traces"):
        trace_pairs(Silent(20), [([4, 5], [6])])


FIELDS = {
    "source", "target", "score", "weights", "gate", "focus", "window_start", "window_stop",
    "computed", "alpha", "beta",
}  # fmt: skip
HAS = {
    "none": set(),
    "global": {"weights"},
    "local-m": {"weights", "focus", "window_start", "window_stop"},
    "local-p": {"weights", "focus", "window_start", "window_stop"},
    "flexible": {"weights", "gate", "focus", "window_start", "window_stop"},
    "memory": {"weights", "alpha", "beta"},
    "abc": {"weights", "alpha", "beta"},
    "rfa": {"weights"},
    "monotonic": {"weights", "focus", "window_start", "window_stop"},
    "mocha": {"weights", "focus", "window_start", "window_stop"},
}


@pytest.mark.parametrize("kind", list(HAS))
def test_a_line_of_the_attention_file(kind):
    source, target = ["a", "<unk>", "日"], ["x@@", "y"]
    pair = ([4, 1, 6], [7, 8])
    [trace] = trace_pairs(build(AttentionConfig.variants()[kind]()), [pair])
    line = attention_line(source, target, -0.25, trace)
    assert line.endswith("}\n")
    assert line.count("\n") == 1
    assert "日" in line
    found = json.loads(line)
    assert set(found) == FIELDS
    assert (found["source"], found["score"]) == (source, -0.25)
    assert found["target"] == ["x@@", "y", "</s>"]
    assert {name for name in FIELDS if found[name] is None} == (
        FIELDS - {"source", "target", "score", "computed"} - HAS[kind]
    )
    assert found["computed"] == trace.computed.tolist()
    for name in HAS[kind]:
        assert np.allclose(found[name], getattr(trace, name), rtol=0, atol=5.1e-7), name
    if "beta" in HAS[kind]:
        product = np.array(found["beta"]) @ np.array(found["alpha"]).T
        assert np.allclose(found["weights"], product, rtol=0, atol=1e-4)
    for name in ("window_start", "window_stop", "computed"):
        assert found[name] is None or all(isinstance(value, int) for value in found[name])


def test_the_line_of_an_empty_source_is_empty():
    found = json.loads(attention_line([], [], 0.0, None))
    assert found == {**dict.fromkeys(FIELDS), "source": [], "target": [], "score": 0.0}


def test_a_step_that_takes_the_last_context_shows_what_that_looked_at():
    model = build(FlexibleConfig(), attend_every="gate").limited(Limits(TAU, reuse=0.5))
    again = 0
    for pair, trace in zip(PAIRS, trace_pairs(model, PAIRS), strict=True):
        if trace is None:
            continue
        raw = step_alone(model, *pair)
        assert [step["computed"] for step in raw] == trace.computed.tolist()
        assert trace.computed[0] > 0
        for t, step in enumerate(raw):
            assert same(trace.gate[t], step["gate"])
            for name in ("weights", "focus", "window_start", "window_stop"):
                last = step[name] if trace.computed[t] else getattr(trace, name)[t - 1]
                assert same(getattr(trace, name)[t], last)
            again += trace.computed[t] == 0
    assert 0 < again < sum(len(target) + 1 for source, target in PAIRS if source)
