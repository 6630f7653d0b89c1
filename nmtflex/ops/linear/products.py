"""Products with weights: x W^T in the fastest available way.

Legend: M rows, C units that come in, O units that go out.
"""

from __future__ import annotations

import torch
from torch import Tensor

from nmtflex.ops.torch_private import has_onednn, int8_product, onednn_layout, onednn_product


def times(x: Tensor, weight: Tensor) -> Tensor:
    """Return x W^T in the fastest way for weights that change: [M, C] to [M, O].

    On the CPU in float32 oneDNN's products are up to 1.7 times as fast as those of the BLAS library
    behind ``torch.mm`` with W in its usual layout, or transposed; ``Packed`` is another tenth
    faster, which is lost if weights are packed again at every update.
    """
    if has_onednn(weight) and x.numel():
        return onednn_product(x.contiguous(), weight, None)
    return x @ weight.t()


class Packed:
    """x W^T + b with W laid out for oneDNN's products, on the CPU in float32.

    They are up to twice as fast as those of the BLAS library behind ``torch.mm``, mostly for few
    rows and for numbers of outputs that are not a multiple of the vector size.

    Args:
        weight: W, [O, C].
    """

    def __init__(self, weight: Tensor) -> None:
        self.weight = onednn_layout(weight.detach())

    def __call__(self, x: Tensor, bias: Tensor | None = None) -> Tensor:
        """Return x W^T + b: [M, C] and [O] to [M, O]."""
        return onednn_product(x, self.weight, bias)


class Int8:
    """x W^T in 8-bit integers, plus b, on the CPU.

    Each row of W and each row of x has a scale of its own, its greatest magnitude over 127: a
    hypothesis's numbers do not depend on those beside it.

    Args:
        weight: W, [O, C].
    """

    def __init__(self, weight: Tensor) -> None:
        self.weight, self.scales = _quantized(weight.detach())

    def __call__(self, x: Tensor, bias: Tensor | None = None) -> Tensor:
        """Return x W^T + b: [M, C] and [O] to [M, O]."""
        from nmtflex.ops.linear import int8_loops
        from nmtflex.ops.threads import run_rows

        whole, scales = _quantized(x)
        product = int8_product(whole, self.weight)
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
    # Imported only here: numba takes half a second.
    from nmtflex.ops.linear import int8_loops
    from nmtflex.ops.threads import run_rows

    rows = rows.contiguous()
    whole, scales = torch.empty(rows.shape, dtype=torch.int8), rows.new_empty(len(rows))
    parts = (part.numpy() for part in (rows, whole, scales))
    run_rows(int8_loops.quantize, len(rows), rows.numel(), *parts)
    return whole, scales
