"""ABC against a loop written from Peng et al. (2022), with the learned control of ABC_MLP."""

from __future__ import annotations

import math

import pytest
import torch
from loops import SCORES, check, dot, score_by_hand, visits
from steps import LENGTHS, SIZES, build, sources, step

from nmtflex.attention import Heads, build_attention
from nmtflex.config import AbcConfig, GlobalConfig


def softmax(numbers):
    total = sum(math.exp(x) for x in numbers)
    return [math.exp(x) / total for x in numbers]


def phi_by_hand(attention, keys):
    """K weights a position: each slot's sum to 1 over the source."""
    logits = [[dot(w, k) for k in keys] for w in attention.phi.weight.tolist()]
    return list(zip(*map(softmax, logits), strict=True))


def slots_by_hand(phi, vectors):
    """The sum of outer products: a list of K vectors."""
    slots = [[0.0] * len(vectors[0]) for _ in phi[0]]
    for weights, vector in zip(phi, vectors, strict=True):
        for slot, weight in zip(slots, weights, strict=True):
            for unit, value in enumerate(vector):
                slot[unit] += weight * value
    return slots


def abc_by_hand(attention, config, visit):
    phi = phi_by_hand(attention, visit.states)
    slots = slots_by_hand(phi, visit.states)  # without heads keys and values are the states
    beta = softmax([score_by_hand(attention, config.score, visit.query, slot) for slot in slots])
    return {
        "context": [dot(beta, column) for column in zip(*slots, strict=True)],
        "computed": config.K,
        "weights": [dot(weights, beta) for weights in phi],
        "beta": beta,
    }


@pytest.mark.parametrize("score", SCORES)
@pytest.mark.parametrize("num_slots", [1, 3, 10])
def test_equals_the_loop(num_slots, score):
    config = AbcConfig(K=num_slots, score=score)
    attention = build(config)
    for visit in visits(attention):
        check(visit.seen, abc_by_hand(attention, config, visit))


@torch.no_grad()
def test_slots_are_filled_with_keys_and_values_by_the_same_weights():
    attention = build(AbcConfig(K=3, score="dot"))
    values, mask = sources()
    keys, _ = sources(seed=5)
    memory = attention.prepare(values, mask, keys=keys)
    for row, length in enumerate(LENGTHS):
        phi = phi_by_hand(attention, keys[row, :length].tolist())
        close(memory.phi[row, :length], phi)
        assert (memory.phi[row, length:] == 0).all()
        for found, part in ((memory.slots.keys, keys), (memory.slots.values, values)):
            close(found[row], slots_by_hand(phi, part[row, :length].tolist()))


def close(found, expected) -> None:
    wanted = torch.tensor(expected, dtype=torch.float64)
    torch.testing.assert_close(found, wanted, rtol=0, atol=1e-12)


@torch.no_grad()
def test_one_slot_without_preference_is_the_mean_of_the_source():
    attention = build(AbcConfig(K=1))
    attention.phi.weight.data.zero_()
    states, mask = sources()
    memory = attention.prepare(states, mask)
    context = step(attention, *words(4), memory, None, ()).context
    means = [states[row, :length].mean(0) for row, length in enumerate(LENGTHS)]
    torch.testing.assert_close(context, torch.stack(means), rtol=0, atol=1e-12)


@torch.no_grad()
@pytest.mark.parametrize("score", SCORES)
def test_a_slot_for_each_position_is_global_attention(score):
    """Rows of W_phi that single out one position each, in sentences that fill all slots."""
    size = SIZES.states
    attention, expected = build(AbcConfig(K=size, score=score)), build(GlobalConfig(score=score))
    expected.score.load_state_dict(attention.score.state_dict())
    attention.phi.weight.data.copy_(1000 * torch.eye(size))
    states = torch.eye(size).double().expand(2, size, size)[:, torch.tensor([2, 0, 3, 1])]
    mask = torch.ones(2, size).bool()
    query, embedded = words(2)
    found, wanted = (
        step(one, query, embedded, one.prepare(states, mask), None, (), trace=True)
        for one in (attention, expected)
    )
    torch.testing.assert_close(found.context, wanted.context, rtol=0, atol=1e-12)
    torch.testing.assert_close(found.trace.weights, wanted.trace.weights, rtol=0, atol=1e-12)


def words(count: int) -> tuple[torch.Tensor, torch.Tensor]:
    return torch.randn(count, SIZES.query).double(), torch.zeros(count, SIZES.feedback).double()


@pytest.mark.parametrize("num_slots", [1, 5])
def test_the_slots_are_as_many_whatever_the_length_of_the_source(num_slots):
    attention = build(AbcConfig(K=num_slots))
    for length in (1, 4, 50, 300):
        memory = attention.prepare(*sources([length]))
        assert memory.slots.values.shape == (1, num_slots, SIZES.states)
        trace = step(attention, *words(1), memory, None, (), trace=True).trace
        assert trace.computed.tolist() == [num_slots]


def test_reading_a_source_costs_k_scores_a_word():
    lengths = torch.tensor(LENGTHS)
    assert build(AbcConfig(K=3)).encoding_computations(lengths).tolist() == [9, 24, 3, 15]


@torch.no_grad()
def test_sums_over_a_long_source_are_float32_under_autocast():
    """In bfloat16, whose mantissa has 8 bits, a sum of 1,000 equal parts would go astray."""
    attention = build(AbcConfig(K=2)).float()
    attention.phi.weight.data.zero_()
    states = torch.full((1, 1000, SIZES.states), 1.0 + 1 / 128, dtype=torch.float32)
    with torch.autocast("cpu", torch.bfloat16):
        memory = attention.prepare(states, torch.ones(1, 1000).bool())
    expected = torch.full((1, 2, SIZES.states), 1.0 + 1 / 128)
    torch.testing.assert_close(memory.slots.values, expected, rtol=0, atol=1e-5)


def test_the_scores_of_heads_are_scaled():
    heads = Heads(AbcConfig(K=2, score="dot"), SIZES._replace(query=8), 2)
    assert heads.mechanism.score.scale == pytest.approx(1 / math.sqrt(4))


def test_slots_differ_from_the_start():
    # decisions.md: 5 times PyTorch's weights, which are uniform up to 1 / sqrt(units).
    attention = build_attention(AbcConfig(K=512), SIZES)
    most = attention.phi.weight.abs().max().item() * math.sqrt(SIZES.states)
    assert 4.9 < most <= 5
