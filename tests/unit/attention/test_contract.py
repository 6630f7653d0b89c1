"""What every mechanism promises, whichever it is; a new one is tested unasked."""

from __future__ import annotations

import dataclasses
import math
import sys

import pytest
import torch
from steps import quiet, step

from nmtflex.attention import ATTENTIONS, Attention, Limits, Sizes, build_attention
from nmtflex.attention.marking import prepare, unmarked
from nmtflex.config import (
    AbcConfig,
    FlexibleConfig,
    GlobalConfig,
    LocalMConfig,
    LocalPConfig,
    MemoryConfig,
    RfaConfig,
)

SIZES = Sizes(query=8, feedback=5, states=8, keys=6, source_length=9)
SCORINGS = ("softmax", "sigmoid")
CONFIGS = [
    *map(quiet, ATTENTIONS),
    *(GlobalConfig(score=score) for score in ("general", "dot")),
    *(LocalMConfig(window=window) for window in (1, 2)),
    *(LocalPConfig(window=window, score="general") for window in (1, 2)),
    FlexibleConfig(sigma=5.0, gate_feedback=False, score="dot"),
    *(FlexibleConfig(remainder=True, score=score) for score in ("additive", "dot")),
    *(MemoryConfig(K=4, encoder_scoring=e, decoder_scoring=d) for e in SCORINGS for d in SCORINGS),
    MemoryConfig(K=1, position_encoding=False),
    *(AbcConfig(K=K, score=score) for K, score in ((1, "general"), (4, "dot"))),
    *(
        RfaConfig(features=n, feature_map="fourier", score=s)
        for n, s in ((2, "dot"), (9, "general"))
    ),
    RfaConfig(features=1, feature_map="positive", score="dot"),
]


def name(config: object) -> str:
    return "-".join([config.kind, *map(str, dataclasses.astuple(config))])


@pytest.fixture(params=CONFIGS, ids=name)
def attention(request: pytest.FixtureRequest) -> Attention:
    torch.manual_seed(3)
    return build_attention(request.param, SIZES).double()


@pytest.fixture(params=[c for c in CONFIGS if ATTENTIONS[type(c)].gated], ids=name)
def gated(request: pytest.FixtureRequest) -> Attention:
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
    """Random queries and embedded words, the same for a hypothesis however many there are."""
    draw = torch.Generator().manual_seed(5)
    many = torch.randn(20, SIZES.query + SIZES.feedback, generator=draw).double()[:count]
    return many[:, : SIZES.query].contiguous(), many[:, SIZES.query :].contiguous()


def attend(attention, lengths, rows, extra=0, steps=1):
    """Run some steps with hypotheses on given sentences; return the last one's glimpse."""
    states, mask = source(lengths, extra)
    memory = attention.prepare(states, mask)
    rows = torch.tensor(rows)
    state = tuple(part[rows] for part in attention.start(states))
    query, embedded = queries(len(rows))
    for _ in range(steps):
        glimpse = step(attention, query, embedded, memory, rows, state, trace=True)
        state = glimpse.state
    return glimpse


def test_weights_are_on_real_tokens_and_sum_as_declared(attention):
    context, _, _, trace = attend(attention, [4, 1, 6], [0, 0, 1, 2, 2, 2])
    assert context.shape == (6, attention.context_size)
    assert attention.aligned == (trace.weights is not None)
    if not attention.aligned:
        return
    if attention.weight_sums(1)[0] >= 0:  # only a sum that may be negative has negative weights
        assert (trace.weights >= 0).all()
    for weights, length in zip(trace.weights, [4, 4, 1, 6, 6, 6], strict=True):
        assert (weights[length:] == 0).all()
        least, greatest = attention.weight_sums(length)
        assert least - 1e-9 <= weights.sum().item() <= greatest + 1e-9


def test_more_padding_and_other_sentences_change_nothing(attention):
    alone = attend(attention, [4], [0, 0], steps=3).context
    padded = attend(attention, [4], [0, 0], extra=3, steps=3).context
    among = attend(attention, [4, 6, 2], [0, 0, 1, 2], steps=3).context
    torch.testing.assert_close(padded, alone, rtol=0, atol=1e-12)
    torch.testing.assert_close(among[:2], alone, rtol=0, atol=1e-12)


def test_sentences_without_hypotheses_change_nothing(attention):
    alone = attend(attention, [5], [0, 0, 0], steps=2).context
    others_gone, _, _, trace = attend(attention, [3, 5, 4], [1, 1, 1], steps=2)
    torch.testing.assert_close(others_gone, alone, rtol=0, atol=1e-12)
    assert len(trace.computed) == 3


