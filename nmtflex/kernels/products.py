"""Products with weights, in training and frozen for decoding.

Legend: M rows, C units that come in, O units that go out.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn

from nmtflex.kernels.words import room_for_logits

Frozen = Callable[[Tensor], Tensor]  # [M, C] to [M, O]


class Product(nn.Linear):
    """x W^T + b, as in ``nn.Linear``; for decoding ``model.freeze`` makes it by a faster way."""

    frozen: Frozen | None = None  # x W^T of weights that will not change

    def forward(self, x: Tensor) -> Tensor:
        """Return x W^T + b: [.., C] to [.., O]."""
        if self.frozen is None:
            return super().forward(x)
        product = self.frozen(x)
        return product if self.bias is None else product + self.bias

    def bare(self, x: Tensor) -> Tensor:
        """Return x W^T, without b: [M, C] to [M, O]."""
        if self.frozen is not None:
            return self.frozen(x)
        if torch.is_grad_enabled() or torch.is_autocast_enabled(x.device.type):
            return x @ self.weight.t()
        room = room_for_logits(x, len(x), len(self.weight))
        return torch.mm(x, self.weight.t(), out=room)


class Packed:
    """x W^T with W laid out for oneDNN's products, on the CPU in float32.

    They are up to twice as fast as those of the BLAS library behind ``torch.mm``, most so for few
    rows and for numbers of outputs that no vector divides.

    Args:
        weight: W, [O, C].
    """

    def __init__(self, weight: Tensor) -> None:
        self.weight = torch.ops.mkldnn._reorder_linear_weight(weight.detach(), None)

    def __call__(self, x: Tensor) -> Tensor:
        """Return x W^T: [M, C] to [M, O]."""
        return torch.ops.mkldnn._linear_pointwise(x, self.weight, None, "none", [], "")

    @staticmethod
    def serves(weight: Tensor) -> bool:
        """Whether there are such products for a weight."""
        if weight.device.type != "cpu" or weight.dtype != torch.float32 or not weight.numel():
            return False
        return torch._C._has_mkldnn and hasattr(torch.ops.mkldnn, "_linear_pointwise")


class Int8:
    """x W^T in whole numbers of 8 bits, on the CPU.

    Each row of W and each row of x has a scale of its own, its greatest magnitude over 127: a
    hypothesis's numbers do not depend on those beside it.

    Args:
        weight: W, [O, C].
    """

    def __init__(self, weight: Tensor) -> None:
        self.weight, self.scales = _quantized(weight.detach())

    def __call__(self, x: Tensor) -> Tensor:
        """Return x W^T: [M, C] to [M, O]."""
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
        return rows


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
