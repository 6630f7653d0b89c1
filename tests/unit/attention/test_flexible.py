"""Flexible attention against a loop written from Shu and Nakayama (2016), eq. 4-8."""

from __future__ import annotations

import math

import pytest
import torch
from loops import SCORES, check, dot, gate_by_hand, hold_gate, score_by_hand, softmax_within, visits
from steps import SIZES, build, sources, step

from nmtflex.attention import Limits
from nmtflex.config import FlexibleConfig, GlobalConfig, ModelConfig
from nmtflex.model.build import build_model
from nmtflex.ops.attend import Penalty, window_below


def flexible_by_hand(attention, config, tau, visit, p):
    """One step; ``p`` is the focus of the step before."""
    length = len(visit.states)
    g = gate_by_hand(attention.gate, config.gate_feedback, visit.query, visit.embedded)
    penalty = [g * (s - p) ** 2 / (2 * config.sigma**2) for s in range(length)]  # eq. 5
    inside = [s for s in range(length) if penalty[s] < tau]
    if not inside:
        inside = [min(range(length), key=lambda s: abs(s - p))]
    scores = {
        s: score_by_hand(attention, config.score, visit.query, visit.states[s]) - penalty[s]
        for s in inside
    }
    weights = softmax_within(scores, length)  # eq. 6
    return {
        "context": [dot(weights, column) for column in zip(*visit.states, strict=True)],  # eq. 1
        "computed": len(inside),
        "weights": weights,
        "gate": g,
        "focus": sum(a * s for s, a in enumerate(weights)),  # eq. 4
        "window_start": inside[0],
        "window_stop": inside[-1] + 1,
    }


@pytest.mark.parametrize("tau", [math.inf, 1.38, 0.1, 0.0])
@pytest.mark.parametrize("gate_feedback", [True, False])
@pytest.mark.parametrize("score", SCORES)
def test_equals_the_loop(score, gate_feedback, tau):
    config = FlexibleConfig(score=score, gate_feedback=gate_feedback)
    attention = build(config)
    focuses = {(-1, sentence): 0.0 for sentence in range(4)}
    for visit in visits(attention, tau):
        p = focuses[visit.step - 1, visit.parent]
        expected = flexible_by_hand(attention, config, tau, visit, p)
        check(visit.seen, expected)
        focuses[visit.step, visit.hypothesis] = expected["focus"]


@pytest.mark.parametrize("sigma", [0.5, 5.0])
def test_equals_the_loop_with_another_sigma(sigma):
    config = FlexibleConfig(sigma=sigma)
    attention = build(config)
    focuses = {(-1, sentence): 0.0 for sentence in range(4)}
    for visit in visits(attention, 0.3):
        p = focuses[visit.step - 1, visit.parent]
        expected = flexible_by_hand(attention, config, 0.3, visit, p)
        check(visit.seen, expected)
        focuses[visit.step, visit.hypothesis] = expected["focus"]


@pytest.mark.parametrize("tau", [math.inf, 0.01])
@pytest.mark.parametrize("gate_feedback", [True, False])
@pytest.mark.parametrize("score", SCORES)
def test_a_gate_of_0_is_global_attention(score, gate_feedback, tau):
    everywhere = build(GlobalConfig(score=score))
    flexible = build(FlexibleConfig(score=score, gate_feedback=gate_feedback))
    flexible.score.load_state_dict(everywhere.score.state_dict())
    hold_gate(flexible, 0)
    torch.manual_seed(3)
    expected = list(visits(everywhere))
    torch.manual_seed(3)
    for visit, other in zip(visits(flexible, tau), expected, strict=True):
        assert visit.seen["gate"] == 0
        for name in ("context", "weights", "computed"):
            assert visit.seen[name] == pytest.approx(other.seen[name], abs=1e-12)


@pytest.mark.parametrize("tau", [math.inf, 1e300, 1e6])
def test_an_infinite_and_a_huge_threshold_are_none(tau):
    attention = build(FlexibleConfig())
    torch.manual_seed(3)
    expected = list(visits(attention))
    torch.manual_seed(3)
    for visit, other in zip(visits(attention, tau), expected, strict=True):
        check(visit.seen, other.seen)


def test_a_threshold_is_of_one_memory_alone():
    attention = build(FlexibleConfig())
    assert all(visit.seen["computed"] == 1 for visit in visits(attention, 0.0))
    assert all(visit.seen["computed"] == len(visit.states) for visit in visits(attention))


@pytest.mark.parametrize("tau", [-0.1, math.nan])
def test_no_threshold_is_negative_or_nan(tau):
    with pytest.raises(ValueError, match=f"not {tau}"):
        build(FlexibleConfig()).prepare(*sources(), Limits(tau))


