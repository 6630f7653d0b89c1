"""Windowed attention on a GPU: two Triton kernels, one that scores and one that sums.

Only the forward pass is written by hand. The backward pass computes the step anew with
``reference`` and lets autograd differentiate that, so that nothing of the size of the windows is
kept in between. Keys and values stay in their own format, bfloat16 included, and all sums are taken
in float32; float64 goes to ``reference`` as a whole. Windows are not checked, which would make the
processor wait for the GPU: what lies outside of the memory is cut off.

The kernels were checked in Triton's interpreter alone, and their block sizes were never tuned.

Legend: B sentences, S source positions, N hypotheses, A units of a key, H units of a value.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from nmtflex.kernels import reference
from nmtflex.kernels import triton_loops as kernels
from nmtflex.kernels.operation import (
    Attended,
    Damping,
    Penalty,
    Source,
    Window,
    whole_sentences,
)

POSITIONS, UNITS = 16, 128  # of keys or values that a program holds at a time


class Layout(NamedTuple):
    """What is read and how: all that has no gradient."""

    rows: Tensor  # [N]
    window: Window
    lengths: Tensor  # [B]
    penalty_sigma: float
    damping_sigma: float


def make_source(keys: Tensor, values: Tensor, lengths: Tensor) -> Source:
    """Lay keys and values out in one piece each; see ``nmtflex.kernels.make_source``."""
    return Source(keys.contiguous(), values.contiguous(), lengths)


def attend(
    query: Tensor,
    source: Source,
    rows: Tensor | None = None,
    v: Tensor | None = None,
    window: Window | None = None,
    penalty: Penalty | None = None,
    damping: Damping | None = None,
    trace: bool = False,
) -> Attended:
    """Attend within windows; see ``nmtflex.kernels.attend``."""
    keys, values, lengths = (part.contiguous() for part in source)
    if keys.dtype == torch.float64:
        return reference.attend(query, source, rows, v, window, penalty, damping, trace)
    window = window or whole_sentences(source, rows)
    rows = torch.arange(len(query), device=query.device) if rows is None else rows
    gate, focus, penalty_sigma = penalty or (None, None, 0.0)
    centre, damping_sigma = damping or (None, 0.0)
    forms = (keys.dtype, keys.dtype, torch.float32, torch.float32, torch.float32)
    own = (
        None if part is None else part.to(form).contiguous()
        for part, form in zip((query, v, gate, focus, centre), forms, strict=True)
    )
    layout = Layout(rows, window, lengths, penalty_sigma, damping_sigma)
    context, new_focus, weights = _Attend.apply(  # type: ignore[no-untyped-call]
        layout, trace, keys, values, *own
    )
    return Attended(context, new_focus, weights if trace else None)


class _Attend(torch.autograd.Function):
    """The kernels forward, the reference backward."""

    @staticmethod
    def forward(
        ctx: Any, layout: Layout, trace: bool, keys: Tensor, values: Tensor, *own: Any
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Return context [N, H], focus [N] and, for a trace, weights [N, S].

        Args:
            ctx: What the backward pass finds again.
            layout: What is read and how.
            trace: Whether the weights are to be 0 where nothing is read.
            keys: [B, S, A].
            values: [B, S, H].
            own: Query, v, gate, focus and centre of each hypothesis.
        """
        query, v, gate, focus, centre = own
        num_hypotheses, (length, size) = len(layout.rows), keys.shape[1:]
        new = torch.zeros if trace else torch.empty
        weights = new(num_hypotheses, length, dtype=torch.float32, device=keys.device)
        new_focus = weights.new_empty(num_hypotheses)
        context = values.new_empty(num_hypotheses, values.shape[2])
        place = (layout.rows, *layout.window, length)
        # What is not there is not read: anything stands for it.
        kernels.weigh[(num_hypotheses,)](
            query, keys if v is None else v, keys, *place, size,
            *(weights if part is None else part for part in (gate, focus, centre)),
            2 * layout.penalty_sigma**2, 2 * layout.damping_sigma**2,
            weights, new_focus,
            v is not None, gate is not None, centre is not None, POSITIONS, UNITS,
        )  # fmt: skip
        kernels.add_up[(num_hypotheses, -(-values.shape[2] // UNITS))](
            weights, values, *place, values.shape[2], context, POSITIONS, UNITS
        )
        ctx.layout = layout
        ctx.save_for_backward(keys, values, *own)
        ctx.mark_non_differentiable(weights)
        ctx.set_materialize_grads(False)
        return context, new_focus, weights

    @staticmethod
    @once_differentiable
    def backward(
        ctx: Any, grad_context: Tensor | None, grad_focus: Tensor | None, _: None
    ) -> tuple[Tensor | None, ...]:
        """Differentiate the reference."""
        rows, window, lengths, penalty_sigma, damping_sigma = ctx.layout
        with torch.enable_grad():
            tensors: list[Any] = [
                None if part is None else part.detach().requires_grad_()
                for part in ctx.saved_tensors
            ]
            keys, values, query, v, gate, focus, centre = tensors
            penalty = None if gate is None else Penalty(gate, focus, penalty_sigma)
            damping = None if centre is None else Damping(centre, damping_sigma)
            again = reference.attend(
                query, Source(keys, values, lengths), rows, v, window, penalty, damping
            )
        pairs = [(again.context, grad_context), (again.focus, grad_focus)]
        results, arriving = zip(*(pair for pair in pairs if pair[1] is not None), strict=True)
        wanted = [part for part in tensors if part is not None]
        found = iter(torch.autograd.grad(results, wanted, arriving, allow_unused=True))
        return (None, None, *(None if part is None else next(found) for part in tensors))
