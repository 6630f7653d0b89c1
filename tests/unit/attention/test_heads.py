"""Heads around any mechanism: head by head, against torch's own, and what traces show of them."""

from __future__ import annotations

import math

import pytest
import torch
from steps import quiet
from torch import nn

from nmtflex.attention import ATTENTIONS, Heads, Limits, Sizes, Trace
from nmtflex.attention.heads import shown
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

HEADS, SIZE, EACH = 3, 6, 2
SIZES = Sizes(query=SIZE, feedback=5, states=8, keys=4, source_length=5)
LENGTHS = torch.tensor([4, 1, 6])
MASK = torch.arange(6) < LENGTHS[:, None]
ROWS = torch.tensor([0, 0, 2, 2, 2])  # the second sentence is done
STEPS = 4
CASES = [
    *(
        (quiet(config), math.inf) for config in ATTENTIONS if config.kind != "none"
    ),  # no heads without
    *((options(score="dot"), math.inf) for options in (GlobalConfig, FlexibleConfig)),
    *((options(score="general", window=1), math.inf) for options in (LocalMConfig, LocalPConfig)),
    *((FlexibleConfig(score=score, gate_feedback=False), 0.1) for score in ("dot", "additive")),
    *((FlexibleConfig(score=score, remainder=True), 0.1) for score in ("dot", "additive")),
    (MemoryConfig(K=3, encoder_scoring="sigmoid"), math.inf),
    (AbcConfig(K=3, score="dot"), math.inf),
    (RfaConfig(features=5, feature_map="positive", score="dot"), math.inf),
    *((options(), math.inf) for options in (MonotonicConfig, MochaConfig)),  # as in decoding
]
every_case = pytest.mark.parametrize(("config", "tau"), CASES, ids=str)
UNREAD = [case for case in CASES if case[0].kind != "memory"]  # whose padding is never read
# Whose steps read positions, and with gradients to the keys.
LEARNING = [
    case
    for case in UNREAD
    if case[0].kind not in ("abc", "rfa") and not getattr(case[0], "energy_noise", 0)
]


def build(config, sizes=SIZES, heads=HEADS) -> Heads:
    torch.manual_seed(4)
    made = Heads(config, sizes, heads).double()
    for parameter in made.parameters():
        parameter.data.normal_()
    return made.train(not getattr(config, "energy_noise", 0))


def normal(*size: int, seed: int = 6) -> torch.Tensor:
    draw = torch.Generator().manual_seed(seed)
    return torch.randn(*size, generator=draw, dtype=torch.float64)


def head_by_head(heads, states, limits, queries, embedded, rows):
    """Call the mechanism for each head, on its rows of the matrices, in all steps.

    Returns:
        The glimpses of every step, a list of one per head.
    """
    found = [[] for _ in queries]
    (w_q, b_q), (w_s, b_s) = (
        (product.weight, product.bias) for product in (heads.query, heads.source)
    )
    words = heads.mechanism.feedback(embedded)
    for head in range(heads.heads):
        own = range(head * EACH, (head + 1) * EACH)
        below = [SIZE + row for row in own]  # W_V stands below W_K
        keys, values = (states @ w_s[part].t() + b_s[part] for part in (list(own), below))
        memory = heads.mechanism.prepare(values, MASK, limits, keys)
        state = tuple(part[rows] for part in heads.mechanism.start(values))
        for step, query in enumerate(queries):
            q = query @ w_q[list(own)].t() + b_q[list(own)]
            glimpse = heads.mechanism(q, words[step], memory, rows, state, trace=True)
            state = glimpse.state
            found[step].append(glimpse)
    return found


