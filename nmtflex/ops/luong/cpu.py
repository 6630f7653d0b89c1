"""All steps of Luong's decoder in loops on the CPU, with their gradients.

Legend as in ``nmtflex.ops.luong``.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from nmtflex.ops.heap import rounded
from nmtflex.ops.linear.packed import NOTHING, array
from nmtflex.ops.linear.product_loops import laid_out
from nmtflex.ops.luong import Attending, Weights, gate_loops, loops
from nmtflex.ops.tensors import held
from nmtflex.ops.threads import run_rows


class _Fixed(NamedTuple):
    """What has no gradient."""

    lengths: Tensor
    dropout: float
    seed: int
    spread: float = 0.0
    tau: float = math.inf


class _Read(NamedTuple):
    """What has a gradient, in the order of the arguments of ``_Steps``; None for what is unused."""

    gates: Tensor
    feedback: Tensor
    h: Tensor
    c: Tensor
    keys: Tensor
    values: Tensor
    joint: Tensor
    attentional: Tensor
    query: Tensor | None
    bias: Tensor | None
    v: Tensor | None
    gate: Tensor | None = None
    gate_bias: Tensor | None = None
    gate_v: Tensor | None = None
    gate_end: Tensor | None = None
    focus: Tensor | None = None


def steps(
    gates: Tensor,
    feedback: Tensor,
    state: tuple[Tensor, Tensor],
    weights: Weights,
    attending: Attending,
    dropout: float,
) -> tuple[Tensor, Tensor | None]:
    """Run all steps; see ``nmtflex.ops.luong.steps``."""
    (keys, values, lengths), score, focusing = attending
    seed = int(torch.empty((), dtype=torch.long).random_()) if dropout else 0
    fixed = _Fixed(lengths, dropout, seed)
    own = gates, feedback, *state, keys, values, *weights, *score
    if focusing is None:
        return _Steps.apply(fixed, *_Read(*own))[0], None  # type: ignore[no-untyped-call]
    tau = held(focusing.tau, gates.dtype)
    fixed = fixed._replace(spread=2 * focusing.sigma**2, tau=tau)
    outputs, strength = _Steps.apply(fixed, *_Read(*own, *focusing[:5]))  # type: ignore[no-untyped-call]
    return outputs, strength


class _Steps(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, fixed: _Fixed, *tensors: Tensor | None) -> tuple[Tensor, Tensor]:
        """Return a and the strength of the penalty, of every step."""
        read = _Read(*tensors)  # type: ignore[arg-type]
        given, gate = _given(fixed, read)
        made, gated = _made(given, gate, read)
        _run(loops.forward, given, gate, _laid_out(read), made, gated)
        ctx.loops = given, gate, made, gated
        ctx.save_for_backward(*tensors)
        return torch.from_numpy(made.outputs), torch.from_numpy(gated.strength)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor, grad_strength: Tensor) -> tuple[Tensor | None, ...]:
        """Return the gradients of all tensors."""
        (given, gate, made, gated), read = ctx.loops, _Read(*ctx.saved_tensors)
        grads = _grads(given, made, array(grad))
        of_gate = _gate_grads(gate, gated, array(grad_strength))
        weights = _laid_out(read, transposed=True)
        _run(loops.backward, given, gate, weights, made, gated, grads, of_gate)
        size, hidden = made.c.shape[2], torch.from_numpy(of_gate.hidden)
        h = made.joined[..., :size]
        found = read._replace(
            gates=torch.from_numpy(grads.gates),
            feedback=hidden[..., : read.feedback.shape[2]],
            h=torch.from_numpy(grads.entering[:, size:]),
            c=torch.from_numpy(grads.c),
            keys=torch.from_numpy(grads.keys),
            values=torch.from_numpy(grads.values),
            joint=_gathered(grads.gates, made.entering[:-1]),
            attentional=_gathered(grads.attentional, made.joined),
        )
        if read.query is not None:
            found = found._replace(
                query=_gathered(grads.queries, h),
                bias=torch.from_numpy(grads.queries).sum((0, 1)),
                v=torch.from_numpy(grads.v).sum(0),
            )
        if read.gate is not None:
            end = torch.from_numpy(of_gate.end).sum(0, keepdim=True)
            found = found._replace(
                gate=_gathered(of_gate.hidden, h),
                gate_bias=None if read.gate_bias is None else hidden.sum((0, 1)),
                gate_v=torch.from_numpy(of_gate.v).sum(0),
                gate_end=None if read.gate_end is None else end,
                focus=torch.from_numpy(of_gate.focus),
            )
        return None, *found


def _given(fixed: _Fixed, read: _Read) -> tuple[loops.Given, gate_loops.Gate]:
    """Return what the loops read, with vectors of length 0 for those that there are not."""
    vectors = read.v, read.bias, read.gate_bias, read.gate_v, read.gate_end
    v, bias, gate_bias, gate_v, end = (NOTHING if one is None else array(one) for one in vectors)
    source = array(read.keys), array(read.values), array(fixed.lengths)
    given = loops.Given(array(read.gates), *source, v, bias, fixed.dropout, fixed.seed)
    words = array(read.feedback)
    return given, gate_loops.Gate(words, gate_bias, gate_v, end, fixed.spread, fixed.tau)


def _made(
    given: loops.Given, gate: gate_loops.Gate, read: _Read
) -> tuple[loops.Made, gate_loops.Gated]:
    """Return room for all steps, with the state before the first one."""
    count, batch, size = *given.gates.shape[:2], read.h.shape[1]
    length, units, width = given.keys.shape[1], given.keys.shape[2], given.values.shape[2]
    shapes = (
        (count + 1, batch, 2 * size),
        given.gates.shape,
        (count + 1, batch, size),
        (count, batch, size + width),
        (count, batch, units),
        (count, batch, length),
        (count, batch, size),
    )
    made = loops.Made._make(_rooms(*shapes))
    made.entering[0, :, :size] = 0
    made.entering[0, :, size:] = array(read.h)
    made.c[0] = array(read.c)
    hidden = count, batch, len(gate.v)
    gated = gate_loops.Gated._make(_rooms(hidden, hidden[:2], (count + 1, batch)))
    if read.focus is not None:
        gated.focus[0] = array(read.focus)
    return made, gated


def _rooms(*shapes: tuple[int, ...]) -> Iterator[Any]:
    return (np.empty(shape, np.float32) for shape in shapes)


def _grads(given: loops.Given, made: loops.Made, arriving: Any) -> loops.Grads:
    """Return the gradient that arrives, and room for those that are made."""
    return loops.Grads(
        arriving,
        np.empty_like(made.gates),
        np.empty_like(made.outputs),
        np.empty_like(made.queries),
        np.zeros_like(given.keys),
        np.zeros_like(given.values),
        np.zeros((len(given.lengths), len(given.v)), np.float32),
        np.zeros_like(made.entering[0]),
        np.zeros_like(made.c[0]),
    )


def _gate_grads(
    gate: gate_loops.Gate, gated: gate_loops.Gated, arriving: Any
) -> gate_loops.GateGrads:
    """Return the gradient that arrives, and room for those that are made."""
    batch = gated.focus.shape[1]
    return gate_loops.GateGrads(
        arriving,
        np.empty_like(gated.hidden),
        np.zeros((batch, len(gate.v)), np.float32),
        np.zeros(batch, np.float32),
        np.zeros(batch, np.float32),
    )


def _laid_out(read: _Read, transposed: bool = False) -> loops.Weights:
    """Lay the weights of the products out for tiles; nothing of those that there are not."""
    return loops.Weights(
        *(
            NOTHING
            if weight is None
            else laid_out(array(weight).T if transposed else array(weight))
            for weight in (read.joint, read.attentional, read.query, read.gate)
        )
    )


def _run(loop: Any, given: loops.Given, *parts: Any) -> None:
    """Run a loop over sentences, shared among threads."""
    run_rows(loop, len(given.lengths), given.gates.size, given, *parts)


def _gathered(outputs: Any, inputs: Any) -> Tensor:
    """Return the gradient of a weight [O, C], from gradients [T, B, O] and inputs [T, B, C]."""
    of_outputs, entered = (
        rounded(torch.from_numpy(part).flatten(0, 1)) for part in (outputs, inputs)
    )
    return of_outputs.t() @ entered
