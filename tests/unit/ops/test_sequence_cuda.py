"""Attention over all steps in Triton: equal to the reference, in one block of positions or more.

The kernels run on a GPU, or in Triton's interpreter where there is none.
"""

from __future__ import annotations

import math

import pytest
import torch
from sequences import FORMS, Form, Steps, make, results

from nmtflex.ops import sequence
from nmtflex.ops.attend import Penalty, window_below

pytest.importorskip("triton")

BLOCKS = pytest.mark.parametrize("part", [None, 4], ids=["whole", "blocks"])
DISPATCHED = Form(sequence)


@pytest.fixture
def cut(monkeypatch):
    """Read so many positions at a time; None leaves the usual number."""
    from nmtflex.ops.sequence import cuda

    def apply(part: int | None) -> None:
        if part is not None:
            monkeypatch.setattr(cuda, "PART", part)

    return apply


def moved(problem: Steps, device: str) -> Steps:
    problem = problem.with_learnt(*(part.to(device) for part in problem.learnt()))
    return problem._replace(lengths=problem.lengths.to(device))


def assert_close(got, expected, tolerance: float) -> None:
    for part, other in zip(got, expected, strict=True):
        scale = max(1.0, float(other.detach().abs().max()))
        torch.testing.assert_close(part.double(), other.detach(), rtol=0, atol=tolerance * scale)


def exactly(problem: Steps) -> Steps:
    """The same numbers in float64."""
    return problem.with_learnt(*(part.double() for part in problem.learnt()))


@pytest.mark.sampled(3)
@BLOCKS
@pytest.mark.parametrize("additive", [True, False], ids=["additive", "dot"])
@pytest.mark.parametrize("tau", [math.inf, 0.35, 0.0])
@pytest.mark.parametrize("dtype", [
    torch.float32, pytest.param(torch.float64, marks=pytest.mark.slow)
], ids=["single", "double"])  # fmt: skip
def test_equals_the_reference(triton_device, cut, dtype, tau, additive, part):
    cut(part)
    problem = moved(make((9, 1, 7), 4, additive, tau=tau, dtype=dtype), triton_device)
    got = results(problem, DISPATCHED)
    assert {part.dtype for part in got} == {dtype}
    expected = results(exactly(problem), FORMS["reference"])
    assert_close(got, expected, 2e-5 if dtype == torch.float32 else 1e-12)


@BLOCKS
def test_bfloat16_is_read_and_everything_else_float32(triton_device, cut, part):
    cut(part)
    problem = moved(make((9, 1, 7), 4, dtype=torch.bfloat16), triton_device)
    got = results(problem, DISPATCHED)
    expected = results(exactly(problem), FORMS["reference"])
    assert (got[0].dtype, got[1].dtype) == (torch.bfloat16, torch.float32)
    assert_close(got[1:2], expected[1:2], 2e-5)
    assert_close(got, expected, 2.0**-6)  # of what is handed over in bfloat16


def test_at_the_edge_of_a_window_the_penalty_decides_as_on_the_cpu(triton_device, cut):
    """The threshold is a position's own penalty, or the next number above."""
    cut(8)
    problem = make((20,), 1, dtype=torch.float32)
    for focus in (0.0, 11.3, 25.0):
        problem = problem._replace(focus=torch.tensor([focus]))
        penalty = Penalty(problem.gate[:, 0], problem.focus, problem.sigma)
        scores = penalty.at(torch.arange(20)[None])  # so that every position weighs as much
        here = moved(problem, triton_device)
        for own in scores[0, ::5]:
            for tau in (own.item(), torch.nextafter(own, torch.tensor(math.inf)).item()):
                start, stop = window_below(tau, penalty, problem.lengths)
                weights, _ = DISPATCHED.walk(here._replace(tau=tau), scores.to(triton_device)[None])
                seen = weights[0, 0].cpu().nonzero().squeeze(1)
                assert (int(seen[0]), int(seen[-1]) + 1) == (int(start), int(stop))


@pytest.mark.slow
@pytest.mark.parametrize("tau", [1e9, 1e39])
def test_a_great_threshold_leaves_nothing_out(triton_device, tau):
    problem = moved(make((30, 1, 12), dtype=torch.float32), triton_device)
    for part, other in zip(
        DISPATCHED.walk(problem._replace(tau=tau)), DISPATCHED.walk(problem), strict=True
    ):
        assert torch.equal(part, other)


@pytest.mark.sampled(2)
@BLOCKS
@pytest.mark.parametrize("additive", [True, False], ids=["additive", "dot"])
@pytest.mark.parametrize("poison", [math.nan, pytest.param(math.inf, marks=pytest.mark.slow)])
def test_padding_is_never_read(triton_device, cut, poison, additive, part):
    cut(part)
    problem = moved(make((9, 1, 5), 2, additive, dtype=torch.float32), triton_device)
    clean = results(problem, DISPATCHED)
    padding = (torch.arange(9) >= problem.lengths.cpu().unsqueeze(1)).to(triton_device)
    poisoned = problem._replace(
        keys=problem.keys.masked_fill(padding.unsqueeze(2), poison),
        values=problem.values.masked_fill(padding.unsqueeze(2), poison),
    )
    for part, other in zip(results(poisoned, DISPATCHED), clean, strict=True):
        assert torch.equal(part, other)


@pytest.mark.sampled(2)
@BLOCKS
@pytest.mark.parametrize("tau", [math.inf, 0.35])
def test_a_walk_reads_nothing_outside(triton_device, cut, tau, part):
    cut(part)
    problem = moved(make((9, 1, 5), 3, tau=tau, dtype=torch.float32), triton_device)
    scores = torch.randn(3, 3, 9).to(triton_device)
    outside = DISPATCHED.walk(problem, scores)[0] == 0

    def walked(filled):
        leaf = torch.where(outside, filled, scores).requires_grad_()
        made = DISPATCHED.walk(problem, leaf)
        arriving = torch.where(outside, filled, scores.cos()), torch.ones_like(made[1])
        return [*made, *torch.autograd.grad(made, leaf, arriving)]

    assert outside.any()
    assert all(map(torch.equal, walked(math.nan), walked(0.0)))


@pytest.mark.filterwarnings("ignore:invalid value:RuntimeWarning")  # Triton's interpreter: NumPy
def test_nan_inside_is_not_hidden(triton_device):
    problem = moved(make((4, 3), 3, dtype=torch.float32), triton_device)
    problem.gate[:] = math.nan
    for tau in (math.inf, 0.35):
        weights, focus = DISPATCHED.walk(problem._replace(tau=tau))
        assert focus.isnan().all()
        assert (weights[1, :, 3] == 0).all()