def step_from(attention, focuses, tau, length=6):
    """One step of one sentence for each previous focus."""
    states, mask = sources([length])
    count, dtype = len(focuses), next(attention.parameters()).dtype
    memory = attention.prepare(states.to(dtype), mask, Limits(tau))
    query = torch.ones(count, SIZES.query, dtype=dtype)
    embedded = torch.ones(count, SIZES.feedback, dtype=dtype)
    rows = torch.zeros(count, dtype=torch.long)
    state = (torch.tensor(focuses, dtype=dtype),)
    return step(attention, query, embedded, memory, rows, state, trace=True), memory


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("gate", [0, 1])
def test_a_threshold_of_0_computes_the_nearest_position(gate, dtype):
    attention = build(FlexibleConfig()).to(dtype)
    hold_gate(attention, gate)
    focuses = [0.0, 0.3, 0.5, 0.6, 1.0, 1.5, 2.49, 2.51, 4.5, 5.0]
    nearest = [0, 0, 0, 1, 1, 1, 2, 3, 4, 5]  # the first of two from halfway
    (context, (focus,), _, trace), memory = step_from(attention, focuses, 0.0)
    assert trace.window_start.tolist() == nearest
    assert trace.computed.tolist() == [1] * len(nearest)
    assert trace.weights.tolist() == [[float(s == at) for s in range(6)] for at in nearest]
    assert focus.tolist() == nearest
    torch.testing.assert_close(context, memory.source.values[0, nearest])


def test_a_position_whose_penalty_is_the_threshold_is_out():
    attention = build(FlexibleConfig(sigma=1.0))
    hold_gate(attention, 1)
    tau = 2.0  # the penalty at distance 2
    trace = step_from(attention, [0.0, 3.0, 2.5], tau)[0].trace
    assert trace.window_start.tolist() == [0, 2, 1]
    assert trace.window_stop.tolist() == [2, 5, 5]


@pytest.mark.parametrize("edge", [0, 1])
def test_the_penalty_itself_decides_over_a_position_at_the_edge(edge):
    # In float32, sigma sqrt(2 tau / g) is rounded to the wrong side for some of these.
    gate, lengths = torch.tensor([0.3]), torch.tensor([2])
    for turn in range(1, 200):
        focus = torch.tensor([turn * 0.618 % 1])
        distance = abs(edge - focus.item())
        penalty = Penalty(gate, focus, sigma=0.7)
        there = penalty.at(torch.tensor([[edge]])).squeeze(1)
        start, stop = window_below(torch.nextafter(there, there + 1).item(), penalty, lengths)
        assert start <= edge < stop
        start, stop = window_below(there.item(), penalty, lengths)
        assert (start <= edge < stop) == (distance < 0.5)  # the nearest is in at any rate


def test_the_gradient_flows_through_the_previous_focus():
    attention = build(FlexibleConfig())
    states, mask = sources()
    memory = attention.prepare(states, mask)
    queries, embedded = torch.randn(2, 4, 4).double(), torch.randn(4, 3).double()

    def second_context(first):
        state = step(attention, first, embedded, memory, None, attention.start(states)).state
        return step(attention, queries[1], embedded, memory, None, state).context

    first = queries[0].clone().requires_grad_()
    assert torch.autograd.gradcheck(second_context, first)
    [gradient] = torch.autograd.grad(second_context(first).square().sum(), first)
    assert (gradient[[0, 1, 3]].abs().sum(1) > 0).all()
    assert (gradient[2] == 0).all()  # one word has one focus


@pytest.mark.parametrize("tau", [math.inf, 1.0])
@pytest.mark.parametrize("encoded", [torch.float32, torch.bfloat16])
def test_focus_and_gate_are_float32_where_products_are_bfloat16(encoded, tau):
    attention = build(FlexibleConfig()).float()
    states, mask = sources()
    states = states.to(encoded)
    products = []
    attention.score.query.register_forward_hook(lambda *call: products.append(call[-1]))
    with torch.autocast("cpu", torch.bfloat16):
        memory, state = attention.prepare(states, mask, Limits(tau)), attention.start(states)
        for _ in range(3):
            assert [part.dtype for part in state] == [torch.float32]
            query, embedded = torch.ones(4, 4), torch.ones(4, 3)
            _, state, gate, trace = step(
                attention, query, embedded, memory, None, state, trace=True
            )
            assert gate.dtype == trace.gate.dtype == trace.focus.dtype == torch.float32
    assert {made.dtype for made in products} == {torch.bfloat16}


def test_a_far_focus_is_exact_where_products_are_bfloat16():
    attention = build(FlexibleConfig()).float()
    with torch.autocast("cpu", torch.bfloat16):
        (_, (focus,), _, trace), _ = step_from(attention, [297.25, 298.75], 0.0, length=300)
    assert focus.tolist() == [297, 299]  # bfloat16 has 296, 298 and 300
    assert trace.window_start.tolist() == [297, 299]


@pytest.mark.parametrize("decoder", ["bahdanau", "luong"])
def test_a_model_in_bfloat16_carries_a_focus_in_float32(decoder):
    config = ModelConfig.from_flat(
        attention=FlexibleConfig(),
        decoder=decoder,
        embedding_size=4,
        encoder_size=4,
        decoder_size=4,
    )
    model = build_model(config, 9, 9, 9, autocast=True).eval()
    memory, state = model.encode(torch.tensor([[4, 5, 6], [7, 8, 0]]), torch.tensor([3, 2]))
    for _ in range(2):
        assert state[-1].dtype == torch.float32
        assert state[-1].shape == (2,)
        state = model.step(memory, torch.arange(2), state, torch.tensor([2, 4])).state
