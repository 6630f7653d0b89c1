"""The attention mechanisms, for one hypothesis of one sentence, from the papers' equations."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from oracle.weights import Matrix, Vector, Weights, sigmoid, softmax


class Step(NamedTuple):
    """What a step of attention gives."""

    context: Vector
    state: Any = None  # for the next step: focus, number of the step
    gate: float | None = None
    weights: Vector | None = None  # [S]


class NoAttention:
    """A context of no units.

    Args:
        weights: Of the mechanism.
        options: By the names of its config.
        states: Of which contexts are sums.
        longest: Longest source of the training data.
        keys: What is scored, if not the states.
        scale: Of dot products.
    """

    def __init__(
        self,
        weights: Weights,
        options: Any,
        states: list[Vector],
        longest: int,
        keys: list[Vector] | None = None,
        scale: float = 1.0,
    ) -> None:
        self.weights = weights
        self.options = options
        self.states = states
        self.longest = longest
        self.keys = states if keys is None else keys
        self.scale = scale
        self.read()

    def read(self) -> None:
        """Prepare what the steps need."""

    def start(self) -> Any:
        return None

    def attend(self, query: Vector, feedback: Vector, state: Any) -> Step:
        return Step(np.zeros(0))


class GlobalAttention(NoAttention):
    """Shu and Nakayama, eq. 1-3; Luong et al., eq. 8."""

    def score(self, h: Vector, s: int) -> float:
        return self.fit(h, self.keys[s])

    def fit(self, h: Vector, key: Vector) -> float:
        own = self.weights.under("score")
        if self.options.score == "additive":
            inside = own["query.weight"] @ h + own["states.weight"] @ key + own["query.bias"]
            return float(own["v"] @ np.tanh(inside))
        if self.options.score == "general":
            return self.scale * float(h @ (own["states.weight"] @ key))
        return self.scale * float(h @ key)

    def mean(self, weights: dict[int, float], **rest: Any) -> Step:
        """Sum the states by the weights of some positions."""
        context = sum(weight * self.states[s] for s, weight in weights.items())
        laid_out = np.array([weights.get(s, 0.0) for s in range(len(self.states))])
        return Step(np.asarray(context), weights=laid_out, **rest)

    def within(self, positions: list[int], scores: list[float]) -> dict[int, float]:
        return dict(zip(positions, softmax(np.array(scores)).tolist(), strict=True))

    def attend(self, query: Vector, feedback: Vector, state: Any) -> Step:
        positions = list(range(len(self.states)))
        return self.mean(self.within(positions, [self.score(query, s) for s in positions]))


class LocalM(GlobalAttention):
    """Luong et al., section 3.2: p[t] = t, at most the last position."""

    def start(self) -> int:
        return 0

    def attend(self, query: Vector, feedback: Vector, state: int) -> Step:
        centre = min(state, len(self.states) - 1)
        reach = self.options.window
        positions = [s for s in range(len(self.states)) if abs(s - centre) <= reach]
        weights = self.within(positions, [self.score(query, s) for s in positions])
        return self.mean(weights, state=state + 1)


class LocalP(GlobalAttention):
    """Luong et al., eq. 9-10, with sigma = D / 2."""

    def attend(self, query: Vector, feedback: Vector, state: Any) -> Step:
        w, v = self.weights["centre.0.weight"], self.weights["centre.2.weight"][0]
        centre = len(self.states) * sigmoid(v @ np.tanh(w @ query))
        reach = self.options.window
        positions = [s for s in range(len(self.states)) if abs(s - centre) <= reach]
        weights = self.within(positions, [self.score(query, s) for s in positions])
        sigma = reach / 2
        return self.mean({
            s: weight * math.exp(-((s - centre) ** 2) / (2 * sigma**2))
            for s, weight in weights.items()
        })


class Flexible(GlobalAttention):
    """Shu and Nakayama, eq. 4-8; with a threshold, the positions whose penalty is below it."""

    tau = math.inf

    def start(self) -> float:
        return 0.0

    def gate(self, query: Vector, feedback: Vector) -> float:
        own = self.weights.under("gate")
        w, v = own["state.weight"], own["v.weight"][0]
        if self.options.gate_feedback:  # eq. 8
            inside = w @ query + own["word.weight"] @ feedback
            return float(sigmoid(v @ np.tanh(inside) + own["v.bias"][0]))
        return float(sigmoid(v @ np.tanh(w @ query + own["state.bias"])))  # eq. 7

    def attend(self, query: Vector, feedback: Vector, state: float) -> Step:
        g = self.gate(query, feedback)
        count, sigma = len(self.states), self.options.sigma
        penalties = [g * (s - state) ** 2 / (2 * sigma**2) for s in range(count)]
        positions = [s for s in range(count) if penalties[s] < self.tau]
        if not positions:
            positions = [min(range(count), key=lambda s: abs(s - state))]
        scores = [self.score(query, s) - penalties[s] for s in positions]
        weights = self.within(positions, scores)
        focus = sum(weight * s for s, weight in weights.items())
        rest = [s for s in range(count) if s not in positions and penalties[s] < self.tau + 2]
        if self.options.remainder and rest and self.tau < math.inf:
            key = np.mean([self.keys[s] for s in rest], axis=0)
            one = self.fit(query, key) - np.mean([penalties[s] for s in rest])
            *inside, share = softmax(np.array([*scores, one + math.log(len(rest))])).tolist()
            weights = dict(zip(positions, inside, strict=True))
            weights |= {s: share / len(rest) for s in rest}
        return self.mean(weights, state=focus, gate=g)


class Memory(NoAttention):
    """Britz, Guan and Luong, eq. 7, 8, 11 and 12; positions and slots count from 1."""

    def read(self) -> None:
        weights, options = self.weights, self.options
        self.beta = weights["beta.weight"]
        self.scoring = options.decoder_scoring
        logits: Matrix = np.array([weights["alpha.weight"] @ key for key in self.keys])  # [S, K]
        if options.position_encoding:
            logits = logits * self.encodings(len(self.keys), options.K, self.longest)
        alpha = [self.scored(row, options.encoder_scoring) for row in logits]
        self.slots = [
            sum(a[k] * state for a, state in zip(alpha, self.states, strict=True))
            for k in range(options.K)
        ]

    @staticmethod
    def encodings(count: int, slots: int, longest: int) -> Matrix:
        """Eq. 12, each slot's row at mean 1 over the sentence."""
        found = np.zeros((count, slots))
        for s in range(1, count + 1):
            for k in range(1, slots + 1):
                place, slot = min(s, longest) / longest, k / slots
                found[s - 1, k - 1] = (1 - slot) * (1 - place) + slot * place
        return found / (found.sum(0) / count)

    @staticmethod
    def scored(logits: Vector, scoring: str) -> Vector:
        return softmax(logits) if scoring == "softmax" else np.asarray(sigmoid(logits))

    def attend(self, query: Vector, feedback: Vector, state: Any) -> Step:
        beta = self.scored(self.beta @ query, self.scoring)
        context = sum(weight * slot for weight, slot in zip(beta, self.slots, strict=True))
        return Step(np.asarray(context))


