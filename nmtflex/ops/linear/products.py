"""Products with weights: x W^T in the fastest available way.

Legend: M rows, C units that come in, O units that go out.
"""

from __future__ import annotations

import numpy as np
from torch import Tensor, nn

from nmtflex.ops.torch_private import has_onednn, onednn_layout, onednn_product


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


class Exact:
    """x W^T in float32 inside compiled stages, as ``Int8`` is in 8 bits.

    Args:
        layer: Has the weight W, [O, C], which will not change.
    """

    def __init__(self, layer: nn.Linear) -> None:
        self._layer = layer
        self.scales = np.ones(layer.out_features, dtype=np.float32)  # of the columns

    @property
    def weight(self) -> Tensor:
        """W."""
        return self._layer.weight

    def move(self, weight: Tensor) -> None:
        """Keep the same numbers elsewhere."""
        self._layer.weight = nn.Parameter(weight, requires_grad=False)
