"""Transformer layers and SSRU, one vector at a time; Vaswani et al. (2017), Kim et al. (2019)."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from oracle.attention import MECHANISMS, Flexible, NoAttention
from oracle.weights import Vector, Weights, sigmoid, softmax


class Layered(NamedTuple):
    """A hypothesis of a sentence in a decoder of layers: what is known before its next step."""

    heads: list[list[NoAttention]]  # of each attending layer
    attending: list[list[Any]]  # their states
    mixed: list[Any]  # of each layer: c of an SSRU, or the keys and values of the steps so far
    number: int  # of the step
    summary: Vector  # added to every input


def linear(weights: Weights, x: Vector) -> Vector:
    return weights["weight"] @ x + weights["bias"]


def norm(weights: Weights, x: Vector) -> Vector:
    """Layer norm, with torch's epsilon."""
    centred = x - x.mean()
    return weights["weight"] * centred / np.sqrt((centred**2).mean() + 1e-5) + weights["bias"]


def position(place: int, size: int) -> Vector:
    """Section 3.5, the sines before the cosines."""
    angles = [place / 10000 ** (2 * i / size) for i in range((size + 1) // 2)]
    sines = [math.sin(angle) for angle in angles]
    return np.array((sines + [math.cos(angle) for angle in angles])[:size])


def attend(q: Vector, keys: list[Vector], values: list[Vector], heads: int) -> Vector:
    """Section 3.2: scaled dot products, head by head, before the product W_O."""
    each, found = len(q) // heads, []
    for first in range(0, len(q), each):
        own = slice(first, first + each)
        scores = np.array([q[own] @ key[own] for key in keys]) / math.sqrt(each)
        parts = zip(softmax(scores), values, strict=True)
        found.append(sum(weight * value[own] for weight, value in parts))
    return np.concatenate(found)


def around(weights: Weights, pre_norm: bool, x: Vector, sublayer: Any) -> Vector:
    """Residual connection and layer norm of a sublayer."""
    own = weights.under("norm")
    return x + sublayer(norm(own, x)) if pre_norm else norm(own, x + sublayer(x))


def feed_forward(weights: Weights, pre_norm: bool, x: Vector) -> Vector:
    """Equation 2, with what is around it; ``weights`` are the layer's."""
    own = weights.under("feed_forward")

    def sublayer(inputs: Vector) -> Vector:
        return linear(own.under("outer"), np.maximum(linear(own.under("inner"), inputs), 0))

    return around(weights.under("around_feed_forward"), pre_norm, x, sublayer)


def encode(weights: Weights, options: Any, embedded: list[Vector]) -> tuple[list[Vector], Vector]:
    """Return the states of a source and their mean."""
    size, pre_norm = options.encoder_size, options.pre_norm
    x = [vector + position(place, size) for place, vector in enumerate(embedded)]
    for number in range(options.encoder_layers):
        layer = weights.under(f"layers.{number}")
        own, norms = layer.under("attention"), layer.under("around_attention")
        inputs = [norm(norms.under("norm"), part) if pre_norm else part for part in x]
        q, k, v = zip(*(np.split(linear(own.under("inputs"), y), 3) for y in inputs), strict=True)
        seen = [attend(query, list(k), list(v), options.encoder_heads) for query in q]
        x = [part + linear(own.under("output"), y) for part, y in zip(x, seen, strict=True)]
        if not pre_norm:
            x = [norm(norms.under("norm"), part) for part in x]
        x = [feed_forward(layer, pre_norm, part) for part in x]
    if pre_norm:
        x = [norm(weights.under("norm"), part) for part in x]
    return x, np.mean(x, axis=0)


class LayeredDecoder:
    """The decoder, a step at a time.

    Args:
        config: The model's.
        weights: The decoder's.
    """

    def __init__(self, config: Any, weights: Weights) -> None:
        self.config = config
        self.options = config.decoder
        self.weights = weights

    def start(self, states: list[Vector], final: Vector, longest: int, tau: float) -> Layered:
        """Project the states for every head of every attending layer."""
        own, size = self.options, self.options.decoder_size
        each, heads = size // own.decoder_heads, []
        summary = np.zeros(size)
        layers = own.attending
        if self.config.attention.kind == "none":
            layers, summary = [], linear(self.weights.under("summary"), final)
        for layer in layers:
            weights = self.weights.under(f"layers.{layer}.attention")
            both = [linear(weights.under("source"), state) for state in states]
            heads.append([])
            for first in range(0, size, each):
                keys = [part[first : first + each] for part in both]
                values = [part[size + first : size + first + each] for part in both]
                mechanism = MECHANISMS[self.config.attention.kind]
                head = mechanism(
                    weights.under("mechanism"), self.config.attention, values, longest, keys,
                    1 / math.sqrt(each),
                )  # fmt: skip
                if isinstance(head, Flexible):
                    head.tau = tau
                heads[-1].append(head)
        before = np.zeros(size) if own.kind == "ssru" else ([], [])
        attending = [[head.start() for head in row] for row in heads]
        return Layered(heads, attending, [before] * own.decoder_layers, 0, summary)

    def step(self, running: Layered, i: Vector) -> tuple[Vector, Layered, float | None]:
        """Advance by the embedded previous word; the gate is the mean over layers and heads."""
        own, pre_norm = self.options, self.options.pre_norm
        x = i + position(running.number, own.decoder_size) + running.summary
        mixed, attending, gates = [], [], []
        for number in range(own.decoder_layers):
            weights = self.weights.under(f"layers.{number}")
            mix = self.ssru if own.kind == "ssru" else self.self_attention

            def mixer(
                y: Vector, mix: Any = mix, weights: Any = weights, at: int = number
            ) -> Vector:
                found, state = mix(weights.under("mixer"), y, running.mixed[at])
                mixed.append(state)
                return found

            def source(y: Vector, weights: Any = weights) -> Vector:
                at = len(attending)
                found, state, gate = self.heads(
                    weights.under("attention"), y, i, running.heads[at], running.attending[at]
                )
                attending.append(state)
                gates.extend(gate)
                return found

            x = around(weights.under("around_mixer"), pre_norm, x, mixer)
            if running.heads and number in own.attending:
                x = around(weights.under("around_attention"), pre_norm, x, source)
            if own.decoder_ffn:
                x = feed_forward(weights, pre_norm, x)
        if pre_norm:
            x = norm(self.weights.under("norm"), x)
        after = Layered(running.heads, attending, mixed, running.number + 1, running.summary)
        return x, after, sum(gates) / len(gates) if gates else None

    def ssru(self, weights: Weights, x: Vector, c: Vector) -> tuple[Vector, Vector]:
        """Kim et al., section 3.1."""
        gate, candidate = np.split(weights["joint.weight"] @ x, 2)
        forget = sigmoid(gate + weights["bias"])
        c = forget * c + (1 - forget) * candidate
        return np.maximum(c, 0), c

    def self_attention(self, weights: Weights, x: Vector, state: Any) -> tuple[Vector, Any]:
        """Vaswani et al., section 3.2.3: of this step and those before."""
        q, k, v = np.split(linear(weights.under("inputs"), x), 3)
        keys, values = [*state[0], k], [*state[1], v]
        seen = attend(q, keys, values, self.options.decoder_heads)
        return linear(weights.under("output"), seen), (keys, values)

    def heads(
        self, weights: Weights, x: Vector, i: Vector, heads: list[NoAttention], states: list[Any]
    ) -> tuple[Vector, list[Any], list[float]]:
        """Section 3.2.2 with any mechanism; return the contexts' product, states and gates."""
        queries = np.split(linear(weights.under("query"), x), len(heads))
        seen = [
            head.attend(query, i, state)
            for head, query, state in zip(heads, queries, states, strict=True)
        ]
        context = np.concatenate([step.context for step in seen])
        gates = [step.gate for step in seen if step.gate is not None]
        return linear(weights.under("output"), context), [step.state for step in seen], gates
