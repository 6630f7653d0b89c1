"""The Triton kernels of an SSRU through all steps, forward and backward; ``cuda`` starts them.

A program walks some units of one sentence through the steps. Tensors are contiguous. Legend as in
``nmtflex.ops.recurrent``. Arguments have no types, since Triton would take them for code.
"""

from __future__ import annotations

import triton
import triton.language as tl

# Its value changes from batch to batch: a kernel compiled for one of them would be of no use.
CHANGING = ["steps"]


def _ssru(  # type: ignore[no-untyped-def]
    gates, candidates, before, steps, size, c, units: tl.constexpr
):
    """Write the memory after each step to a row of [B, T, D]."""
    row = tl.program_id(0).to(tl.int64)
    unit = tl.program_id(1) * units + tl.arange(0, units)
    real = unit < size
    memory = tl.load(before + row * size + unit, mask=real, other=0.0)
    for step in range(steps):
        place = (row * steps + step) * size + unit
        f = tl.sigmoid(tl.load(gates + place, mask=real, other=0.0).to(tl.float32))
        candidate = tl.load(candidates + place, mask=real, other=0.0).to(tl.float32)
        memory = f * memory + (1 - f) * candidate
        tl.store(c + place, memory, mask=real)


def _backward_ssru(  # type: ignore[no-untyped-def]  # noqa: PLR0913
    gates,
    before,
    steps,
    size,
    c,
    grads,
    of_gates,
    of_candidates,
    of_before,
    units: tl.constexpr,
):
    """Write the gradients of gates and candidates [B, T, D] and of the memory before [B, D].

    The slope of the gate, f (1 - f) (c[t-1] - candidate), is f (c[t-1] - c[t]).
    """
    row = tl.program_id(0).to(tl.int64)
    unit = tl.program_id(1) * units + tl.arange(0, units)
    real = unit < size
    carried = tl.zeros([units], tl.float32)
    for back in range(steps):
        step = steps - 1 - back
        place = (row * steps + step) * size + unit
        last = tl.load(before + row * size + unit, mask=real & (step == 0), other=0.0)
        last += tl.load(c + place - size, mask=real & (step > 0), other=0.0)
        new = tl.load(c + place, mask=real, other=0.0)
        f = tl.sigmoid(tl.load(gates + place, mask=real, other=0.0).to(tl.float32))
        of_c = tl.load(grads + place, mask=real, other=0.0) + carried
        carried = f * of_c
        of_gate = carried * (last - new)
        tl.store(of_gates + place, of_gate.to(of_gates.dtype.element_ty), mask=real)
        of_candidate = (of_c - carried).to(of_candidates.dtype.element_ty)
        tl.store(of_candidates + place, of_candidate, mask=real)
    tl.store(of_before + row * size + unit, carried, mask=real)


ssru = triton.jit(_ssru, do_not_specialize=CHANGING)
backward_ssru = triton.jit(_backward_ssru, do_not_specialize=CHANGING)
