"""One gradient of keys and values for all steps of a decoder.

Every step of a decoder reads the same keys and values. Left alone, autograd would make a gradient
of their whole size at each step, [B, S, A] and [B, S, H], and add it to that of the steps behind:
as much work as attention itself. Here the backward pass of a step only notes down what is needed,
tensors of [N, W], [N, A] and [N, H], and the gradients are made once, after the last note.
``Gather`` stands between what the encoder made and what the steps read, and autograd runs its
backward pass after those of all steps::

    encoder -> Gather -> Source -> step 1, step 2, ... step T -> loss

This is right because the notes are kept by the very node that autograd runs next. A step that reads
something else (a ``Source`` made by hand, indexed or detached) finds no such node, and gives
autograd its gradients as any operation does. Notes belong to one call of ``backward``, by its
number: what is left of a call that never came to ``Gather``, such as ``torch.autograd.grad`` for
the queries alone, is not counted in the next. Gradients that come to a Source by other ways are
added.
"""

from __future__ import annotations

from collections import defaultdict
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from nmtflex.kernels import loops
from nmtflex.kernels.arrays import Steps, Whole
from nmtflex.kernels.threads import run, threads_for


class Note(NamedTuple):
    """What the gradients of keys and values need of one step: N hypotheses, W positions."""

    query: Tensor  # [N, A]
    v: Tensor | None  # [A]
    rows: Whole  # [N]
    start: Whole  # [N]
    stop: Whole  # [N]
    weights: Tensor  # [N, W]
    scores: Tensor  # [N, W], gradient of the scores
    context: Tensor  # [N, H], gradient of the context


class Gather(torch.autograd.Function):
    """Pass keys and values on in the format of the loops, and gather their gradients."""

    @staticmethod
    def forward(
        ctx: Any, keys: Tensor, values: Tensor, dtype: torch.dtype
    ) -> tuple[Tensor, Tensor]:
        """Return keys and values, contiguous and in ``dtype``."""
        ctx.formats = keys.dtype, values.dtype
        ctx.notes = defaultdict(list)  # of each call of backward
        ctx.set_materialize_grads(False)
        keys, values = (tensor.to(dtype).contiguous().view_as(tensor) for tensor in (keys, values))
        ctx.save_for_backward(keys, values)
        return keys, values

    @staticmethod
    @once_differentiable
    def backward(
        ctx: Any, grad_keys: Tensor | None, grad_values: Tensor | None
    ) -> tuple[Tensor | None, Tensor | None, None]:
        """Return the gradients of keys and values."""
        notes = ctx.notes.pop(_this_call(), [])
        if notes:
            gathered = gradients(notes, *ctx.saved_tensors)
            grad_keys = gathered[0] if grad_keys is None else grad_keys + gathered[0]
            grad_values = gathered[1] if grad_values is None else grad_values + gathered[1]
        keys_format, values_format = ctx.formats
        return (
            None if grad_keys is None else grad_keys.to(keys_format),
            None if grad_values is None else grad_values.to(values_format),
            None,
        )


def find_gather(keys: Tensor, values: Tensor) -> Any:
    """Return the node that gathers the gradients of keys and values, None without one."""
    node = keys.grad_fn
    return node if node is values.grad_fn and hasattr(node, "notes") else None


def note(gather: Any, step: Note) -> None:
    """Leave a step's note with a node, for the call of backward that is going on."""
    gather.notes[_this_call()].append(step)


def _this_call() -> int:
    """Return the number of the call of backward that is going on."""
    return torch._C._current_graph_task_id()


def gradients(notes: list[Note], keys: Tensor, values: Tensor) -> tuple[Tensor, Tensor]:
    """Return the gradients of keys [B, S, A] and values [B, S, H] over all steps."""
    grad_keys, grad_values = torch.zeros_like(keys), torch.zeros_like(values)
    by_v = defaultdict(list)
    for step in notes:
        by_v[None if step.v is None else step.v.data_ptr()].append(step)
    for steps in by_v.values():
        positions = sum(step.weights.numel() for step in steps)
        run(
            loops.backward_memory,
            threads_for(positions * (keys.shape[2] + values.shape[2])),
            _join(steps, len(keys)),
            keys.numpy(),
            grad_keys.numpy(),
            grad_values.numpy(),
        )
    return grad_keys, grad_values


def _join(notes: list[Note], num_sentences: int) -> Steps:
    """Lay steps out one behind the other, and order their hypotheses by sentence."""
    rows = np.concatenate([step.rows for step in notes])
    order = np.argsort(rows, kind="stable")
    widths = np.concatenate([np.full(len(s.rows), s.weights.shape[1]) for s in notes])
    v = notes[0].v
    query = torch.cat([step.query for step in notes]).numpy()
    return Steps(
        query=query,
        v=query[:0, 0] if v is None else v.numpy(),
        start=np.concatenate([step.start for step in notes]),
        stop=np.concatenate([step.stop for step in notes]),
        weights=torch.cat([step.weights.flatten() for step in notes]).numpy(),
        scores=torch.cat([step.scores.flatten() for step in notes]).numpy(),
        place=widths.cumsum() - widths,
        context=torch.cat([step.context for step in notes]).numpy(),
        order=order,
        ends=np.searchsorted(rows[order], np.arange(num_sentences + 1)),
    )
