"""The whole model against the one of plain loops in ``tests/oracle``."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import torch
from oracle.model import Oracle
from oracle_cases import SOURCES, TARGETS, Case, batch, build, cases, layered_cases, mixed_cases

from nmtflex.attention import Limits
from nmtflex.config import SearchConfig
from nmtflex.decoding.search import beam_search
from nmtflex.model.inference import make_ready
from nmtflex.model.seq2seq import Limited

MAX_LENGTH = 6  # words of a greedy translation
CASES = [*cases(), *layered_cases(), *mixed_cases()]
PAIRS = list(zip(SOURCES, TARGETS, strict=True))
every_case = pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)


@pytest.mark.sampled(4)
@torch.no_grad()
@every_case
def test_the_model_is_the_one_of_the_papers(case: Case):
    model, oracle = build(case.config, case.tau)
    limits = Limits(case.tau)
    view = model.limited(limits)
    expected = [oracle.forced(*pair) for pair in PAIRS]
    steps_agree(view, expected)
    smoothing, beta = 0.1, 0.3 if case.config.attention.kind == "flexible" else 0.0
    loss = model.loss(*batch(), smoothing=smoothing, beta=beta, limits=limits)
    sums = [oracle.loss(*pair, smoothing, beta) for pair in PAIRS]
    objective, plain = (sum(column) for column in zip(*sums, strict=True))
    assert loss.objective.item() == pytest.approx(objective, abs=1e-12, rel=1e-12)
    assert loss.cross_entropy.item() == pytest.approx(plain, abs=1e-12, rel=1e-12)
    if beta:
        gates = [sum(step.gate for step in steps) / len(steps) for steps in expected]
        assert loss.gate.item() == pytest.approx(sum(gates), abs=1e-12)
    greedy = [oracle.greedy(source, MAX_LENGTH) for source in SOURCES]
    make_ready(model)  # as it is before a translation
    found = beam_search([view], SOURCES, SearchConfig(beam=1, max_length=MAX_LENGTH))
    for [hypothesis], (words, total) in zip(found, greedy, strict=True):
        assert hypothesis.ids == words
        assert hypothesis.log_probability == pytest.approx(total, abs=1e-12, rel=1e-12)


def steps_agree(model: Limited, expected: list[list[Any]]) -> None:
    """Compare the predictions of every step; a sentence that is done leaves the batch."""
    source, lengths, target_in, _ = batch()
    memory, state = model.encode(source, lengths)
    rows = torch.arange(len(SOURCES))
    for step in range(max(map(len, expected))):
        index = [n for n, row in enumerate(rows.tolist()) if len(expected[row]) > step]
        rows, state = rows[index], tuple(part[index] for part in state)
        output = model.step(memory, rows, state, target_in[rows, step])
        state = output.state
        wanted = np.array([expected[row][step].log_probs for row in rows.tolist()])
        np.testing.assert_allclose(model.log_probs(output.output), wanted, rtol=1e-12, atol=1e-12)


TRAINED = [case for case in CASES if math.isinf(case.tau)][::3]


@pytest.mark.sampled(3)
@pytest.mark.parametrize("case", TRAINED, ids=lambda case: case.name)
def test_the_gradient_is_the_slope_of_the_papers_loss(case: Case):
    """Along random directions through all weights at once, by central differences.

    The steps are small enough to cross no kink of a ReLU; ten times as far, a case does.
    """
    model, oracle = build(case.config, case.tau)
    smoothing, beta = 0.1, 0.3 if case.config.attention.kind == "flexible" else 0.0
    model.loss(*batch(), smoothing=smoothing, beta=beta).objective.backward()
    draw = np.random.default_rng(5)
    for _ in range(2):
        drawn = {part: draw.normal(size=part.shape) for part in model.parameters()}
        slope = sum(  # decisions of scans have none
            (part.grad.numpy() * direction).sum()
            for part, direction in drawn.items()
            if part.grad is not None
        )
        # A tied weight has several names.
        by_name = {
            name: drawn[part] for name, part in model.named_parameters(remove_duplicate=False)
        }
        ahead, behind = (
            oracle_loss(oracle, by_name, step, smoothing, beta) for step in (1e-8, -1e-8)
        )
        assert slope == pytest.approx((ahead - behind) / 2e-8, rel=1e-6, abs=1e-6)


def oracle_loss(
    oracle: Oracle, direction: dict[str, Any], step: float, smoothing: float, beta: float
) -> float:
    """Return the loss a step away."""
    arrays = dict(oracle.weights.arrays)  # with what was drawn once for all
    arrays |= {name: arrays[name] + step * along for name, along in direction.items()}
    moved = Oracle(oracle.config, arrays, oracle.longest, oracle.tau)
    return sum(moved.loss(*pair, smoothing, beta)[0] for pair in PAIRS)
