"""Memory attention against a loop written from Britz, Guan and Luong (2017), eq. 7, 8, 11, 12."""

from __future__ import annotations

import math

import pytest
import torch
from loops import check, dot, sigmoid, visits
from steps import LENGTHS, SIZES, build, sources, step

from nmtflex.attention import build_attention
from nmtflex.config import MemoryConfig

SCORINGS = ["softmax", "sigmoid"]


def scored(scoring, logits):
    """Apply f, over the slots."""
    if scoring == "sigmoid":
        return [sigmoid(x) for x in logits]
    total = sum(math.exp(x) for x in logits)
    return [math.exp(x) / total for x in logits]


def encodings_by_hand(length, num_slots, longest):
    """Eq. 12, each slot's row scaled to mean 1 over the sentence: a list of K a position."""
    rows = []
    for k in range(1, num_slots + 1):
        places = [min(s, longest) / longest for s in range(1, length + 1)]
        row = [(1 - k / num_slots) * (1 - place) + k / num_slots * place for place in places]
        rows.append([value / (sum(row) / length) for value in row])
    return list(zip(*rows, strict=True))


def alpha_by_hand(attention, config, states):
    """Eq. 7 or 11: K weights a position."""
    encodings = [[1.0] * config.K] * len(states)
    if config.position_encoding:
        encodings = encodings_by_hand(len(states), config.K, SIZES.source_length)
    weights = attention.alpha.weight.tolist()
    return [
        scored(config.encoder_scoring, [dot(w, s) * x for w, x in zip(weights, row, strict=True)])
        for s, row in zip(states, encodings, strict=True)
    ]


def slots_by_hand(alpha, states):
    """The matrix C of eq. 7, a plain sum over the sentence."""
    return [
        [dot(row, column) for column in zip(*states, strict=True)]
        for row in zip(*alpha, strict=True)
    ]


def memory_by_hand(attention, config, visit):
    alpha = alpha_by_hand(attention, config, visit.states)
    slots = slots_by_hand(alpha, visit.states)
    logits = [dot(w, visit.query) for w in attention.beta.weight.tolist()]
    beta = scored(config.decoder_scoring, logits)  # eq. 8
    return {
        "context": [dot(beta, column) for column in zip(*slots, strict=True)],  # eq. 8
        "computed": config.K,
        "weights": [dot(a, beta) for a in alpha],
        "beta": beta,
    }


PAIRS = pytest.mark.parametrize(
    ("encoder", "decoder"), [(encoder, decoder) for encoder in SCORINGS for decoder in SCORINGS]
)


@PAIRS
@pytest.mark.parametrize("position_encoding", [True, False])
@pytest.mark.parametrize("num_slots", [1, 3, 10])
def test_equals_the_loop(num_slots, position_encoding, encoder, decoder):
    assert max(LENGTHS) > SIZES.source_length  # positions beyond the training's longest source
    config = MemoryConfig(
        K=num_slots,
        position_encoding=position_encoding,
        encoder_scoring=encoder,
        decoder_scoring=decoder,
    )
    attention = build(config)
    for visit in visits(attention):
        check(visit.seen, memory_by_hand(attention, config, visit))


@pytest.mark.parametrize("encoder", SCORINGS)
@pytest.mark.parametrize("position_encoding", [True, False])
def test_the_slots_and_what_filled_them_equal_the_loop(position_encoding, encoder):
    config = MemoryConfig(K=3, position_encoding=position_encoding, encoder_scoring=encoder)
    attention = build(config)
    states, mask = sources()
    memory = attention.prepare(states, mask)
    query, embedded = torch.randn(4, 4).double(), torch.zeros(4, 3).double()
    trace = step(attention, query, embedded, memory, None, (), trace=True).trace
    for row, length in enumerate(LENGTHS):
        real = states[row, :length].tolist()
        alpha = alpha_by_hand(attention, config, real)
        expected = torch.tensor(alpha, dtype=torch.float64)
        torch.testing.assert_close(trace.alpha[row, :length], expected, rtol=0, atol=1e-12)
        assert (trace.alpha[row, length:] == 0).all()
        expected = torch.tensor(slots_by_hand(alpha, real), dtype=torch.float64)
        torch.testing.assert_close(memory.slots[row], expected, rtol=0, atol=1e-12)


