"""Monotonic chunkwise attention against loops written from Chiu and Raffel (2018)."""

from __future__ import annotations

import dataclasses

import pytest
import torch
from loops import check, dot, softmax_within, visits
from scans import energy_by_hand, stop_by_hand
from steps import SIZES, build, quiet, sources, step

from nmtflex.attention import Attention, GlobalAttention
from nmtflex.config import GlobalConfig, MochaConfig, MonotonicConfig

QUIET = quiet(MochaConfig)


def hard(chunk: int = 3, r: float = 0.0) -> Attention:
    """A mechanism in evaluation mode whose scans stop, wait and pass the end."""
    attention = build(MochaConfig(chunk=chunk)).eval()
    attention.energy.g.data.fill_(4.0)
    attention.energy.query.weight.data *= 0.3
    attention.energy.query.bias.data.zero_()
    attention.r.data.fill_(r)
    return attention


@pytest.mark.parametrize("chunk", [1, 2, 3, 10**9])
def test_decoding_equals_the_loop(chunk):
    attention, begins, ended = hard(chunk), {(-1, sentence): 0 for sentence in range(4)}, set()
    for visit in visits(attention):
        length = len(visit.states)
        begin = begins[visit.step - 1, visit.parent]
        stop, computed = stop_by_hand(attention, visit, begin)
        end = length if stop is None else stop
        read = [] if stop is None else range(max(0, stop - chunk + 1), stop + 1)
        scores = {s: energy_by_hand(attention.score, 0, visit.query, visit.states[s]) for s in read}
        weights = softmax_within(scores, length)
        check(
            visit.seen,
            {
                "context": [dot(weights, column) for column in zip(*visit.states, strict=True)],
                "computed": computed + len(read),
                "weights": weights,
                "focus": end,
                "window_start": min([begin, *read]),
                "window_stop": min(end + 1, length),
            },
        )
        begins[visit.step, visit.hypothesis] = end
        ended.add(stop is None)
    assert ended == {True, False}


def spread_by_hand(attention, alpha, states, h):
    """beta of one step: each stop's probability over the softmax of its chunk."""
    width, beta = attention.width, [0.0] * len(states)
    scores = [energy_by_hand(attention.score, 0, h, s) for s in states]
    for stop, probability in enumerate(alpha):
        chunk = {s: scores[s] for s in range(max(0, stop - width + 1), stop + 1)}
        for s, share in enumerate(softmax_within(chunk, len(states))):
            beta[s] += probability * share
    return beta


@torch.no_grad()
@pytest.mark.parametrize("chunk", [1, 2, 3, 100])
def test_training_spreads_the_stops_of_monotonic_attention(chunk):
    attention, lengths = build(dataclasses.replace(QUIET, chunk=chunk)), [3, 8, 1, 5]
    plain = build(quiet(MonotonicConfig))
    plain.load_state_dict({
        name: weight
        for name, weight in attention.state_dict().items()
        if not name.startswith("score.")
    })
    states, mask = sources(lengths)
    memories = [one.prepare(states, mask) for one in (attention, plain)]
    carried = [one.start(states) for one in (attention, plain)]
    for _ in range(4):
        query = torch.randn(4, SIZES.query, dtype=torch.float64)
        found, stops = (
            step(one, query, query, memory, None, state, trace=True)
            for one, memory, state in zip((attention, plain), memories, carried, strict=True)
        )
        carried = [found.state, stops.state]
        assert torch.equal(*(state[0] for state in carried))
        for row, length in enumerate(lengths):
            alpha, real = stops.trace.weights[row, :length].tolist(), states[row, :length].tolist()
            beta = spread_by_hand(attention, alpha, real, query[row].tolist())
            context = [dot(beta, column) for column in zip(*real, strict=True)]
            assert found.trace.weights[row, :length].tolist() == pytest.approx(beta, abs=1e-12)
            assert found.context[row].tolist() == pytest.approx(context, abs=1e-12)


