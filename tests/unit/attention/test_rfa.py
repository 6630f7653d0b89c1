"""Random feature attention against a loop written from Peng et al. (2021) and Choromanski et al."""

from __future__ import annotations

import math

import pytest
import torch
from loops import check, dot, visits
from steps import LENGTHS, SIZES, build, sources, step

from nmtflex.attention.rfa import SHORTEST
from nmtflex.config import RfaConfig
from nmtflex.errors import OptionError

MAPS = ["fourier", "positive"]
SCORES = ["general", "dot"]
every_map = pytest.mark.parametrize("feature_map", MAPS)


def scaled_by_hand(attention, vector):
    """sigma * x / |x|."""
    length = math.sqrt(dot(vector, vector) + SHORTEST**2)
    return [s * x / length for s, x in zip(attention.sigma.tolist(), vector, strict=True)]


def keys_by_hand(attention, config, states):
    if config.score == "general":
        rows = attention.score.states.weight.tolist()
        states = [[dot(row, state) for row in rows] for state in states]
    return [scaled_by_hand(attention, state) for state in states]


def phi_by_hand(attention, config, x):
    """The features of one vector, as the papers define them."""
    products = [dot(w, x) for w in attention.random.tolist()]
    if config.feature_map == "fourier":
        found = [*map(math.sin, products), *map(math.cos, products)]
    else:
        found = [math.exp(product - dot(x, x) / 2) for product in products]
    return [value / math.sqrt(len(products)) for value in found]


def rfa_by_hand(attention, config, visit):
    phis = [
        phi_by_hand(attention, config, x) for x in keys_by_hand(attention, config, visit.states)
    ]
    own = phi_by_hand(attention, config, scaled_by_hand(attention, visit.query))
    kernels = [dot(own, phi) for phi in phis]
    total = sum(kernels)
    if config.feature_map == "fourier":
        total = max(total, 1)
    weights = [kernel / total for kernel in kernels]
    columns = zip(*visit.states, strict=True)
    return {
        "context": [dot(weights, column) for column in columns],
        "computed": len(own),
        "weights": weights,
    }


@every_map
@pytest.mark.parametrize("score", SCORES)
@pytest.mark.parametrize("features", [1, 3, 20])
def test_equals_the_loop(features, score, feature_map):
    config = RfaConfig(features=features, score=score, feature_map=feature_map)
    attention = build(config)
    for visit in visits(attention):
        check(visit.seen, rfa_by_hand(attention, config, visit))


def test_the_loop_meets_the_bound_of_the_denominator_and_negative_weights():
    """What the test above compares, it has."""
    config = RfaConfig(features=3, feature_map="fourier")
    attention = build(config)
    seen = [torch.tensor(visit.seen["weights"]) for visit in visits(attention)]
    assert any((weights < 0).any() for weights in seen)
    sums = torch.stack([weights.sum() for weights in seen])
    assert (sums < 1 - 1e-6).any()
    assert (sums > 1 - 1e-6).any()


def exact(attention, config, queries, states):
    """Softmax attention with what the features estimate: exp(x . y), or a Gaussian of x - y."""
    keys = torch.tensor(keys_by_hand(attention, config, states.tolist()), dtype=torch.float64)
    scaled = [scaled_by_hand(attention, query) for query in queries.tolist()]
    scaled = torch.tensor(scaled, dtype=torch.float64)
    if config.feature_map == "fourier":
        logits = -torch.cdist(scaled, keys).square() / 2
    else:
        logits = scaled @ keys.t()
    return torch.softmax(logits, dim=1)


@torch.no_grad()
@every_map
@pytest.mark.parametrize("unequal", [False, True])
def test_many_features_approach_softmax_attention(feature_map, unequal):
    """The error falls as 1 / sqrt(D): that of 400 times the features is about a twentieth."""
    states, mask = sources([8])
    queries = torch.randn(6, SIZES.query, generator=torch.Generator().manual_seed(3)).double()
    sigma = torch.tensor([0.5, 1.5, 1.0, 1.2]) if unequal else torch.full((4,), 1.2)

    def error(features: int) -> float:
        config = RfaConfig(features=features, score="dot", feature_map=feature_map)
        found = []
        for seed in range(5):
            attention = build(config, seed=seed)
            attention.sigma.data.copy_(sigma)
            expected = exact(attention, config, queries, states[0])
            memory, rows = attention.prepare(states, mask), torch.zeros(6).long()
            trace = step(attention, queries, queries[:, :3], memory, rows, (), trace=True).trace
            found.append((trace.weights - expected).square().mean())
            if not unequal:  # a softmax of cosines, for either kernel
                cosines = torch.cosine_similarity(queries[:, None], states, dim=2)
                close = torch.softmax(1.2**2 * cosines, dim=1)
                torch.testing.assert_close(expected, close, rtol=0, atol=1e-5)
        return math.sqrt(sum(found) / len(found))

    few, many = error(50), error(20000)
    assert many < 0.01
    assert few / 40 < many < few / 10


