"""What the loops share: a search that grows, is reordered and shrinks, and scores by hand."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, NamedTuple

import pytest
import torch
from steps import LENGTHS, SIZES, sources, step

from nmtflex.attention import Attention, Limits

SCORES = ["additive", "general", "dot"]
# The hypothesis of the step before that each continues: a beam grows, is reordered and shrinks;
# the sentence of one word is done after two steps.
PARENTS = [
    [0, 1, 2, 3],
    [0, 0, 1, 1, 1, 2, 3],
    [1, 0, 4, 2, 6, 6],
    [1, 1, 2, 3, 5],
    *([0, 1, 2, 3, 4] for _ in range(6)),
]


class Visit(NamedTuple):
    """One hypothesis in one step, in lists and floats."""

    step: int
    hypothesis: int
    parent: int
    sentence: int
    states: list[list[float]]  # real positions alone
    query: list[float]
    embedded: list[float]
    seen: dict[str, Any]  # context and trace


@torch.no_grad()
def visits(attention: Attention, tau: float = math.inf) -> Iterator[Visit]:
    """Run all steps of ``PARENTS``, and yield what each hypothesis saw in each."""
    states, mask = sources()
    memory = attention.prepare(states, mask, Limits(tau))
    rows, state = torch.arange(len(LENGTHS)), attention.start(states)
    for number, parents in enumerate(PARENTS):
        rows, state = rows[parents], tuple(part[parents] for part in state)
        query = 2 * torch.randn(len(rows), SIZES.query, dtype=torch.float64)
        embedded = torch.randn(len(rows), SIZES.feedback, dtype=torch.float64)
        glimpse = step(attention, query, embedded, memory, rows, state, trace=True)
        state = glimpse.state
        parts = {"context": glimpse.context, **glimpse.trace._asdict()}
        for n, (sentence, parent) in enumerate(zip(rows.tolist(), parents, strict=True)):
            seen = {
                name: part[n].tolist()
                for name, part in parts.items()
                if part is not None and name != "alpha"
            }
            real = states[sentence, : LENGTHS[sentence]].tolist()
            h, i = query[n].tolist(), embedded[n].tolist()
            yield Visit(number, n, parent, sentence, real, h, i, seen)


def check(seen: dict[str, Any], expected: dict[str, Any]) -> None:
    """Compare a visit with a loop: the same quantities, and weights on real positions alone."""
    assert seen.keys() == expected.keys()
    length = len(expected["weights"])
    assert set(seen["weights"][length:]) <= {0.0}
    for name, value in expected.items():
        got = seen[name][:length] if name == "weights" else seen[name]
        assert got == pytest.approx(value, abs=1e-12), name


def softmax_within(scores: dict[int, float], length: int) -> list[float]:
    """The softmax over the positions that have a score; the others weigh 0."""
    total = sum(math.exp(score) for score in scores.values())
    return [math.exp(scores[s]) / total if s in scores else 0.0 for s in range(length)]


def sigmoid(x: float) -> float:
    return 1 / (1 + math.exp(-x))


def dot(a, b):
    return sum(x * y for x, y in zip(a, b, strict=True))


def score_by_hand(attention, name, h, s):
    """Eq. 3 of Shu and Nakayama; eq. 8 of Luong et al."""
    weights = {key: value.tolist() for key, value in attention.score.state_dict().items()}
    if name == "additive":
        hidden = [
            math.tanh(dot(w, h) + dot(u, s) + b)
            for w, u, b in zip(
                weights["query.weight"],
                weights["states.weight"],
                weights["query.bias"],
                strict=True,
            )
        ]
        return dot(weights["v"], hidden)
    if name == "general":
        return dot(h, [dot(row, s) for row in weights["states.weight"]])
    return dot(h, s)


def gate_by_hand(gate, feedback, h, i):
    """Eq. 8 with the previous word, eq. 7 without it."""
    weights = {key: value.tolist() for key, value in gate.state_dict().items()}
    v, rows = weights["v.weight"][0], weights["state.weight"]
    if feedback:
        rows = [left + right for left, right in zip(rows, weights["word.weight"], strict=True)]
        return sigmoid(dot(v, [math.tanh(dot(w, h + i)) for w in rows]) + weights["v.bias"][0])
    biases = weights["state.bias"]
    return sigmoid(dot(v, [math.tanh(dot(w, h) + b) for w, b in zip(rows, biases, strict=True)]))


def hold_gate(attention, value):
    """Make the gate constant: 0 or 1."""
    gate, extreme = attention.gate, 1e4 if value else -1e4
    for parameter in gate.parameters():
        parameter.data.zero_()
    if gate.word is not None:
        gate.v.bias.data.fill_(extreme)
    else:
        gate.state.bias.data.fill_(50.0)
        gate.v.weight.data.fill_(extreme)
