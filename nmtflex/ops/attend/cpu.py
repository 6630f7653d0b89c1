"""Windowed attention on the CPU: loops that score, weigh and sum without copying the memory.

The loops make no tensor of [N, S, A]: the forward pass keeps the weights of each window, [N, W],
and the backward pass computes the rest again. Everything runs in float32, or in float64 for float64
keys. Results are the same bit for bit at any number of threads.

Legend: B sentences, S source positions, N hypotheses, W positions of the widest window, A units of
a key, H units of a value.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from nmtflex.ops.arrays import Arriving, Inputs, Leaving, Whole
from nmtflex.ops.attend import loops, reference, windows
from nmtflex.ops.attend.cpu_gather import gradients
from nmtflex.ops.attend.function import Attend, Loops, Operands
from nmtflex.ops.attend.gather import Gather, find_gather
from nmtflex.ops.attend.operation import Attended, Damping, Penalty, Source, Window, whole_sentences
from nmtflex.ops.tensors import precise
from nmtflex.ops.threads import run, threads_for


class Layout(NamedTuple):
    """The arguments that have no gradient."""

    rows: Whole  # [N]
    start: Whole  # [N]
    stop: Whole  # [N]
    widest: int  # W
    shares: Whole  # hypotheses of each thread, [threads + 1]
    penalty_spread: float  # 2 sigma^2 of the penalty
    damping_spread: float  # 2 sigma^2 of the damping


def make_source(keys: Tensor, values: Tensor, lengths: Tensor) -> Source:
    """Lay keys and values out for the loops; see ``nmtflex.ops.attend.make_source``."""
    dtype = precise(keys.dtype)
    keys, values = Gather.apply(keys, values, dtype, gradients)  # type: ignore[no-untyped-call]
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
    gather = find_gather(source.keys, source.values)
    layout = _lay_out(source, rows, window or whole_sentences(source, rows), penalty, damping)
    gate, focus, _ = penalty or (None, None, 0.0)
    centre, _ = damping or (None, 0.0)
    dtype = precise(source.keys.dtype)
    parts = (query, v, source.keys, source.values, gate, focus, centre)
    alike: list[Any] = [None if part is None else part.to(dtype).contiguous() for part in parts]
    operands = Operands(*alike)
    _check_shapes(operands, layout)
    if torch.is_grad_enabled():
        context, new_focus, log_sum, weights = Attend.apply(LOOPS, layout, gather, *operands)  # type: ignore[no-untyped-call]
    else:
        context, new_focus, log_sum, weights, _ = _forward(layout, operands)
    if not trace:
        return Attended(context, new_focus, None, log_sum)
    laid_out = weights.new_zeros(len(weights), source.keys.shape[1])
    windows.spread(weights.numpy(), layout.start, layout.stop, laid_out.numpy())
    return Attended(context, new_focus, laid_out, log_sum)


def _lay_out(
    source: Source,
    rows: Tensor | None,
    window: Window,
    penalty: Penalty | None,
    damping: Damping | None,
) -> Layout:
    """Check the windows, and share them among threads.

    Raises:
        ValueError: A window is empty or leaves the memory.
    """
    num_sentences, length, size = source.keys.shape
    start, stop = (np.ascontiguousarray(bound.numpy(), dtype=np.int64) for bound in window)
    of = np.arange(len(start))
    if rows is not None:
        of = np.ascontiguousarray(rows.numpy(), dtype=np.int64)
    if not len(of) == len(start) == len(stop):
        raise ValueError(f"{len(of)} rows, {len(start)} first positions and {len(stop)} ends")
    widest, total = windows.check(of, start, stop, num_sentences, length)
    if widest < 0:
        n = -1 - widest
        raise ValueError(
            f"hypothesis {n} reads positions {start[n]} to {stop[n]} of sentence {of[n]}, "
            f"where there are {length} positions of {num_sentences} sentences"
        )
    threads = threads_for(total * (size + source.values.shape[2]))
    shares = windows.share(start, stop, total, threads)
    return Layout(of, start, stop, widest, shares, _spread(penalty), _spread(damping))


def _spread(distance: Penalty | Damping | None) -> float:
    """Return 2 sigma^2."""
    return 1.0 if distance is None else 2 * distance.sigma**2


def _check_shapes(operands: Operands, layout: Layout) -> None:
    """Check shapes, since the loops do not check bounds.

    Raises:
        ValueError: A tensor does not fit the keys or the window.
    """
    num_hypotheses, (num_sentences, length, size) = len(layout.start), operands.keys.shape
    each = (num_hypotheses,)
    shapes = {
        "query": (*each, size),
        "v": (size,),
        "values": (num_sentences, length, operands.values.shape[-1]),
        "gate": each,
        "focus": each,
        "centre": each,
    }
    for name, shape in shapes.items():
        part = getattr(operands, name)
        if part is not None and part.shape != shape:
            raise ValueError(f"{name} has shape {tuple(part.shape)}, not {shape}")


def _inputs(layout: Layout, operands: Operands) -> Inputs:
    """Return the arrays of layout and operands."""
    nothing = operands.keys.detach()[:0, 0, 0]
    query, v, keys, values, gate, focus, centre = (
        (nothing if part is None else part.detach()).numpy() for part in operands
    )
    windows, spreads = layout[:3], (layout.penalty_spread, layout.damping_spread)
    return Inputs(query, v, keys, values, *windows, gate, focus, centre, *spreads)


def _forward(layout: Layout, operands: Operands) -> tuple[Tensor, ...]:
    """Return context, focus and log_sum; weights [N, W], after and before the damping."""
    inputs = _inputs(layout, operands)
    num_hypotheses, size = len(inputs.query), inputs.values.shape[2]
    kind = inputs.query.dtype
    plain = np.empty((num_hypotheses, layout.widest), kind)
    weights = plain if operands.centre is None else np.empty_like(plain)
    context = np.empty((num_hypotheses, size), kind)
    focus, log_sum = np.empty(num_hypotheses, kind), np.empty(num_hypotheses, kind)
    written = plain, weights, context, focus, log_sum
    run(loops.forward, len(layout.shares) - 1, inputs, layout.shares, *written)
    return tuple(map(torch.from_numpy, (context, focus, log_sum, weights, plain)))


def _backward(
    layout: Layout, operands: Operands, plain: Tensor, arriving: tuple[Tensor, ...]
) -> tuple[Tensor, Operands]:
    """Return the gradients of the scores and of the operands; see ``Loops``."""
    query, _, keys, values, *_ = operands
    scores, of_query, of_v = (torch.empty_like(like) for like in (plain, query, query))
    of_gate, of_focus, of_centre = plain.new_empty(3, len(query)).unbind(0)
    leaving = (scores, of_query, of_v, of_gate, of_focus, of_centre)
    run(
        loops.backward_queries,
        len(layout.shares) - 1,
        _inputs(layout, operands),
        layout.shares,
        plain.numpy(),
        Arriving(*(part.numpy() for part in arriving)),
        Leaving(*(part.numpy() for part in leaving)),
    )
    return scores, Operands(of_query, of_v, keys, values, of_gate, of_focus, of_centre)


LOOPS = Loops(_forward, _backward, gradients)


def window_below(tau: float, penalty: Penalty, lengths: Tensor) -> Window:
    """Return the positions with a penalty below tau; see ``nmtflex.ops.attend``."""
    if penalty.gate.requires_grad:
        return reference.window_below(tau, penalty, lengths)
    start, stop = torch.empty_like(lengths), torch.empty_like(lengths)
    kind = penalty.gate.numpy().dtype.type
    windows.below(
        kind(min(tau, torch.finfo(penalty.gate.dtype).max)),
        penalty.gate.numpy(),
        penalty.focus.detach().numpy(),
        kind(2 * penalty.sigma**2),
        lengths.numpy(),
        start.numpy(),
        stop.numpy(),
    )
    return Window(start, stop)
