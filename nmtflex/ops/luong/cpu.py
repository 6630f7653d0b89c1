"""All steps of Luong's decoder in loops on the CPU, with their gradients.

Legend as in ``nmtflex.ops.luong``.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from nmtflex.ops.attend import Source
from nmtflex.ops.heap import rounded
from nmtflex.ops.linear.packed import array
from nmtflex.ops.linear.product_loops import laid_out
from nmtflex.ops.luong import Parameters, loops
from nmtflex.ops.threads import run_rows


def steps(
    gates: Tensor,
    state: tuple[Tensor, Tensor],
    source: Source,
    parameters: Parameters,
    dropout: float,
) -> Tensor:
    """Run all steps; see ``nmtflex.ops.luong.steps``."""
    seed = int(torch.empty((), dtype=torch.long).random_()) if dropout else 0
    fixed = source.lengths, dropout, seed
    return _Steps.apply(fixed, gates, *state, source.keys, source.values, *parameters)  # type: ignore[no-untyped-call]


class _Steps(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        fixed: tuple[Tensor, float, int],
        gates: Tensor,
        h: Tensor,
        c: Tensor,
        keys: Tensor,
        values: Tensor,
        *parameters: Tensor | None,
    ) -> Tensor:
        """Return a of every step."""
        lengths, dropout, seed = fixed
        weights = Parameters(*parameters)  # type: ignore[arg-type]
        given = loops.Given(
            array(gates),
            array(keys),
            array(values),
            array(lengths),
            _array(weights.v, gates),
            _array(weights.bias, gates),
            dropout,
            seed,
        )
        made = _made(given, array(h), array(c))
        _run(loops.forward, given, _laid_out(weights), made)
        ctx.given, ctx.made = given, made
        ctx.save_for_backward(*parameters)
        return torch.from_numpy(made.outputs)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        """Return the gradients of all tensors."""
        given, made = ctx.given, ctx.made
        weights = Parameters(*ctx.saved_tensors)
        grads = loops.Grads(
            array(grad),
            np.empty_like(made.gates),
            np.empty_like(made.outputs),
            np.empty_like(made.queries),
            np.zeros_like(given.keys),
            np.zeros_like(given.values),
            np.zeros((len(given.lengths), len(given.v)), given.keys.dtype),
            np.zeros_like(made.entering[0]),
            np.zeros_like(made.c[0]),
        )
        _run(loops.backward, given, _laid_out(weights, transposed=True), made, grads)
        size = made.c.shape[2]
        of_query = of_bias = of_v = None
        if weights.query is not None:
            of_query = _gathered(grads.queries, made.joined[..., :size])
            of_bias = torch.from_numpy(grads.queries).sum((0, 1))
            of_v = torch.from_numpy(grads.v).sum(0)
        alike = grads.gates, grads.entering[:, size:], grads.c, grads.keys, grads.values
        return (
            None,
            *map(torch.from_numpy, alike),
            _gathered(grads.gates, made.entering[:-1]),
            _gathered(grads.attentional, made.joined),
            of_query,
            of_bias,
            of_v,
        )


def _array(vector: Tensor | None, like: Tensor) -> Any:
    return array(like[0, 0, :0] if vector is None else vector)


def _made(given: loops.Given, h: Any, c: Any) -> loops.Made:
    """Return room for all steps, with the state before the first one."""
    count, batch, size = *given.gates.shape[:2], h.shape[1]
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
    made = loops.Made._make([np.empty(shape, given.gates.dtype) for shape in shapes])
    made.entering[0, :, :size] = 0
    made.entering[0, :, size:] = h
    made.c[0] = c
    return made


def _laid_out(weights: Parameters, transposed: bool = False) -> loops.Weights:
    """Lay the weights of the products out for tiles."""
    parts = [weights.joint, weights.attentional]
    if weights.query is not None:
        parts.append(weights.query)
    flat = [laid_out(array(part).T if transposed else array(part)) for part in parts]
    return loops.Weights(*flat, *[flat[0][:0]] * (3 - len(flat)))


def _run(loop: Any, given: loops.Given, *parts: Any) -> None:
    """Run a loop over sentences, shared among threads."""
    run_rows(loop, len(given.lengths), given.gates.size, given, *parts)


def _gathered(outputs: Any, inputs: Any) -> Tensor:
    """Return the gradient of a weight [O, C], from gradients [T, B, O] and inputs [T, B, C]."""
    of_outputs, entered = (
        rounded(torch.from_numpy(part).flatten(0, 1)) for part in (outputs, inputs)
    )
    return of_outputs.t() @ entered
