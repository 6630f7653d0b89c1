"""Products with weights that change: x W^T in the fastest available way.

Legend: M rows, C units that come in, O units that go out.
"""

from __future__ import annotations

from torch import Tensor

from nmtflex.ops.torch_private import has_onednn, onednn_product


def times(x: Tensor, weight: Tensor) -> Tensor:
    """Return x W^T in the fastest way for weights that change: [M, C] to [M, O].

    On the CPU in float32 oneDNN's products are up to 1.7 times as fast as those of the BLAS library
    behind ``torch.mm`` with W in its usual layout, or transposed.
    """
    if has_onednn(weight) and x.numel():
        return onednn_product(x.contiguous(), weight, None)
    return x @ weight.t()
