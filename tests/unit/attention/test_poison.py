"""What is counted as skipped is really skipped: NaN there changes nothing.

NaN is no number that a weight of 0 could hide: 0 x NaN is NaN.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import pytest
import torch
from loops import SCORES
from steps import LENGTHS, SIZES, build, sources, step

from nmtflex.attention import Attention, Limits, State, Trace
from nmtflex.config import (
    AbcConfig,
    FlexibleConfig,
    GlobalConfig,
    LocalMConfig,
    LocalPConfig,
    MemoryConfig,
    MochaConfig,
    MonotonicConfig,
    RfaConfig,
)

ROWS = torch.tensor([0, 0, 1, 1, 1, 2, 3])
POSITIONS = range(max(LENGTHS))


class Scene(NamedTuple):
    """Seven hypotheses of four sentences, about to take a step in mid-sentence."""

    attention: Attention
    memory: Any
    query: torch.Tensor
    embedded: torch.Tensor
    rows: torch.Tensor | None
    state: State

    def step(self, memory: Any) -> tuple[torch.Tensor, State, Trace]:
        context, state, _, trace = step(
            self.attention, self.query, self.embedded, memory, self.rows, self.state, trace=True
        )
        return context, state, trace

    def with_nan(self, where: torch.Tensor, *parts: str) -> Any:
        """Return the memory with NaN at positions ``where`` [B, S] of keys or values or both."""
        source = getattr(self.memory, "source", self.memory)
        poisoned = source._replace(**{
            part: getattr(source, part).masked_fill(where[..., None], math.nan) for part in parts
        })
        return poisoned if source is self.memory else self.memory._replace(source=poisoned)


@torch.no_grad()
def scene(config, tau=math.inf, rows=ROWS, steps=2) -> Scene:
    attention = build(config)
    states, mask = sources()
    memory, state = attention.prepare(states, mask, Limits(tau)), attention.start(states)
    count = len(LENGTHS)
    if rows is not None:
        state, count = tuple(part[rows] for part in state), len(rows)
    for _ in range(steps + 1):
        query = torch.randn(count, SIZES.query, dtype=torch.float64)
        embedded = torch.randn(count, SIZES.feedback, dtype=torch.float64)
        before, state = state, step(attention, query, embedded, memory, rows, state).state
    return Scene(attention, memory, query, embedded, rows, before)


@pytest.fixture(
    params=[
        *(
            (options(window=1, score=s), math.inf)
            for options in (LocalMConfig, LocalPConfig)
            for s in SCORES
        ),
        *((options(window=2), math.inf) for options in (LocalMConfig, LocalPConfig)),
        *((FlexibleConfig(score=s), 0.05) for s in SCORES),
        (FlexibleConfig(gate_feedback=False), 0.5),
        (FlexibleConfig(), 0.0),
    ],
    ids=str,
)
def windowed(request: pytest.FixtureRequest) -> Scene:
    return scene(*request.param)


def sentences(rows):
    return range(len(LENGTHS)) if rows is None else rows.tolist()


def outside(trace, rows):
    """For each hypothesis, the positions [B, S] that its step is to skip: all but its window."""
    skipped = torch.ones(len(trace.computed), len(LENGTHS), max(LENGTHS), dtype=torch.bool)
    for n, sentence in enumerate(sentences(rows)):
        skipped[n, sentence, trace.window_start[n] : trace.window_stop[n]] = False
    return skipped


def test_the_scenes_skip_something_and_read_something(windowed):
    _, _, trace = windowed.step(windowed.memory)
    lengths = torch.tensor(LENGTHS)[ROWS]
    assert (trace.computed >= 1).all()
    assert (trace.computed <= lengths).all()
    assert trace.computed.sum() <= 0.8 * lengths.sum()


def test_nan_outside_a_window_and_at_padding_changes_nothing(windowed):
    context, state, trace = windowed.step(windowed.memory)
    for n, skipped in enumerate(outside(trace, ROWS)):
        memory = windowed.with_nan(skipped, "keys", "values")
        found, found_state, found_trace = windowed.step(memory)
        assert torch.isfinite(found[n]).all()
        assert torch.equal(found[n], context[n])
        for part, expected in zip(found_state + found_trace, state + trace, strict=True):
            assert expected is None or torch.equal(part[n], expected[n])


@pytest.mark.parametrize("part", ["keys", "values"])
def test_every_position_of_a_window_is_read_and_no_other(windowed, part):
    _, _, trace = windowed.step(windowed.memory)
    read = torch.zeros(len(ROWS), max(LENGTHS), dtype=torch.bool)
    for s in POSITIONS:
        where = torch.zeros(len(LENGTHS), max(LENGTHS), dtype=torch.bool)
        where[:, s] = True
        context, _, _ = windowed.step(windowed.with_nan(where, part))
        read[:, s] = context.isnan().all(1)
    assert read.tolist() == [
        [start <= s < stop for s in POSITIONS]
        for start, stop in zip(trace.window_start, trace.window_stop, strict=True)
    ]
    assert trace.computed.tolist() == read.sum(1).tolist()


def test_nan_at_padding_before_the_keys_are_projected_changes_nothing(windowed):
    states, mask = sources()
    poisoned = states.masked_fill(~mask[..., None], math.nan)
    limits = Limits(getattr(windowed.memory, "tau", math.inf))
    expected, _, _ = windowed.step(windowed.attention.prepare(states, mask, limits))
    found, _, _ = windowed.step(windowed.attention.prepare(poisoned, mask, limits))
    assert torch.equal(found, expected)


@pytest.mark.parametrize("config", [GlobalConfig(), FlexibleConfig()], ids=str)
@pytest.mark.parametrize("part", ["keys", "values"])
def test_where_all_is_computed_nan_anywhere_is_seen(config, part):
    everywhere = scene(config)
    for s in range(min(LENGTHS)):
        where = torch.zeros(len(LENGTHS), max(LENGTHS), dtype=torch.bool)
        where[:, s] = True
        context, _, _ = everywhere.step(everywhere.with_nan(where, part))
        assert context.isnan().all()


@pytest.mark.parametrize("score", SCORES)
@pytest.mark.parametrize("options", [LocalMConfig, LocalPConfig])
def test_nan_outside_the_windows_leaves_the_gradients_of_training(options, score):
    training = scene(options(window=1, score=score), rows=None)
    _, _, trace = training.step(training.memory)
    skipped = outside(trace, None).all(0)

    def gradients(memory):
        leaves = [part.detach().clone().requires_grad_() for part in memory[:2]]
        training.attention.zero_grad()
        query = training.query.clone().requires_grad_()
        context, _, _ = training._replace(query=query).step(
            memory._replace(keys=leaves[0], values=leaves[1])
        )
        context.square().sum().backward()
        weights = [w.grad for w in training.attention.parameters() if w.grad is not None]
        return [leaf.grad for leaf in (*leaves, query)] + weights

    expected = gradients(training.memory)
    found = gradients(training.with_nan(skipped, "keys", "values"))
    assert all(torch.isfinite(gradient).all() for gradient in found)
    for gradient, other in zip(found, expected, strict=True):
        assert torch.equal(gradient, other)
    keys, values = found[:2]
    assert (keys[skipped] == 0).all()
    assert (values[skipped] == 0).all()
    assert (values[~skipped] != 0).all()


SUMMARIES = [
    *(
        MemoryConfig(K=3, encoder_scoring=scoring, position_encoding=encoding)
        for scoring in ("softmax", "sigmoid")
        for encoding in (True, False)
    ),
    *(AbcConfig(K=3, score=score) for score in SCORES),
    *(RfaConfig(features=3, feature_map=kind) for kind in ("fourier", "positive")),
]


@pytest.mark.parametrize("config", SUMMARIES, ids=str)
def test_a_summary_keeps_nothing_of_the_encoder_states(config):
    attention = build(config)
    with torch.no_grad():
        states, mask = sources()
        memory = attention.prepare(states, mask)
        query, embedded = torch.randn(7, 4).double(), torch.zeros(7, 3).double()
        before, _, _, seen = step(attention, query, embedded, memory, ROWS, (), trace=True)
        states.fill_(math.nan)
        mask.fill_(False)
        after, _, _, found = step(attention, query, embedded, memory, ROWS, (), trace=True)
    assert torch.isfinite(after).all()
    assert torch.equal(after, before)
    for part, expected in zip(found, seen, strict=True):
        assert expected is None or torch.equal(part, expected)


@pytest.mark.parametrize(
    ("config", "filled_by"),
    [
        (MemoryConfig(K=3), "alpha"),
        (AbcConfig(K=3), "phi"),
        (RfaConfig(features=3, feature_map="fourier"), "shares"),
        (RfaConfig(features=3, feature_map="positive"), "shares"),
    ],
    ids=str,
)
def test_a_step_reads_the_summary_alone(config, filled_by):
    attention = build(config)
    memory = attention.prepare(*sources())
    query, embedded = torch.randn(7, 4).double(), torch.zeros(7, 3).double()
    before = step(attention, query, embedded, memory, ROWS, ()).context
    filled = getattr(memory, filled_by)
    assert filled.shape[:2] == (len(LENGTHS), max(LENGTHS))
    poisoned = memory._replace(**{filled_by: torch.full_like(filled, math.nan)})
    after = step(attention, query, embedded, poisoned, ROWS, (), trace=True).context
    assert torch.equal(after, before)


@pytest.mark.parametrize("config", [c for c in SUMMARIES if c.kind != "memory"], ids=str)
def test_nan_at_padding_leaves_a_summary_and_its_gradients(config):
    """Keys and values apart, as with heads."""
    attention = build(config)
    query, embedded = torch.randn(7, 4).double(), torch.zeros(7, 3).double()
    (values, mask), (keys, _) = sources(), sources(seed=5)

    def run(poison):
        leaves = [
            part.masked_fill(~mask[..., None], poison).requires_grad_() for part in (keys, values)
        ]
        memory = attention.prepare(leaves[1], mask, keys=leaves[0])
        seen = step(attention, query, embedded, memory, ROWS, (), trace=True)
        wanted = [*leaves, *attention.parameters()]
        return seen, torch.autograd.grad(seen.context.square().sum(), wanted)

    (seen, gradients), (expected, others) = run(math.nan), run(3.0)
    assert torch.isfinite(seen.context).all()
    assert torch.equal(seen.context, expected.context)
    assert torch.equal(seen.trace.weights, expected.trace.weights)
    for found, other in zip(gradients, others, strict=True):
        assert torch.equal(found, other)
    for leaf in gradients[:2]:
        assert (leaf[~mask] == 0).all()
        assert (leaf[mask] != 0).any()


@pytest.mark.parametrize(
    ("config", "tau"),
    [
        (GlobalConfig(), math.inf),
        (LocalMConfig(), math.inf),
        (LocalPConfig(), math.inf),
        (FlexibleConfig(), math.inf),
        (FlexibleConfig(), 1.38),
        (FlexibleConfig(remainder=True), 0.1),
        (MemoryConfig(), math.inf),
        (AbcConfig(), math.inf),
        (RfaConfig(feature_map="fourier"), math.inf),
        (RfaConfig(feature_map="positive"), math.inf),
        (MonotonicConfig(), math.inf),
        (MochaConfig(), math.inf),
    ],
    ids=str,
)
@pytest.mark.parametrize("training", [True, False])
def test_nan_in_the_weights_is_seen_in_the_context_and_is_no_crash(config, tau, training):
    """The search finds NaN in the probabilities, and tells it in one line."""
    attention = build(config).train(training)
    for parameter in attention.parameters():
        parameter.data.fill_(math.nan)
    states, mask = sources()
    query, embedded = torch.ones(4, 4).double(), torch.zeros(4, 3).double()
    memory, start = attention.prepare(states, mask, Limits(tau)), attention.start(states)
    assert step(attention, query, embedded, memory, None, start).context.isnan().all()