def test_reordering_hypotheses_commutes_with_a_step(attention):
    states, mask = source([4, 6])
    memory = attention.prepare(states, mask)
    rows = torch.tensor([0, 0, 0, 1, 1])
    order = torch.tensor([2, 0, 0, 4, 3])  # within each sentence, one doubled
    query, embedded = queries(5)
    state = tuple(part[rows] for part in attention.start(states))
    state = step(attention, query, embedded, memory, rows, state).state
    after = step(attention, query, embedded, memory, rows, state).context[order]
    state = tuple(part[order] for part in state)
    before = step(attention, query[order], embedded[order], memory, rows, state).context
    torch.testing.assert_close(before, after, rtol=0, atol=1e-12)


def test_one_hypothesis_each_needs_no_rows(attention):
    states, mask = source([4, 1, 6])
    memory = attention.prepare(states, mask)
    query, embedded = queries(3)
    start = attention.start(states)
    implied = step(attention, query, embedded, memory, None, start, trace=True)
    named = step(attention, query, embedded, memory, torch.arange(3), start, trace=True)
    torch.testing.assert_close(implied.context, named.context)
    assert implied.trace.computed.tolist() == named.trace.computed.tolist()


def test_every_parameter_gets_a_gradient(attention):
    context = attend(attention, [4, 3], [0, 1], steps=2).context
    if context.requires_grad:
        (context * torch.arange(context.numel()).view_as(context)).sum().backward()
    for parameter in attention.parameters():
        assert parameter.grad is not None
        assert torch.isfinite(parameter.grad).all()


def test_one_token_sentences_work(attention):
    states, mask = source([1, 1])
    states.requires_grad_()
    query, embedded = queries(2)
    memory, state = attention.prepare(states, mask), attention.start(states)
    for _ in range(3):
        context, state, _, _ = step(attention, query, embedded, memory, None, state)
    assert torch.isfinite(context).all()
    if context.requires_grad:
        context.sum().backward()
        gradients = [states.grad, *(parameter.grad for parameter in attention.parameters())]
        assert all(torch.isfinite(gradient).all() for gradient in gradients)


@pytest.mark.sampled(2)
def test_gradients_are_right(attention):
    states, mask = source([3, 2])
    query, embedded = queries(3)
    rows = torch.tensor([0, 0, 1])
    if attention.context_size == 0:
        pytest.skip("no context, nothing to differentiate")

    def run(states, query, embedded):
        memory = attention.prepare(states, mask)
        state = tuple(part[rows] for part in attention.start(states))
        first, state, _, _ = step(attention, query, embedded, memory, rows, state)
        # The next step sees the state of this one, and another query.
        second = step(attention, query.flip(0), embedded.flip(0), memory, rows, state).context
        return first, second

    inputs = [tensor.requires_grad_() for tensor in (states, query, embedded)]
    assert torch.autograd.gradcheck(run, inputs)


def test_a_trace_is_made_only_when_asked_for(attention, monkeypatch):
    """A gate comes without one: weights over the source are not laid out for it."""
    made = []

    def watch(attend):
        def call(*given, **options):
            made.append(attend(*given, **options))
            return made[-1]

        return call

    for name, module in list(sys.modules.items()):
        if name.startswith("nmtflex.attention.") and hasattr(module, "attend"):
            monkeypatch.setattr(module, "attend", watch(module.attend))
    states, mask = source([4])
    memory = attention.prepare(states, mask)
    query, embedded = queries(1)
    found = step(attention, query, embedded, memory, None, attention.start(states))
    assert found.trace is None
    assert [attended.weights for attended in made] in ([], [None])
    assert (found.gate is not None) == attention.gated
    if attention.gated:
        assert found.gate.shape == (1,)
        assert found.gate.requires_grad
    seen = step(attention, query, embedded, memory, None, attention.start(states), trace=True)
    assert seen.trace is not None
    torch.testing.assert_close(seen.context, found.context, rtol=0, atol=1e-12)


def test_words_bring_the_same_alone_and_together(attention):
    _, embedded = queries(12)
    together = attention.feedback(embedded.view(3, 4, SIZES.feedback))
    assert together.shape[:2] == (3, 4)
    apart = torch.stack([attention.feedback(part) for part in embedded.view(3, 4, -1).unbind(1)], 1)
    torch.testing.assert_close(apart, together, rtol=0, atol=1e-12)


