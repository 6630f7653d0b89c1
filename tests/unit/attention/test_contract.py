"""What every mechanism promises, whichever it is; a new one is tested unasked."""

from __future__ import annotations

import dataclasses

import pytest
import torch

from nmtflex.attention import ATTENTIONS, Attention, Sizes, build_attention
from nmtflex.config import (
    FlexibleConfig,
    GlobalConfig,
    LocalMConfig,
    LocalPConfig,
    MemoryConfig,
)

SIZES = Sizes(query=8, feedback=5, states=8, keys=6, source_length=9)
SCORINGS = ("softmax", "sigmoid")
CONFIGS = [
    *(config() for config in ATTENTIONS),
    *(GlobalConfig(score=score) for score in ("general", "dot")),
    *(LocalMConfig(window=window) for window in (1, 2)),
    *(LocalPConfig(window=window, score="general") for window in (1, 2)),
    FlexibleConfig(sigma=5.0, gate_feedback=False, score="dot"),
    *(MemoryConfig(K=4, encoder_scoring=e, decoder_scoring=d) for e in SCORINGS for d in SCORINGS),
    MemoryConfig(K=1, position_encoding=False),
]


def name(config: object) -> str:
    return "-".join([config.kind, *map(str, dataclasses.astuple(config))])


@pytest.fixture(params=CONFIGS, ids=name)
def attention(request: pytest.FixtureRequest) -> Attention:
    torch.manual_seed(3)
    return build_attention(request.param, SIZES).double()


def source(lengths: list[int], extra: int = 0) -> tuple[torch.Tensor, torch.Tensor]:
    """Random encoder states [B, S, H], the same for a sentence whatever the batch, and a mask."""
    longest = max(lengths) + extra
    states = torch.full((len(lengths), longest, SIZES.states), 7.0, dtype=torch.float64)
    for row, length in enumerate(lengths):
        draw = torch.Generator().manual_seed(100 + length)
        states[row, :length] = torch.randn(length, SIZES.states, generator=draw).double()
    mask = torch.arange(longest) < torch.tensor(lengths)[:, None]
    return states * mask[..., None], mask


def queries(count: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Random queries and feedback, the same for a hypothesis however many there are."""
    draw = torch.Generator().manual_seed(5)
    many = torch.randn(20, SIZES.query + SIZES.feedback, generator=draw).double()[:count]
    return many[:, : SIZES.query].contiguous(), many[:, SIZES.query :].contiguous()


def attend(attention, lengths, rows, extra=0, steps=1):
    """Run some steps with hypotheses on given sentences; return context, state and trace."""
    states, mask = source(lengths, extra)
    memory = attention.prepare(states, mask)
    rows = torch.tensor(rows)
    state = tuple(part[rows] for part in attention.start(states))
    query, feedback = queries(len(rows))
    for _ in range(steps):
        context, state, trace = attention(query, feedback, memory, rows, state, trace=True)
    return context, state, trace


def test_weights_are_on_real_tokens_and_sum_as_declared(attention):
    context, _, trace = attend(attention, [4, 1, 6], [0, 0, 1, 2, 2, 2])
    assert context.shape == (6, attention.context_size)
    if trace.weights is None:
        return
    assert (trace.weights >= 0).all()
    for weights, length in zip(trace.weights, [4, 4, 1, 6, 6, 6], strict=True):
        assert (weights[length:] == 0).all()
        least, greatest = attention.weight_sums(length)
        assert least - 1e-9 <= weights.sum().item() <= greatest + 1e-9


def test_more_padding_and_other_sentences_change_nothing(attention):
    alone, _, _ = attend(attention, [4], [0, 0], steps=3)
    padded, _, _ = attend(attention, [4], [0, 0], extra=3, steps=3)
    among, _, _ = attend(attention, [4, 6, 2], [0, 0, 1, 2], steps=3)
    torch.testing.assert_close(padded, alone, rtol=0, atol=1e-12)
    torch.testing.assert_close(among[:2], alone, rtol=0, atol=1e-12)


def test_sentences_without_hypotheses_change_nothing(attention):
    alone, _, _ = attend(attention, [5], [0, 0, 0], steps=2)
    others_gone, _, trace = attend(attention, [3, 5, 4], [1, 1, 1], steps=2)
    torch.testing.assert_close(others_gone, alone, rtol=0, atol=1e-12)
    assert len(trace.computed) == 3


def test_reordering_hypotheses_commutes_with_a_step(attention):
    states, mask = source([4, 6])
    memory = attention.prepare(states, mask)
    rows = torch.tensor([0, 0, 0, 1, 1])
    order = torch.tensor([2, 0, 0, 4, 3])  # within each sentence, one doubled
    query, feedback = queries(5)
    state = tuple(part[rows] for part in attention.start(states))
    _, state, _ = attention(query, feedback, memory, rows, state)
    after = attention(query, feedback, memory, rows, state)[0][order]
    state = tuple(part[order] for part in state)
    before = attention(query[order], feedback[order], memory, rows, state)[0]
    torch.testing.assert_close(before, after, rtol=0, atol=1e-12)


def test_one_hypothesis_each_needs_no_rows(attention):
    states, mask = source([4, 1, 6])
    memory = attention.prepare(states, mask)
    query, feedback = queries(3)
    start = attention.start(states)
    implied = attention(query, feedback, memory, None, start, trace=True)
    named = attention(query, feedback, memory, torch.arange(3), start, trace=True)
    torch.testing.assert_close(implied[0], named[0])
    assert implied[2].computed.tolist() == named[2].computed.tolist()


def test_every_parameter_gets_a_gradient(attention):
    context, _, _ = attend(attention, [4, 3], [0, 1], steps=2)
    if context.requires_grad:
        (context * torch.arange(context.numel()).view_as(context)).sum().backward()
    for parameter in attention.parameters():
        assert parameter.grad is not None
        assert torch.isfinite(parameter.grad).all()


def test_one_token_sentences_work(attention):
    states, mask = source([1, 1])
    states.requires_grad_()
    query, feedback = queries(2)
    memory, state = attention.prepare(states, mask), attention.start(states)
    for _ in range(3):
        context, state, _ = attention(query, feedback, memory, None, state)
    assert torch.isfinite(context).all()
    if context.requires_grad:
        context.sum().backward()
        gradients = [states.grad, *(parameter.grad for parameter in attention.parameters())]
        assert all(torch.isfinite(gradient).all() for gradient in gradients)


def test_gradients_are_right(attention):
    states, mask = source([3, 2])
    query, feedback = queries(3)
    rows = torch.tensor([0, 0, 1])
    if attention.context_size == 0:
        pytest.skip("no context, nothing to differentiate")

    def run(states, query, feedback):
        memory = attention.prepare(states, mask)
        state = tuple(part[rows] for part in attention.start(states))
        first, state, _ = attention(query, feedback, memory, rows, state)
        # The next step sees the state of this one, and another query.
        second, _, _ = attention(query.flip(0), feedback.flip(0), memory, rows, state)
        return first, second

    inputs = [tensor.requires_grad_() for tensor in (states, query, feedback)]
    assert torch.autograd.gradcheck(run, inputs)


def test_a_trace_is_made_only_when_asked_for(attention):
    states, mask = source([4])
    memory = attention.prepare(states, mask)
    query, feedback = queries(1)
    _, _, trace = attention(query, feedback, memory, None, attention.start(states))
    assert trace is None
