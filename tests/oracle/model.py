"""Encoder, decoders, output layer, loss and greedy search."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from oracle.attention import MECHANISMS, Flexible, NoAttention
from oracle.cells import State, advance, encode
from oracle.layered import Layered, LayeredDecoder
from oracle.layered import encode as encode_layered
from oracle.weights import Vector, Weights

PAD, BOS, EOS = 0, 2, 3
Ids = list[int]


class Running(NamedTuple):
    """A hypothesis of a sentence: what is known before its next step."""

    attention: NoAttention
    cells: list[State]  # from the bottom layer
    fed: Vector  # Luong's input feeding; nothing in Bahdanau's decoder
    attending: Any


class Prediction(NamedTuple):
    """What a step gives."""

    log_probs: Vector  # [V]
    running: Running | Layered
    gate: float | None


class Oracle:
    """The models of the papers, a sentence at a time.

    Args:
        config: The options, by the names of ``ModelConfig``.
        arrays: The weights by name.
        longest: Longest source of the training data, for the position encodings.
        tau: Threshold of flexible attention's penalty.
    """

    def __init__(
        self,
        config: Any,
        arrays: Mapping[str, np.ndarray],
        longest: int,
        tau: float = math.inf,
    ) -> None:
        self.config = config
        self.weights = Weights(arrays)
        self.decoder = self.weights.under("decoder")
        self.layered: LayeredDecoder | None = None
        if config.decoder.kind in ("ssru", "transformer"):
            self.layered = LayeredDecoder(config, self.decoder)
        self.longest = longest
        self.tau = tau

    def embed(self, side: str, word: int) -> Vector:
        """Look a word up; rows of output and residual layers are sqrt(E) times as large."""
        tie, name = self.config.tie_embeddings, "target_embedding.weight"
        scaled = tie != "none" or self.config.decoder.kind in ("ssru", "transformer")
        if side == "source" and tie != "all":
            name, scaled = "encoder.embedding.weight", self.config.encoder.kind == "transformer"
        row = self.weights[name][word]
        return row * math.sqrt(len(row)) if scaled else row

    def encode(self, source: Ids) -> tuple[list[Vector], Vector]:
        """Return the states of a sentence, and what stands for it as a whole."""
        states, options = [self.embed("source", word) for word in source], self.config.encoder
        if options.kind == "transformer":
            return encode_layered(self.weights.under("encoder"), options, states)
        for layer in range(options.encoder_layers):
            weights = self.weights.under(f"encoder.layers.{layer}")
            states, final = encode(weights, options.cell, states)
        return states, final

    def read(self, source: Ids) -> Running | Layered:
        """Encode a sentence, and start the decoder: each part of its state is tanh(W final + b)."""
        config = self.config
        states, final = self.encode(source)
        if self.layered is not None:
            return self.layered.start(states, final, self.longest, self.tau)
        parts = np.tanh(self.decoder["bridge.weight"] @ final + self.decoder["bridge.bias"])
        num_parts = 2 if config.decoder.cell == "lstm" else 1
        by_layer = parts.reshape(
            config.decoder.decoder_layers, num_parts, config.decoder.decoder_size
        )
        mechanism = MECHANISMS[config.attention.kind]
        weights = self.decoder.under("attention")
        attention = mechanism(weights, config.attention, states, self.longest)
        if isinstance(attention, Flexible):
            attention.tau = self.tau
        fed = np.zeros(self.fed_size(len(final)))
        return Running(attention, [tuple(layer) for layer in by_layer], fed, attention.start())

    def fed_size(self, states_size: int) -> int:
        """Units that Luong's decoder feeds itself."""
        config = self.config
        if config.decoder.kind != "luong" or not config.decoder.input_feeding:
            return 0
        if config.decoder.attentional:
            return config.decoder.decoder_size
        return 0 if config.attention.kind == "none" else states_size

    def step(self, running: Any, word: int) -> Prediction:
        """Advance by the previous output word."""
        decoders = {"bahdanau": self.bahdanau, "luong": self.luong}
        step = self.layered.step if self.layered else decoders[self.config.decoder.kind]
        vector, running, gate = step(running, self.embed("target", word))
        return Prediction(self.log_probs(vector), running, gate)

    def bahdanau(self, running: Running, i: Vector) -> tuple[Vector, Running, float | None]:
        """c[t] = attention(h[t-1], i[t]); h[t] = cell([i[t]; c[t]], h[t-1]); predict from h[t].

        The deep output predicts from maxout pairs of U h[t] + V i[t] + C c[t] + b instead.
        """
        seen = running.attention.attend(running.cells[-1][0], i, running.attending)
        cells = self.advance(i, seen.context, running.cells)
        vector = cells[-1][0]
        if self.config.decoder.deep_output:
            own = self.decoder.under("deep")
            made = own["words.weight"] @ i + own["words.bias"]
            made += own["joint.weight"] @ np.concatenate([vector, seen.context])
            vector = np.array([max(pair) for pair in zip(made[::2], made[1::2], strict=True)])
        return vector, running._replace(cells=cells, attending=seen.state), seen.gate

    def luong(self, running: Running, i: Vector) -> tuple[Vector, Running, float | None]:
        """h[t] = cell([i[t]; a[t-1]], h[t-1]); c[t] = attention(h[t]); a[t] = tanh(W [h; c])."""
        cells = self.advance(i, running.fed, running.cells)
        h = cells[-1][0]
        seen = running.attention.attend(h, i, running.attending)
        vector, fed = np.concatenate([h, seen.context]), seen.context
        if self.config.decoder.attentional:
            vector = fed = np.tanh(self.decoder["attentional.weight"] @ vector)
        if not self.config.decoder.input_feeding:
            fed = np.zeros(0)
        return vector, Running(running.attention, cells, fed, seen.state), seen.gate

    def advance(self, embedded: Vector, extra: Vector, cells: list[State]) -> list[State]:
        return advance(
            self.decoder.under("stack"), self.config.decoder.cell, embedded, extra, cells
        )

    def log_probs(self, vector: Vector) -> Vector:
        """Linear bottleneck, product with a row a word, log-softmax."""
        if self.config.bottleneck:
            own = self.weights.under("output.bottleneck")
            vector = own["weight"] @ vector + own["bias"]
        tied = self.config.tie_embeddings != "none"
        rows = self.weights["target_embedding.weight" if tied else "output.projection.weight"]
        logits = rows @ vector + self.weights["output.projection.bias"]
        return logits - logits.max() - math.log(np.exp(logits - logits.max()).sum())

    def forced(self, source: Ids, target: Ids) -> list[Prediction]:
        """Predict each word of a translation, EOS last, from those before it."""
        running, found = self.read(source), []
        for word in [BOS, *target]:
            found.append(self.step(running, word))
            running = found[-1].running
        return found

    def loss(self, source: Ids, target: Ids, smoothing: float, beta: float) -> tuple[float, float]:
        """Return a sentence's objective and its plain cross-entropy.

        Eq. 9 of Shu and Nakayama takes beta times the mean gate off; label smoothing mixes the
        reference with an even distribution.
        """
        steps = self.forced(source, target)
        objective = plain = 0.0
        for word, step in zip([*target, EOS], steps, strict=True):
            wanted = np.full(len(step.log_probs), smoothing / len(step.log_probs))
            wanted[word] += 1 - smoothing
            objective -= float(wanted @ step.log_probs)
            plain -= float(step.log_probs[word])
        if beta:
            objective -= beta * sum(step.gate for step in steps) / len(steps)
        return objective, plain

    def greedy(self, source: Ids, max_length: int) -> tuple[Ids, float]:
        """Take the most probable word at each step; after ``max_length`` words, EOS alone.

        Returns:
            The words without EOS, and the sum of their log-probabilities, EOS counted.
        """
        running, words, total = self.read(source), [], 0.0
        while True:
            step = self.step(running, words[-1] if words else BOS)
            allowed = step.log_probs.copy()
            allowed[[PAD, BOS]] = -np.inf
            word = EOS if len(words) == max_length else int(allowed.argmax())
            total += float(step.log_probs[word])
            if word == EOS:
                return words, total
            words.append(word)
            running = step.running
