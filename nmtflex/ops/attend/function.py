"""Windowed attention for autograd, from the loops of any device; see ``gather``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from nmtflex.ops.attend.gather import Gradients, Note, given, note


class Operands(NamedTuple):
    """The tensors that have a gradient, each contiguous."""

    query: Tensor  # [N, A]
    v: Tensor | None  # [A]
    keys: Tensor  # [B, S, A]
    values: Tensor  # [B, S, H]
    gate: Tensor | None  # [N], of the penalty
    focus: Tensor | None  # [N], of the penalty
    centre: Tensor | None  # [N], of the damping


class Loops(NamedTuple):
    """What a device computes, from its own layout of the hypotheses and ``Operands``.

    Attributes:
        forward: Returns context [N, H], focus [N], log_sum [N], and the weights after and before
            the damping.
        backward: Takes the weights before the damping and the gradients of the first three. Returns
            those of the scores, and of the operands: of v one for each hypothesis, and in place of
            those of keys and values anything.
        gradients: Makes those of keys and values.
    """

    forward: Callable[[Any, Operands], tuple[Tensor, ...]]
    backward: Callable[[Any, Operands, Tensor, tuple[Tensor, ...]], tuple[Tensor, Operands]]
    gradients: Gradients


class Attend(torch.autograd.Function):
    """Windowed attention and its gradients."""

    @staticmethod
    def forward(
        ctx: Any, loops: Loops, layout: Any, gather: Any, *tensors: Any
    ) -> tuple[Tensor, ...]:
        """Attend; ``tensors`` are ``Operands``.

        Returns:
            Context [N, H], focus [N], log_sum [N], and the weights, which have no gradient.
        """
        operands = Operands(*tensors)
        context, focus, log_sum, weights, plain = loops.forward(layout, operands)
        ctx.loops, ctx.layout, ctx.gather = loops, layout, gather
        ctx.save_for_backward(plain, weights, *operands)
        ctx.mark_non_differentiable(weights)
        ctx.set_materialize_grads(False)
        return context, focus, log_sum, weights

    @staticmethod
    @once_differentiable
    def backward(
        ctx: Any,
        grad_context: Tensor | None,
        grad_focus: Tensor | None,
        grad_log_sum: Tensor | None,
        _: None,
    ) -> tuple[Any, ...]:
        """Return the gradients of the operands; ``gather`` makes those of keys and values."""
        layout = ctx.layout
        plain, weights, *tensors = ctx.saved_tensors
        operands = Operands(*tensors)
        query, v, keys, values, gate, focus, centre = operands
        grad_context = given(grad_context, values.new_zeros(len(query), values.shape[2]))
        nothing = plain.new_zeros(len(query))
        arriving = grad_context, given(grad_focus, nothing), given(grad_log_sum, nothing)
        scores, found = ctx.loops.backward(layout, operands, plain, arriving)
        step = Note(query, v, layout.rows, layout.start, layout.stop, weights, scores, grad_context)
        of_keys = of_values = None
        if ctx.gather is not None:
            note(ctx.gather, step)
        elif keys.requires_grad or values.requires_grad:
            of_keys, of_values = ctx.loops.gradients([step], keys, values)
            of_keys, of_values = of_keys.to(keys.dtype), of_values.to(values.dtype)
        return (
            None,
            None,
            None,
            found.query.to(query.dtype),
            None if v is None else found.v.sum(0),
            of_keys,
            of_values,
            None if gate is None else found.gate,
            None if focus is None else found.focus,
            None if centre is None else found.centre,
        )
