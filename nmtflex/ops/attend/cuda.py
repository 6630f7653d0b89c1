"""Windowed attention on a GPU: Triton kernels that score, weigh and sum without copying the memory.

As on the CPU, no tensor of [N, S, A] is made: the forward pass keeps the weights [N, S], and the
backward pass computes the rest again. Keys and values stay in their own format, bfloat16 included;
scores, weights and all sums are float32, forward and backward. float64 goes to ``reference``.
Nothing here waits for the GPU, so windows are not checked: they are clipped to the memory.

Separate programs read parts of ``PART`` positions of a window, and their results are combined: one
long sentence keeps as many multiprocessors busy as many short ones.

The block sizes were never tuned.

Legend: B sentences, S source positions, N hypotheses, A units of a key, H units of a value, C parts
of the longest window.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from nmtflex.ops.attend import reference, triton_backward
from nmtflex.ops.attend import triton_loops as kernels
from nmtflex.ops.attend.cuda_gather import gradients
from nmtflex.ops.attend.function import Attend, Loops, Operands
from nmtflex.ops.attend.gather import Gather, find_gather
from nmtflex.ops.attend.operation import Attended, Damping, Penalty, Source, Window, whole_sentences
from nmtflex.ops.attend.reference import window_below
from nmtflex.ops.launch import PART, POSITIONS, UNITS, blocks, launching

__all__ = ["attend", "make_source", "window_below"]


class Layout(NamedTuple):
    """The arguments that have no gradient."""

    rows: Tensor  # [N]
    start: Tensor  # [N]
    stop: Tensor  # [N]
    penalty_spread: float  # 2 sigma^2 of the penalty
    damping_spread: float  # 2 sigma^2 of the damping
    kept: bool  # whether the weights are wanted, by a trace or by the backward pass
    traced: bool  # whether they are to be 0 where nothing is read

    @property
    def place(self) -> tuple[Tensor, Tensor, Tensor]:
        """Which sentence each hypothesis reads, and which positions."""
        return self.rows, self.start, self.stop


def make_source(keys: Tensor, values: Tensor, lengths: Tensor) -> Source:
    """Make keys and values contiguous; see ``nmtflex.ops.attend.make_source``."""
    if keys.dtype != torch.float64:
        keys, values = Gather.apply(keys, values, None, gradients)  # type: ignore[no-untyped-call]
    return Source(keys, values, lengths)


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
    """Attend within windows; see ``nmtflex.ops.attend.attend``."""
    if source.keys.dtype == torch.float64:
        return reference.attend(query, source, rows, v, window, penalty, damping, trace)
    gather = find_gather(source.keys, source.values)
    window = window or whole_sentences(source, rows)
    rows = torch.arange(len(query), device=query.device) if rows is None else rows
    gate, focus, penalty_sigma = penalty or (None, None, 1.0)
    centre, damping_sigma = damping or (None, 1.0)
    kept = trace or torch.is_grad_enabled()
    rows, start, stop = (part.long().contiguous() for part in (rows, *window))
    spreads = 2 * penalty_sigma**2, 2 * damping_sigma**2
    layout = Layout(rows, start, stop, *spreads, kept, trace)
    exactly = torch.float32
    forms = (query.dtype, exactly, source.keys.dtype, source.values.dtype, *[exactly] * 3)
    parts = (query, v, source.keys, source.values, gate, focus, centre)
    alike = (
        None if part is None else part.to(form).contiguous()
        for part, form in zip(parts, forms, strict=True)
    )
    context, new_focus, log_sum, weights = Attend.apply(LOOPS, layout, gather, *alike)  # type: ignore[no-untyped-call]
    return Attended(context, new_focus, weights if trace else None, log_sum)


def _room(layout: Layout, like: Tensor, length: int) -> Tensor:
    """Return an empty tensor for weights [N, S]; [N, 0] if they are not kept."""
    shape = (len(layout.rows), length if layout.kept else 0)
    new = torch.zeros if layout.traced else torch.empty
    return new(shape, dtype=torch.float32, device=like.device)


def _forward(layout: Layout, operands: Operands) -> tuple[Tensor, ...]:
    """Return context, focus and log_sum; weights [N, S], after and before the damping."""
    query, v, keys, values, gate, focus, centre = operands
    count, (length, size), units = len(query), keys.shape[1:], values.shape[2]
    parts = blocks(length, PART)
    plain = _room(layout, keys, length)
    weights = plain if centre is None else _room(layout, keys, length)
    scores = plain.new_empty(count, length)
    greatest, totals = plain.new_empty(2, count, parts).unbind(0)
    # With one part its sums are the totals.
    context = (values if parts == 1 else plain).new_empty(count, parts, units)
    new_focus, log_sum = plain.new_empty(count, parts), plain.new_empty(count)
    with launching(keys.device):
        # Masked positions are never read, so their values do not matter.
        kernels.score[count, parts](
            query, keys if v is None else v, keys, *layout.place,
            *(scores if part is None else part for part in (gate, focus)),
            layout.penalty_spread, length, size, parts, scores, greatest, totals,
            v is not None, gate is not None, PART, POSITIONS, UNITS,
        )  # fmt: skip
        kernels.weigh[count, parts, blocks(units, UNITS)](
            scores, greatest, totals, values, *layout.place, scores if centre is None else centre,
            layout.damping_spread, length, units, parts, plain, weights, context, new_focus,
            log_sum, centre is not None, layout.kept, PART, POSITIONS, UNITS,
        )  # fmt: skip
    context = _whole(layout, context, length, values.dtype)
    new_focus = _whole(layout, new_focus.unsqueeze(2), length, torch.float32).squeeze(1)
    return context, new_focus, log_sum, weights, plain


def _whole(layout: Layout, added: Tensor, length: int, dtype: torch.dtype) -> Tensor:
    """Add up over the parts of each window: [N, C, D] to [N, D]."""
    count, parts, size = added.shape
    if parts == 1:
        return added.squeeze(1)
    total = added.new_empty(count, size, dtype=dtype)
    with launching(added.device):
        kernels.add_parts[count, blocks(size, UNITS)](
            added, layout.start, layout.stop, length, size, parts, total, PART, UNITS
        )
    return total


def _backward(
    layout: Layout, operands: Operands, plain: Tensor, arriving: tuple[Tensor, ...]
) -> tuple[Tensor, Operands]:
    """Return the gradients of the scores [N, S], and of what each hypothesis has for itself.

    Those of keys and values are left as they are; that of v is a summand of each hypothesis.
    """
    query, v, keys, values, gate, focus, centre = operands
    grad_context, grad_focus, grad_log_sum = arriving
    count, (length, size), units = len(query), keys.shape[1:], values.shape[2]
    parts = blocks(length, PART)
    grads, scores = torch.empty_like(plain), torch.empty_like(plain)
    means, of_centre, of_gate, of_focus = plain.new_empty(4, count, parts).unbind(0)
    of_query = plain.new_empty(count, parts, size)
    of_v = of_query if v is None else torch.empty_like(of_query)
    with launching(keys.device):
        triton_backward.of_weights[count, parts](
            grad_context, grad_focus, values, *layout.place, plain if centre is None else centre,
            layout.damping_spread, length, units, parts, plain, grads, means, of_centre,
            centre is not None, PART, POSITIONS, UNITS,
        )  # fmt: skip
        triton_backward.of_scores[count, parts](
            layout.start, layout.stop, *(plain if part is None else part for part in (gate, focus)),
            layout.penalty_spread, length, parts, plain, grads, means, grad_log_sum, scores,
            of_gate, of_focus, gate is not None, PART, POSITIONS,
        )  # fmt: skip
        triton_backward.of_query[count, parts, blocks(size, UNITS)](
            scores, query, keys if v is None else v, keys, *layout.place, length, size, parts,
            of_query, of_v, v is not None, PART, POSITIONS, UNITS,
        )  # fmt: skip
    return scores, Operands(
        query=_whole(layout, of_query, length, torch.float32),
        v=None if v is None else _whole(layout, of_v, length, torch.float32),
        keys=keys,
        values=values,
        gate=None if gate is None else of_gate.sum(1),
        focus=None if gate is None else of_focus.sum(1),
        centre=None if centre is None else of_centre.sum(1),
    )


LOOPS = Loops(_forward, _backward, gradients)
