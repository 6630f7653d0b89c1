"""Products with weights, in training and frozen for decoding.

Legend: M rows, C units that come in, O units that go out.
"""

from __future__ import annotations

import contextlib
from collections import defaultdict
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

from nmtflex.kernels.heap import rounded
from nmtflex.kernels.words import room_for_logits

Frozen = Callable[[Tensor, Tensor | None], Tensor]  # x [M, C] and b [O] to x W^T + b [M, O]


def times(x: Tensor, weight: Tensor) -> Tensor:
    """Return x W^T by the fastest way there is for weights that change: [M, C] to [M, O].

    On the CPU in float32 oneDNN's products are up to 1.7 times as fast as those of the BLAS library
    behind ``torch.mm`` even where W lies as it always does, or transposed; ``Packed`` is faster by
    another tenth, which is lost where it is packed anew at every update.
    """
    if serves(weight) and x.numel():
        return _onednn(x.contiguous(), weight, None)
    return x @ weight.t()


def serves(weight: Tensor) -> bool:
    """Whether oneDNN has products for a weight."""
    if weight.device.type != "cpu" or weight.dtype != torch.float32 or not weight.numel():
        return False
    return torch._C._has_mkldnn and hasattr(torch.ops.mkldnn, "_linear_pointwise")


def _onednn(x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    return torch.ops.mkldnn._linear_pointwise(x, weight, bias, "none", [], "")


class Linear(nn.Linear):
    """``nn.Linear`` for all steps or positions of a batch at once: x W^T + b."""

    def forward(self, x: Tensor) -> Tensor:
        """Return [.., O] of [.., C]."""
        if not torch.is_autocast_enabled(x.device.type):
            return super().forward(x)
        rows = x.flatten(0, -2)
        return super().forward(rounded(rows))[: len(rows)].view(*x.shape[:-1], self.out_features)


class Product(nn.Linear):
    """x W^T + b, as in ``nn.Linear``; for decoding ``model.freeze`` makes it by a faster way."""

    frozen: Frozen | None = None  # with a weight that will not change
    shared: Tensor | None = None  # W within ``one_gradient``

    def forward(self, x: Tensor) -> Tensor:
        """Return x W^T + b: [.., C] to [.., O]."""
        if self.frozen is not None:
            return self.frozen(x, self.bias)
        if self.shared is None:
            return super().forward(x)
        product = self.bare(x)
        return product if self.bias is None else product + self.bias

    def bare(self, x: Tensor) -> Tensor:
        """Return x W^T, without b: [M, C] to [M, O]."""
        if self.frozen is not None:
            return self.frozen(x, None)
        if self.shared is not None:
            return _Shared.apply(x, self.shared, self.shared.grad_fn)  # type: ignore[no-untyped-call]
        if torch.is_grad_enabled() or torch.is_autocast_enabled(x.device.type):
            return x @ self.weight.t()
        room = room_for_logits(x, len(x), len(self.weight))
        return torch.mm(x, self.weight.t(), out=room)


@contextlib.contextmanager
def one_gradient(module: nn.Module) -> Iterator[None]:
    """Make the gradients of all weights of products in one go for all calls inside the block.

    Every step of a decoder multiplies by the same weights. Left alone, autograd would make a
    gradient of their whole size at each step and add it to that of the steps behind. Here a step
    only notes what its product took and what gradient came to it, as in ``gather``.
    """
    products = [part for part in module.modules() if isinstance(part, Product)]
    if not torch.is_grad_enabled():
        products = []
    for product in products:
        product.shared = _Gathered.apply(product.weight)  # type: ignore[no-untyped-call]
    try:
        yield
    finally:
        for product in products:
            product.shared = None


class _Gathered(torch.autograd.Function):
    """Pass a weight [O, C] on, in the format of its products, and gather its gradient."""

    @staticmethod
    def forward(ctx: Any, weight: Tensor) -> Tensor:
        ctx.notes = defaultdict(list)  # of each call of backward: inputs [M, C], gradients [M, O]
        ctx.set_materialize_grads(False)
        ctx.format = weight.dtype
        device = weight.device.type
        if torch.is_autocast_enabled(device):
            return weight.to(torch.get_autocast_dtype(device))
        return weight.view_as(weight)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor | None) -> Tensor | None:
        if notes := ctx.notes.pop(torch._C._current_graph_task_id(), None):
            inputs, outputs = (rounded(torch.cat(parts)) for parts in zip(*notes, strict=True))
            gathered = outputs.t() @ inputs
            grad = gathered if grad is None else grad + gathered
        return None if grad is None else grad.to(ctx.format)


class _Shared(torch.autograd.Function):
    """x W^T with a weight whose gradient is gathered; ``gather`` is its node, None without one."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, gather: Any) -> Tensor:
        ctx.gather, ctx.format = gather, x.dtype
        x = x.to(weight.dtype)
        ctx.save_for_backward(x, weight)
        return times(x, weight)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None, None]:
        x, weight = ctx.saved_tensors
        if ctx.gather is not None:
            ctx.gather.notes[torch._C._current_graph_task_id()].append((x, grad))
        return times(grad, weight.t()).to(ctx.format), None, None


class Packed:
    """x W^T + b with W laid out for oneDNN's products, on the CPU in float32.

    They are up to twice as fast as those of the BLAS library behind ``torch.mm``, most so for few
    rows and for numbers of outputs that no vector divides.

    Args:
        weight: W, [O, C].
    """

    def __init__(self, weight: Tensor) -> None:
        self.weight = torch.ops.mkldnn._reorder_linear_weight(weight.detach(), None)

    def __call__(self, x: Tensor, bias: Tensor | None = None) -> Tensor:
        """Return x W^T + b: [M, C] and [O] to [M, O]."""
        return _onednn(x, self.weight, bias)


class Int8:
    """x W^T + b in whole numbers of 8 bits, b apart, on the CPU.

    Each row of W and each row of x has a scale of its own, its greatest magnitude over 127: a
    hypothesis's numbers do not depend on those beside it.

    Args:
        weight: W, [O, C].
    """

    def __init__(self, weight: Tensor) -> None:
        self.weight, self.scales = _quantized(weight.detach())

    def __call__(self, x: Tensor, bias: Tensor | None = None) -> Tensor:
        """Return x W^T + b: [M, C] and [O] to [M, O]."""
        from nmtflex.kernels import int8_loops
        from nmtflex.kernels.threads import run_rows

        whole, scales = _quantized(x)
        product = torch._int_mm(whole, self.weight.t())
        rows = torch.empty(product.shape, dtype=x.dtype)
        run_rows(
            int8_loops.rescale,
            len(product),
            product.numel(),
            *(part.numpy() for part in (product, scales, self.scales, rows)),
        )
        return rows if bias is None else rows.add_(bias)


def _quantized(rows: Tensor) -> tuple[Tensor, Tensor]:
    """Return rows [M, C] in 8 bits, and their scales [M]."""
    # Imported where needed: numba takes half a second.
    from nmtflex.kernels import int8_loops
    from nmtflex.kernels.threads import run_rows

    rows = rows.contiguous()
    whole, scales = torch.empty(rows.shape, dtype=torch.int8), rows.new_empty(len(rows))
    parts = (part.numpy() for part in (rows, whole, scales))
    run_rows(int8_loops.quantize, len(rows), rows.numel(), *parts)
    return whole, scales
