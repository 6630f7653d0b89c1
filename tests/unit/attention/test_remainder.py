"""The remainder of flexible attention against a loop written from its definition."""

from __future__ import annotations

import math

import pytest
import torch
from loops import SCORES, check, dot, gate_by_hand, hold_gate, score_by_hand, visits
from steps import SIZES, build, sources, step

from nmtflex.attention import Limits
from nmtflex.config import FlexibleConfig, GlobalConfig

TAUS = (1.38, 0.1, 0.0)


def mean(vectors):
    return [sum(column) / len(vectors) for column in zip(*vectors, strict=True)]


def by_hand(attention, config, tau, visit, p):
    """One step, and the share of the remainder; ``p`` is the focus of the step before."""
    length = len(visit.states)
    g = gate_by_hand(attention.gate, config.gate_feedback, visit.query, visit.embedded)
    penalty = [g * (s - p) ** 2 / (2 * config.sigma**2) for s in range(length)]
    inside = [s for s in range(length) if penalty[s] < tau]
    inside = inside or [min(range(length), key=lambda s: abs(s - p))]
    outside = [s for s in range(length) if s not in inside and penalty[s] < tau + 2]

    def score(state):
        return score_by_hand(attention, config.score, visit.query, state)

    parts = {s: math.exp(score(visit.states[s]) - penalty[s]) for s in inside}
    rest = 0.0
    if outside:  # keys are linear in states
        middle = mean([visit.states[s] for s in outside])
        rest = math.exp(score(middle) - sum(penalty[s] for s in outside) / len(outside))
        rest *= len(outside)
    focus = sum(part * s for s, part in parts.items()) / sum(parts.values())
    total = sum(parts.values()) + rest
    parts |= {s: rest / len(outside) for s in outside}
    weights = [parts.get(s, 0.0) / total for s in range(length)]
    return {
        "context": [dot(weights, column) for column in zip(*visit.states, strict=True)],
        "computed": len(inside) + bool(outside),
        "weights": weights,
        "gate": g,
        "focus": focus,
        "window_start": inside[0],
        "window_stop": inside[-1] + 1,
    }, rest / total


@pytest.mark.parametrize("tau", [math.inf, *TAUS])
@pytest.mark.parametrize("gate_feedback", [True, False])
@pytest.mark.parametrize("score", SCORES)
def test_equals_the_loop(score, gate_feedback, tau):
    config = FlexibleConfig(score=score, gate_feedback=gate_feedback, remainder=True)
    attention = build(config)
    focuses = {(-1, sentence): 0.0 for sentence in range(4)}
    shares = []
    for visit in visits(attention, tau):
        p = focuses[visit.step - 1, visit.parent]
        expected, share = by_hand(attention, config, tau, visit, p)
        check(visit.seen, expected)
        focuses[visit.step, visit.hypothesis] = expected["focus"]
        shares.append(share)
    assert (max(shares) > 0.01) == (tau < math.inf)


def pair(score="additive"):
    """Flexible attention of the same weights without the remainder and with it."""
    plain, whole = (build(FlexibleConfig(score=score, remainder=on)) for on in (False, True))
    whole.load_state_dict(plain.state_dict())
    return plain, whole


def words(count):
    """Queries and embedded words."""
    return (torch.randn(count, size).double() for size in (SIZES.query, SIZES.feedback))


@pytest.mark.parametrize("tau", [math.inf, 1e300, 1e6])
@pytest.mark.parametrize("score", SCORES)
def test_where_nothing_is_left_out_it_is_flexible_attention(score, tau):
    found = []
    for attention in pair(score):
        torch.manual_seed(3)
        found.append([visit.seen for visit in visits(attention, tau)])
    assert found[0] == found[1]


@pytest.mark.parametrize("tau", TAUS)
def test_windows_and_focus_are_those_without_it_and_a_step_has_one_more_score(tau):
    found = []
    for attention in pair():
        torch.manual_seed(3)
        found.append(list(visits(attention, tau)))
    more = []
    for plain, whole in zip(*found, strict=True):
        for name in ("window_start", "window_stop", "focus", "gate"):
            assert whole.seen[name] == plain.seen[name]
        more.append(whole.seen["computed"] - plain.seen["computed"])
        left = len(plain.states) - plain.seen["computed"]
        assert more[-1] == 0 or left > 0
    assert set(more) == {0, 1}


def global_and_closed(score):
    """Global attention, and flexible attention of the same scores without a penalty."""
    everywhere = build(GlobalConfig(score=score))
    _, whole = pair(score)
    whole.score.load_state_dict(everywhere.score.state_dict())
    hold_gate(whole, 0)
    return everywhere, whole


