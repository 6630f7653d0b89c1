"""Recurrent cells and a gate in loops on the CPU."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from nmtflex.ops.recurrent import loops, reference, ssru_loops
from nmtflex.ops.tensors import precise
from nmtflex.ops.threads import run_rows


def lstm(product: Tensor, summand: Tensor, c: Tensor) -> tuple[Tensor, Tensor]:
    """Advance an LSTM by one step; see ``nmtflex.ops.recurrent``."""
    dtype = precise(product.dtype)
    sides = product, summand.expand(product.shape), c
    product, summand, c = (side.to(dtype).contiguous() for side in sides)
    if torch.is_grad_enabled():
        return _LSTM.apply(product, summand, c)  # type: ignore[no-untyped-call]
    h, new, _ = _forward(product, summand, c, keep=False)
    return h, new


def ssru(gates: Tensor, candidates: Tensor, c: Tensor) -> Tensor:
    """Walk an SSRU through all steps; see ``nmtflex.ops.recurrent``."""
    dtype = precise(gates.dtype)
    parts = (part.to(dtype).contiguous() for part in (gates, candidates, c))
    return _SSRU.apply(*parts)  # type: ignore[no-untyped-call]


def gate(state: Tensor, word: Tensor | None, v: Tensor, bias: Tensor | None) -> Tensor:
    """Return a gate; see ``nmtflex.ops.recurrent``."""
    if torch.is_grad_enabled():
        return reference.gate(state, word, v, bias)
    dtype = precise(state.dtype)
    word, bias = (state[:0] if word is None else word), (v[:0] if bias is None else bias)
    parts = [part.to(dtype).contiguous() for part in (state, word, v, bias)]
    gates = torch.empty(len(state), dtype=dtype)
    _run(loops.gate, state.numel(), *parts, gates)
    return gates


def _forward(
    product: Tensor, summand: Tensor, c: Tensor, keep: bool
) -> tuple[Tensor, Tensor, Tensor]:
    """Return h', c' and the gates [N, 4 D], or none of them."""
    h, new = torch.empty_like(c), torch.empty_like(c)
    gates = torch.empty_like(product) if keep else product.new_empty(0, product.shape[1])
    _run(loops.lstm, product.numel(), product, summand, c, gates, h, new)
    return h, new, gates


def _run(loop: object, units: int, *parts: Any) -> None:
    """Run a loop over the rows of its last part, shared among threads."""
    arrays = [part.detach().numpy() if isinstance(part, Tensor) else part for part in parts]
    run_rows(loop, len(arrays[-1]), units, *arrays)


class _LSTM(torch.autograd.Function):
    """The loops, forward and backward."""

    @staticmethod
    def forward(ctx: Any, product: Tensor, summand: Tensor, c: Tensor) -> tuple[Tensor, Tensor]:
        """Return h' and c'."""
        h, new, gates = _forward(product, summand, c, keep=True)
        ctx.save_for_backward(gates, c, new)
        return h, new

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad_h: Tensor, grad_c: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Return the gradients of both sides of the gates and of c."""
        gates, c, new = ctx.saved_tensors
        grad_gates, grad_cell = torch.empty_like(gates), torch.empty_like(c)
        made = loops.Made(*(part.numpy() for part in (gates, c, new)))
        grads = grad_h.contiguous(), grad_c.contiguous(), grad_gates, grad_cell
        _run(loops.backward_lstm, gates.numel(), made, *grads)
        return grad_gates, grad_gates, grad_cell


class _SSRU(torch.autograd.Function):
    """The loops, forward and backward."""

    @staticmethod
    def forward(ctx: Any, gates: Tensor, candidates: Tensor, before: Tensor) -> Tensor:
        """Return c of every step."""
        c = torch.empty_like(gates)
        _run(ssru_loops.ssru, c.numel(), gates, candidates, before, c)
        ctx.save_for_backward(gates, before, c)
        return c

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grads: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Return the gradients of gates, candidates and the memory before."""
        gates, before, c = ctx.saved_tensors
        walked = ssru_loops.Walked(*(part.numpy() for part in (gates, before, c)))
        of_gates, of_candidates, of_before = map(torch.empty_like, (gates, gates, before))
        parts = grads.contiguous(), of_gates, of_candidates, of_before
        _run(ssru_loops.backward_ssru, c.numel(), walked, *parts)
        return of_gates, of_candidates, of_before