def step_by_step(attention, queries, feedback, memory, state):
    """What ``Attention.sequence`` promises."""
    contexts, gates = [], []
    for query, words in zip(queries.unbind(1), feedback.unbind(1), strict=True):
        glimpse = attention(query, words, memory, None, state)
        state = glimpse.state
        contexts.append(glimpse.context)
        gates.append(glimpse.gate)
    return torch.stack(contexts, dim=1), torch.stack(gates, dim=1) if attention.gated else None


def all_steps(attention, tau, way):
    """Attend in seven steps of ragged sentences; return what came out, and all gradients."""
    states, mask = source([4, 1, 6, 3], extra=1)
    draw = torch.Generator().manual_seed(8)
    queries = torch.randn(4, 7, SIZES.query, generator=draw, dtype=torch.float64)
    embedded = torch.randn(4, 7, SIZES.feedback, generator=draw, dtype=torch.float64)
    leaves = [tensor.requires_grad_() for tensor in (states, queries, embedded)]
    memory = attention.prepare(states, mask, Limits(tau))
    feedback = attention.feedback(embedded)
    contexts, gates = way(attention, queries, feedback, memory, attention.start(states))
    assert contexts.shape == (4, 7, attention.context_size)
    assert (gates is not None) == attention.gated
    found = [contexts] if gates is None else [contexts, gates]
    total = sum((part * torch.randn(part.shape, generator=draw).double()).sum() for part in found)
    if not total.requires_grad:
        return found, []
    wanted = [*leaves, feedback, *attention.parameters()]
    return found, torch.autograd.grad(total, wanted, allow_unused=True)


def sequences_agree(attention, tau):
    """Compare; return what came out."""
    expected, expected_gradients = all_steps(attention, tau, step_by_step)
    found, gradients = all_steps(attention, tau, type(attention).sequence)
    close = {"rtol": 0, "atol": 1e-10}
    for part, other in zip(found, expected, strict=True):
        torch.testing.assert_close(part, other, **close)
    for gradient, other in zip(gradients, expected_gradients, strict=True):
        assert (gradient is None) == (other is None)
        if other is not None:
            torch.testing.assert_close(gradient, other, **close)
    return found


def test_a_sequence_is_step_after_step(attention):
    sequences_agree(attention, math.inf)


def test_a_sequence_is_step_after_step_under_a_threshold(gated):
    limited, everything = (sequences_agree(gated, tau)[0] for tau in (0.1, math.inf))
    assert (limited - everything).abs().max() > 1e-4


def test_a_threshold_is_the_memory_s_own(gated):
    """Several memories of one mechanism are read in turn, as several mechanisms would read them."""
    attention = gated
    states, mask = source([6, 5])
    query, embedded = queries(2)

    def run(taus):
        """Two steps under each threshold, in turn; the contexts, and what was computed."""
        memories = [attention.prepare(states, mask, Limits(tau)) for tau in taus]
        carried = [attention.start(states)] * len(taus)
        for _ in range(2):
            seen = [
                step(attention, query, embedded, memory, None, state, trace=True)
                for memory, state in zip(memories, carried, strict=True)
            ]
            carried = [glimpse.state for glimpse in seen]
        return [(glimpse.context, glimpse.trace.computed.tolist()) for glimpse in seen]

    taus = (math.inf, 0.0, 0.1)
    together, alone = run(taus), [run([tau])[0] for tau in taus]
    assert [count for _, count in together] == [count for _, count in alone]
    least = 1 + getattr(attention, "remainder", 0)
    assert [count for _, count in together[:2]] == [[6, 5], [least, least]]
    for (context, _), (expected, _) in zip(together, alone, strict=True):
        assert torch.equal(context, expected)


def test_contexts_of_marked_states_end_in_the_weights_of_their_sum(attention):
    if not attention.aligned:
        return
    states, mask = source([4, 1, 6])
    query, embedded = queries(6)
    words = attention.feedback(embedded).view(3, 2, -1)
    limits = Limits(weights=True)
    found = []
    for memory in (
        prepare(attention, states, mask, limits),
        attention.prepare(states, mask, limits),
    ):
        start = attention.start(states)
        found.append(attention.sequence(query.view(3, 2, -1), words, memory, start)[0])
    contexts, weights = unmarked(found[0], attention.context_size)
    torch.testing.assert_close(contexts, found[1], rtol=0, atol=1e-12)
    assert unmarked(found[1], attention.context_size)[1] is None
    assert weights.shape == (3, 2, 6)
    torch.testing.assert_close(weights @ states, contexts, rtol=0, atol=1e-12)
    assert (weights[1, :, 1:] == 0).all()  # padding