@torch.no_grad()
def test_positive_features_survive_any_sharpness():
    """Their logarithms are used: exp(|w| |x|) would overflow, or all products be 0."""
    attention = build(RfaConfig(features=5, feature_map="positive")).float()
    attention.sigma.data.fill_(300.0)
    states, mask = sources()
    memory = attention.prepare(states.float(), mask)
    query = torch.randn(4, SIZES.query)
    seen = step(attention, query, query[:, :3], memory, None, (), trace=True)
    assert torch.isfinite(seen.context).all()
    assert (seen.trace.weights >= 0).all()
    torch.testing.assert_close(seen.trace.weights.sum(1), torch.ones(4), rtol=0, atol=1e-5)


@torch.no_grad()
@pytest.mark.parametrize("length", [1, 40])
def test_fourier_weights_are_bounded_where_no_key_is_near(length):
    attention = build(RfaConfig(features=2, score="dot", feature_map="fourier"))
    attention.sigma.data.fill_(20.0)  # the estimates are little but noise
    states, mask = sources([length])
    queries = torch.randn(50, SIZES.query, generator=torch.Generator().manual_seed(3)).double()
    memory, rows = attention.prepare(states, mask), torch.zeros(50).long()
    trace = step(attention, queries, queries[:, :3], memory, rows, (), trace=True).trace
    assert trace.weights.abs().max() <= 1 + 1e-9
    least, most = attention.weight_sums(length)
    sums = trace.weights.sum(1)
    assert least - 1e-9 <= sums.min() < 0 < sums.max() <= most + 1e-9


@every_map
def test_a_vector_of_zeros_has_a_gradient(feature_map):
    attention = build(RfaConfig(features=4, score="dot", feature_map=feature_map))
    states = torch.zeros(1, 3, SIZES.states, dtype=torch.float64, requires_grad=True)
    query = torch.zeros(1, SIZES.query, dtype=torch.float64, requires_grad=True)
    memory = attention.prepare(states, torch.ones(1, 3).bool())
    context = step(attention, query, query[:, :3], memory, None, ()).context
    context.sum().backward()
    assert torch.isfinite(query.grad).all()
    assert torch.isfinite(states.grad).all()


@every_map
def test_random_vectors_follow_from_the_seed_and_are_not_trained(feature_map):
    config = RfaConfig(features=6, feature_map=feature_map)
    first, same, other = (build(config, seed=seed) for seed in (1, 1, 2))
    assert torch.equal(first.random, same.random)
    assert not torch.equal(first.random, other.random)
    assert "random" in dict(first.named_buffers())
    assert "random" in first.state_dict()
    assert first.random.shape == (6, SIZES.query)
    assert not first.random.requires_grad


@every_map
def test_the_features_are_as_many_whatever_the_length_of_the_source(feature_map):
    attention = build(RfaConfig(features=5, feature_map=feature_map))
    count = {"fourier": 10, "positive": 5}[feature_map]
    query = torch.zeros(1, SIZES.query).double()
    for length in (1, 4, 50):
        memory = attention.prepare(*sources([length]))
        assert memory.sums.shape == (1, count, SIZES.states)
        trace = step(attention, query, query[:, :3], memory, None, (), trace=True).trace
        assert trace.computed.tolist() == [count]
    expected = [count * length for length in LENGTHS]
    assert attention.encoding_computations(torch.tensor(LENGTHS)).tolist() == expected


@torch.no_grad()
@every_map
def test_sums_over_a_long_source_are_float32_under_autocast(feature_map):
    attention = build(RfaConfig(features=4, score="dot", feature_map=feature_map)).float()
    draw = torch.Generator().manual_seed(4)
    states = torch.randn(1, 1000, SIZES.states, generator=draw)
    query = torch.randn(1, SIZES.query, generator=draw)
    mask = torch.ones(1, 1000).bool()
    expected = step(attention, query, query[:, :3], attention.prepare(states, mask), None, ())
    with torch.autocast("cpu", torch.bfloat16):
        memory = attention.prepare(states, mask)
        found = step(attention, query, query[:, :3], memory, None, ())
    assert memory.sums.dtype == memory.norm.dtype == found.context.dtype == torch.float32
    torch.testing.assert_close(found.context, expected.context, rtol=1e-5, atol=1e-5)


def test_additive_scores_have_no_features():
    with pytest.raises(OptionError, match="additive"):
        RfaConfig.from_dict({"score": "additive"})
