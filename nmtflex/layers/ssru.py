"""The simpler simple recurrent unit.

Legend: N hypotheses, B sentences, T steps, D units.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from nmtflex.layers.linear import Product, glorot
from nmtflex.ops.recurrent import ssru
from nmtflex.ops.tensors import precise

State = tuple[Tensor, ...]


class Ssru(nn.Module):
    """SSRU: no product touches the state, so all steps of a training share one product.

    Kim et al. (2019), "From Research to Production and Back: Ludicrously Fast Neural Machine
    Translation", https://aclanthology.org/D19-5632, section 3.1::

        f[t] = sigmoid(W_f x[t] + b_f)
        c[t] = f[t] * c[t-1] + (1 - f[t]) * W x[t]
        h[t] = relu(c[t])

    The state is c [N, D], which starts at 0.

    Args:
        size: D.
    """

    state_size = 1

    def __init__(self, size: int) -> None:
        super().__init__()
        self.joint = glorot(Product(size, 2 * size, bias=False), outputs=2)  # W_f, W
        self.bias = nn.Parameter(torch.zeros(size))

    def start(self, x: Tensor) -> tuple[None, State]:
        """Return no cache, and the state before the first step of sentences x [B, D]."""
        return None, (x.new_zeros(x.shape, dtype=precise(x.dtype)),)

    def step(self, x: Tensor, cache: None, state: State) -> tuple[Tensor, State]:
        """Advance one step: [N, D] to [N, D], and the new state."""
        gates, candidates = self.joint(x).chunk(2, dim=1)
        (c,) = state
        f = torch.sigmoid((gates + self.bias).to(c.dtype))
        c = torch.lerp(candidates.to(c.dtype), c, f)
        return torch.relu(c), (c,)

    def sequence(self, x: Tensor, state: State) -> Tensor:
        """Advance by all steps: [B, T, D] to [B, T, D]."""
        gates, candidates = self.joint(x).chunk(2, dim=2)
        return torch.relu(ssru(gates + self.bias, candidates, state[0]))
