"""Reuse around every mechanism: against a plain loop, soft and under a threshold."""

from __future__ import annotations

import math

import pytest
import torch
from loops import gate_by_hand
from steps import LENGTHS, SIZES, build, sources

from nmtflex.attention import Heads, Limits, Reuse, Sizes
from nmtflex.attention.reuse import OPEN
from nmtflex.config import (
    FlexibleConfig,
    GlobalConfig,
    LocalMConfig,
    LocalPConfig,
    MemoryConfig,
    ModelConfig,
)
from nmtflex.model.build import build_model

BELOW = 0.4
ROWS = torch.tensor([0, 0, 1, 1, 1, 2, 3])
STEPS = 6
CASES = [
    (GlobalConfig(), math.inf),
    (GlobalConfig(score="dot"), math.inf),
    (LocalMConfig(window=1), math.inf),
    (LocalPConfig(window=2), math.inf),
    (FlexibleConfig(), math.inf),
    (FlexibleConfig(), 0.1),
    (FlexibleConfig(remainder=True), 0.1),
    (MemoryConfig(K=3), math.inf),
]
every_case = pytest.mark.parametrize(("config", "tau"), CASES, ids=str)
every_way = pytest.mark.parametrize("below", [0.0, BELOW, 1.0])


def wrapped(config, heads=0):
    """Reuse around a mechanism, or around heads of it, whose gates choose."""
    inner = build(config)
    if heads:
        inner = Heads(config, SIZES, heads)
    made = Reuse(inner, SIZES).double()
    for parameter in made.parameters():
        parameter.data.normal_()
    made.gate.v.weight.data *= 3
    return made


def inputs(count, steps=STEPS):
    draw = torch.Generator().manual_seed(9)
    return [
        torch.randn(steps, count, size, generator=draw, dtype=torch.float64)
        for size in (SIZES.query, SIZES.feedback)
    ]


def loop(reuse, memory, below, rows, queries, embedded, state):
    """Hypothesis by hypothesis, each alone with the mechanism inside.

    Yields the context, 1 - u, the state and the score computations of each in every step.
    """
    inner, units = reuse.inner, reuse.gate.v.in_features
    last, own = (
        [None] * len(rows),
        [tuple(p[n : n + 1] for p in state[2:]) for n in range(len(rows))],
    )
    for query, words in zip(queries, embedded, strict=True):
        found = []
        for n, row in enumerate(rows.tolist()):
            u = gate_by_hand(reuse.gate, True, query[n].tolist(), words[n].tolist())
            u = 1.0 if last[n] is None else u
            if last[n] is None or u >= below:
                feedback = reuse.feedback(words[n : n + 1])[:, units:]
                at = torch.tensor([row])
                seen = inner(query[n : n + 1], feedback, memory.inner, at, own[n], True)
                own[n], scores = seen.state, int(seen.trace.computed.sum())
                new = seen.context if last[n] is None else u * seen.context + (1 - u) * last[n]
                gate = 1.0 - u if seen.gate is None else (1 - u + float(seen.gate)) / 2
            else:
                new, scores = last[n], 0
                gate = (2 - u) / 2 if reuse.mechanism.gated else 1 - u
            last[n] = new
            found.append((new[0], gate, own[n], scores))
        yield found


@pytest.mark.sampled(3)
@torch.no_grad()
@every_way
@pytest.mark.parametrize("heads", [0, 2])
@every_case
def test_equals_the_loop(config, tau, heads, below):
    reuse = wrapped(config, heads)
    states, mask = sources()
    memory = reuse.prepare(states, mask, Limits(tau, reuse=below))
    state = tuple(part[ROWS] for part in reuse.start(states))
    queries, embedded = inputs(len(ROWS))
    expected = loop(reuse, memory, below, ROWS, queries, embedded, state)
    skipped = 0
    for query, words, parts in zip(queries, embedded, expected, strict=True):
        glimpse = reuse(query, reuse.feedback(words), memory, ROWS, state, trace=True)
        state = glimpse.state
        for n, (context, gate, own, scores) in enumerate(parts):
            torch.testing.assert_close(glimpse.context[n], context, rtol=0, atol=1e-11)
            assert float(glimpse.gate[n]) == pytest.approx(gate, abs=1e-11)
            for part, other in zip(state[2:], own, strict=True):
                torch.testing.assert_close(part[n], other[0], rtol=0, atol=1e-11)
            assert int(glimpse.trace.computed[n].sum()) == scores
            skipped += scores == 0
            if scores == 0:
                assert glimpse.trace.weights is None or (glimpse.trace.weights[n] == 0).all()
    total = len(ROWS) * STEPS
    assert {0.0: skipped == 0, 1.0: skipped == total - len(ROWS)}.get(below, 0 < skipped < total)


