"""Softmax cross-entropy without the logits of a whole batch.

A batch's logits and their gradient, [tokens, V] each, would take most of the memory of a training
step, newly allocated at every update. Here one chunk of tokens at a time goes from logits to loss
to gradients.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from nmtflex.ops.heap import ROWS, rounded
from nmtflex.ops.linear.products import times
from nmtflex.ops.tensors import padded
from nmtflex.ops.vocabulary import ALIGNED, cross_entropy_rows

CHUNK = 1 << 22  # logits at once: 16 MB in float32
LEAST_ROWS = 256  # tokens at once; fewer make slow products


def cross_entropy(
    hidden: Tensor, weight: Tensor, bias: Tensor, references: Tensor, smoothing: float = 0.0
) -> tuple[Tensor, Tensor]:
    """Return sums of the cross-entropy of softmax(weight hidden + bias), in nats.

    With label smoothing e the target is 1 - e at the reference plus e / V at each of the V words.

    Args:
        hidden: [M, O].
        weight: [V, O]. Products run in autocast's format, sums in float32 at least.
        bias: [V].
        references: [M] word ids.
        smoothing: e, 0 for none.

    Returns:
        The smoothed sum [], with gradient, and the plain one [], without.
    """
    return _CrossEntropy.apply(hidden, weight, bias, references, smoothing)  # type: ignore[no-untyped-call]


class _CrossEntropy(torch.autograd.Function):
    """Computes the gradients in the forward pass: they are linear in that of the sum."""

    @staticmethod
    def forward(
        ctx: Any, hidden: Tensor, weight: Tensor, bias: Tensor, references: Tensor, smoothing: float
    ) -> tuple[Tensor, Tensor]:
        """Return both sums; see ``cross_entropy``."""
        device = hidden.device.type
        dtype = hidden.dtype
        if torch.is_autocast_enabled(device):
            dtype = torch.get_autocast_dtype(device)
        with torch.autocast(device, enabled=False):
            batch = _Batch(hidden.to(dtype), weight.to(dtype), bias)
            gradients = any(ctx.needs_input_grad)
            if gradients:
                batch.make_room()
            for rows in batch.chunks():
                batch.add(rows, references[rows], smoothing, gradients)
        if gradients:
            ctx.save_for_backward(
                batch.grad_hidden[: len(hidden)].to(hidden.dtype),
                batch.grad_weight[: len(weight)].to(weight.dtype),
                batch.grad_bias,
            )
        ctx.mark_non_differentiable(batch.plain)
        return batch.smoothed, batch.plain

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor, _: None) -> tuple[Tensor | None, ...]:
        """Return the gradients of hidden vectors, weight and bias."""
        return (*(grad * part for part in ctx.saved_tensors), None, None)


class _Batch:
    """The sums and gradients of a batch, chunk by chunk.

    Args:
        hidden: [M, O].
        weight: [V, O], alike in format.
        bias: [V], in the format of the sums.
    """

    def __init__(self, hidden: Tensor, weight: Tensor, bias: Tensor) -> None:
        self.hidden, self.weight, self.bias = rounded(hidden), padded(weight, ALIGNED), bias
        self.smoothed, self.plain = bias.new_zeros(()), bias.new_zeros(())

    def make_room(self) -> None:
        """Allocate the gradients, which a validation does not need."""
        self.grad_hidden = torch.empty_like(self.hidden)
        self.grad_weight = torch.zeros_like(self.weight, dtype=self.bias.dtype)
        self.grad_bias = torch.zeros_like(self.bias)

    def chunks(self) -> list[slice]:
        """Split the M tokens."""
        rows = max(LEAST_ROWS, CHUNK // len(self.weight) // ROWS * ROWS)
        return [slice(first, first + rows) for first in range(0, len(self.hidden), rows)]

    def add(self, rows: slice, references: Tensor, smoothing: float, gradients: bool) -> None:
        """Add the tokens ``rows``, whose words are ``references``; the last rows may have none.

        Logits beyond V are 0, as their weights are, and remain 0 as gradients.
        """
        hidden, count = self.hidden[rows], len(references)
        logits = times(hidden, self.weight)
        given = logits[:count, : len(self.bias)], self.bias, references, smoothing, gradients
        smoothed, plain, of_bias = cross_entropy_rows(*given)
        self.smoothed += smoothed
        self.plain += plain
        if not gradients:
            return
        logits[count:] = 0
        self.grad_bias += of_bias
        torch.mm(logits, self.weight, out=self.grad_hidden[rows])
        if logits.dtype == self.grad_weight.dtype:
            self.grad_weight.addmm_(logits.t(), hidden)
        else:
            self.grad_weight += logits.t() @ hidden
