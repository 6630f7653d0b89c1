"""All steps at once: equal to one step after the other, whichever form computes."""

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from sequences import FORMS, Steps, make, results, step_by_step

from nmtflex.ops.attend import Penalty, window_below

TAUS = [math.inf, 2.0, 0.35, 0.02, 0.0]
LENGTHS = {"ragged": (9, 1, 5, 7), "one": (1,), "even": (6, 6), "long": (300, 260)}


@pytest.fixture(params=FORMS)
def form(request):
    return FORMS[request.param]


def assert_close(got, expected, tolerance: float) -> None:
    for part, other in zip(got, expected, strict=True):
        scale = max(1.0, float(other.detach().abs().max()))
        torch.testing.assert_close(part, other.to(part), rtol=0, atol=tolerance * scale)


@pytest.mark.parametrize("tau", TAUS)
@pytest.mark.parametrize("lengths", LENGTHS)
@pytest.mark.parametrize("additive", [True, False], ids=["additive", "dot"])
@pytest.mark.parametrize("steps", [1, 6])
def test_equals_attention_step_by_step(form, additive, lengths, tau, steps):
    problem = make(LENGTHS[lengths], steps, additive, tau=tau)
    assert_close(results(problem, form), results(problem, step_by_step), 1e-10)


@st.composite
def problems(draw):
    return make(
        lengths=tuple(draw(st.lists(st.integers(1, 30), min_size=1, max_size=4))),
        steps=draw(st.integers(1, 6)),
        additive=draw(st.booleans()),
        tau=draw(st.sampled_from(TAUS)),
        size=draw(st.sampled_from([1, 7, 16, 31, 70])),
        dtype=torch.float32,
        seed=draw(st.integers(0, 10**6)),
    )


@settings(max_examples=60, derandomize=True, deadline=None)
@given(problems())
def test_fast_equals_reference_in_float32(problem):
    assert_close(results(problem, FORMS["cpu"]), results(problem, FORMS["reference"]), 2e-5)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("tau", [math.inf, 0.35])
@pytest.mark.parametrize("additive", [True, False], ids=["additive", "dot"])
def test_gradients_equal_the_slopes(form, additive, tau):
    problem = make((4, 1, 3), 3, additive, tau=tau, size=5)

    def attended(*learnt):
        return form.attended(problem.with_learnt(*learnt))

    assert torch.autograd.gradcheck(attended, [*problem.learning().learnt()])


@pytest.mark.parametrize("tau", [0.0, 0.05, 0.35, 1e9, 1e39])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_a_window_holds_what_window_below_finds(form, dtype, tau):
    problem = make((30, 7, 1, 12), 20, tau=tau, dtype=dtype)
    weights, focus = form.walk(problem)
    before = problem.focus
    for t in range(20):
        penalty = Penalty(problem.gate[:, t].detach(), before, problem.sigma)
        start, stop = (bound.unsqueeze(1) for bound in window_below(tau, penalty, problem.lengths))
        positions = torch.arange(30)
        outside = (positions < start) | (positions >= stop)
        assert (weights[:, t][outside] == 0).all()
        assert (weights[:, t].sum(1) - 1).abs().max() < 1e-5
        before = focus[:, t]


@pytest.mark.parametrize("poison", [math.nan, math.inf, -math.inf])
@pytest.mark.parametrize("additive", [True, False], ids=["additive", "dot"])
def test_padding_is_never_read(form, additive, poison):
    problem = make((9, 1, 5), additive=additive, dtype=torch.float32)
    clean = results(problem, form)
    padding = torch.arange(9) >= problem.lengths.unsqueeze(1)
    poisoned = problem._replace(
        keys=problem.keys.masked_fill(padding.unsqueeze(2), poison),
        values=problem.values.masked_fill(padding.unsqueeze(2), poison),
    )
    for part, other in zip(results(poisoned, form), clean, strict=True):
        assert torch.equal(part, other)