@every_way
@pytest.mark.parametrize("heads", [0, 2])
@every_case
def test_a_sequence_is_step_after_step(config, tau, heads, below):
    reuse = wrapped(config, heads)
    found = []
    for way in ("steps", "sequence"):
        states, mask = sources()
        queries, embedded = (part.transpose(0, 1).contiguous() for part in inputs(len(LENGTHS)))
        leaves = [part.requires_grad_() for part in (states, queries, embedded)]
        memory = reuse.prepare(states, mask, Limits(tau, reuse=below))
        feedback, state = reuse.feedback(embedded), reuse.start(states)
        if way == "sequence":
            contexts, gates = reuse.sequence(queries, feedback, memory, state)
        else:
            glimpses = []
            for t in range(STEPS):
                glimpses.append(reuse(queries[:, t], feedback[:, t], memory, None, state))
                state = glimpses[-1].state
            contexts = torch.stack([one.context for one in glimpses], dim=1)
            gates = torch.stack([one.gate for one in glimpses], dim=1)
        torch.manual_seed(4)
        total = (contexts * torch.randn_like(contexts)).sum() + (
            gates * torch.randn_like(gates)
        ).sum()
        wanted = [*leaves, *reuse.parameters()]
        found.append([contexts, gates, *torch.autograd.grad(total, wanted, allow_unused=True)])
    for part, other in zip(*found, strict=True):
        assert (part is None) == (other is None)
        if part is not None:
            torch.testing.assert_close(part, other, rtol=0, atol=1e-10)


@torch.no_grad()
@every_way
def test_a_batch_changes_nothing_and_order_does_not_matter(below):
    reuse = wrapped(FlexibleConfig())
    states, mask = sources()
    queries, embedded = inputs(len(ROWS))

    def run(kept):
        memory = reuse.prepare(states, mask, Limits(reuse=below))
        state = tuple(part[ROWS[kept]] for part in reuse.start(states))
        for query, words in zip(queries[:, kept], embedded[:, kept], strict=True):
            glimpse = reuse(query, reuse.feedback(words), memory, ROWS[kept], state)
            state = glimpse.state
        return glimpse.context

    together = run(list(range(7)))
    for n in range(7):
        torch.testing.assert_close(run([n])[0], together[n], rtol=0, atol=1e-12)


@torch.no_grad()
@every_case
def test_a_step_that_does_not_attend_reads_nothing(config, tau):
    """NaN in the whole memory is not seen by hypotheses that take the last context again."""
    reuse = wrapped(config)
    states, mask = sources()
    memory = reuse.prepare(states, mask, Limits(tau, reuse=BELOW))
    state = tuple(part[ROWS] for part in reuse.start(states))
    queries, embedded = inputs(len(ROWS))
    state = reuse(queries[0], reuse.feedback(embedded[0]), memory, ROWS, state).state

    def poisoned(part):
        if isinstance(part, torch.Tensor):
            return torch.full_like(part, math.nan) if part.is_floating_point() else part
        return type(part)(*map(poisoned, part)) if isinstance(part, tuple) else part

    broken = memory._replace(inner=poisoned(memory.inner))
    if isinstance(config, FlexibleConfig):  # the threshold is no memory
        broken = broken._replace(inner=broken.inner._replace(tau=tau))
    attended = []
    for query, words in zip(queries[1:], embedded[1:], strict=True):
        glimpse = reuse(query, reuse.feedback(words), broken, ROWS, state, trace=True)
        same = glimpse.trace.computed == 0
        assert torch.equal(glimpse.context[same], state[0][same])
        assert glimpse.context[~same].isnan().all()
        attended += (~same).tolist()
    assert any(attended)
    assert not all(attended)


@torch.no_grad()
def test_an_open_gate_is_the_mechanism_itself():
    reuse = wrapped(GlobalConfig())
    reuse.gate.v.weight.data.zero_()
    reuse.gate.v.bias.data.fill_(1e3)
    states, mask = sources()
    queries, embedded = inputs(len(LENGTHS))
    memory, state = reuse.prepare(states, mask, Limits(reuse=0.9)), reuse.start(states)
    for query, words in zip(queries, embedded, strict=True):
        glimpse = reuse(query, reuse.feedback(words), memory, None, state)
        state = glimpse.state
        expected = reuse.inner(query, words[:, :0], memory.inner, None, ()).context
        torch.testing.assert_close(glimpse.context, expected, rtol=0, atol=1e-12)
        assert (glimpse.gate == 0).all()


def test_a_fresh_gate_is_open():
    torch.manual_seed(1)
    reuse = Reuse(build(GlobalConfig()), SIZES)
    assert reuse.gate.v.bias.tolist() == [OPEN]
    u = reuse.gate(torch.randn(9, SIZES.query), reuse.feedback(torch.randn(9, SIZES.feedback)))
    assert (u > 0.7).all()