@torch.no_grad()
@pytest.mark.parametrize("score", SCORES)
def test_positions_that_are_alike_lose_nothing(score):
    """One position is computed, and all others are the same: global attention comes out."""
    everywhere, whole = global_and_closed(score)
    states, mask = sources([7])
    states[:, 1:] = states[:, 1:2]
    query, embedded = words(1)
    expected = step(everywhere, query, embedded, everywhere.prepare(states, mask), None, ())
    memory, start = whole.prepare(states, mask, Limits(0.0)), whole.start(states)
    found = step(whole, query, embedded, memory, None, start, trace=True)
    assert found.trace.computed.tolist() == [2]
    torch.testing.assert_close(found.context, expected.context, rtol=0, atol=1e-12)


@torch.no_grad()
@pytest.mark.parametrize("score", ["general", "dot"])
def test_it_takes_no_more_than_the_positions_themselves(score):
    """The mean of exponentials is at least the exponential of the mean."""
    _, whole = pair(score)
    states, mask = sources([8])
    query, embedded = (
        torch.randn(30, SIZES.query).double(),
        torch.randn(30, SIZES.feedback).double(),
    )
    rows = torch.zeros(30, dtype=torch.long)
    seen = []
    for tau in (0.1, math.inf):
        memory = whole.prepare(states, mask, Limits(tau))
        state = (torch.linspace(0, 7, 30, dtype=torch.float64),)
        seen.append(step(whole, query, embedded, memory, rows, state, trace=True).trace)
    limited, full = seen
    positions = torch.arange(8)
    start, stop = limited.window_start[:, None], limited.window_stop[:, None]
    inside = (start <= positions) & (positions < stop)
    shares, real = ((trace.weights * ~inside).sum(1) for trace in (limited, full))
    assert (shares > 0.01).any()
    assert (shares <= real + 1e-12).all()


@torch.no_grad()
def test_sums_of_a_long_source_are_exact_enough_in_float32():
    _, exact = pair()
    torch.manual_seed(5)
    states = 3 + torch.randn(1, 20_000, SIZES.states).double()  # all on one side
    mask = torch.ones(1, 20_000, dtype=torch.bool)
    query, embedded = words(1)
    found = []
    for kind in (torch.float64, torch.float32):
        attention = exact.to(kind)
        memory = attention.prepare(states.to(kind), mask, Limits(0.3))
        state = (torch.tensor([19_990.25], dtype=kind),)
        given = query.to(kind), embedded.to(kind)
        found.append(step(attention, *given, memory, None, state).context)
    torch.testing.assert_close(found[1].double(), found[0], rtol=0, atol=1e-4)


@torch.no_grad()
def test_sums_are_made_under_a_threshold_alone():
    plain, whole = pair()
    states, mask = sources()
    assert whole.prepare(states, mask, Limits(0.5)).sums is not None
    assert whole.prepare(states, mask).sums is None
    assert plain.prepare(states, mask, Limits(0.5)).sums is None


def test_nan_at_padding_changes_neither_result_nor_gradient():
    _, whole = pair("dot")
    states, mask = sources()
    query, embedded = words(4)
    found = []
    for poison in (0.0, math.nan):
        given = states.masked_fill(~mask[..., None], poison).requires_grad_()
        memory = whole.prepare(given, mask, Limits(0.05))
        context = step(whole, query, embedded, memory, None, whole.start(given)).context
        found.append([context, *torch.autograd.grad(context.square().sum(), given)])
    for clean, poisoned in zip(*found, strict=True):
        assert torch.equal(clean, poisoned)
    assert (found[1][1][~mask] == 0).all()


@torch.no_grad()
def test_a_step_reads_the_window_and_the_sums_alone():
    _, whole = pair()
    states, mask = sources([8])
    memory = whole.prepare(states, mask, Limits(0.1))
    query, embedded = words(1)
    state = (torch.tensor([3.6]).double(),)
    expected = step(whole, query, embedded, memory, None, state, trace=True)
    start, stop = int(expected.trace.window_start), int(expected.trace.window_stop)
    for s in range(8):
        keys, values = (part.clone() for part in memory.source[:2])
        keys[:, s] = values[:, s] = math.nan
        poisoned = memory._replace(source=memory.source._replace(keys=keys, values=values))
        found = step(whole, query, embedded, poisoned, None, state).context
        assert bool(found.isnan().all()) == (start <= s < stop)
        assert start <= s < stop or torch.equal(found, expected.context)
    assert 0 < start < stop < 8


@pytest.mark.sampled(2)
@pytest.mark.parametrize("score", SCORES)
def test_gradients_are_right_under_a_threshold(score):
    _, whole = pair(score)
    states, mask = sources([5, 3])
    query, embedded = words(2)

    def run(states, query, embedded):
        memory, state = whole.prepare(states, mask, Limits(0.1)), whole.start(states)
        first, state, _, _ = step(whole, query, embedded, memory, None, state)
        second = step(whole, query.flip(0), embedded.flip(0), memory, None, state).context
        return first, second

    inputs = [tensor.requires_grad_() for tensor in (states, query, embedded)]
    assert torch.autograd.gradcheck(run, inputs)