class Abc(GlobalAttention):
    """Peng et al. (2022): global attention to slots, each a mean by its own weights."""

    def read(self) -> None:
        logits: Matrix = np.array([self.weights["phi.weight"] @ key for key in self.keys])  # [S, K]
        means: list[list[Vector]] = [[], []]
        for slot in logits.T:
            for found, vectors in zip(means, (self.keys, self.states), strict=True):
                pairs = zip(softmax(slot), vectors, strict=True)
                found.append(np.asarray(sum(weight * vector for weight, vector in pairs)))
        self.keys, self.states = means


class Rfa(NoAttention):
    """Peng et al. (2021), with sine and cosine; Choromanski et al. (2021), with exponentials."""

    def scaled(self, vector: Vector) -> Vector:
        return np.asarray(self.weights["sigma"] * vector / math.sqrt(vector @ vector + 1e-6))

    def phi(self, x: Vector) -> Vector:
        products = self.weights["random"] @ x
        if self.options.feature_map == "fourier":
            found = np.concatenate([np.sin(products), np.cos(products)])
        else:
            found = np.exp(products - x @ x / 2)
        return found / math.sqrt(len(products))

    def read(self) -> None:
        keys = self.keys
        if self.options.score == "general":
            keys = [self.weights["score.states.weight"] @ key for key in keys]
        self.features = [self.phi(self.scaled(key)) for key in keys]

    def attend(self, query: Vector, feedback: Vector, state: Any) -> Step:
        own = self.phi(self.scaled(query))
        kernels = np.array([own @ feature for feature in self.features])
        total = kernels.sum()
        if self.options.feature_map == "fourier":
            total = max(total, 1)
        weights = kernels / total
        context = sum(weight * state for weight, state in zip(weights, self.states, strict=True))
        return Step(np.asarray(context), weights=weights)


class Monotonic(GlobalAttention):
    """Raffel et al. (2017) as it decodes: the first position with p >= 1/2, or none for ever."""

    def start(self) -> int:
        return 0

    def energy(self, name: str, h: Vector, s: int) -> float:
        own, key = self.weights.under(name), self.keys[s]
        inside = own["query.weight"] @ h + own["states.weight"] @ key + own["query.bias"]
        return float(own["g"][0] * own["v"] @ np.tanh(inside) / math.sqrt(own["v"] @ own["v"]))

    def chunk(self, h: Vector, stop: int) -> dict[int, float]:
        return {stop: 1.0}

    def attend(self, query: Vector, feedback: Vector, state: int) -> Step:
        for s in range(state, len(self.states)):
            if sigmoid(self.energy("energy", query, s) + self.weights["r"][0]) >= 0.5:
                return self.mean(self.chunk(query, s), state=s)
        nothing = np.zeros(len(self.states))
        return Step(np.zeros(len(self.states[0])), state=len(self.states), weights=nothing)


class Mocha(Monotonic):
    """Chiu and Raffel (2018): a softmax over the positions that end at the stop."""

    def chunk(self, h: Vector, stop: int) -> dict[int, float]:
        positions = list(range(max(0, stop - self.options.chunk + 1), stop + 1))
        return self.within(positions, [self.energy("score", h, s) for s in positions])


MECHANISMS: dict[str, type[NoAttention]] = {
    "none": NoAttention,
    "global": GlobalAttention,
    "local-m": LocalM,
    "local-p": LocalP,
    "flexible": Flexible,
    "memory": Memory,
    "abc": Abc,
    "rfa": Rfa,
    "monotonic": Monotonic,
    "mocha": Mocha,
}