@pytest.mark.parametrize("decoder", ["bahdanau", "luong", "ssru", "transformer"])
@pytest.mark.parametrize("encoder", ["recurrent", "transformer"])
@pytest.mark.parametrize("below", [0.0, 0.9])
def test_models_train_and_step_alike(decoder, encoder, below):
    """The way of training equals step after step in every decoder; the gate can be trained."""
    torch.manual_seed(2)
    own = {"decoder_heads": 2, "decoder_ffn": 4} if decoder in ("ssru", "transformer") else {}
    own |= {"encoder_heads": 2, "encoder_ffn": 4} if encoder == "transformer" else {}
    config = ModelConfig.from_flat(
        attention=FlexibleConfig(), attend_every="gate", decoder=decoder, encoder=encoder,
        embedding_size=4, encoder_size=4, decoder_size=4, dropout=0.0, **own,
    )  # fmt: skip
    model = build_model(config, 9, 9, 9).double()
    assert model.reuses
    assert model.gated
    source, lengths = torch.tensor([[4, 5, 6], [7, 8, 0]]), torch.tensor([3, 2])
    words = torch.tensor([[2, 5, 6, 7], [2, 4, 4, 8]])
    memory, state = model.encode(source, lengths, Limits(reuse=below))
    outputs, gates, _ = model.decoder.sequence(memory, state, model.target_embedding(words))
    memory, state = model.encode(source, lengths, Limits(reuse=below))
    for t in range(4):
        step = model.step(memory, torch.arange(2), state, words[:, t], trace=True)
        state = step.state
        torch.testing.assert_close(step.output, outputs[:, t], rtol=0, atol=1e-10)
        torch.testing.assert_close(step.gate, gates[:, t], rtol=0, atol=1e-10)
    gates.sum().backward()
    found = [p for name, p in model.named_parameters() if ".gate.v.weight" in name]
    assert found
    assert all(p.grad is not None and p.grad.abs().sum() > 0 for p in found)


def test_without_a_gate_of_reuse_a_threshold_is_refused():
    config = ModelConfig.from_flat(embedding_size=4, encoder_size=4, decoder_size=4)
    model = build_model(config, 9, 9, 9)
    assert not model.reuses
    with pytest.raises(ValueError, match=r"0\.3"):
        model.encode(torch.tensor([[4, 5]]), torch.tensor([2]), Limits(reuse=0.3))


def test_sizes_of_the_gate_are_the_decoder_s():
    sizes = Sizes(query=6, feedback=5, states=8, keys=3, source_length=5)
    reuse = Reuse(Heads(GlobalConfig(), sizes, 2), sizes)
    assert reuse.context_size == reuse.gate.state.in_features == 6
    assert reuse.gate.v.in_features == 3


def test_finetuning_rewards_steps_that_do_not_attend():
    """Eq. 9 with 1 - u in the place of the gate."""
    torch.manual_seed(2)
    config = ModelConfig.from_flat(
        attend_every="gate", embedding_size=4, encoder_size=4, decoder_size=4, dropout=0.0
    )
    model = build_model(config, 9, 9, 9).double()
    source, lengths = torch.tensor([[4, 5, 6], [7, 8, 0]]), torch.tensor([3, 2])
    target_in, target_out = (
        torch.tensor([[2, 5, 6], [2, 4, 0]]),
        torch.tensor([[5, 6, 3], [4, 3, 0]]),
    )
    memory, state = model.encode(source, lengths)
    _, gates, _ = model.decoder.sequence(memory, state, model.target_embedding(target_in))
    mean = gates[0].mean() + gates[1, :2].mean()
    plain, less = (
        model.loss(source, lengths, target_in, target_out, beta=beta) for beta in (0.0, 0.3)
    )
    assert less.gate.item() == pytest.approx(mean.item(), abs=1e-12)
    difference = plain.objective - less.objective
    assert difference.item() == pytest.approx(0.3 * mean.item(), abs=1e-12)
    assert (gates[:, 0] == 0).all()  # the first step attends
    assert (gates[:, 1:] > 0).all()


@pytest.mark.parametrize("decoder", ["bahdanau", "transformer"])
@pytest.mark.parametrize("below", [0.0, 0.8])
def test_a_model_in_bfloat16_carries_its_context_in_float32(decoder, below):
    torch.manual_seed(2)
    own = {"decoder_heads": 2, "decoder_ffn": 4} if decoder == "transformer" else {}
    config = ModelConfig.from_flat(
        attention=FlexibleConfig(remainder=True), attend_every="gate", decoder=decoder,
        embedding_size=4, encoder_size=4, decoder_size=4, dropout=0.0, **own,
    )  # fmt: skip
    model = build_model(config, 9, 9, 9, autocast=True)
    source, lengths = torch.tensor([[4, 5, 6], [7, 8, 0]]), torch.tensor([3, 2])
    target_in, target_out = (
        torch.tensor([[2, 5, 6], [2, 4, 0]]),
        torch.tensor([[5, 6, 3], [4, 3, 0]]),
    )
    limits = Limits(0.01, reuse=below)
    model.loss(source, lengths, target_in, target_out, limits=limits).objective.backward()
    assert all(torch.isfinite(part.grad).all() for part in model.parameters())
    memory, state = model.eval().encode(source, lengths, limits)
    for word in (2, 5, 6):
        assert all(part.dtype == torch.float32 for part in state[-3:])
        step = model.step(memory, torch.arange(2), state, torch.tensor([word, word]), trace=True)
        state = step.state
        assert torch.isfinite(step.output).all()