@pytest.mark.parametrize("tau", [math.inf, 0.35])
@pytest.mark.parametrize("poison", [math.nan, math.inf, -math.inf])
def test_a_walk_reads_nothing_outside(form, poison, tau):
    """Neither scores nor gradients of weights that are outside, at padding or beyond a window."""
    problem = make((9, 1, 5), tau=tau, dtype=torch.float32)
    scores = torch.randn(3, 6, 9)
    outside = form.walk(problem, scores)[0] == 0

    def walked(filled):
        learnt = [
            torch.where(outside, filled, scores).requires_grad_(),
            problem.gate.clone().requires_grad_(),
            problem.focus.clone().requires_grad_(),
        ]
        made = form.walk(problem._replace(gate=learnt[1], focus=learnt[2]), learnt[0])
        arriving = torch.where(outside, filled, scores.cos()), torch.ones(3, 6)
        return [*made, *torch.autograd.grad(made, learnt, arriving)]

    clean, found = walked(0.0), walked(poison)
    assert outside.any()
    assert (found[0][outside] == 0).all()
    assert (found[2][outside] == 0).all()
    assert all(map(torch.equal, found, clean))


@pytest.mark.parametrize("where", ["scores", "gate", "focus"])
def test_nan_inside_is_not_hidden(form, where):
    problem = make((4, 3), dtype=torch.float32)
    scores = torch.randn(2, 6, 4)
    part = scores[:, 0] if where == "scores" else getattr(problem, where)
    part[:] = math.nan
    for tau in (math.inf, 0.35):
        weights, focus = form.walk(problem._replace(tau=tau), scores)
        assert focus.isnan().all()
        assert weights.isnan().any(2).all()
        assert (weights[1, :, 3] == 0).all()


def alone(problem: Steps, row: int) -> Steps:
    """A sentence by itself, without padding."""
    length = int(problem.lengths[row])
    one = {name: getattr(problem, name)[row : row + 1] for name in ("query", "gate", "focus")}
    memory = {
        name: getattr(problem, name)[row : row + 1, :length].clone() for name in ("keys", "values")
    }
    return problem._replace(lengths=torch.tensor([length]), **one, **memory)


@pytest.mark.parametrize("additive", [True, False], ids=["additive", "dot"])
def test_other_sentences_and_padding_change_no_bit(additive):
    problem = make((9, 1, 5, 7), additive=additive, size=33, dtype=torch.float32)
    together = results(problem, FORMS["cpu"])
    for row, length in enumerate(problem.lengths.tolist()):
        single = results(alone(problem, row), FORMS["cpu"], problem.drawn(row))
        for part, other in zip(single[:7], together[:7], strict=True):  # all but v's gradient
            wanted = other[row]
            if part.shape[1:] != wanted.shape:  # of keys and values, less the padding
                assert (wanted[length:] == 0).all()
                wanted = wanted[:length]
            assert torch.equal(part[0], wanted)


@pytest.mark.parametrize("additive", [True, False], ids=["additive", "dot"])
def test_threads_change_no_bit(additive):
    problem = make((60, 1, 33, 50), 50, additive=additive, size=64, dtype=torch.float32)
    before = torch.get_num_threads()
    found = []
    try:
        for threads in (1, 2):
            torch.set_num_threads(threads)
            found.append(results(problem, FORMS["cpu"]))
    finally:
        torch.set_num_threads(before)
    assert all(map(torch.equal, *found))


def test_bfloat16_is_computed_in_float32():
    problem = make((9, 1, 5), dtype=torch.bfloat16)
    wide = problem.with_learnt(*(part.float() for part in problem.learnt()))
    narrow, wide = FORMS["cpu"].attended(problem), FORMS["cpu"].attended(wide)
    assert (narrow[0].dtype, narrow[1].dtype) == (torch.bfloat16, torch.float32)
    assert torch.equal(narrow[1], wide[1])
    torch.testing.assert_close(narrow[0].float(), wide[0], rtol=2**-7, atol=2**-7)


def test_gaps_between_numbers_change_nothing(form):
    problem = make((9, 1, 5))

    def strided(part):
        return part.repeat_interleave(2, dim=-1)[..., ::2]

    gaps = problem.with_learnt(*map(strided, problem.learnt()))
    assert not gaps.query.is_contiguous()
    assert all(map(torch.equal, form.attended(gaps), form.attended(problem)))
