"""Linear layers: of all steps at once, and of one step after the other.

Legend: M rows, C units that come in, O units that go out.
"""

from __future__ import annotations

import contextlib
from collections import defaultdict
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

from nmtflex.ops.heap import rounded
from nmtflex.ops.linear.products import rounded_product, times
from nmtflex.ops.torch_private import graph_task
from nmtflex.ops.vocabulary import room_for_logits

Fast = Callable[[Tensor, Tensor | None], Tensor]  # x [M, C] and b [O] to x W^T + b [M, O]
AnyLinear = TypeVar("AnyLinear", bound=nn.Linear)
# With PyTorch's initial weights all slots hold nearly the same, and little makes them differ: the
# copy task is at 3 BLEU with memory attention where 5 times these weights are at 44 (decisions.md).
WIDENED = 5.0


class Linear(nn.Linear):
    """``nn.Linear`` for all steps or positions of a batch at once: x W^T + b."""

    def forward(self, x: Tensor) -> Tensor:
        """Return [.., O] of [.., C]."""
        if x.device.type != "cpu" or not torch.is_autocast_enabled("cpu"):
            return super().forward(x)
        dtype = torch.get_autocast_dtype("cpu")
        rows = rounded_product(x.flatten(0, -2), self.weight, self.bias, dtype)
        return rows.view(*x.shape[:-1], self.out_features)


class Product(Linear):
    """x W^T + b, as in ``Linear``; ``model.inference`` gives it a faster way."""

    fast: Fast | None = None  # for a weight that will not change
    shared: Tensor | None = None  # W within ``one_gradient``

    def forward(self, x: Tensor) -> Tensor:
        """Return x W^T + b: [.., C] to [.., O]."""
        if self.fast is not None:
            rows = self.fast(x.flatten(0, -2), self.bias)
            return rows.view(*x.shape[:-1], self.out_features)
        if self.shared is None:
            return super().forward(x)
        product = self.bare(x)
        return product if self.bias is None else product + self.bias

    def bare(self, x: Tensor) -> Tensor:
        """Return x W^T, without b: [M, C] to [M, O]."""
        if self.fast is not None:
            return self.fast(x, None)
        if self.shared is not None:
            return _Shared.apply(x, self.shared, self.shared.grad_fn)  # type: ignore[no-untyped-call]
        if torch.is_grad_enabled() or torch.is_autocast_enabled(x.device.type):
            return x @ self.weight.t()
        room = room_for_logits(x, len(x), len(self.weight))
        return torch.mm(x, self.weight.t(), out=room)


def glorot(product: Product, outputs: int = 1) -> Product:
    """Draw a product's weights as Glorot and Bengio (2010) do, uniformly; return it.

    Args:
        product: Its bias, if any, becomes 0.
        outputs: How many matrices of equal height its weight stacks, each drawn by itself.
    """
    for matrix in product.weight.detach().chunk(outputs):
        nn.init.xavier_uniform_(matrix)
    if product.bias is not None:
        nn.init.zeros_(product.bias)
    return product


def widened(product: AnyLinear) -> AnyLinear:
    """Multiply the initial weights of a product that chooses slots by ``WIDENED``; return it."""
    with torch.no_grad():
        product.weight *= WIDENED
    return product


@contextlib.contextmanager
def one_gradient(module: nn.Module) -> Iterator[None]:
    """Compute the weight gradients of all products once for all calls inside the block.

    Every step of a decoder multiplies by the same weights. By itself autograd would compute their
    full gradient at each step and add it up. Here a step only keeps a note of the product's input
    and of the incoming gradient, as in ``gather``.
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
        if notes := ctx.notes.pop(graph_task(), None):
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
            ctx.gather.notes[graph_task()].append((x, grad))
        return times(grad, weight.t()).to(ctx.format), None, None