@pytest.mark.sampled(2)
@torch.no_grad()
@every_case
def test_a_step_is_head_after_head(config, tau):
    heads, states, limits = build(config), normal(3, 6, 8), Limits(tau)
    queries, embedded = normal(STEPS, 5, SIZE, seed=1), normal(STEPS, 5, 5, seed=2)
    memory = heads.prepare(states, MASK, limits)
    state = tuple(part[ROWS] for part in heads.start(states))
    seen_rows = []
    heads.mechanism.register_forward_pre_hook(lambda _, inputs: seen_rows.append(inputs[3]))
    steps = []
    for query, words in zip(queries, embedded, strict=True):
        steps.append(heads(query, heads.feedback(words), memory, ROWS, state, trace=True))
        state = steps[-1].state
    assert seen_rows[0].tolist() == [0, 0, 2, 2, 2, 3, 3, 5, 5, 5, 6, 6, 8, 8, 8]
    expected = head_by_head(heads, states, limits, queries, embedded, ROWS)
    assert len(expected) == STEPS
    for found, parts in zip(steps, expected, strict=True):
        joined = torch.cat([part.context for part in parts], dim=1)
        context = joined @ heads.output.weight.t() + heads.output.bias
        close(found.context, context)
        for number, part in enumerate(found.state):
            close(part, torch.stack([one.state[number] for one in parts], dim=1))
        if heads.mechanism.gated:
            close(found.gate, sum(part.gate for part in parts) / HEADS)
        else:
            assert found.gate is None
        for name in Trace._fields:
            one = getattr(found.trace, name)
            others = [getattr(part.trace, name) for part in parts]
            if others[0] is None:
                assert one is None
            else:
                close(one, torch.stack(others, dim=1))


@pytest.mark.sampled(2)
@every_case
def test_all_steps_are_head_after_head(config, tau):
    heads, states, limits = build(config), normal(3, 6, 8), Limits(tau)
    queries, embedded = normal(STEPS, 3, SIZE, seed=1), normal(STEPS, 3, 5, seed=2)
    memory, start = heads.prepare(states, MASK, limits), heads.start(states)
    words = heads.feedback(embedded).transpose(0, 1)
    contexts, gates = heads.sequence(queries.transpose(0, 1), words, memory, start)
    expected = head_by_head(heads, states, limits, queries, embedded, torch.arange(3))
    for step, parts in enumerate(expected):
        joined = torch.cat([part.context for part in parts], dim=1)
        close(contexts[:, step], joined @ heads.output.weight.t() + heads.output.bias)
        if gates is not None:
            close(gates[:, step], sum(part.gate for part in parts) / HEADS)
    assert (gates is not None) == heads.mechanism.gated


def close(found: torch.Tensor, expected: torch.Tensor) -> None:
    torch.testing.assert_close(found, expected, rtol=0, atol=1e-11)


@pytest.mark.parametrize("count", [1, 3])
def test_global_attention_with_dots_is_torch_s(count):
    heads = build(GlobalConfig(score="dot"), heads=count)
    expected = nn.MultiheadAttention(SIZE, count, kdim=8, vdim=8, batch_first=True).double()
    with torch.no_grad():
        w_k, w_v = heads.source.weight.chunk(2)
        pairs = [(expected.q_proj_weight, heads.query.weight), (expected.k_proj_weight, w_k)]
        pairs += [(expected.v_proj_weight, w_v), (expected.out_proj.weight, heads.output.weight)]
        bias = torch.cat([heads.query.bias, heads.source.bias])
        for ours, theirs in [*pairs, (expected.in_proj_bias, bias)]:
            ours.copy_(theirs)
        expected.out_proj.bias.copy_(heads.output.bias)
    made, leaves = [], [normal(3, 6, 8).requires_grad_(), normal(3, STEPS, SIZE).requires_grad_()]
    for way in ("ours", "torch"):
        states, queries = leaves
        if way == "ours":
            memory = heads.prepare(states, MASK)
            contexts, _ = heads.sequence(queries, queries[..., :0], memory, ())
            glimpse = heads(queries[:, 1], queries[:, 1, :0], memory, None, (), trace=True)
            close(glimpse.context, contexts[:, 1])
            weights = glimpse.trace.weights
        else:
            contexts, seen = expected(
                queries, states, states, key_padding_mask=~MASK, average_attn_weights=False
            )
            weights = seen[:, :, 1]
        total = (contexts * normal(3, STEPS, SIZE, seed=9)).sum()
        made.append([contexts, weights, *torch.autograd.grad(total, leaves)])
    for found, wanted in zip(*made, strict=True):
        close(found, wanted)


