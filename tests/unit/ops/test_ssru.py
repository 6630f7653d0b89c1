"""An SSRU through all steps on the CPU: plain PyTorch and the loops against its definition."""

from __future__ import annotations

import importlib

import numba
import pytest
import torch
from recurrences import assert_close, by_hand, exactly, problem, results

from nmtflex.ops import threads
from nmtflex.ops.recurrent import cpu, reference, ssru

FORMS = {
    name: importlib.import_module(f"nmtflex.ops.recurrent.{name}") for name in ("reference", "cpu")
}
every_form = pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
formats = pytest.mark.parametrize(
    ("dtype", "atol"), [(torch.float32, 5e-6), (torch.float64, 1e-13)], ids=["single", "double"]
)
shapes = pytest.mark.parametrize("shape", [(1, 1, 1), (1, 7, 16), (3, 1, 33), (5, 6, 130)], ids=str)


@every_form
@formats
@shapes
def test_equals_the_definition(form, shape, dtype, atol):
    parts = problem(*shape, dtype=dtype)
    made = form.ssru(*parts)
    assert made.dtype == dtype
    assert_close([made], [by_hand(*exactly(parts))], atol)


@every_form
def test_gradients_equal_the_slopes(form):
    parts = [part.requires_grad_() for part in problem(2, 3, 5)]
    assert torch.autograd.gradcheck(form.ssru, parts)


@formats
@shapes
def test_gradients_equal_those_of_the_reference(shape, dtype, atol):
    parts = problem(*shape, dtype=dtype)
    got = results(cpu.ssru, parts)
    assert {part.dtype for part in got} == {dtype}
    assert_close(got, results(reference.ssru, exactly(parts)), atol)


@every_form
def test_bfloat16_is_read_and_the_memory_is_float32(form):
    parts = problem(dtype=torch.bfloat16)
    got, expected = results(form.ssru, parts), results(reference.ssru, exactly(parts))
    assert [part.dtype for part in got] == [torch.float32, *[torch.bfloat16] * 3]
    assert_close(got[:1], expected[:1], 5e-6)
    for part, other in zip(got[1:], expected[1:], strict=True):
        torch.testing.assert_close(part.double(), other, rtol=2.0**-8, atol=1e-5)


@every_form
def test_tensors_need_not_be_contiguous(form):
    gates, candidates, c = problem()
    gates_and_candidates = torch.cat([gates, candidates], 2)  # as one product yields them
    strided = [*gates_and_candidates.chunk(2, dim=2), c.t().contiguous().t()]
    assert not any(part.is_contiguous() for part in strided)
    assert_close(
        results(form.ssru, strided), results(reference.ssru, [gates, candidates, c]), 1e-13
    )

    def transposed(*parts):  # the gradient that arrives is not contiguous either
        return form.ssru(*parts).transpose(1, 2)

    assert torch.autograd.gradcheck(transposed, [part.requires_grad_() for part in strided])


@every_form
def test_the_state_can_be_handed_on(form):
    """All steps at once, or some and then the rest, as a search does one by one."""
    gates, candidates, c = problem(steps=5)
    first = form.ssru(gates[:, :2], candidates[:, :2], c)
    rest = form.ssru(gates[:, 2:], candidates[:, 2:], first[:, -1])
    whole = form.ssru(gates, candidates, c)
    torch.testing.assert_close(torch.cat([first, rest], 1), whole, rtol=0, atol=1e-15)


@every_form
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=["single", "double"])
def test_an_open_gate_keeps_the_memory_and_a_closed_one_takes_the_candidate(form, dtype):
    _, candidates, c = problem(dtype=dtype)
    kept, taken = (form.ssru(torch.full_like(candidates, g), candidates, c) for g in (100, -100))
    torch.testing.assert_close(kept, c.unsqueeze(1).expand_as(kept), rtol=1e-6, atol=1e-5)
    torch.testing.assert_close(taken, candidates, rtol=1e-6, atol=1e-5)


@every_form
def test_a_step_reads_nothing_later_and_no_other_sentence(form):
    gates, candidates, c = problem(sentences=2, steps=4)
    before = form.ssru(gates, candidates, c)
    gates[:, 2:], candidates[:, 2:] = torch.nan, torch.nan
    gates[1], c[1] = torch.nan, torch.nan
    after = form.ssru(gates, candidates, c)
    assert torch.equal(after[0, :2], before[0, :2])
    assert after[0, 2:].isnan().all()
    assert after[1].isnan().all()


def test_an_input_without_gradient():
    gates, candidates, c = problem()
    gates.requires_grad_()
    (found,) = torch.autograd.grad(cpu.ssru(gates, candidates, c).sum(), gates)
    (expected,) = torch.autograd.grad(reference.ssru(gates, candidates, c).sum(), gates)
    assert_close([found], [expected], 1e-13)


def test_the_environment_chooses(monkeypatch):
    parts = problem()
    for kernels, form in {"auto": cpu, "reference": reference}.items():
        monkeypatch.setenv("NMTFLEX_KERNELS", kernels)
        with monkeypatch.context() as patch:
            patch.setattr(form, "ssru", lambda *_: "chosen")
            assert ssru(*parts) == "chosen"


@pytest.mark.skipif(numba.config.NUMBA_NUM_THREADS < 2, reason="numba was started with one thread")
def test_same_bits_with_one_thread_and_with_two(monkeypatch):
    monkeypatch.setattr(threads, "GRAIN", 1)  # so that the second thread is used
    parts = problem(5, 6, 33, torch.float32)
    made = []
    for count in (1, 2):
        monkeypatch.setattr(threads, "most_threads", lambda count=count: count)
        made.append(results(cpu.ssru, parts))
    assert all(map(torch.equal, *made))
