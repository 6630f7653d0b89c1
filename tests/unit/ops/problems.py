"""Random inputs of windowed attention, and the answer worked out by hand, number by number."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import torch
from torch import Tensor

from nmtflex.ops.attend import Attended, Damping, Penalty, Window, cpu, reference
from nmtflex.ops.attend.operation import Source

IMPLEMENTATIONS = {"reference": reference, "cpu": cpu}


class Problem(NamedTuple):
    """What ``attend`` takes; B sentences of S positions, N hypotheses."""

    query: Tensor
    keys: Tensor
    values: Tensor
    lengths: Tensor
    rows: Tensor | None = None
    v: Tensor | None = None
    window: Window | None = None
    penalty: Penalty | None = None
    damping: Damping | None = None

    def attend(self, chosen: Any, trace: bool = True) -> Attended:
        source = chosen.make_source(self.keys, self.values, self.lengths)
        return self.attend_to(source, chosen, trace)

    def attend_to(self, source: Source, chosen: Any, trace: bool = True) -> Attended:
        return chosen.attend(
            self.query,
            source,
            self.rows,
            self.v,
            self.window,
            self.penalty,
            self.damping,
            trace,
        )

    def learnt(self) -> list[Tensor]:
        """All that has a gradient."""
        gate_and_focus = [] if self.penalty is None else list(self.penalty[:2])
        centre = [] if self.damping is None else [self.damping.centre]
        v = [] if self.v is None else [self.v]
        return [self.query, self.keys, self.values, *v, *gate_and_focus, *centre]

    def with_learnt(self, *learnt: Tensor) -> Problem:
        """The same with other tensors in the place of ``learnt``."""
        rest = iter(learnt)
        query, keys, values = next(rest), next(rest), next(rest)
        v = None if self.v is None else next(rest)
        penalty = self.penalty and self.penalty._replace(gate=next(rest), focus=next(rest))
        damping = self.damping and self.damping._replace(centre=next(rest))
        return self._replace(
            query=query, keys=keys, values=values, v=v, penalty=penalty, damping=damping
        )

    def learning(self) -> Problem:
        """The same with fresh leaves that want gradients."""
        return self.with_learnt(*(part.detach().clone().requires_grad_() for part in self.learnt()))


def make(
    seed: int = 0,
    lengths: tuple[int, ...] = (9, 5, 7),
    rows: list[int] | None = None,
    keys: int = 20,
    values: int = 12,
    additive: bool = True,
    windowed: bool = True,
    punished: bool = True,
    damped: bool = False,
    dtype: torch.dtype = torch.float64,
) -> Problem:
    """Random inputs; with ``rows`` None, a hypothesis a sentence."""
    draw = torch.Generator().manual_seed(seed)

    def normal(*shape: int) -> Tensor:
        return torch.randn(*shape, generator=draw, dtype=torch.float64).to(dtype)

    count = len(lengths) if rows is None else len(rows)
    real = torch.tensor(lengths)[torch.arange(count) if rows is None else rows]
    start, stop = torch.zeros(count).long(), real
    if windowed:
        ends = torch.stack([_below(real, draw) for _ in range(2)])  # [2, N]
        start, stop = ends.amin(0), ends.amax(0) + 1

    def within() -> Tensor:
        place = torch.rand(count, generator=draw, dtype=torch.float64)
        return (start + place * (stop - 1 - start)).to(dtype)

    return Problem(
        query=normal(count, keys) * (1 if additive else keys**-0.5),
        keys=normal(len(lengths), max(lengths), keys),
        values=normal(len(lengths), max(lengths), values),
        lengths=torch.tensor(lengths),
        rows=None if rows is None else torch.tensor(rows),
        v=normal(keys) if additive else None,
        window=Window(start, stop) if windowed else None,
        penalty=Penalty(normal(count).sigmoid(), within(), 1.5) if punished else None,
        damping=Damping(within(), 2.5) if damped else None,
    )


def _below(limits: Tensor, draw: torch.Generator) -> Tensor:
    """A whole number for each limit, at least 0 and less than it."""
    return (torch.rand(len(limits), generator=draw) * limits).long().minimum(limits - 1)


def by_hand(
    problem: Problem,
) -> tuple[list[list[float]], list[float], list[list[float]], list[float]]:
    """Contexts, focuses, weights and sums of exponentials, in Python's own numbers."""
    contexts, focuses, all_weights, log_sums = [], [], [], []
    for n, query in enumerate(problem.query.tolist()):
        row = n if problem.rows is None else int(problem.rows[n])
        start, stop = 0, int(problem.lengths[row])
        if problem.window is not None:
            start, stop = (int(bound[n]) for bound in problem.window)
        scores = [
            score_by_hand(problem, n, query, problem.keys[row, s], s) for s in range(start, stop)
        ]
        exponentials = [math.exp(score - max(scores)) for score in scores]
        weights = [0.0] * problem.keys.shape[1]
        for s, exponential in zip(range(start, stop), exponentials, strict=True):
            weights[s] = exponential / sum(exponentials)
            if problem.damping is not None:
                away = s - float(problem.damping.centre[n])
                weights[s] *= math.exp(-(away**2) / (2 * problem.damping.sigma**2))
        values = problem.values[row].tolist()
        contexts.append([
            sum(weights[s] * values[s][h] for s in range(start, stop))
            for h in range(len(values[0]))
        ])
        focuses.append(sum(weights[s] * s for s in range(start, stop)))
        all_weights.append(weights)
        log_sums.append(max(scores) + math.log(sum(exponentials)))
    return contexts, focuses, all_weights, log_sums


def score_by_hand(problem: Problem, n: int, query: list[float], key: Tensor, s: int) -> float:
    pairs = zip(query, key.tolist(), strict=True)
    if problem.v is None:
        score = sum(q * k for q, k in pairs)
    else:
        score = sum(
            v * math.tanh(q + k) for v, (q, k) in zip(problem.v.tolist(), pairs, strict=True)
        )
    if problem.penalty is not None:
        gate, focus, sigma = problem.penalty
        score -= float(gate[n]) * (s - float(focus[n])) ** 2 / (2 * sigma**2)
    return score
