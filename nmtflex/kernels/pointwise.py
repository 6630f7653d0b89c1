"""What a recurrent cell and a gate make of their products, as one operation instead of many.

In plain PyTorch on a GPU, and wherever ``NMTFLEX_KERNELS=reference``. Legend: N rows, D units of a
cell, A units of a gate.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable
from torch.nn import functional

from nmtflex.kernels import choice
from nmtflex.kernels.operation import precise


def lstm(product: Tensor, summand: Tensor, c: Tensor) -> tuple[Tensor, Tensor]:
    """Advance a long short-term memory by one step.

    In equations, with the gates i, f, g, o in this order in ``product + summand``, D of each::

        c' = sigmoid(f) c + sigmoid(i) tanh(g)
        h' = sigmoid(o) tanh(c')

    Args:
        product: [N, 4 D], one side of the gates.
        summand: [N, 4 D], or [4 D] for all rows: the other side.
        c: [N, D].

    Returns:
        h' and c', [N, D] each, in float32 at least: bfloat16 would lose what c adds up.
    """
    dtype = precise(product.dtype)
    if choice(product.device) != "cpu":
        i, f, g, o = (product.to(dtype) + summand).chunk(4, dim=1)
        c = torch.sigmoid(f) * c.to(dtype) + torch.sigmoid(i) * torch.tanh(g)
        return torch.sigmoid(o) * torch.tanh(c), c
    sides = product, summand.expand(product.shape), c
    product, summand, c = (side.to(dtype).contiguous() for side in sides)
    if torch.is_grad_enabled():
        return _LSTM.apply(product, summand, c)  # type: ignore[no-untyped-call]
    h, new, _ = _forward(product, summand, c, keep=False)
    return h, new


def gate(state: Tensor, word: Tensor | None, v: Tensor, bias: Tensor | None) -> Tensor:
    """Return sigmoid(v . tanh(state + word) + bias), [N] in float32 at least.

    Args:
        state: [N, A].
        word: [N, A], or None.
        v: [A].
        bias: [1], or None.
    """
    if choice(state.device) != "cpu" or torch.is_grad_enabled():
        seen = torch.tanh(state if word is None else state + word)
        total = functional.linear(seen, v.unsqueeze(0), bias).squeeze(1)
        return torch.sigmoid(total.to(precise(total.dtype)))
    from nmtflex.kernels import pointwise_loops

    dtype = precise(state.dtype)
    word, bias = (state[:0] if word is None else word), (v[:0] if bias is None else bias)
    parts = [part.to(dtype).contiguous() for part in (state, word, v, bias)]
    gates = torch.empty(len(state), dtype=dtype)
    _run(pointwise_loops.gate, state.numel(), *parts, gates)
    return gates


def _forward(
    product: Tensor, summand: Tensor, c: Tensor, keep: bool
) -> tuple[Tensor, Tensor, Tensor]:
    """Return h', c' and the gates [N, 4 D], or none of them."""
    from nmtflex.kernels import pointwise_loops

    h, new = torch.empty_like(c), torch.empty_like(c)
    gates = torch.empty_like(product) if keep else product.new_empty(0, product.shape[1])
    _run(pointwise_loops.lstm, product.numel(), product, summand, c, gates, h, new)
    return h, new, gates


def _run(loop: object, units: int, *parts: Any) -> None:
    """Run a loop over the rows of its last part, shared among threads."""
    from nmtflex.kernels.threads import run_rows

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
        from nmtflex.kernels import pointwise_loops

        gates, c, new = ctx.saved_tensors
        grad_gates, grad_cell = torch.empty_like(gates), torch.empty_like(c)
        made = pointwise_loops.Made(*(part.numpy() for part in (gates, c, new)))
        grads = grad_h.contiguous(), grad_c.contiguous(), grad_gates, grad_cell
        _run(pointwise_loops.backward_lstm, gates.numel(), made, *grads)
        return grad_gates, grad_gates, grad_cell
