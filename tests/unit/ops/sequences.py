"""Random inputs of attention over all steps, and ``attend`` step by step to compare with."""

from __future__ import annotations

import importlib
import math
from types import ModuleType
from typing import NamedTuple

import torch
from torch import Tensor

from nmtflex.ops.attend import Penalty, Source, attend, window_below


class Steps(NamedTuple):
    """What attention over T steps takes; B sentences of S positions."""

    query: Tensor  # [B, T, A]
    keys: Tensor
    values: Tensor
    v: Tensor | None
    gate: Tensor  # [B, T]
    focus: Tensor  # [B]
    lengths: Tensor
    sigma: float
    tau: float

    def learnt(self) -> list[Tensor]:
        """All that has a gradient; v comes last."""
        v = [] if self.v is None else [self.v]
        return [self.query, self.keys, self.values, self.gate, self.focus, *v]

    def with_learnt(self, *learnt: Tensor) -> Steps:
        """The same with other tensors in the place of ``learnt``."""
        query, keys, values, gate, focus, *v = learnt
        v = v[0] if v else None
        return self._replace(query=query, keys=keys, values=values, v=v, gate=gate, focus=focus)

    def learning(self) -> Steps:
        """The same with fresh leaves that want gradients."""
        return self.with_learnt(*(part.detach().clone().requires_grad_() for part in self.learnt()))

    def drawn(self, row: int | None = None) -> list[Tensor]:
        """Gradients that arrive at contexts and focuses, of all sentences or of one."""
        draw = torch.Generator().manual_seed(1)
        (count, steps), units = self.gate.shape, self.values.shape[2]
        shapes = (count, steps, units), (count, steps)
        drawn = [torch.randn(shape, generator=draw, dtype=torch.float64) for shape in shapes]
        return drawn if row is None else [part[row : row + 1] for part in drawn]


def make(
    lengths: tuple[int, ...] = (9, 5, 7),
    steps: int = 6,
    additive: bool = True,
    tau: float = math.inf,
    size: int = 20,
    dtype: torch.dtype = torch.float64,
    seed: int = 0,
) -> Steps:
    """Random inputs."""
    draw = torch.Generator().manual_seed(seed)

    def normal(*shape: int) -> Tensor:
        return torch.randn(*shape, generator=draw, dtype=torch.float64).to(dtype)

    count, length = len(lengths), max(lengths)
    return Steps(
        query=normal(count, steps, size) * (1 if additive else size**-0.5),
        keys=normal(count, length, size),
        values=normal(count, length, size + 3),
        v=normal(size) if additive else None,
        gate=normal(count, steps).sigmoid(),
        focus=normal(count).abs(),
        lengths=torch.tensor(lengths),
        sigma=1.5,
        tau=tau,
    )


class Form:
    """An implementation of ``nmtflex.ops.sequence``."""

    def __init__(self, module: ModuleType) -> None:
        self.module = module

    def walk(self, problem: Steps, scores: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """Weights and focus, of a problem's own scores or of others."""
        query, keys, _, v, gate, focus, lengths, sigma, tau = problem
        if scores is None:
            scores = self.module.scores(query, keys, lengths, v)
        return self.module.walk(scores, gate, focus, lengths, sigma, tau)

    def attended(self, problem: Steps) -> tuple[Tensor, Tensor]:
        """Contexts [B, T, H] and focuses [B, T]."""
        weights, focus = self.walk(problem)
        return self.module.contexts(weights, problem.values, problem.lengths), focus


class StepByStep(Form):
    """The operations as a loop over ``attend``."""

    def __init__(self) -> None:
        pass

    def attended(self, problem: Steps) -> tuple[Tensor, Tensor]:
        """Contexts and focuses, of one step after the other."""
        query, keys, values, v, gate, focus, lengths, sigma, tau = problem
        contexts, focuses = [], []
        for t in range(query.shape[1]):
            penalty = Penalty(gate[:, t], focus, sigma)
            window = window_below(tau, penalty, lengths) if tau < math.inf else None
            context, focus, *_ = attend(
                query[:, t], Source(keys, values, lengths), None, v, window, penalty
            )
            contexts.append(context)
            focuses.append(focus)
        return torch.stack(contexts, 1), torch.stack(focuses, 1)


FORMS = {
    name: Form(importlib.import_module(f"nmtflex.ops.sequence.{name}"))
    for name in ("reference", "cpu")
}
step_by_step = StepByStep()


def results(problem: Steps, form: Form, arriving: list[Tensor] | None = None) -> list[Tensor]:
    """Contexts, focuses and all gradients."""
    learning = problem.learning()
    attended = form.attended(learning)
    arriving = [
        grad.to(part) for grad, part in zip(arriving or problem.drawn(), attended, strict=True)
    ]
    return [*attended, *torch.autograd.grad(attended, learning.learnt(), arriving)]
