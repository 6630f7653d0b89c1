"""Local attention against loops written from Luong, Pham and Manning (2015), section 3.2.

Eq. 9 and 10 of local-p, with sigma = D / 2::

    p[t] = S sigmoid(v . tanh(W h[t]))                                  (9)
    a(s) = align(h[t], k_s) exp(-(s - p[t])^2 / (2 sigma^2))            (10)

for the positions s of [p - D, p + D]. For local-m, p[t] = t and a(s) = align(h[t], k_s).
"""

from __future__ import annotations

import math

import pytest
import torch
from loops import SCORES, check, dot, score_by_hand, sigmoid, softmax_within, visits
from steps import build, sources, step

from nmtflex.config import GlobalConfig, LocalMConfig, LocalPConfig


def local_by_hand(attention, config, visit):
    """The equations at the head of this file."""
    length = len(visit.states)
    if isinstance(config, LocalMConfig):
        p = min(visit.step, length - 1)
    else:
        inner, _, outer = attention.centre
        hidden = [math.tanh(dot(w, visit.query)) for w in inner.weight.tolist()]
        p = length * sigmoid(dot(outer.weight[0].tolist(), hidden))  # eq. 9
    inside = [s for s in range(length) if p - config.window <= s <= p + config.window]
    align = softmax_within(
        {s: score_by_hand(attention, config.score, visit.query, visit.states[s]) for s in inside},
        length,
    )
    weights = align
    if isinstance(config, LocalPConfig):
        sigma = config.window / 2
        damping = [math.exp(-((s - p) ** 2) / (2 * sigma**2)) for s in range(length)]
        weights = [a * d for a, d in zip(align, damping, strict=True)]  # eq. 10
    return {
        "context": [dot(weights, column) for column in zip(*visit.states, strict=True)],
        "computed": len(inside),
        "weights": weights,
        "focus": p,
        "window_start": inside[0],
        "window_stop": inside[-1] + 1,
    }


@pytest.mark.parametrize("score", SCORES)
@pytest.mark.parametrize("window", [1, 2, 10])
@pytest.mark.parametrize("options", [LocalMConfig, LocalPConfig])
def test_equals_the_loop(options, window, score):
    config = options(window=window, score=score)
    attention = build(config)
    for visit in visits(attention):
        check(visit.seen, local_by_hand(attention, config, visit))


@pytest.mark.parametrize("score", SCORES)
@pytest.mark.parametrize("options", [LocalMConfig, LocalPConfig])
def test_a_huge_window_is_global_attention(options, score):
    everywhere = build(GlobalConfig(score=score))
    local = build(options(window=10**9, score=score))
    local.score.load_state_dict(everywhere.score.state_dict())
    torch.manual_seed(3)
    expected = list(visits(everywhere))
    torch.manual_seed(3)
    for visit, other in zip(visits(local), expected, strict=True):
        for name in ("context", "weights", "computed"):
            assert visit.seen[name] == pytest.approx(other.seen[name], abs=1e-12)


def test_local_m_goes_one_word_a_step_and_waits_at_the_last():
    centres = {}
    for visit in visits(build(LocalMConfig(window=1))):
        centres.setdefault(visit.sentence, {})[visit.step] = visit.seen["focus"]
    assert list(centres[0].values()) == [0, 1, 2, 2, 2, 2, 2, 2, 2, 2]
    assert list(centres[1].values()) == [0, 1, 2, 3, 4, 5, 6, 7, 7, 7]
    assert list(centres[2].values()) == [0, 0]


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize(("push", "place", "window"), [(1e4, 8.0, (5, 8)), (-1e4, 0.0, (0, 4))])
def test_a_centre_at_either_end_has_a_window(push, place, window, dtype):
    attention = build(LocalPConfig(window=3)).to(dtype)
    attention.centre[0].weight.data.fill_(50.0)
    attention.centre[2].weight.data.fill_(push)
    states, mask = sources([8])
    memory = attention.prepare(states.to(dtype), mask)
    query, embedded = torch.ones(1, 4, dtype=dtype), torch.zeros(1, 3, dtype=dtype)
    context, _, _, trace = step(attention, query, embedded, memory, None, (), trace=True)
    assert trace.focus.item() == place
    assert (trace.window_start.item(), trace.window_stop.item()) == window
    assert torch.isfinite(context).all()


def test_the_gradient_reaches_the_predicted_centre():
    attention = build(LocalPConfig(window=2))
    for parameter in attention.parameters():
        parameter.data.mul_(0.3)  # a centre inside the sentence
    states, mask = sources()
    query, embedded = torch.randn(4, 4).double(), torch.zeros(4, 3).double()
    with torch.no_grad():
        memory = attention.prepare(states, mask)
    centre = [attention.centre[0].weight, attention.centre[2].weight]

    def run(*_):
        return step(attention, query, embedded, memory, None, ()).context

    assert torch.autograd.gradcheck(run, centre)
    gradients = torch.autograd.grad(run().square().sum(), centre)
    assert all(gradient.abs().max() > 1e-3 for gradient in gradients)


def test_the_damped_weights_are_not_normalised_again():
    sums = [sum(visit.seen["weights"]) for visit in visits(build(LocalPConfig(window=2)))]
    assert max(sums) <= 1
    assert min(sums) < 0.9


def test_the_centre_is_float32_where_products_are_bfloat16():
    attention = build(LocalPConfig(window=2)).float()
    states, mask = sources()
    query, embedded = torch.ones(4, 4), torch.zeros(4, 3)
    with torch.autocast("cpu", torch.bfloat16):
        memory = attention.prepare(states.float(), mask)
        trace = step(attention, query, embedded, memory, None, (), trace=True).trace
    assert trace.focus.dtype == torch.float32


def test_local_m_carries_the_step_and_local_p_nothing():
    states, _ = sources()
    assert build(LocalPConfig()).start(states) == ()
    [step] = build(LocalMConfig()).start(states)
    assert step.tolist() == [0, 0, 0, 0]