@torch.no_grad()
def test_a_chunk_of_one_position_is_monotonic_attention():
    chunks, plain = build(dataclasses.replace(QUIET, chunk=1)), build(quiet(MonotonicConfig))
    plain.load_state_dict(chunks.state_dict(), strict=False)
    states, mask = sources()
    queries = torch.randn(4, 6, SIZES.query, dtype=torch.float64)
    for training in (True, False):
        found = [
            one.train(training).sequence(
                queries, queries[..., :0], one.prepare(states, mask), one.start(states)
            )[0]
            for one in (chunks, plain)
        ]
        torch.testing.assert_close(*found, rtol=0, atol=1e-12)


@torch.no_grad()
@pytest.mark.parametrize("training", [True, False])
def test_stops_at_the_end_with_a_huge_chunk_are_global_attention(training):
    """A position whose energy alone is high: the scan stops there, and the chunk is the source."""
    attention = build(dataclasses.replace(QUIET, chunk=10**9)).train(training)
    everywhere: GlobalAttention = build(GlobalConfig())
    weights = {name: value.clone() for name, value in attention.score.state_dict().items()}
    weights["v"] = attention.score.normalized()
    del weights["g"]
    everywhere.score.load_state_dict(weights)
    states, mask = sources([5])
    energy = attention.energy
    energy.query.weight.zero_()
    energy.query.bias.zero_()
    energy.states.weight.copy_(torch.randn_like(energy.states.weight))
    keys = states[0] @ energy.states.weight.t()
    difference = torch.linalg.lstsq(keys.tanh(), torch.tensor([[-1.0]] * 4 + [[1.0]]).double())
    energy.v.copy_(difference.solution[:, 0])
    energy.g.fill_(1e4)
    attention.r.zero_()
    query = torch.randn(1, SIZES.query, dtype=torch.float64)
    found, expected = (
        step(one, query, query, one.prepare(states, mask), None, one.start(states), trace=True)
        for one in (attention, everywhere)
    )
    torch.testing.assert_close(found.context, expected.context, rtol=0, atol=1e-12)
    torch.testing.assert_close(found.trace.weights, expected.trace.weights, rtol=0, atol=1e-12)


def test_a_sequence_is_step_after_step_in_evaluation_mode():
    attention, (states, mask) = hard(), sources()
    queries = torch.randn(4, 7, SIZES.query, dtype=torch.float64)
    leaves = [states.requires_grad_(), queries.requires_grad_(), *attention.score.parameters()]
    made = []
    for way in (type(attention).sequence, Attention.sequence):
        memory, start = attention.prepare(states, mask), attention.start(states)
        contexts, _ = way(attention, queries, queries[..., :0], memory, start)
        made.append([contexts, *torch.autograd.grad(contexts.square().sum(), leaves)])
    for part, other in zip(*made, strict=True):
        torch.testing.assert_close(part, other, rtol=0, atol=1e-12)
    assert all(gradient.any() for gradient in made[0][1:])


@torch.no_grad()
def test_the_chunk_s_keys_are_read_within_the_chunk_and_the_scan_s_up_to_the_stop():
    attention, (states, mask) = hard(2), sources()
    memory = attention.prepare(states, mask)
    query = torch.randn(4, SIZES.query, dtype=torch.float64)
    state = (torch.tensor([1, 3, 0, 2]),)
    clean = step(attention, query, query, memory, None, state, trace=True)
    stops, track = clean.trace.focus.tolist(), memory.track
    keys, values, scanned = (
        part.clone() for part in (memory.source.keys, memory.source.values, track.source.keys)
    )
    for row, (stop, begin) in enumerate(zip(stops, state[0].tolist(), strict=True)):
        scanned[row, :begin] = scanned[row, stop + 1 :] = torch.nan
        for part in (keys, values):
            part[row, : max(0, stop - 1)] = part[row, stop + 1 :] = torch.nan
    poisoned = memory._replace(
        source=memory.source._replace(keys=keys, values=values),
        track=track._replace(source=track.source._replace(keys=scanned)),
    )
    found = step(attention, query, query, poisoned, None, state, trace=True)
    assert torch.equal(found.context, clean.context)
    assert found.trace.computed.tolist() == clean.trace.computed.tolist()
    assert clean.trace.weights.sum(1).tolist() == pytest.approx([
        float(stop < length) for stop, length in zip(stops, [3, 8, 1, 5], strict=True)
    ])
