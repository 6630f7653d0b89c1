"""Monotonic attention against loops written from Raffel et al. (2017)."""

from __future__ import annotations

import math

import pytest
import torch
from loops import check, dot, sigmoid, visits
from scans import energy_by_hand, stop_by_hand
from steps import SIZES, build, quiet, sources, step

from nmtflex.attention import Attention
from nmtflex.attention.monotonic import MonotonicAttention
from nmtflex.config import MonotonicConfig

QUIET = quiet(MonotonicConfig)


def hard(r: float = -2.0) -> Attention:
    """A mechanism in evaluation mode whose scans stop, wait and pass the end."""
    attention = build(MonotonicConfig()).eval()
    attention.energy.g.data.fill_(4.0)
    attention.energy.query.weight.data *= 0.3
    attention.energy.query.bias.data.zero_()
    attention.r.data.fill_(r)
    return attention


@pytest.mark.parametrize("r", [-4.0, -2.0, -1.5])
def test_decoding_equals_the_loop(r):
    attention, begins, kinds = hard(r), {(-1, sentence): 0 for sentence in range(4)}, set()
    for visit in visits(attention):
        length = len(visit.states)
        begin = begins[visit.step - 1, visit.parent]
        stop, computed = stop_by_hand(attention, visit, begin)
        end = length if stop is None else stop
        weights = [float(s == stop) for s in range(length)]
        check(
            visit.seen,
            {
                "context": [dot(weights, column) for column in zip(*visit.states, strict=True)],
                "computed": computed,
                "weights": weights,
                "focus": end,
                "window_start": begin,
                "window_stop": min(end + 1, length),
            },
        )
        begins[visit.step, visit.hypothesis] = end
        kinds.add("end" if stop is None else "stay" if stop == begin else "move")
    assert kinds == {"stay", "move", "end"}


def test_once_past_the_end_nothing_is_read_and_nothing_computed():
    attention = hard(-100.0)
    for visit in visits(attention):
        assert not any(visit.seen["context"])
        assert visit.seen["computed"] == (len(visit.states) if visit.step == 0 else 0)
        assert visit.seen["focus"] == len(visit.states)


def expectation_by_hand(attention, states, queries):
    """Eq. 9 and 12 for one sentence without padding: alpha of each step, and its context."""
    before = [1.0] + [0.0] * (len(states) - 1)
    for h in queries:
        p = [sigmoid(energy_by_hand(attention.energy, attention.r.item(), h, s)) for s in states]
        before = [
            p[j] * sum(before[k] * math.prod(1 - p[i] for i in range(k, j)) for k in range(j + 1))
            for j in range(len(states))
        ]
        yield before, [dot(before, column) for column in zip(*states, strict=True)]


@torch.no_grad()
def test_training_equals_the_expectation_in_loops():
    attention, lengths = build(QUIET), [3, 8, 1, 5]
    states, mask = sources(lengths)
    memory, state = attention.prepare(states, mask), attention.start(states)
    draw = torch.Generator().manual_seed(4)
    queries = torch.randn(4, 5, SIZES.query, generator=draw, dtype=torch.float64)
    seen = []
    for query in queries.unbind(1):
        found = attention(query, query[:, :0], memory, None, state, trace=True)
        state = found.state
        seen.append(found)
    for row, length in enumerate(lengths):
        wanted = expectation_by_hand(
            attention, states[row, :length].tolist(), queries[row].tolist()
        )
        for found, (alpha, context) in zip(seen, wanted, strict=True):
            assert found.trace.weights[row, :length].tolist() == pytest.approx(alpha, abs=1e-12)
            assert found.context[row].tolist() == pytest.approx(context, abs=1e-12)
            assert found.trace.computed[row] == length
            assert (found.trace.weights[row, length:] == 0).all()


@torch.no_grad()
@pytest.mark.parametrize("r", [-30.0, 0.0])
def test_the_expectation_of_clear_decisions_is_what_decoding_does(r):
    """Where every p is 0 or 1, alpha is 1 at the stop, or 0 everywhere past the end."""
    attention = build(QUIET)
    attention.r.data.fill_(r)
    attention.energy.g.data.fill_(1e5)
    states, mask = sources()
    queries = torch.randn(4, 9, SIZES.query, dtype=torch.float64)
    found = []
    for training in (True, False):
        attention.train(training)
        memory, start = attention.prepare(states, mask), attention.start(states)
        found.append(attention.sequence(queries, queries[..., :0], memory, start)[0])
    torch.testing.assert_close(*found, rtol=0, atol=1e-12)
    assert found[0].any(2).float().mean() > 0.2  # some steps read, some have passed the end
    assert not found[0].any(2).all()