@torch.no_grad()
@pytest.mark.parametrize(("config", "tau"), UNREAD, ids=str)
def test_nan_in_padded_states_is_not_read(config, tau):
    heads, states = build(config), normal(3, 6, 8)
    poisoned = states.masked_fill(~MASK[..., None], math.nan)
    queries, words = normal(3, STEPS, SIZE), heads.feedback(normal(3, STEPS, 5))
    found = []
    for given in (states, poisoned):
        memory, start = heads.prepare(given, MASK, Limits(tau)), heads.start(given)
        step = heads(queries[:, 0], words[:, 0], memory, None, start, trace=True)
        shown = [part for part in step.trace if part is not None]
        found.append([heads.sequence(queries, words, memory, start)[0], step.context, *shown])
    assert all(map(torch.equal, *found))


@pytest.mark.sampled(3)
@pytest.mark.parametrize(("config", "tau"), LEARNING, ids=str)
def test_nan_at_padding_leaves_the_gradients(config, tau):
    heads, states = build(config), normal(3, 6, 8)
    queries, words = normal(3, STEPS, SIZE), heads.feedback(normal(3, STEPS, 5)).detach()
    padding = (~MASK).repeat(HEADS, 1)[..., None]

    def gradients(poison: float | None) -> list[torch.Tensor]:
        memory = heads.prepare(states, MASK, Limits(tau))
        source = getattr(memory.inner, "source", memory.inner)
        leaves = [part.detach() for part in (source.keys, source.values)]
        if poison is not None:
            leaves = [leaf.masked_fill(padding, poison) for leaf in leaves]
        keys, values = (leaf.requires_grad_() for leaf in leaves)
        own = source._replace(keys=keys, values=values)
        inner = own if source is memory.inner else memory.inner._replace(source=own)
        query = queries.clone().requires_grad_()
        contexts, _ = heads.sequence(
            query, words, memory._replace(inner=inner), heads.start(states)
        )
        wanted = [query, keys, values, heads.query.weight, heads.output.weight]
        return list(torch.autograd.grad(contexts.square().sum(), wanted))

    found, expected = gradients(math.nan), gradients(None)
    for gradient, other in zip(found, expected, strict=True):
        assert torch.equal(gradient, other)
    for part in found[1:3]:
        assert not part[padding[..., 0]].any()


def traces(layers: int, heads: int) -> list[Trace]:
    """Made-up traces of two hypotheses of one sentence of three words."""
    return [
        Trace(
            computed=torch.randint(1, 9, (2, heads)),
            weights=normal(2, heads, 3, seed=layer),
            gate=normal(2, heads, seed=10 + layer),
            focus=normal(2, heads, seed=20 + layer),
            window_start=torch.randint(0, 9, (2, heads)),
            window_stop=torch.randint(0, 9, (2, heads)),
            beta=normal(2, heads, 4, seed=30 + layer),
            alpha=normal(1, heads, 3, 4, seed=40 + layer),
        )
        for layer in range(layers)
    ]


SUMS = ("weights", "gate", "focus")
OWN = ("window_start", "window_stop", "beta", "alpha")  # of one head alone


@pytest.mark.parametrize(
    ("limits", "chosen"),
    [
        (Limits(), [(0, 0), (0, 1), (0, 2), (1, 0), (1, 1), (1, 2)]),
        (Limits(layer=1), [(1, 0), (1, 1), (1, 2)]),
        (Limits(head=2), [(0, 2), (1, 2)]),
        (Limits(layer=0, head=1), [(0, 1)]),
    ],
    ids=str,
)
def test_a_trace_shows_what_limits_name(limits, chosen):
    torch.manual_seed(3)
    made = traces(2, 3)
    found = shown(made, limits)
    assert torch.equal(found.computed, made[0].computed.sum(1) + made[1].computed.sum(1))
    for name in SUMS:
        parts = [getattr(made[layer], name)[:, head] for layer, head in chosen]
        close(getattr(found, name), sum(parts) / len(parts))
    for name in OWN:
        if len(chosen) > 1:
            assert getattr(found, name) is None
        else:
            [(layer, head)] = chosen
            assert torch.equal(getattr(found, name), getattr(made[layer], name)[:, head])


def test_one_head_of_one_layer_is_shown_whole():
    torch.manual_seed(3)
    [only] = traces(1, 1)
    for found, expected in zip(shown([only], Limits())[:-1], only[:-1], strict=True):
        assert torch.equal(found, expected[:, 0])
    bare = shown([Trace(only.computed)], Limits())
    assert torch.equal(bare.each, only.computed[:, 0])
    assert bare[1:-1] == (None,) * 7
