"""Global attention against a loop written from the papers' equations."""

from __future__ import annotations

import math

import pytest
import torch
from loops import dot, score_by_hand
from steps import step

from nmtflex.attention import GlobalAttention, Sizes
from nmtflex.config import GlobalConfig


@pytest.mark.parametrize("name", ["additive", "general", "dot"])
def test_equals_the_loop(name):
    torch.manual_seed(1)
    sizes = Sizes(query=4, feedback=3, states=4, keys=5, source_length=9)
    attention = GlobalAttention(sizes, GlobalConfig(score=name)).double()
    lengths, rows = [3, 5, 1], [0, 0, 1, 2]
    states = torch.randn(3, 5, 4, dtype=torch.float64)
    mask = torch.arange(5) < torch.tensor(lengths)[:, None]
    query = torch.randn(4, 4, dtype=torch.float64)
    embedded = torch.zeros(4, 3, dtype=torch.float64)
    memory = attention.prepare(states, mask)
    at = torch.tensor(rows)
    context, state, gate, trace = step(attention, query, embedded, memory, at, (), trace=True)
    assert (state, gate) == ((), None)
    for n, b in enumerate(rows):
        positions = states[b, : lengths[b]].tolist()
        exps = [math.exp(score_by_hand(attention, name, query[n].tolist(), s)) for s in positions]
        weights = [e / sum(exps) for e in exps]  # eq. 2
        expected = [dot(weights, column) for column in zip(*positions, strict=True)]  # eq. 1
        assert context[n].tolist() == pytest.approx(expected, abs=1e-12)
        assert trace.weights[n, : lengths[b]].tolist() == pytest.approx(weights, abs=1e-12)
    assert trace.computed.tolist() == [3, 3, 5, 1]


def test_what_stands_at_padding_does_not_matter():
    torch.manual_seed(1)
    sizes = Sizes(query=4, feedback=3, states=4, keys=5, source_length=9)
    attention = GlobalAttention(sizes, GlobalConfig()).double()
    states = torch.randn(1, 3, 4, dtype=torch.float64)
    mask = torch.tensor([[True, True, False]])
    query, embedded = torch.randn(1, 4).double(), torch.zeros(1, 3).double()
    before = step(attention, query, embedded, attention.prepare(states, mask), None, ()).context
    states[0, 2] = 1e30
    after = step(attention, query, embedded, attention.prepare(states, mask), None, ()).context
    torch.testing.assert_close(before, after)


def test_dot_refuses_vectors_of_two_sizes():
    with pytest.raises(ValueError, match="not 4 and 6"):
        GlobalAttention(Sizes(4, 3, 6, 5, 9), GlobalConfig(score="dot"))
