"""Self-attention in loops on the CPU, without padding and without a sentence's weights in memory.

The backward pass computes the weights again, from the logarithms of their sums.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from nmtflex.ops.arrays import Whole
from nmtflex.ops.self_attention import loops, reference
from nmtflex.ops.threads import run, threads_for

if TYPE_CHECKING:
    from nmtflex.ops.self_attention import Layout, Options

START = 32  # positions that take as long as starting on a sentence


def attend(projections: Tensor, layout: Layout, options: Options) -> Tensor:
    """Attend within each sentence; see ``nmtflex.ops.self_attention``."""
    if projections.dtype == torch.float64:
        return reference.attend(projections, layout, options)
    heads, dropout, causal, reach = options
    seed = int(torch.empty((), dtype=torch.long).random_()) if dropout else 0
    begins = np.append(0, layout.lengths.cumsum(0).numpy())
    how = loops.How(heads, causal, layout.width if reach is None else reach, dropout, seed)
    return _Attend.apply(projections.float().contiguous(), begins, how)  # type: ignore[no-untyped-call]


class _Attend(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, projections: Tensor, begins: Whole, how: loops.How) -> Tensor:
        count, size = len(projections), projections.shape[1] // 3
        contexts = projections.new_empty(count, size)
        contexts[begins[-1] :] = 0
        sums = projections.new_empty(count, how.heads)
        _run(loops.attend, begins, how, projections, contexts, sums)
        ctx.save_for_backward(projections, sums)
        ctx.begins, ctx.how = begins, how
        return contexts

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None, None]:
        projections, sums = ctx.saved_tensors
        of_projections = torch.empty_like(projections)
        of_projections[ctx.begins[-1] :] = 0
        given = projections, sums, grad.contiguous(), of_projections
        _run(loops.backward, ctx.begins, ctx.how, *given)
        return of_projections, None, None


def _run(loop: Any, begins: Whole, how: loops.How, *tensors: Tensor) -> None:
    """Run a loop, each thread with a share of the heads of all sentences."""
    lengths = np.repeat(np.diff(begins), how.heads)
    own = lengths * (np.minimum(lengths, 2 * how.reach + 1) + START)
    before, work = np.cumsum(own) - own, int(own.sum())
    threads = threads_for(work * tensors[0].shape[1] // how.heads)
    shares = np.searchsorted(before, np.arange(threads + 1) * work / threads)
    run(loop, threads, *(part.detach().numpy() for part in tensors), begins, how, shares)