def test_a_sequence_is_step_after_step_in_evaluation_mode():
    attention, (states, mask) = hard(), sources()
    queries = torch.randn(4, 7, SIZES.query, dtype=torch.float64)
    wanted = [states.requires_grad_()]
    made = []
    for way in (attention.sequence, super(type(attention), attention).sequence):
        contexts, gates = way(
            queries, queries[..., :0], attention.prepare(states, mask), attention.start(states)
        )
        assert gates is None
        made.append([contexts, *torch.autograd.grad(contexts.square().sum(), wanted)])
    for part, other in zip(*made, strict=True):
        torch.testing.assert_close(part, other, rtol=0, atol=1e-12)


def test_decisions_alone_pass_no_gradient_to_the_energies():
    attention, (states, mask) = hard(), sources()
    memory, state = attention.prepare(states.requires_grad_(), mask), attention.start(states)
    query = torch.randn(4, SIZES.query, dtype=torch.float64)
    context = step(attention, query, query, memory, None, state).context
    parameters = list(attention.parameters())
    gradients = torch.autograd.grad(context.sum(), parameters, allow_unused=True)
    assert all(gradient is None for gradient in gradients)


def contexts_of(attention: Attention) -> torch.Tensor:
    states, mask = sources()
    queries = torch.ones(4, 3, SIZES.query, dtype=torch.float64)
    memory, start = attention.prepare(states, mask), attention.start(states)
    return attention.sequence(queries, queries[..., :0], memory, start)[0]


@torch.no_grad()
def test_noise_is_of_training_alone_and_of_torch_s_generator():
    attention, still = build(MonotonicConfig()), build(QUIET)
    torch.manual_seed(5)
    first, second = contexts_of(attention), contexts_of(attention)
    torch.manual_seed(5)
    assert torch.equal(contexts_of(attention), first)  # as when a training resumes
    assert (second - first).abs().max() > 1e-3
    assert torch.equal(contexts_of(still), contexts_of(still))
    assert torch.equal(contexts_of(attention.eval()), contexts_of(still.eval()))


@torch.no_grad()
def test_noise_has_its_standard_deviation(monkeypatch):
    attention = build(MonotonicConfig(energy_noise=0.25))
    drawn = []
    plain = torch.randn_like
    monkeypatch.setattr(torch, "randn_like", lambda like: drawn.append(plain(like)) or drawn[-1])
    energies = []
    expected = attention.forward.__globals__["monotonic"].expected
    monkeypatch.setattr(
        attention.forward.__globals__["monotonic"],
        "expected",
        lambda energy, *rest: energies.append(energy) or expected(energy, *rest),
    )
    contexts_of(attention)
    attention.noise = 0.0
    contexts_of(attention)
    torch.testing.assert_close(energies[0] - energies[1], 0.25 * drawn[0], rtol=0, atol=1e-12)


def test_what_the_energy_begins_with():
    torch.manual_seed(1)
    attention = MonotonicAttention(SIZES, MonotonicConfig(energy_bias=-4.0, energy_scale=3.0))
    assert attention.r.tolist() == [-4.0]
    assert attention.energy.g.item() == pytest.approx(3 / math.sqrt(SIZES.keys))
    v = attention.energy.normalized()
    assert v.norm().item() == pytest.approx(3 / math.sqrt(SIZES.keys))
    assert v.abs().sum() <= 3  # where every hyperbolic tangent is 1 or -1
    attention.energy.v.data *= 7.0  # its length does not matter
    torch.testing.assert_close(attention.energy.normalized(), v)


def test_the_state_is_a_position_in_decoding_and_a_distribution_in_training():
    attention, (states, _) = build(QUIET), sources()
    [alpha] = attention.start(states)
    assert alpha.tolist() == [[1.0] + [0.0] * 7] * 4
    [stop] = attention.eval().start(states)
    assert stop.tolist() == [0, 0, 0, 0]


def test_probabilities_are_float32_where_products_are_bfloat16():
    attention, (states, mask) = build(QUIET).float(), sources()
    query = torch.ones(4, SIZES.query)
    with torch.autocast("cpu", torch.bfloat16):
        memory, state = attention.prepare(states.float(), mask), attention.start(states.bfloat16())
        found = step(attention, query, query, memory, None, state, trace=True)
    assert state[0].dtype == found.state[0].dtype == found.trace.weights.dtype == torch.float32
