"""One gradient of keys and values for all steps of a decoder.

Every step of a decoder reads the same keys and values. By itself autograd would compute
their full gradients at each step, [B, S, A] and [B, S, H], and add them up: as much work as
attention itself. Here the backward pass of a step only keeps a note of what is needed, tensors of
[N, W], [N, A] and [N, H], and the gradients are computed once, after the last note. ``Gather``
stands between the encoder and the steps, and autograd runs its backward pass after those of all
steps::

    encoder -> Gather -> Source -> step 1, step 2, ... step T -> loss

This is correct because the notes are kept by the node that autograd runs next. A step that reads
something else (a ``Source`` made by hand, indexed or detached) finds no such node, and returns
gradients as any operation does. Notes belong to one call of ``backward``, by its number: those of a
call that never reached ``Gather``, such as ``torch.autograd.grad`` for the queries alone, are not
counted in the next. Gradients that reach a Source in other ways are added.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from nmtflex.ops.torch_private import graph_task


class Note(NamedTuple):
    """What the gradients of keys and values need of one step: N hypotheses.

    The CPU notes windows of W positions and where they lie in arrays, a GPU whole rows of W = S
    positions, of which it reads the window alone, and everything in tensors.
    """

    query: Tensor  # [N, A]
    v: Tensor | None  # [A]
    rows: Any  # [N]
    start: Any  # [N]
    stop: Any  # [N]
    weights: Tensor  # [N, W]
    scores: Tensor  # [N, W], gradient of the scores
    context: Tensor  # [N, H], gradient of the context


# From all notes, keys [B, S, A] and values [B, S, H] to the gradients of both.
Gradients = Callable[[list[Note], Tensor, Tensor], tuple[Tensor, Tensor]]


class Gather(torch.autograd.Function):
    """Pass keys and values on, contiguous, and gather their gradients."""

    @staticmethod
    def forward(
        ctx: Any, keys: Tensor, values: Tensor, dtype: torch.dtype | None, gradients: Gradients
    ) -> tuple[Tensor, Tensor]:
        """Return keys and values, contiguous and in ``dtype``, or in their own formats."""
        ctx.formats = keys.dtype, values.dtype
        ctx.gradients = gradients
        ctx.notes = defaultdict(list)  # of each call of backward
        ctx.set_materialize_grads(False)
        keys, values = (
            tensor.to(dtype or tensor.dtype).contiguous().view_as(tensor)
            for tensor in (keys, values)
        )
        ctx.save_for_backward(keys, values)
        return keys, values

    @staticmethod
    @once_differentiable
    def backward(
        ctx: Any, grad_keys: Tensor | None, grad_values: Tensor | None
    ) -> tuple[Tensor | None, ...]:
        """Return the gradients of keys and values."""
        notes = ctx.notes.pop(graph_task(), [])
        if notes:
            gathered = ctx.gradients(notes, *ctx.saved_tensors)
            grad_keys = gathered[0] if grad_keys is None else grad_keys + gathered[0]
            grad_values = gathered[1] if grad_values is None else grad_values + gathered[1]
        grads = zip((grad_keys, grad_values), ctx.formats, strict=True)
        return *(None if grad is None else grad.to(form) for grad, form in grads), None, None


def find_gather(keys: Tensor, values: Tensor) -> Any:
    """Return the node that gathers the gradients of keys and values, None without one."""
    node = keys.grad_fn
    return node if node is values.grad_fn and hasattr(node, "notes") else None


def note(gather: Any, step: Note) -> None:
    """Leave a step's note with a node, for the current call of backward."""
    gather.notes[graph_task()].append(step)


def given(grad: Tensor | None, zeros: Tensor) -> Tensor:
    """Return a gradient, contiguous; zeros if none has arrived."""
    return zeros if grad is None else grad.contiguous()


def by_v(notes: list[Note]) -> list[list[Note]]:
    """Group notes by the tensor v of their score."""
    groups: dict[int | None, list[Note]] = {}
    for step in notes:
        groups.setdefault(None if step.v is None else step.v.data_ptr(), []).append(step)
    return list(groups.values())
