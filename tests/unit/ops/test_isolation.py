"""What lies outside of a window changes nothing, not even NaN and infinity."""

from __future__ import annotations

import math

import pytest
import torch
from problems import IMPLEMENTATIONS, Problem, make

from nmtflex.ops.attend import Window

POISONS = {"nan": math.nan, "inf": math.inf, "-inf": -math.inf, "zero": 0.0}


@pytest.fixture(params=IMPLEMENTATIONS)
def chosen(request):
    return IMPLEMENTATIONS[request.param]


def seen(problem: Problem) -> torch.Tensor:
    """Positions [B, S] that any hypothesis reads."""
    rows = range(len(problem.query)) if problem.rows is None else problem.rows.tolist()
    read = torch.zeros(problem.keys.shape[:2], dtype=torch.bool)
    for n, row in enumerate(rows):
        start, stop = 0, problem.lengths[row]
        if problem.window is not None:
            start, stop = (bound[n] for bound in problem.window)
        read[row, start:stop] = True
    return read


def poisoned(problem: Problem, poison: float) -> Problem:
    outside = ~seen(problem).unsqueeze(2)
    return problem._replace(
        keys=problem.keys.masked_fill(outside, poison),
        values=problem.values.masked_fill(outside, poison),
    )


def results(problem: Problem, chosen) -> list[torch.Tensor]:
    problem = problem.learning()
    attended = problem.attend(chosen)
    total = (attended.context**2).sum() + (attended.focus**2).sum()
    total = total + (attended.log_sum**2).sum()
    return [part.detach() for part in attended] + list(torch.autograd.grad(total, problem.learnt()))


@pytest.mark.parametrize("poison", POISONS)
@pytest.mark.parametrize(
    "options",
    [
        {"rows": [0, 0, 2], "damped": True},
        {"windowed": False},
        {"rows": [1, 2, 2], "additive": False},
        {"lengths": (40, 33, 20), "rows": [0, 0, 2], "punished": False},
    ],
    ids=["windows", "padding", "dot", "long"],
)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_poison_outside_changes_nothing(chosen, dtype, options, poison):
    problem = make(dtype=dtype, **options)
    before = results(problem, chosen)
    after = results(poisoned(problem, POISONS[poison]), chosen)
    for part, other in zip(before, after, strict=True):
        assert torch.equal(part, other)
    outside = ~seen(problem)
    assert outside.any()
    for grad in after[5:7]:  # of keys and values
        assert (grad[outside] == 0).all()


def test_one_hypothesis_reads_what_is_poison_to_another(chosen):
    problem = make(lengths=(9,), rows=[0, 0], dtype=torch.float32)
    problem = problem._replace(window=Window(torch.tensor([0, 5]), torch.tensor([5, 9])))
    clean = problem.attend(chosen)
    problem.values[0, 7] = math.nan
    problem.keys[0, 7] = math.nan
    context, focus, weights, log_sum = problem.attend(chosen)
    assert torch.equal(context[0], clean.context[0])
    assert torch.equal(weights[0], clean.weights[0])
    assert context[1].isnan().all()
    assert focus[1].isnan()
    assert log_sum[1].isnan()


@pytest.mark.parametrize("where", ["keys", "query", "gate"])
def test_nan_inside_is_not_hidden(chosen, where):
    problem = make(dtype=torch.float32)
    part = problem.penalty.gate if where == "gate" else getattr(problem, where)
    part[:] = math.nan
    assert problem.attend(chosen).context.isnan().all()