def test_the_encodings_of_a_small_case_worked_by_hand():
    # K = 2 slots, sources of at most 2 words: L is 1/2 1/2 in slot 1, and 1/2 1 in slot 2.
    assert encodings_by_hand(2, 2, 2) == [(1.0, pytest.approx(2 / 3)), (1.0, pytest.approx(4 / 3))]
    attention = build(MemoryConfig(K=2), sizes=SIZES._replace(source_length=2))
    attention.alpha.weight.data.fill_(0.25)
    states = torch.ones(1, 3, 4).double()  # every logit is 1 before the encodings
    mask = torch.tensor([[True, True, False]])
    alpha = attention.prepare(states, mask).alpha[0].tolist()
    assert alpha[0] == pytest.approx([sigmoid(1), sigmoid(2 / 3)], abs=1e-12)
    assert alpha[1] == pytest.approx([sigmoid(1), sigmoid(4 / 3)], abs=1e-12)
    assert alpha[2] == [0, 0]


def test_encodings_draw_early_slots_to_the_beginning_and_late_ones_to_the_end():
    attention = build(MemoryConfig(K=8))
    attention.alpha.weight.data.fill_(0.25)
    alpha = attention.prepare(torch.ones(1, 6, 4).double(), torch.ones(1, 6).bool()).alpha[0]
    assert alpha[:, 0].argmax() == 0
    assert alpha[:, -1].argmax() == 5
    assert (alpha.diff(dim=0)[:, 0] < 0).all()
    assert (alpha.diff(dim=0)[:, -1] > 0).all()


@pytest.mark.parametrize("num_slots", [1, 5])
def test_the_slots_are_as_many_whatever_the_length_of_the_source(num_slots):
    attention = build(MemoryConfig(K=num_slots))
    for length in (1, 4, 50, 300):
        states, mask = sources([length])
        memory = attention.prepare(states, mask)
        assert memory.slots.shape == (1, num_slots, SIZES.states)
        query, embedded = torch.zeros(1, 4).double(), torch.zeros(1, 3).double()
        trace = step(attention, query, embedded, memory, None, (), trace=True).trace
        assert trace.computed.tolist() == [num_slots]


def test_a_slot_is_a_plain_sum():
    attention = build(MemoryConfig(K=3))
    attention.alpha.weight.data.zero_()  # every weight is sigmoid(0) = 1/2
    states, mask = sources()
    sums = torch.stack([states[row, :length].sum(0) for row, length in enumerate(LENGTHS)]) / 2
    slots = attention.prepare(states, mask).slots
    torch.testing.assert_close(slots, sums[:, None].expand(-1, 3, -1), rtol=0, atol=1e-12)


def test_one_slot_chosen_by_softmax_is_the_context():
    attention = build(MemoryConfig(K=1))
    states, mask = sources()
    memory = attention.prepare(states, mask)
    query, embedded = torch.randn(4, 4).double(), torch.zeros(4, 3).double()
    context = step(attention, query, embedded, memory, None, ()).context
    torch.testing.assert_close(context, memory.slots[:, 0], rtol=0, atol=0)


def test_reading_a_source_costs_k_scores_a_word():
    lengths = torch.tensor(LENGTHS)
    assert build(MemoryConfig(K=3)).encoding_computations(lengths).tolist() == [9, 24, 3, 15]


def test_slots_differ_from_the_start():
    # decisions.md: 5 times PyTorch's weights, which are uniform up to 1 / sqrt(units).
    attention = build_attention(MemoryConfig(K=512), SIZES)
    for product in (attention.alpha, attention.beta):
        most = product.weight.abs().max().item() * math.sqrt(product.in_features)
        assert 4.9 < most <= 5
